"""Runs `jsctl subscribe`: plain subscriptions, and where JetStream messages come from."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from jsctl.commands.messages.subscribe.record import recording
from jsctl.commands.messages.subscribe.show import Arrived, Shown, ignored_by, show_all
from jsctl.commands.toolkit.content.bodies import check_subject
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

REQUESTS_MAX = 100_000
"""So many requests wait for their replies; others are shown alone."""
GRAPHS_MAX = 4


_JETSTREAM_FLAGS = ("all", "new", "last", "last-per-subject", "terminate-at-end", "ack", "direct")
_JETSTREAM_OPTIONS = ("durable", "start-sequence", "since", "stream")


async def subscribe(call: Call) -> int:
    """Shows what comes until stopped, or as the flags say."""
    subjects = call.texts("subjects")
    jetstream = any(call.flag(name) for name in _JETSTREAM_FLAGS) or any(
        call.given(name) for name in _JETSTREAM_OPTIONS
    )
    _check(call, subjects, jetstream=jetstream)
    if call.flag("graph"):
        return await _graph(call, subjects)
    shown = Shown(call)
    if jetstream:
        from jsctl.commands.messages.subscribe.stream import subscribe_stream

        await subscribe_stream(call, shown)
    else:
        async with recording(call, shown, list(subjects)):
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
    if call.flag("quiet") and not call.text("backup"):
        raise UsageError("--quiet requires --backup")
    if call.flag("quiet") and call.given("dump"):
        raise UsageError("--quiet cannot be combined with --dump")
    counting = ("report-subjects", "report-subscriptions", "graph")
    if call.text("backup") and any(map(call.flag, counting)):
        raise UsageError(
            "--backup cannot be combined with --report-subjects, --report-subscriptions or --graph"
        )
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
        if call.flag("match-replies"):
            await _match_replies(call, client, subjects, arrived, shown)
            return
        await client.flush()
        group = f"with queue group {queue} " if queue else ""
        call.output.log(f"Subscribing on {', '.join(subjects)} {group}")
        if call.texts("ignore-subject"):
            call.output.note(f"Ignored subjects: {', '.join(call.texts('ignore-subject'))}")
        await show_all(call, shown, arrived, client)


async def _match_replies(
    call: Call, client: "NatsClient", subjects: list[str], arrived: Arrived, shown: Shown
) -> None:
    """Shows requests together with their replies; replies come to inboxes."""
    prefix = call.settings.connection.inbox_prefix or "_INBOX"
    await client.subscribe(f"{prefix}.>", cb=_into(arrived, ""))
    await client.flush()
    if not call.flag("raw") and not call.given("dump"):
        call.output.log(f"Matching replies with inbox prefix {prefix}.>")
    call.output.log(f"Subscribing on {', '.join(subjects)} ")
    waiting: dict[str, Msg] = {}
    ignored = ignored_by(call)
    while not shown.done or waiting:
        pattern, message = await arrived.get()
        if pattern and not shown.done and not ignored(message.subject):
            if message.reply and len(waiting) < REQUESTS_MAX:
                waiting[message.reply] = message
            else:
                shown.show(message.subject, message.reply, message.headers, message.data)
        elif not pattern and (asked := waiting.pop(message.subject, None)) is not None:
            shown.show(asked.subject, asked.reply, asked.headers, asked.data)
            shown.show_reply(message.subject, message.headers, message.data)


async def _graph(call: Call, subjects: tuple[str, ...]) -> int:
    """Curves of how many messages come, one a subject."""
    from jsctl.commands.toolkit.monitoring.graphs import Curve, graph, rate

    if len(subjects) > GRAPHS_MAX:
        raise UsageError(f"maximum {GRAPHS_MAX} subject patterns may be graphed")
    counts = dict.fromkeys(subjects, 0.0)

    def counting(subject: str) -> "Callable[[Msg], Awaitable[None]]":
        async def count(_message: "Msg") -> None:
            counts[subject] += 1

        return count

    async def sample() -> dict[str, float]:
        return dict(counts)

    async with call.client() as client:
        for subject in subjects:
            await client.subscribe(subject, queue=call.text("queue"), cb=counting(subject))
        curves = [Curve(one, f"{one} / second", rate, per_second=True) for one in subjects]
        return await graph(call, "Message Rates", curves, sample)


def _into(arrived: Arrived, pattern: str) -> "Callable[[Msg], Awaitable[None]]":
    async def take(message: "Msg") -> None:
        await arrived.put((pattern, message))

    return take
