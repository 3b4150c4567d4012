"""Runs `jsctl subscribe`: plain subscriptions, and where JetStream messages come from."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS
from jsctl.commands.messages.subscribe.show import Shown, stored_of
from jsctl.commands.toolkit.content.bodies import check_subject
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

REPORT_SECONDS = 1.0
_JETSTREAM_FLAGS = ("all", "new", "last", "last-per-subject", "terminate-at-end", "ack")
_JETSTREAM_OPTIONS = ("durable", "start-sequence", "since", "stream")

Arrived = asyncio.Queue[tuple[str, "Msg"]]
"""Pairs of the subscription's pattern and a message."""


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


def ignored_by(call: Call) -> Callable[[str], bool]:
    """Tells which subjects `--ignore-subject` names; wildcards are understood."""
    patterns = [pattern.split(".") for pattern in call.texts("ignore-subject")]

    def ignored(subject: str) -> bool:
        tokens = subject.split(".")
        return any(_matches(tokens, pattern) for pattern in patterns)

    return ignored


def _matches(tokens: list[str], pattern: list[str]) -> bool:
    for at, word in enumerate(pattern):
        if word == ">":
            return at < len(tokens)
        if at >= len(tokens) or word not in ("*", tokens[at]):
            return False
    return len(tokens) == len(pattern)


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


async def show_all(
    call: Call,
    shown: Shown,
    arrived: Arrived,
    client: "NatsClient",
    taken: "Callable[[Msg], Awaitable[bool]] | None" = None,
) -> None:
    """Shows messages until enough came, silence lasted too long, or Ctrl-C.

    `taken` hears of every message that was shown and tells whether it was the last one.
    """
    ignored = ignored_by(call)
    loop = asyncio.get_running_loop()
    silence = call.duration("wait") / SECOND_NS
    heard = loop.time()
    try:
        while not shown.done:
            wait = silence - (loop.time() - heard) if silence else None
            if shown.reporting:
                wait = min(wait or REPORT_SECONDS, REPORT_SECONDS)
            try:
                async with asyncio.timeout(wait):
                    pattern, message = await arrived.get()
            except TimeoutError:
                if silence and loop.time() - heard >= silence:
                    return
                shown.report(redraw=True)
                continue
            heard = loop.time()
            if not ignored(message.subject):
                _show(shown, pattern, message)
            if taken is not None and await taken(message):
                return
    except asyncio.CancelledError:
        return


def _show(shown: Shown, pattern: str, message: "Msg") -> None:
    shown.show(
        message.subject,
        message.reply,
        message.headers,
        message.data,
        pattern=pattern,
        stored=stored_of(message.reply),
    )
