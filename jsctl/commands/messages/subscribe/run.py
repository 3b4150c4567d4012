"""Runs `jsctl subscribe`: plain subscriptions, and where JetStream messages come from."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS
from jsctl.commands.messages.subscribe.record import recording
from jsctl.commands.messages.subscribe.show import (
    Arrived,
    Shown,
    announce,
    dump_folder,
    ignored_by,
    show_all,
    stored_of,
)
from jsctl.commands.toolkit.content.bodies import check_queue, check_subject
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

REQUESTS_MAX = 100_000
"""So many requests wait for their replies; others are shown alone."""
EARLY_MAX = 1000
"""So many replies to nothing known are kept for their requests, which may be on their way."""
GRAPHS_MAX = 4


_JETSTREAM_FLAGS = ("all", "new", "last", "last-per-subject", "direct")
_JETSTREAM_OPTIONS = ("durable", "start-sequence", "since", "stream")


async def subscribe(call: Call) -> int:
    """Shows what comes until stopped, or as the flags say."""
    subjects = call.texts("subjects")
    jetstream = any(call.flag(name) for name in _JETSTREAM_FLAGS) or any(
        call.text(name) for name in _JETSTREAM_OPTIONS
    )
    _check(call, subjects, jetstream=jetstream)
    if call.flag("graph"):
        return await _graph(call, subjects)
    with dump_folder(call) as folder:
        shown = Shown(call, folder)
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
    reporting = call.flag("report-subjects") or call.flag("report-subscriptions")
    for wrong, text in (
        (subjects and call.text("durable"), "cannot specify both subjects and a durable consumer"),
        (jetstream and len(subjects) > 1, "streams subscribe support only 1 subject"),
        (
            call.flag("terminate-at-end") and not jetstream,
            "--terminate-at-end is only supported for JetStream subscriptions",
        ),
        (
            jetstream and call.flag("inbox"),
            "generating inboxes is not compatible with JetStream subscriptions",
        ),
        (
            jetstream and call.text("queue"),
            "queue group subscriptions are not supported with JetStream",
        ),
        (
            call.flag("timestamp") and call.flag("delta-time"),
            "timestamp and delta-time flags are mutually exclusive",
        ),
        (call.flag("quiet") and not call.text("backup"), "--quiet requires --backup"),
        (
            call.flag("quiet") and call.text("dump"),
            "--quiet cannot be combined with --dump",
        ),
        (
            call.text("backup") and (reporting or call.flag("graph")),
            "--backup cannot be combined with --report-subjects, --report-subscriptions or --graph",
        ),
        (
            call.flag("report-subjects") and call.flag("report-subscriptions"),
            "only one of --report-subjects and --report-subscriptions can be used",
        ),
        (reporting and call.integer("report-top") < 1, "subject count must be at least one"),
    ):
        if wrong:
            raise UsageError(text)


async def _subscribe_core(call: Call, subjects: list[str], shown: Shown) -> None:
    queue = check_queue(call.text("queue"))
    arrived: Arrived = asyncio.Queue()
    async with call.manager("") as manager:
        client = manager.client
        if call.flag("inbox") and not subjects:
            subjects.append(client.new_inbox())
        for subject in subjects:
            await client.subscribe(subject, queue=queue, cb=_into(arrived, subject))
        if call.flag("match-replies"):
            await _match_replies(call, client, subjects, arrived, shown)
            return
        await client.flush()
        acking = call.flag("ack")
        if call.flag("inbox") or _tells(call):
            _tell(call, subjects, acking=acking)
        await show_all(call, shown, arrived, client, _acknowledge if acking else None)


def _tells(call: Call) -> bool:
    """Whether it is said what is listened to; in files nobody would see it."""
    return not call.flag("raw") and call.text("dump") in ("", "-")


def _tell(call: Call, subjects: list[str], *, acking: bool) -> None:
    if acking:
        where = f"{subjects[0]} with acknowledgement of JetStream messages"
    else:
        where = ", ".join(subjects)
    announce(call, f"Subscribing on {where} ")


async def _acknowledge(message: "Msg") -> bool:
    """What a push consumer delivered to a subject."""
    if stored_of(message.reply) is not None:
        await message._client.publish(message.reply, b"+ACK")
    return False


async def _match_replies(
    call: Call, client: "NatsClient", subjects: list[str], arrived: Arrived, shown: Shown
) -> None:
    """Shows requests together with their replies; replies come to inboxes."""
    prefix = call.settings.connection.inbox_prefix or "_INBOX"
    await client.subscribe(f"{prefix}.>", cb=_into(arrived, ""))
    await client.flush()
    if _tells(call):
        call.output.log(f"Matching replies with inbox prefix {prefix}.>")
    call.output.log(f"Subscribing on {', '.join(subjects)} ")
    waiting: dict[str, Msg] = {}
    early: dict[str, Msg] = {}  # replies overtake their requests: each subscription has a task
    ignored = ignored_by(call)
    silence = max(0, call.duration("wait")) / SECOND_NS or None
    while not shown.done or waiting:
        try:
            async with asyncio.timeout(silence):
                pattern, message = await arrived.get()
        except TimeoutError:
            return
        if pattern:
            if shown.done or ignored(message.subject):
                continue
            if (answer := early.pop(message.reply, None)) is not None:
                _show_pair(shown, message, answer)
            elif message.reply and len(waiting) < REQUESTS_MAX:
                waiting[message.reply] = message
            else:
                shown.show(message.subject, message.reply, message.headers, message.data)
        elif (asked := waiting.pop(message.subject, None)) is not None:
            _show_pair(shown, asked, message)
        else:
            early[message.subject] = message
            if len(early) > EARLY_MAX:
                del early[next(iter(early))]


def _show_pair(shown: Shown, asked: "Msg", answer: "Msg") -> None:
    shown.show(asked.subject, asked.reply, asked.headers, asked.data)
    shown.show_reply(answer.subject, answer.headers, answer.data)


async def _graph(call: Call, subjects: tuple[str, ...]) -> int:
    """Curves of how many messages come, one a subject."""
    from jsctl.commands.toolkit.monitoring.graphs import Curve, graph, needs_terminal, rate

    needs_terminal(call)
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
            await client.subscribe(
                subject, queue=check_queue(call.text("queue")), cb=counting(subject)
            )
        curves = [Curve(one, f"{one} / second", rate, per_second=True) for one in subjects]
        return await graph(call, "Message Rates", curves, sample)


def _into(arrived: Arrived, pattern: str) -> "Callable[[Msg], Awaitable[None]]":
    async def take(message: "Msg") -> None:
        await arrived.put((pattern, message))

    return take
