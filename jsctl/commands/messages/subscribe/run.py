"""Runs `jsctl subscribe`: plain subscriptions, and where JetStream messages come from."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from jsctl.commands.messages.subscribe.show import Arrived, Shown, show_all
from jsctl.commands.toolkit.content.bodies import check_subject
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

if TYPE_CHECKING:
    from nats.aio.msg import Msg


_JETSTREAM_FLAGS = ("all", "new", "last", "last-per-subject", "terminate-at-end", "ack")
_JETSTREAM_OPTIONS = ("durable", "start-sequence", "since", "stream")


async def subscribe(call: Call) -> int:
    """Shows what comes until stopped, or as the flags say."""
    subjects = call.texts("subjects")
    jetstream = any(call.flag(name) for name in _JETSTREAM_FLAGS) or any(
        call.given(name) for name in _JETSTREAM_OPTIONS
    )
    _check(call, subjects, jetstream=jetstream)
    shown = Shown(call)
    if jetstream:
        from jsctl.commands.messages.subscribe.stream import subscribe_stream

        await subscribe_stream(call, shown)
    else:
        await _subscribe_core(call, list(subjects), shown)
    if shown.reporting:
        shown.report(redraw=False)
    return 0


def _check(call: Call, subjects: tuple[str, ...], *, jetstream: bool) -> None:
    if not subjects and not call.flag("inbox") and not call.text("stream"):
        call.output.print("No subjects or --stream flag provided.")
        raise UsageError("required argument", show_help=True)
    for subject in subjects:
        check_subject(subject)
    if jetstream and len(subjects) > 1:
        raise UsageError("streams subscribe support only 1 subject")
    if jetstream and call.text("queue"):
        raise UsageError("a queue group cannot be used with JetStream, use --durable")
    if call.flag("report-subjects") and call.flag("report-subscriptions"):
        raise UsageError("only one of --report-subjects and --report-subscriptions can be used")


async def _subscribe_core(call: Call, subjects: list[str], shown: Shown) -> None:
    queue = call.text("queue")
    arrived: Arrived = asyncio.Queue()
    async with call.client() as client:
        if call.flag("inbox"):
            subjects.append(client.new_inbox())
        for subject in subjects:
            await client.subscribe(subject, queue=queue, cb=_into(arrived, subject))
        await client.flush()
        group = f"with queue group {queue} " if queue else ""
        call.output.log(f"Subscribing on {', '.join(subjects)} {group}")
        if call.texts("ignore-subject"):
            call.output.note(f"Ignored subjects: {', '.join(call.texts('ignore-subject'))}")
        await show_all(call, shown, arrived, client)


def _into(arrived: Arrived, pattern: str) -> "Callable[[Msg], Awaitable[None]]":
    async def take(message: "Msg") -> None:
        await arrived.put((pattern, message))

    return take
