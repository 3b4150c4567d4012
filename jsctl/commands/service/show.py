"""`service list`, `info`, `stats` and `ping`."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jsctl.client.services import (
    Document,
    answers,
    endpoints,
    first,
    number_of,
    subject_of,
    text_of,
)
from jsctl.commands.toolkit.grammar.regexps import compiled
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, Unreachable, UsageError
from jsctl.render.humanize import duration, number
from jsctl.render.reports.services import (
    SERVICE_COLUMNS,
    STATISTICS_COLUMNS,
    Statistics,
    service_rows,
    service_screen,
)
from jsctl.render.table import safe

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient


async def _all(call: Call, verb: str, service: str = "", instance: str = "") -> list[Document]:
    async with call.client("setup failed") as client:
        return await _gather(call, client, subject_of(verb, service, instance))


async def _gather(call: Call, client: "NatsClient", subject: str) -> list[Document]:
    """What all that answer say, by name and id."""
    found = [one.document async for one in answers(client, subject, call.settings.timeout)]
    return sorted(found, key=lambda one: (text_of(one, "name"), text_of(one, "id")))


async def list_services(call: Call) -> None:
    """All services, or the instances of one."""
    name = call.text("service")
    found = await _all(call, "INFO", name)
    if call.as_json:
        call.output.json(found)
        return
    if not found and not call.output.machine:
        call.output.print("No results received")
        return
    title = f"{name} Service Instances" if name else "All Services"
    call.output.report(service_rows(found), SERVICE_COLUMNS, title)


async def info(call: Call) -> None:
    """What one instance offers and how it does."""
    name, instance = call.text("service"), call.text("id")
    wanted = _pattern(call)
    async with call.client("setup failed") as client:
        found = await _gather(call, client, subject_of("INFO", name, instance))
        if not found:
            call.output.print("{}" if call.as_json else "No results received")
            return
        told = found[0]
        known = await _statistics_of(call, client, told)
    if call.as_json:
        both = {"info": _matching(told, wanted), "stats": _matching(known, wanted)}
        call.output.json(both)
        return
    shown = [one for one in endpoints(told) if wanted.search(text_of(one, "name"))]
    counted = [one for one in endpoints(known) if wanted.search(text_of(one, "name"))]
    total = len(endpoints(known))
    call.output.details(service_screen(told, shown, known, counted, total))


async def _statistics_of(call: Call, client: "NatsClient", told: Document) -> Document:
    """Of the one instance that told about itself: nobody else is waited for."""
    name, instance = text_of(told, "name"), text_of(told, "id")
    try:
        known = await first(client, subject_of("STATS", name, instance), call.settings.timeout)
    except Unreachable:
        raise Unreachable("no micro instances found") from None
    if known is None:
        raise JsctlError(f"no statistics received for {name} > {instance}")
    return known


def _pattern(call: Call) -> re.Pattern[str]:
    try:
        return compiled(call.text("endpoint"))
    except re.error as error:
        raise UsageError(f"--endpoint is not a regular expression: {error}") from None


def _matching(document: Document, wanted: re.Pattern[str]) -> Document:
    kept = [one for one in endpoints(document) if wanted.search(text_of(one, "name"))]
    return {**document, "endpoints": kept}


async def stats(call: Call) -> None:
    """How the endpoints of all instances do."""
    name = call.text("service")
    found = await _all(call, "STATS", name, call.text("id"))
    if not found and not call.output.machine:
        call.output.print("No responses received")
        return
    if call.as_json:
        call.output.json(found)
        return
    rows = _statistics(found)
    requests = sum(row.requests for row in rows)
    errors = sum(row.errors for row in rows)
    took_ns = sum(row.processing_ns for row in rows)
    mean_ns = took_ns // max(1, requests + errors)
    totals = (number(requests), "", number(errors), duration(took_ns), duration(mean_ns))
    title = f"{name} Service Statistics"
    call.output.report(rows, STATISTICS_COLUMNS, title, footer=("", "", *totals))


def _statistics(found: Sequence[Document]) -> list[Statistics]:
    return [
        Statistics(
            id=text_of(one, "id"),
            shown_id="" if at else text_of(one, "id"),
            endpoint=text_of(each, "name"),
            requests=number_of(each, "num_requests"),
            queue_group=text_of(each, "queue_group"),
            errors=number_of(each, "num_errors"),
            processing_ns=number_of(each, "processing_time"),
            average_ns=number_of(each, "average_processing_time"),
        )
        for one in found
        for at, each in enumerate(endpoints(one))
    ]


async def ping(call: Call) -> None:
    """Who answers, and how fast, until the timeout."""
    subject = subject_of("PING", call.text("service"))
    out = call.output
    async with call.client("setup failed") as client:
        try:
            async for one in answers(client, subject, call.settings.timeout, silence_s=0.0):
                name, instance = text_of(one.document, "name"), text_of(one.document, "id")
                if out.asked:
                    out.json_line({"name": name, "id": instance, "rtt": one.rtt_ns})
                else:
                    out.print(f"{safe(f'{name} {instance}'):<50} rtt={duration(one.rtt_ns)}")
                out.stdout.flush()
        except Unreachable:
            return
