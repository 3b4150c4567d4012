"""`dlq list` and `inspect`."""

from jsctl.commands.dlq.letters import (
    Letter,
    by_ids,
    dead_letter_stream,
    read_letters,
    with_messages,
)
from jsctl.commands.toolkit.content.bodies import header_lines, print_body
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.humanize import counted
from jsctl.render.reports.dead_letters import LETTER_COLUMNS, LetterRow, letter_document, screen_of
from jsctl.render.table import safe


def row_of(letter: Letter) -> LetterRow:
    """A dead letter as tables have it."""
    message = letter.message
    return LetterRow(
        id=letter.id,
        stream=letter.stream,
        consumer=letter.consumer,
        sequence=letter.sequence,
        subject=message.subject if message is not None else "",
        deliveries=letter.deliveries,
        why=letter.why.value,
        reason=letter.reason,
        time_ns=letter.time_ns,
        size=len(message.data) if message is not None else None,
    )


async def list_letters(call: Call) -> None:
    """A row each."""
    limit = call.integer("limit")
    async with call.manager() as manager:
        stream = await dead_letter_stream(call, manager)
        found = await read_letters(call, manager, stream)
        shown = await with_messages(call, manager, found[-limit:] if limit > 0 else found)
    rows = [row_of(one) for one in shown]
    if call.flag("json") and call.output.form == "table":
        call.output.json([letter_document(one) for one in rows])
        return
    if not rows and not call.output.machine:
        call.output.print("No dead letters")
        return
    call.output.report(rows, LETTER_COLUMNS, f"{len(rows):,} Dead Letters in {stream}")
    if 0 < limit < len(found):
        call.output.note(
            f"{counted(len(found) - limit, 'older dead letter')} not shown, see --limit"
        )


async def inspect(call: Call) -> None:
    """One, with its headers and body."""
    async with call.manager() as manager:
        stream = await dead_letter_stream(call, manager)
        found = by_ids(await read_letters(call, manager, stream), [call.text("id")])
        (letter,) = await with_messages(call, manager, found)
    row, message = row_of(letter), letter.message
    if call.as_json:
        document = letter_document(row)
        if message is not None:
            from base64 import b64encode

            document["headers"] = message.hdrs.decode("utf-8", "replace")
            document["data"] = b64encode(message.data).decode()
        call.output.json(document)
        return
    call.output.details(screen_of(row))
    if message is None:
        return
    from jsctl.client.headers import Headers

    call.output.print()
    lines = header_lines(Headers.read(message.hdrs))
    for line in [*lines, ""] if lines else []:
        call.output.print(safe(line))
    print_body(call, message.data, raw=False)
