"""Names that were not given: look them up, offer a list, or say what is missing."""

from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamInfo
from jsctl.commands.toolkit.assets.failing import told_as
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NeedsConfirmation, NotFound, Unreachable, UsageError, prefixed
from jsctl.render.reports.stream.tables import is_system_stream

if TYPE_CHECKING:
    from jsctl.api.consumer import ConsumerInfo
    from jsctl.client.manager import Manager

STREAM_NOT_FOUND = 10059
CONSUMER_NOT_FOUND = 10014
_FORBIDDEN = frozenset(" \t\r\n\f.*>/\\")


def check_name(name: str, what: str, *, about: str = "") -> str:
    """The name if servers accept it; raises UsageError, with `about` in front of the reason."""
    if not name or set(name) & _FORBIDDEN:
        import json

        quoted = json.dumps(name, ensure_ascii=False)
        prefix = f"{about}: " if about else ""
        raise UsageError(f"{prefix}{quoted} is not a valid {what} name")
    return name


def check_stream(name: str) -> str:
    """The same in the words of the library; nobody would answer to what is none."""
    try:
        return check_name(name, "stream")
    except UsageError:
        raise UsageError(f'nats: invalid stream name: "{name}"') from None


TO_OPERATE_ON = "could not pick a Stream to operate on"
TO_LOOK_IN = "could not select Stream"
"""In front of why a stream cannot be picked: of commands for streams, and for consumers."""


async def pick_stream(call: Call, manager: "Manager", *, why: str = TO_OPERATE_ON) -> str:
    """The stream argument, checked by asking for it, or one picked from a list."""
    name = call.text("stream")
    if name:
        try:
            return (await _asked(manager, name, why)).config.name
        except ApiError as error:
            if error.err_code != STREAM_NOT_FOUND:
                raise
    return await _from_list(call, manager, name, why)


async def stream_of(call: Call, manager: "Manager", *, why: str = TO_OPERATE_ON) -> StreamInfo:
    """Info of the stream argument, or of one picked from a list."""
    name = call.text("stream")
    if name:
        try:
            return await _asked(manager, name, why)
        except ApiError as error:
            if error.err_code != STREAM_NOT_FOUND:
                raise
    return await manager.stream_info(await _from_list(call, manager, name, why))


async def _asked(manager: "Manager", name: str, why: str) -> StreamInfo:
    """Raises ApiError and Unreachable; only of the latter is said why it was asked."""
    check_name(name, "stream")
    try:
        return await manager.stream_info(name)
    except Unreachable as error:
        raise prefixed(error, why) from None


async def _from_list(call: Call, manager: "Manager", wanted: str, why: str) -> str:
    with told_as(why):
        names = await manager.stream_names()
    if wanted in names:
        return wanted
    if wanted:
        raise unknown_stream(wanted, names)
    if not call.prompts.possible:
        raise NeedsConfirmation(
            f"{why}: cannot pick a Stream without a terminal and no Stream name supplied"
        )
    if call.flag("force") or call.flag("no-select"):
        raise UsageError("a stream name is needed, as no list is to be shown")
    shown = [name for name in names if call.flag("all") or not is_system_stream(name)]
    if not shown:
        raise NotFound("no streams are defined")
    return call.prompts.choose("Select a Stream", shown)


def unknown_stream(name: str, names: list[str]) -> NotFound:
    """The error for a name that no stream has, with near ones."""
    text = f'stream "{name}": stream not found ({STREAM_NOT_FOUND})'
    return _coded(NotFound(text, hints=near_names(name, names)), STREAM_NOT_FOUND)


def unknown_consumer(stream: str, name: str, names: list[str]) -> NotFound:
    """The same for a consumer."""
    text = f'consumer "{stream} > {name}": consumer not found ({CONSUMER_NOT_FOUND})'
    return _coded(NotFound(text, hints=near_names(name, names)), CONSUMER_NOT_FOUND)


def _coded(error: NotFound, code: int) -> NotFound:
    error.code = code
    return error


def near_names(name: str, names: list[str]) -> tuple[str, ...]:
    """A hint with names that are spelled alike, capitals or not; none if there are none."""
    from difflib import get_close_matches

    folded = {one.lower(): one for one in names}
    near = [folded[one] for one in get_close_matches(name.lower(), folded, 3)]
    return (f"did you mean {', '.join(near)}?",) if near else ()


async def consumer_of(call: Call, manager: "Manager") -> "ConsumerInfo":
    """Info of the consumer argument, or of one picked from a list."""
    stream = call.text("stream") or await pick_stream(call, manager, why=TO_LOOK_IN)
    name = call.text("consumer")
    if name:
        check_name(stream, "stream"), check_name(name, "consumer")
        try:
            return await manager.consumer_info(stream, name)
        except Unreachable as error:
            raise prefixed(error, TO_LOOK_IN) from None
        except ApiError as error:
            if error.err_code != CONSUMER_NOT_FOUND:
                raise
            raise unknown_consumer(stream, name, await manager.consumer_names(stream)) from None
    check_name(stream, "stream")
    with told_as(TO_LOOK_IN):
        names = await manager.consumer_names(stream)
    if not call.prompts.possible:
        raise NeedsConfirmation(
            "could not select Consumer: "
            "cannot pick a Consumer without a terminal and no Consumer name supplied"
        )
    if call.flag("force") or call.flag("no-select"):
        raise UsageError("a consumer name is needed, as no list is to be shown")
    if not names:
        raise NotFound(f"no Consumers are defined for Stream {stream}")
    return await manager.consumer_info(stream, call.prompts.choose("Select a Consumer", names))
