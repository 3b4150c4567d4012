"""`dlq replay` and `drop`: one dead letter after the other, each done whole before the next."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.client.headers import Headers, pairs_of
from jsctl.commands.dlq.letters import (
    NO_MESSAGE,
    NO_STREAM,
    Letter,
    check_stays,
    chosen_letters,
    dead_letter_stream,
    forget,
    read_letters,
    with_messages,
)
from jsctl.commands.dlq.show import row_of
from jsctl.commands.toolkit.content.bodies import check_subject
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError
from jsctl.render.humanize import counted
from jsctl.render.reports.dead_letters import LETTER_COLUMNS
from jsctl.render.table import readable

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

_OF_THE_FIRST_TIME = (
    "nats-msg-id",
    "nats-expected-",
    "nats-rollup",
    "nats-schedule",
    "nats-batch-",
    "dead-letter-",
)
"""Headers that were for storing the message once."""
_DELETED = (NO_MESSAGE, NO_STREAM, 10057, 10043)


async def replay(call: Call) -> int:
    """Stores messages again; 1 when one could not be."""
    if call.text("to"):
        check_subject(call.text("to"))
    return await _each(call, "replay", _replayed)


async def drop(call: Call) -> int:
    """Forgets dead letters; 1 when one could not be."""
    return await _each(call, "drop", _dropped)


Act = Callable[[Call, "Manager", Letter], Awaitable[str]]


async def _each(call: Call, verb: str, act: Act) -> int:
    async with call.manager() as manager:
        stream = await dead_letter_stream(call, manager)
        chosen = chosen_letters(call, await read_letters(call, manager, stream))
        letters = await with_messages(call, manager, chosen)
        if call.flag("dry-run"):
            _show(call, letters)
            return 0
        if letters and not call.confirm(f"Really {verb} {counted(len(letters), 'dead letter')}"):
            return 0
        done: dict[str, str] = {}
        failed: dict[str, str] = {}
        for letter in letters:
            try:
                told = await act(call, manager, letter)
                await forget(manager, stream, letter)
            except (ApiError, JsctlError) as error:
                failed[str(letter.id)] = str(error)
                call.output.note(f"{letter.id}: {error}")
            else:
                done[str(letter.id)] = told
                if not call.as_json:
                    call.output.print(f"{letter.id}: {readable(told)}")
    if call.as_json:
        call.output.json({"done": done, "failed": failed})
    elif not letters:
        call.output.print("No dead letters")
    return 1 if failed else 0


def _show(call: Call, letters: list[Letter]) -> None:
    rows = [row_of(one) for one in letters]
    if call.flag("json") and call.output.form == "table":
        call.output.json({"ids": [one.id for one in letters]})
    else:
        call.output.report(rows, LETTER_COLUMNS, f"{len(rows):,} Dead Letters")


async def _replayed(call: Call, manager: "Manager", letter: Letter) -> str:
    """Stores the message again. A second try within the stream's window is a duplicate; one that
    goes elsewhere is not, as where two consumers gave up the same message."""
    message = check_stays(letter)
    subject = call.text("to") or message.subject
    kept = [
        (name, value)
        for name, value in pairs_of(message.hdrs)
        if not name.lower().startswith(_OF_THE_FIRST_TIME)
    ]
    elsewhere = f".{subject}" if call.text("to") else ""
    origin = [
        ("Nats-Msg-Id", f"dlq.{letter.stream}.{letter.sequence}{elsewhere}"),
        ("Dead-Letter-Stream", letter.stream),
        ("Dead-Letter-Consumer", letter.consumer),
        ("Dead-Letter-Sequence", str(letter.sequence)),
    ]
    stored = await manager.store(subject, message.data, Headers.of([*kept, *origin]))
    if call.flag("remove"):
        await _removed(manager, letter)
    again = " already" if stored.duplicate else ""
    return f"stored{again} as message {stored.seq} of stream {stored.stream} on {subject}"


async def _dropped(call: Call, manager: "Manager", letter: Letter) -> str:
    if not call.flag("remove"):
        return "forgotten"
    await _removed(manager, letter)
    return f"forgotten, and message {letter.sequence} of stream {letter.stream} removed"


async def _removed(manager: "Manager", letter: Letter) -> None:
    """Takes the message out of its stream; one that is gone already is no error."""
    try:
        await manager.delete_message(letter.stream, letter.sequence, erase=False)
    except ApiError as error:
        if error.err_code not in _DELETED:
            raise
