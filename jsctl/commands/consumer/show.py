"""`consumer ls`, `report`, `info` and `state`: commands that only read."""

from jsctl.api.consumer import ConsumerInfo
from jsctl.commands.toolkit.assets.picking import TO_LOOK_IN, consumer_of, pick_stream, stream_of
from jsctl.commands.toolkit.assets.unreachable import print_unreachable
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.column import sort_rows
from jsctl.render.humanize import counted
from jsctl.render.reports.assets.leaders import leader_rows, leader_table
from jsctl.render.reports.consumers import (
    LIST_COLUMNS,
    REPORT_COLUMNS,
    ConsumerRow,
    consumer_screen,
)


async def ls(call: Call) -> None:
    """All consumers of a stream, by name."""
    async with call.manager() as manager:
        stream = await pick_stream(call, manager, why=TO_LOOK_IN)
        if call.flag("names") and not call.flag("json"):
            call.output.names(await manager.consumer_names(stream))
            return
        listing = await manager.consumers(stream)
    if call.flag("json") and call.output.form == "table":
        call.output.json(sorted(info.name for info in listing.items))
        return
    rows = sort_rows([ConsumerRow(info) for info in listing.items], LIST_COLUMNS, "name")
    if not rows and not listing.missing and not call.output.machine:
        call.output.print("No Consumers defined")
        return
    call.output.table(rows, LIST_COLUMNS, "Consumers")
    if call.output.machine:
        return
    call.output.print()
    print_unreachable(call, "Consumers", listing.missing, listing.offline)
    call.output.print()


async def report(call: Call) -> int | None:
    """Statistics of a stream's consumers."""
    from jsctl.commands.toolkit.invocation.watching import watched  # brings the loop with it

    return await watched(call, _report)


async def _report(call: Call) -> None:
    async with call.manager() as manager:
        stream = await stream_of(call, manager, why=TO_LOOK_IN)
        listing = await manager.consumers(stream.config.name)
    messages = stream.state.messages
    rows = [ConsumerRow(info, messages) for info in listing.items]
    rows = sort_rows(rows, REPORT_COLUMNS, "name")
    out = call.output
    title = f"Consumer report for {stream.config.name} with {counted(len(rows), 'consumer')}"
    out.table(rows, REPORT_COLUMNS, title, raw=call.flag("raw"))
    if out.machine:
        return
    out.print()
    if call.flag("leaders"):
        leaders = leader_rows(info.cluster for info in listing.items)
        if leaders:
            out.print(leader_table(leaders, "Consumers", out.theme, out.width) + "\n")
    print_unreachable(call, "Consumers", listing.missing, listing.offline)


async def info(call: Call) -> None:
    """Configuration and state."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
    show_consumer(call, found)


async def state(call: Call) -> None:
    """The state alone."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
    show_consumer(call, found, only_state=True)


def show_consumer(call: Call, found: ConsumerInfo, *, only_state: bool = False) -> None:
    """The info screen, or the API object with `-j`."""
    if call.as_json:
        call.output.json(found)
        return
    call.output.details(consumer_screen(found, only_state=only_state))
