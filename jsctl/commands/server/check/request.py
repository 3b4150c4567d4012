"""`server check request`: whether a service answers, how fast, and what."""

from time import perf_counter_ns
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS, format_duration
from jsctl.client.connection import load_headers
from jsctl.client.failures import foreign_errors, translate
from jsctl.commands.server.check.message import pattern
from jsctl.commands.server.check.run import (
    NOT_LOADED,
    checked,
    client_for,
    critical_if_it_fails,
    seconds,
)
from jsctl.commands.toolkit.content.bodies import check_names
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.server.check import CheckResult

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient


async def request(call: Call) -> int:
    """Checks a service."""
    pattern(call, "match-payload")
    return await checked(call, "request", call.text("subject"), body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    warn, critical = seconds(call, "response-warn"), seconds(call, "response-critical")
    if not call.text("subject"):
        result.critical("no subject specified")
        return
    async with client_for(call, result, NOT_LOADED) as client:
        load_headers()
        started = perf_counter_ns()
        try:
            with critical_if_it_fails(result, "could not send request"):
                answer = await _answer(call, client)
        finally:
            took_ns = round(perf_counter_ns() - started, -6)
            result.measure(
                "time",
                took_ns / SECOND_NS,
                warning=warn,
                critical=critical,
                unit="s",
                help="How long the request took",
            )
    wanted = pattern(call, "match-payload")
    if wanted is not None and not wanted.search(answer.data):
        result.critical("response does not match regexp")
    for key, value in call.mapping("match-headers").items():
        found = (answer.headers or {}).get(key, "")
        if found != value:
            result.critical(f'invalid header "{key}" = "{found}"')
    sentence = f"response took {format_duration(took_ns)}"
    if critical > 0 and took_ns > critical * SECOND_NS:
        result.critical(sentence)
    elif warn > 0 and took_ns > warn * SECOND_NS:
        result.warn(sentence)
    result.ok_if_clean("Valid response")


async def _answer(call: Call, client: "NatsClient") -> "Msg":
    """Raises Unreachable and NotAllowed."""
    subject, payload = call.text("subject"), call.text("payload").encode()
    headers = call.mapping("headers") or None
    check_names(headers or {})
    try:
        async with client.refusals.scope(lambda: (subject, client.inbox_pattern)):
            return await client.request(
                subject, payload, timeout=call.settings.timeout, headers=headers
            )
    except foreign_errors() as error:
        raise translate(error) from error
