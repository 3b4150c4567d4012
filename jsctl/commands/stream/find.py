"""`stream find` and `gaps`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jsctl.client.reading import read_stream
from jsctl.commands.stream.query import chosen
from jsctl.commands.toolkit.assets.picking import stream_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.column import Column, sort_rows
from jsctl.render.humanize import counted, number, size
from jsctl.render.reports.stream.tables import LIST_COLUMNS, StreamRow

if TYPE_CHECKING:
    from jsctl.api.stream import StreamInfo
    from jsctl.client.manager import Manager

Gap = tuple[int, int]
GAP_WARNING = (
    "WARNING: Detecting gaps in a stream consumes the entire stream and can be resource intensive "
    "on the Server, Client and Network.\n"
)
GAP_COLUMNS: tuple[Column[Gap], ...] = (
    Column("first", "First Message", lambda gap: gap[0], lambda gap: number(gap[0])),
    Column("last", "Last Message", lambda gap: gap[1], lambda gap: number(gap[1])),
)


async def find(call: Call) -> None:
    """Streams that match."""
    async with call.manager() as manager:
        infos = chosen(call, (await manager.streams()).items)
    rows = sort_rows([StreamRow(info) for info in infos], LIST_COLUMNS, "bytes")
    if call.flag("names"):
        call.output.names(sorted(row.info.config.name for row in rows))
        return
    subject = call.text("subject")
    call.output.table(rows, LIST_COLUMNS, f"Streams matching {subject}" if subject else "Streams")
    if not call.output.machine:
        call.output.print("\n")


async def gaps(call: Call) -> None:
    """Sequences between the first and the last that have no message any more."""
    async with call.manager() as manager:
        info = await stream_of(call, manager)
        name = info.config.name
        if not info.state.num_deleted:
            _tell(call, name, [])
            return
        if not call.flag("force"):
            call.output.note(GAP_WARNING)
            question = (
                f"Really detect gaps in stream {name} with {number(info.state.messages)} messages "
                f"and {size(info.state.bytes)} bytes"
            )
            if not call.prompts.confirm(question):
                return
        _tell(call, name, await _gaps(manager, name))


async def _gaps(manager: "Manager", name: str) -> list[Gap]:
    info = await manager.stream_info(name, deleted_details=True)
    found = ranges(info.state.deleted)
    if len(info.state.deleted) < info.state.num_deleted:
        found = _joined(found, await _walked(manager, info, found[-1][1] + 1 if found else 0))
    return found


async def _walked(manager: "Manager", info: "StreamInfo", start: int) -> list[Gap]:
    """What servers leave out of a long list, from the messages themselves."""
    found: list[Gap] = []
    expected = start or info.state.first_seq
    async for message in read_stream(manager, info.config.name, from_seq=start, headers_only=True):
        if message.seq > expected:
            found.append((expected, message.seq - 1))
        expected = message.seq + 1
    return found


def ranges(sequences: Iterable[int]) -> list[Gap]:
    """Sorted numbers as first and last of each run."""
    found: list[Gap] = []
    for seq in sequences:
        if found and found[-1][1] + 1 == seq:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return found


def _joined(before: list[Gap], after: list[Gap]) -> list[Gap]:
    """Both lists; a gap that goes on in the second one is a single gap."""
    if before and after and before[-1][1] + 1 == after[0][0]:
        return [*before[:-1], (before[-1][0], after[0][1]), *after[1:]]
    return [*before, *after]


def _tell(call: Call, name: str, found: list[Gap]) -> None:
    if call.as_json:
        call.output.json([list(gap) for gap in found])
    elif not found and not call.output.asked:
        call.output.print(f"No deleted messages in {name}")
    else:
        call.output.table(
            found, GAP_COLUMNS, f"{counted(len(found), 'gap')} found in Stream {name}"
        )
        if not call.output.machine:
            call.output.print()
