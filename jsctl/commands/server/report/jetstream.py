"""`server report jetstream`."""

from jsctl.api.codec import encode
from jsctl.api.monitoring.jsz import Jsz, JSzOptions
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import watched
from jsctl.commands.toolkit.monitoring.asking import ask, count_of, report_filter
from jsctl.render.column import documents
from jsctl.render.reports.assets.leaders import leader_table, rows_of_counts
from jsctl.render.reports.server.jetstream import (
    META_COLUMNS,
    JetStreamRow,
    Replies,
    jetstream_columns,
    jetstream_footer,
    jetstream_rows,
    leaders_of,
    meta_groups,
    meta_rows,
    no_leader_warning,
    sort_jetstream,
)

ACCOUNT_STREAMS_MAX = 10_000


async def jetstream(call: Call) -> int | None:
    """JetStream of all servers, and its meta group."""
    return await watched(call, _jetstream)


async def _jetstream(call: Call) -> None:
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
    streams, consumers = leaders_of(replies, account=call.text("account"))
    if not any(streams.values()) and not any(consumers.values()):
        call.output.print("\nNo JetStream asset leader data reported")
        return
    for counts, kind in ((streams, "Stream Leaders"), (consumers, "Consumer Leaders")):
        call.output.print()
        rows = rows_of_counts(counts)
        call.output.print(leader_table(rows, kind, call.output.theme, call.output.width))
    call.output.print()
