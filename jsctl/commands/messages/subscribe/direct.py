"""`subscribe --direct`: the messages of a stream one by one, without a consumer."""

import asyncio
import time

from jsctl.api.errors import ApiError
from jsctl.api.stream import RawStreamMsg, StreamInfo, StreamState
from jsctl.api.subjects import AckSubject
from jsctl.api.times import SECOND_NS, format_time, parse_time
from jsctl.client.headers import Headers
from jsctl.client.manager import Manager
from jsctl.client.stored import NO_MESSAGE, direct_answer
from jsctl.commands.messages.subscribe.show import Shown, announce, ignored_by
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, UsageError
from jsctl.render.humanize import duration

AGAIN_S = 0.25
"""At the end of the stream, how long until it is looked for more."""
LEVEL = 1


async def show_directly(
    call: Call, manager: Manager, info: StreamInfo, subject: str, shown: Shown
) -> None:
    """Shows messages until there are enough, or for ever."""
    name, state = info.config.name, info.state
    if call.text("durable"):
        raise UsageError("cannot use direct get when a durable name is supplied")
    if not info.config.allow_direct:
        raise JsctlError(
            f"cannot enable direct gets: allow_direct is not set to true for stream {name}"
        )
    if await manager.server_level() < LEVEL:
        raise JsctlError("subscribing using direct get requires NATS Server 2.11")
    sequence, start, text = _start(call, state)
    if subject and call.flag("last"):
        sequence = await _last_of(manager, name, subject) or sequence
    where = subject or ", ".join(info.config.subjects)
    about = "Subscribing to JetStream Stream (direct) holding messages with subject"
    if text:
        announce(call, f"{about} {where} {text} ")
    if call.flag("last-per-subject"):
        await _show_last(call, manager, name, subject or ">", shown)
        if call.flag("terminate-at-end"):
            return
    await _show_all(call, manager, name, subject or ">", shown, (sequence, start))


def _start(call: Call, state: StreamState) -> tuple[int, str, str]:
    """The first sequence, or a time instead of it, and how to say it."""
    if call.given("start-sequence"):
        sequence = call.integer("start-sequence")
        return sequence, "", f"starting with sequence {sequence}"
    if call.flag("last"):
        return state.last_seq, "", "starting with the last message received"
    if call.flag("all"):
        return state.first_seq, "", "starting with the first message received"
    if call.given("since"):
        since_ns = call.duration("since")
        start = format_time(time.time_ns() - since_ns)
        return 0, start, f"starting with messages since {duration(since_ns)}"
    after = state.last_seq + 1
    if call.flag("last-per-subject"):
        return after, "", "for the last messages for each subject in the Stream"
    if call.flag("new"):
        return after, "", "delivering any new messages received"
    return state.first_seq, "", ""


async def _last_of(manager: Manager, stream: str, subject: str) -> int:
    """The sequence of the last message of a subject, 0 without one."""
    try:
        return (await manager.direct_message(stream, last_for=subject)).seq
    except ApiError as error:
        if error.err_code != NO_MESSAGE.err_code:
            raise
        return 0


async def _show_last(call: Call, manager: Manager, stream: str, subject: str, shown: Shown) -> None:
    found = [
        await manager.direct_message(stream, last_for=one)
        for one in await manager.stream_subjects(stream, subject)
    ]
    ignored = ignored_by(call)
    for message in sorted(found, key=lambda one: one.seq):
        if not shown.done and not ignored(message.subject):
            _show(shown, stream, message)


async def _show_all(
    call: Call,
    manager: Manager,
    stream: str,
    subject: str,
    shown: Shown,
    start: tuple[int, str],
) -> None:
    sequence, since = start
    ignored, silence = ignored_by(call), max(0, call.duration("wait")) / SECOND_NS
    heard = time.monotonic()
    while not shown.done:
        body: dict[str, object] = {"next_by_subj": subject}
        body.update({"batch": 1, "start_time": since} if since else {"seq": max(1, sequence)})
        try:
            message = direct_answer(await manager.requests.answer("direct_get", stream, body=body))
        except ApiError as error:
            if error.err_code != NO_MESSAGE.err_code:
                raise
            waited = time.monotonic() - heard
            if call.flag("terminate-at-end") or (silence and waited >= silence):
                return
            await asyncio.sleep(AGAIN_S)
            continue
        sequence, since, heard = message.seq + 1, "", time.monotonic()
        if not ignored(message.subject):
            _show(shown, stream, message)


def _show(shown: Shown, stream: str, message: RawStreamMsg) -> None:
    headers = Headers.read(message.hdrs)
    stored = AckSubject(stream, "", 0, message.seq, 0, parse_time(message.time), 0)
    shown.show(message.subject, "", headers, message.data, stored=stored, direct=True)
