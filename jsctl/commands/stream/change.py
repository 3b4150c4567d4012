"""`stream rm`, `purge`, `rmm` and `seal`: commands that take something away."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.client.manager import as_request
from jsctl.commands.stream.show import show_stream
from jsctl.commands.toolkit.assets.bulk import in_bulk, is_bulk
from jsctl.commands.toolkit.assets.picking import (
    STREAM_NOT_FOUND,
    check_name,
    pick_stream,
    unknown_stream,
)
from jsctl.commands.toolkit.grammar.values import parse_whole
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Aborted, RequestFailed, UsageError
from jsctl.render.humanize import counted
from jsctl.render.reports.stream.tables import is_system_stream

if TYPE_CHECKING:
    from jsctl.client.manager import Manager


async def _named(call: Call, manager: "Manager") -> str:
    """With --force the name is taken as given, so that offline streams can be removed."""
    name = call.text("stream")
    if call.flag("force") and name:
        return check_name(name, "stream")
    return await pick_stream(call, manager)


def confirm_bucket(call: Call, stream: str) -> None:
    """Streams behind Key-Value buckets need a second yes; `--force` skips it."""
    if not stream.startswith("KV_") or call.flag("force"):
        return
    call.output.note(f"WARNING: Operating on the underlying stream of a Key-Value bucket {stream}")
    if not call.prompts.confirm("Really operate on the KV stream?"):
        raise Aborted("aborting Key-Value store operation")


async def _matching(
    call: Call, manager: "Manager", verb: str, operate: Callable[[str], Awaitable[object]]
) -> int:
    """Streams behind buckets are left alone without `--all`."""
    names = await manager.stream_names()
    shown = [name for name in names if call.flag("all") or not is_system_stream(name)]
    return await in_bulk(call, shown, verb, "stream", operate)


async def rm(call: Call) -> int | None:
    """Delete a stream, or all that match."""
    bulk = is_bulk(call)
    async with call.manager() as manager:
        if bulk:
            return await _matching(call, manager, "delete", manager.delete_stream)
        if call.flag("force") and not call.text("stream"):
            raise UsageError("--force requires a stream name")
        name = await _named(call, manager)
        if not call.confirm(f"Really delete Stream {name}"):
            return None
        try:
            await manager.delete_stream(name)
        except ApiError as error:
            if error.err_code == STREAM_NOT_FOUND:
                raise unknown_stream(name, await manager.stream_names()) from None
            raise RequestFailed(error, prefix=f"could not remove Stream {name}") from None
    return None


async def purge(call: Call) -> int | None:
    """Remove messages of a stream, or of all that match."""
    seq, keep = call.integer("seq"), call.integer("keep")
    if seq and keep:
        raise UsageError("sequence and keep cannot be combined when purging")
    subject, bulk = call.text("subject"), is_bulk(call)
    async with call.manager() as manager:
        if bulk:
            return await _matching(
                call,
                manager,
                "purge",
                lambda name: manager.purge(name, subject=subject, seq=seq, keep=keep),
            )
        name = await pick_stream(call, manager)
        confirm_bucket(call, name)
        if not call.confirm(f"Really purge Stream {name}"):
            return None
        try:
            purged = await manager.purge(name, subject=subject, seq=seq, keep=keep)
        except ApiError as error:
            if error.err_code == STREAM_NOT_FOUND:
                raise
            raise RequestFailed(error, prefix="could not purge Stream") from None
        info = await manager.stream_info(name)
    sentence = f"Purged {counted(purged, 'message')} from {name}\n"
    if call.as_json:
        call.output.note(sentence.strip())
    else:
        call.output.say(sentence)
    show_stream(call, info, only_state=True)
    return None


async def rmm(call: Call) -> None:
    """Erase one message."""
    async with call.manager() as manager:
        name = await pick_stream(call, manager)
        seq = call.integer("id")
        if not seq and call.given("id"):
            raise UsageError("sequence number is required")
        if not seq:
            seq = call.prompts.ask("Message Sequence to remove", check=_sequence)
        confirm_bucket(call, name)
        if not call.confirm(f"Really remove message {seq} from Stream {name}"):
            return
        await manager.delete_message(name, seq)


def _sequence(text: str) -> int:
    seq = parse_whole(text)
    if seq < 1:
        raise ValueError("sequences start at 1")
    return seq


async def seal(call: Call) -> None:
    """Make a stream read-only for ever."""
    async with call.manager() as manager:
        name = await pick_stream(call, manager)
        question = f"Really seal Stream {name}, sealed streams can not be unsealed or modified"
        if not call.confirm(question):
            return
        info = await manager.stream_info(name)
        if not info.config.sealed:  # a sealed one cannot be sealed again, and is what it should be
            info = await manager.update_stream(replace(as_request(info.config), sealed=True))
    show_stream(call, info)
