"""`stream ls`, `report`, `info`, `state`, `subjects`, `get` and `view`: commands that only read."""

from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING

from jsctl.api.codec import encode
from jsctl.api.errors import ApiError
from jsctl.api.fields import NANOS_MAX
from jsctl.api.stream import RawStreamMsg, StreamInfo
from jsctl.api.times import format_time, parse_time
from jsctl.commands.toolkit.assets.failing import told_as
from jsctl.commands.toolkit.assets.picking import pick_stream, stream_of
from jsctl.commands.toolkit.assets.unreachable import print_unreachable
from jsctl.commands.toolkit.content.bodies import print_body, translated, write_bytes
from jsctl.commands.toolkit.grammar.values import parse_whole
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import SHARED_MODE, save
from jsctl.errors import Aborted, NeedsConfirmation, UsageError
from jsctl.render.column import sort_rows
from jsctl.render.humanize import duration, go_moment, moment, number
from jsctl.render.reports.stream.tables import (
    LIST_COLUMNS,
    REPLICATION_COLUMNS,
    REPORT_COLUMNS,
    StreamRow,
    is_system_stream,
    replication_graph,
    replication_rows,
    report_columns,
)
from jsctl.render.table import safe, table

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

NO_MESSAGE = 10037
VIEW_MAX = 25
ANY = -1
"""In the place of a sequence: another way to find the message is asked for."""
_SORTS = ("consumers", "messages", "name", "storage")


async def ls(call: Call) -> None:
    """All streams, smallest first."""
    subject = call.text("subject")
    async with call.manager() as manager:
        if call.flag("names") and not call.flag("json"):
            call.output.names(await manager.stream_names(subject))
            return
        with told_as("could not list streams"):
            listing = await manager.streams(subject)
    everything = call.flag("all")
    infos = [info for info in listing.items if everything or not is_system_stream(info.config.name)]
    if call.flag("json") and call.output.form == "table":
        call.output.json(sorted(info.config.name for info in infos))
        return
    if not infos and not listing.missing and not call.output.machine:
        hidden = "" if not listing.items else ", pass -a to include system streams"
        call.output.print(f"No Streams defined{hidden}")
        return
    rows = sort_rows([StreamRow(info) for info in infos], LIST_COLUMNS, "bytes")
    title = f"Streams matching {subject}" if subject else "Streams"
    call.output.table(rows, LIST_COLUMNS, title)
    if not call.output.machine:
        call.output.print()
        print_unreachable(call, "Streams", listing.missing, listing.offline)
        call.output.print()


async def report(call: Call) -> int | None:
    """Statistics of all streams; mirrors and sources in a second table."""
    from jsctl.commands.toolkit.invocation.watching import watched  # brings the loop with it

    return await watched(call, _report)


async def _report(call: Call) -> None:
    output = call.output
    async with call.manager() as manager:
        if not output.machine:
            output.print("Obtaining Stream stats\n")
        listing = await manager.streams(call.text("subject"))
    cluster = call.text("cluster")
    infos = [
        info
        for info in listing.items
        if not cluster or info.cluster is None or info.cluster.name == cluster
    ]
    if not infos and not listing.missing and not output.machine:
        output.print("No Streams defined")
        return
    key = next((word for word in _SORTS if call.flag(word)), "bytes")
    rows = sort_rows([StreamRow(info) for info in infos], REPORT_COLUMNS, key)
    columns = report_columns(rows, machine=output.machine)
    output.table(rows, columns, "Stream Report", raw=call.flag("raw"))
    replicating = replication_rows([row.info for row in rows])
    if call.given("dot") and replicating:
        in_order = sorted(infos, key=lambda info: info.config.name)
        save(Path(call.text("dot")), replication_graph(in_order) + "\n", mode=SHARED_MODE)
    if output.machine:
        return
    output.print()
    if replicating:
        output.table(replicating, REPLICATION_COLUMNS, "Replication Report", raw=call.flag("raw"))
        output.print()
    if call.flag("leaders"):
        from jsctl.render.reports.assets.leaders import leader_rows, leader_table

        leaders = leader_rows(info.cluster for info in infos)
        if leaders:
            output.print(leader_table(leaders, "Streams", output.theme, output.width) + "\n")
    print_unreachable(call, "Streams", listing.missing, listing.offline)


