"""`server list`, `ping` and `info`."""

from jsctl.api.monitoring.varz import Varz
from jsctl.api.server import EventFilterOptions
from jsctl.client.facts import known_servers, statsz_of
from jsctl.client.system import NoSystemRights, SystemReply
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.asking import NO_RESULTS, ask, count_of
from jsctl.errors import NotFound
from jsctl.render.charts import line_chart
from jsctl.render.humanize import counted
from jsctl.render.reports.server.info import server_screen
from jsctl.render.reports.server.overview import (
    CLUSTER_COLUMNS,
    SERVER_COLUMNS,
    cluster_footer,
    cluster_rows,
    ping_line,
    server_footer,
    server_rows,
    sort_servers,
)

ID_LENGTH = 56
GRAPH_MS = 25
ANYWHERE = EventFilterOptions()


async def list_servers(call: Call) -> None:
    """All servers, the nearest first."""
    try:
        async with call.system() as system:
            wanted = count_of(call, "expect")
            replies = await ask(system, "", where=ANYWHERE, wanted=wanted)
    except NoSystemRights:
        raise NoSystemRights(NO_RESULTS) from None
    if call.flag("json") and call.output.form == "table":
        call.output.json([reply.document for reply in replies])
        return
    facts = [(reply.server, statsz_of(reply), reply.rtt_ns) for reply in replies]
    rows = server_rows(facts, short=call.flag("compact"))
    # Nobody measured the way to a server that was not asked.
    key = "name" if call.text("archive") and call.text("sort") == "rtt" else call.text("sort")
    rows = sort_servers(rows, key, reverse=call.flag("reverse"))
    call.output.table(rows, SERVER_COLUMNS, "Server Overview", footer=server_footer(rows))
    clusters = cluster_rows(rows)
    if clusters and not call.output.machine:
        call.output.print()
        footer = cluster_footer(clusters)
        call.output.table(clusters, CLUSTER_COLUMNS, "Cluster Overview", footer=footer)


async def ping(call: Call) -> int:
    """Round trips to all servers; answers may be missing without that being an error."""
    wanted = count_of(call, "expect")
    async with call.system() as system:
        try:
            wanted = wanted or await known_servers(system)
            replies = await system.gather("", expected=wanted)
        except NoSystemRights:
            raise NoSystemRights(
                "503 status from $SYS.REQ.SERVER.PING, ensure a system account is used "
                "with appropriate permissions"
            ) from None
    if call.as_data:
        call.output.json([_ping_document(reply) for reply in replies])
        return 0
    for reply in replies:
        head = f"{reply.server.id} " if call.flag("id") else ""
        call.output.print(head + ping_line(reply.server.name, reply.rtt_ns))
    _ping_statistics(call, [reply.rtt_ns / 1e6 for reply in replies])
    if len(replies) < wanted:
        call.output.print(f"\nMissing {wanted - len(replies)} server(s)")
    return 0


def _ping_document(reply: SystemReply) -> dict[str, object]:
    return {"name": reply.server.name, "id": reply.server.id, "rtt": reply.rtt_ns}


def _ping_statistics(call: Call, times: list[float]) -> None:
    call.output.print()
    call.output.print("---- ping statistics ----")
    if not times:
        call.output.print("no responses received")
        return
    average = sum(times) / len(times)
    call.output.print(
        f"{counted(len(times), 'reply', 'replies')} max: {max(times):.2f} min: {min(times):.2f} "
        f"avg: {average:.2f}"
    )
    if call.flag("graph"):
        counts = [0.0] * (int(max(times) / GRAPH_MS) + 1)
        for one in times:
            counts[int(one / GRAPH_MS)] += 1
        call.output.print()
        call.output.print(
            line_chart(counts, f"Responses per {GRAPH_MS}ms", "{:.2f}".format, width=60, height=15)
        )


async def info(call: Call) -> None:
    """One server: the connected one, or one by id or name."""
    name = call.text("server")
    by_id = len(name) == ID_LENGTH and name.isupper()
    where = EventFilterOptions(server_name=name, exact_match=True) if name else ANYWHERE
    try:
        async with call.system() as system:
            if by_id and not call.text("archive"):
                replies = await system.gather("VARZ", server_id=name)
            else:
                replies = await system.gather("VARZ", where=where, expected=1)
    except NoSystemRights:
        raise NoSystemRights(NO_RESULTS) from None
    if not replies and call.text("archive"):
        raise NotFound(f'no captured data for server "{name}" in {call.text("archive")}')
    if not replies:
        raise NoSystemRights(NO_RESULTS)
    if call.as_json:
        call.output.json(replies[0].data)
    else:
        call.output.details(server_screen(replies[0].as_(Varz)))
