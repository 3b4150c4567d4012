"""`server report jetstream`, `connections` and `accounts`."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jsctl.api.codec import encode
from jsctl.api.connz import ConnInfo, Connz, ConnzOptions
from jsctl.api.jsz import Jsz, JSzOptions
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.asking import ask, count_of, report_filter
from jsctl.errors import NotFound, UsageError
from jsctl.render.column import documents
from jsctl.render.reports.connections import (
    ACCOUNT_COLUMNS,
    CONNECTION_COLUMNS,
    COUNT_COLUMNS,
    REASON,
    AccountRow,
    ConnectionRow,
    account_rows,
    connection_footer,
    count_rows,
    top_accounts,
    top_connections,
)
from jsctl.render.reports.leaders import leader_table, rows_of_counts
from jsctl.render.reports.server_jetstream import (
    META_COLUMNS,
    JetStreamRow,
    Replies,
    jetstream_columns,
    jetstream_footer,
    jetstream_rows,
    meta_groups,
    meta_rows,
    no_leader_warning,
    sort_jetstream,
)

if TYPE_CHECKING:
    from jsctl.client.system import SystemReply

ACCOUNT_STREAMS_MAX = 10_000
PAGE = 1024
PAGES_MAX = 10_000
STATES: Mapping[str, int] = {"open": 0, "closed": 1, "all": 2}


async def jetstream(call: Call) -> None:
    """JetStream of all servers, and its meta group."""
    account, where = call.text("account"), report_filter(call)
    options = JSzOptions(raft=True)
    if account:
        options = JSzOptions(
            account=account, streams=True, consumer=True, limit=ACCOUNT_STREAMS_MAX, raft=True
        )
    async with call.system() as system:
        wanted = count_of(call, "limit")
        answers = await ask(system, "JSZ", encode(options), where=where, wanted=wanted)
    replies = [(answer.server, answer.as_(Jsz)) for answer in answers if answer.error is None]
    rows = jetstream_rows(replies, account=account, short=call.flag("compact"))
    rows = sort_jetstream(rows, call.text("sort"), reverse=call.flag("reverse"))
    if call.output.machine:
        _jetstream_data(call, rows, replies)
        return
    columns = jetstream_columns(rows)
    title = f"JetStream Summary for Account {account}" if account else "JetStream Summary"
    call.output.table(rows, columns, title, footer=jetstream_footer(rows, columns))
    call.output.print()
    if not (where.server_name or where.cluster or where.tags):
        _print_meta(call, replies)
    if call.flag("leaders"):
        _print_leaders(call, replies)


def _jetstream_data(call: Call, rows: list[JetStreamRow], replies: Replies) -> None:
    columns = jetstream_columns(rows, data=True)
    if call.output.form not in ("json", "yaml"):
        call.output.table(rows, columns, "JetStream Summary")
        return
    groups = [
        {
            "name": meta.name,
            "leader": meta.leader,
            "peers": documents(meta_rows(meta), META_COLUMNS),
        }
        for meta in meta_groups(replies)
    ]
    call.output.json({"servers": documents(rows, columns), "meta": groups})


def _print_meta(call: Call, replies: Replies) -> None:
    groups = meta_groups(replies)
    warning = "" if groups else no_leader_warning(replies)
    if warning:
        call.output.print(warning)
    for meta in groups:
        if meta.cluster_size:
            title = f"RAFT Meta Group Information - Lead cluster: {meta.name}"
            call.output.table(meta_rows(meta), META_COLUMNS, title)


def _print_leaders(call: Call, replies: Replies) -> None:
    streams = {(server.cluster, server.name): jsz.streams_leader for server, jsz in replies}
    consumers = {(server.cluster, server.name): jsz.consumers_leader for server, jsz in replies}
    if not any(streams.values()) and not any(consumers.values()):
        call.output.print("\nNo JetStream asset leader data reported")
        return
    for counts, kind in ((streams, "Stream Leaders"), (consumers, "Consumer Leaders")):
        call.output.print()
        rows = rows_of_counts(counts)
        call.output.print(leader_table(rows, kind, call.output.theme, call.output.width))
    call.output.print()


async def connections(call: Call) -> None:
    """Connections of all servers."""
    await _report_connections(call, call.text("account"))


async def accounts(call: Call) -> None:
    """Accounts by their connections, or the connections of one."""
    if call.text("account"):
        await _report_connections(call, call.text("account"))
        return
    rows = await _gathered(call, "")
    key, top, back = call.text("sort"), call.integer("top"), call.flag("reverse")
    found = top_accounts(account_rows(rows), key, top, reverse=back)
    if call.flag("json") and call.output.form == "table":
        call.output.json([_account_document(row, rows) for row in found])
        return
    _blank(call)
    call.output.table(found, ACCOUNT_COLUMNS, f"{len(found):,} Accounts Overview")


async def _report_connections(call: Call, account: str) -> None:
    rows = await _gathered(call, account)
    key, top, back = call.text("sort"), call.integer("top"), call.flag("reverse")
    key = key if key != "conns" else "subs"
    shown = top_connections(rows, key, top, reverse=back)
    if call.flag("json") and call.output.form == "table":
        call.output.json([_connection_document(row) for row in shown])
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


async def _gathered(call: Call, account: str) -> list[ConnectionRow]:
    """The connections of all servers, page by page. Raises NotFound when there are none."""
    rows: list[ConnectionRow] = []
    reason = _pattern(call.text("closed-reason"))
    async with call.system() as system:
        where, wanted = report_filter(call), count_of(call, "limit")
        for page in range(PAGES_MAX):
            options = encode(_connz_options(call, account, page * PAGE))
            replies = await ask(system, "CONNZ", options, where=where, wanted=wanted)
            found = [(reply, reply.as_(Connz)) for reply in replies if reply.error is None]
            rows += [_row(reply, one) for reply, connz in found for one in connz.connections]
            if not any(connz.offset + connz.limit < connz.total for _, connz in found):
                break
            if not page:
                call.output.note("Gathering paged connection information....")
    if reason is not None:
        rows = [row for row in rows if reason.search(row.info.reason.lower())]
    if not rows:
        raise NotFound("did not get results from any servers")
    return rows


def _pattern(text: str) -> "re.Pattern[str] | None":
    if not text:
        return None
    try:
        return re.compile(text)
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


def _connection_document(row: ConnectionRow) -> dict[str, object]:
    return {**encode(row.info), "server": encode(row.server)}


def _account_document(row: AccountRow, rows: list[ConnectionRow]) -> dict[str, object]:
    return {
        "account": row.account,
        "connections": row.connections,
        "connection_info": [
            _connection_document(one) for one in rows if one.info.account == row.account
        ],
        "in_msgs": row.in_msgs,
        "out_msgs": row.out_msgs,
        "in_bytes": row.in_bytes,
        "out_bytes": row.out_bytes,
        "subscriptions": row.subs,
        "server": [encode(server) for server in row.servers.values()],
    }
