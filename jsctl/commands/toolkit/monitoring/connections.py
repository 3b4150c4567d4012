"""Connections of all servers, gathered page by page, and the report on them."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from jsctl.api.codec import encode
from jsctl.api.monitoring.connz import ConnInfo, Connz, ConnzOptions
from jsctl.client.system import NoSystemRights
from jsctl.commands.toolkit.grammar.regexps import compiled
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.asking import STATES, ask, count_of, report_filter
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.render.reports.server.connections import (
    CONNECTION_COLUMNS,
    COUNT_COLUMNS,
    REASON,
    ConnectionRow,
    connection_footer,
    count_rows,
    top_connections,
)

if TYPE_CHECKING:
    from jsctl.client.system import SystemReply

NOBODY = "did not get results from any servers"
Keep = Callable[[ConnectionRow], bool]
PAGE = 1024
PAGES_MAX = 10_000


async def report_connections(call: Call, account: str, keep: Keep | None = None) -> None:
    """The busiest connections that are to be kept; of all accounts unless one is named."""
    rows = await gather_connections(call, account, keep)
    key, top, back = call.text("sort"), call.integer("top"), call.flag("reverse")
    key = key if key != "conns" else "subs"
    shown = top_connections(rows, key, top, reverse=back)
    if call.flag("json") and call.output.form == "table":
        call.output.json([connection_document(row) for row in shown])
        return
    closed = call.text("state") in ("closed", "all")
    columns = (*CONNECTION_COLUMNS, REASON) if closed else CONNECTION_COLUMNS
    _blank(call)
    title = f"Top {len(shown):,} Connections out of {len(rows):,} by {key}"
    call.output.table(shown, columns, title, footer=connection_footer(rows, columns))
    if not call.output.machine:
        call.output.print()
        call.output.table(count_rows(rows), COUNT_COLUMNS, "Connections per server")


def _blank(call: Call) -> None:
    if not call.output.machine:
        call.output.print()


async def gather_connections(
    call: Call, account: str, keep: Keep | None = None
) -> list[ConnectionRow]:
    """The connections of all servers, page by page. Raises NotFound when there are none."""
    rows: list[ConnectionRow] = []
    reason = _pattern(call.text("closed-reason"))
    async with call.system() as system:
        where, wanted = report_filter(call), count_of(call, "limit")
        for page in range(PAGES_MAX):
            options = encode(_connz_options(call, account, page * PAGE))
            try:
                replies = await ask(system, "CONNZ", options, where=where, wanted=wanted)
            except NoSystemRights:
                if where.server_name or where.cluster or where.tags:
                    raise NotFound(NOBODY) from None
                raise
            found = [(reply, reply.as_(Connz)) for reply in replies if reply.error is None]
            if wrong := next((reply.error for reply in replies if reply.error), None):
                code = wrong.err_code
                raise JsctlError(f"invalid response received: {wrong.description} ({code})")
            rows += [_row(reply, one) for reply, connz in found for one in connz.connections]
            if not any(connz.offset + connz.limit < connz.total for _, connz in found):
                break
            if not page:
                call.output.note("Gathering paged connection information....")
    if reason is not None:
        rows = [row for row in rows if reason.search(row.info.reason.lower())]
    if keep is not None:
        rows = [row for row in rows if keep(row)]
    if not rows:
        raise NotFound(NOBODY)
    return rows


def _pattern(text: str) -> "re.Pattern[str] | None":
    if not text:
        return None
    try:
        return compiled(text)
    except re.error as error:
        raise UsageError(f"--closed-reason: {error}") from None


def _connz_options(call: Call, account: str, offset: int) -> ConnzOptions:
    return ConnzOptions(
        auth=True,
        subscriptions=True,
        offset=offset,
        limit=PAGE,
        state=STATES[call.text("state") or "open"],
        user=call.text("username"),
        acc=account,
        filter_subject=call.text("subject"),
    )


def _row(reply: "SystemReply", info: ConnInfo) -> ConnectionRow:
    return ConnectionRow(reply.server, info)


def connection_document(row: ConnectionRow) -> dict[str, object]:
    """A connection with the server it is on."""
    return {**encode(row.info), "server": encode(row.server)}