async def info(call: Call) -> None:
    """Configuration and state."""
    async with call.manager() as manager:
        found = await stream_of(call, manager)
    show_stream(call, found, only_state=call.flag("state"), blank=True)


async def state(call: Call) -> None:
    """The state alone."""
    async with call.manager() as manager:
        found = await stream_of(call, manager)
    show_stream(call, found, only_state=True, blank=True)


def show_stream(
    call: Call, found: StreamInfo, *, only_state: bool = False, blank: bool = False
) -> None:
    """The info screen, or the API object with `-j`."""
    if call.as_json:
        call.output.json(found)
        return
    from jsctl.render.reports.stream.screen import stream_screen  # reports start without it

    call.output.details(stream_screen(found, only_state=only_state))
    if blank:
        call.output.print()


async def subjects(call: Call) -> None:
    """Subjects with their message counts."""
    async with call.manager() as manager:
        name = await pick_stream(call, manager)
        wanted = call.text("filter")
        found = await manager.stream_subjects(name, wanted or ">")
    by_name = call.text("sort") in ("name", "subjects")
    counts = sorted(found.items(), key=lambda item: item[0] if by_name else (item[1], item[0]))
    if call.flag("reverse"):
        counts.reverse()
    if call.as_json:
        call.output.json(dict(counts))
        return
    if not counts:
        call.output.say(f"No subjects found matching {wanted}")
        return
    if call.output.asked:
        call.output.json([{"subject": one, "messages": count} for one, count in counts])
        return
    if call.flag("names"):
        call.output.names(subject for subject, _ in counts)
        return
    _print_subjects(call, name, counts)


def _print_subjects(call: Call, stream: str, counts: list[tuple[str, int]]) -> None:
    longest = max(len(subject) + len(number(count)) for subject, count in counts)
    pairs = 3 if longest < 20 else 2 if longest < 30 else 1
    height = -(-len(counts) // pairs)
    rows = []
    for top in range(height):
        row: list[str] = []
        for subject, count in counts[top::height]:
            row += [subject, number(count)]
        rows.append(row + [""] * (2 * pairs - len(row)))
    heads = ["Subject", "Count"] * pairs
    title = f"{len(counts)} Subject{'' if len(counts) == 1 else 's'} in stream {stream}"
    out = call.output
    out.print(table(heads, rows, title=title, theme=out.theme, width_max=out.width))
    out.print()


async def get(call: Call) -> None:
    """One message."""
    async with call.manager() as manager:
        stream = await pick_stream(call, manager)
        seq = call.integer("id")
        last_for = "" if seq else call.text("last-for")
        if not call.given("id") and not last_for:
            seq, last_for = _asked_which(call)
        what = f": last message of {last_for}" if last_for else f"#{seq}"
        with told_as(f"could not retrieve {stream}{what}"):
            message = await manager.message(stream, seq=seq, last_for=last_for)
    if call.as_data:
        call.output.json(_message_document(message))
        return
    _print_message(call, stream, message)


def _asked_which(call: Call) -> tuple[int, str]:
    """The sequence of a message, or 0 and the subject whose last one is wanted."""
    text = "Message Sequence to retrieve"
    seq = call.prompts.ask(text, default=str(ANY), check=_sequence, prefix="invalid input")
    if seq != ANY:
        return seq, ""
    subject = call.prompts.ask("Subject to retrieve last message for", check=str)
    if not subject:
        raise UsageError("no ID or subject specified")
    return 0, subject


def _sequence(text: str) -> int:
    seq = parse_whole(text)
    if seq < 1 and seq != ANY:
        raise ValueError("sequences start at 1")
    return seq


def _message_document(message: RawStreamMsg) -> dict[str, object]:
    document = encode(message)
    return {
        key: document[key] for key in ("subject", "seq", "hdrs", "data", "time") if key in document
    }


def age_of(text: str, call: Call) -> str:
    """How long ago that was."""
    del call
    return duration(min(NANOS_MAX, max(0, time_ns() - parse_time(text))))


def _print_message(call: Call, stream: str, message: RawStreamMsg) -> None:
    when = f"{go_moment(message.time)} ({age_of(message.time, call)})"
    call.output.print(
        f"Item: {stream}#{message.seq} received {when} on Subject {safe(message.subject)}\n"
    )
    if message.hdrs:
        call.output.print("Headers:")
        for line in header_lines(message.hdrs):
            call.output.print(f"  {safe(line)}")
        call.output.print()
    body = translated(call, message.data, message.subject, stream)
    print_body(call, body, raw=False)


def header_lines(headers: bytes) -> list[str]:
    """`Key: value` lines of a header block."""
    lines = headers.decode("utf-8", "replace").split("\r\n")[1:]
    return [line for line in lines if line]


async def view(call: Call) -> None:
    """Messages, page by page; one page for programs, which ask for the next one by its `--id`."""
    asked = call.output.asked
    if not call.prompts.possible and not asked:
        raise NeedsConfirmation("interactive stream paging requires a valid terminal")
    size = call.integer("size") or VIEW_MAX
    if size > VIEW_MAX:
        size = VIEW_MAX
        call.output.log(f"Page size is limited to {size}, setting to {size}...")
    async with call.manager() as manager:
        stream = await pick_stream(call, manager)
        seq, shown = await _first(call, manager, stream), 0
        wanted = call.text("subject") or ">"
        while True:
            message = await _next_message(manager, stream, seq, wanted)
            if message is None:
                call.output.log("Reached apparent end of data")
                return
            _print_viewed(call, message, stream)
            seq, shown = message.seq + 1, shown + 1
            if shown % size == 0 and (asked or not _goes_on(call)):
                return


def _goes_on(call: Call) -> bool:
    """Whether another page is wanted: who has seen enough may say so by Ctrl-C, too."""
    try:
        return call.prompts.confirm("Next Page?", default=True)
    except Aborted:
        return False


async def _first(call: Call, manager: "Manager", stream: str) -> int:
    """Where a view begins: at a sequence, at a time, or at the first message."""
    since_ns = call.duration("since")
    if not since_ns:
        return max(1, call.integer("id"))
    from jsctl.client.reading import read_stream

    start = format_time(time_ns() - since_ns)
    async for message in read_stream(manager, stream, from_time=start, headers_only=True):
        return message.seq
    return (await manager.stream_info(stream)).state.last_seq + 1


async def _next_message(
    manager: "Manager", stream: str, seq: int, subject: str
) -> RawStreamMsg | None:
    try:
        return await manager.message(stream, seq=seq, next_for=subject)
    except ApiError as error:
        if error.err_code == NO_MESSAGE:
            return None
        raise


def _print_viewed(call: Call, message: RawStreamMsg, stream: str) -> None:
    body = translated(call, message.data, message.subject, stream)
    if call.flag("raw"):
        write_bytes(call, body + b"\n")
        return
    if call.output.asked:
        document = {"stream": stream, "seq": message.seq, "time": message.time}
        headers = list(header_lines(message.hdrs))
        text = body.decode("utf-8", "replace")
        call.output.json_line(
            {**document, "subject": message.subject, "headers": headers, "data": text}
        )
        return
    when = moment(message.time)
    call.output.print(f"[{message.seq}] Subject: {safe(message.subject)} Received: {when}")
    headers = header_lines(message.hdrs)
    for line in ["", *(f"  {safe(line)}" for line in headers)] if headers else ():
        call.output.print(line)
    print_body(call, body, raw=False)
