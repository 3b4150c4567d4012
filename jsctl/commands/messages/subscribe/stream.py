"""`subscribe` on a stream: an ephemeral consumer pushes, a durable one is pulled from."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamInfo
from jsctl.api.times import format_time
from jsctl.api.words import AckPolicy, DeliverPolicy, Retention
from jsctl.client.headers import status_of
from jsctl.client.manager import Manager
from jsctl.client.ordered import Feed, ordered
from jsctl.commands.messages.subscribe.direct import show_directly
from jsctl.commands.messages.subscribe.pulling import NOT_AVAILABLE, pull
from jsctl.commands.messages.subscribe.record import recording
from jsctl.commands.messages.subscribe.show import Arrived, Shown, announce, show_all, stored_of
from jsctl.commands.toolkit.assets.picking import check_name, check_stream
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, NotFound, Unreachable, UsageError
from jsctl.render.humanize import duration

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

CONSUMER_NOT_FOUND = 10014
RENEWED = NOT_AVAILABLE | {CONSUMER_NOT_FOUND}
"""What servers say while they are away, or a consumer is made anew."""


async def subscribe_stream(call: Call, shown: Shown) -> None:
    """Shows the messages of a stream, old and new."""
    async with call.manager("") as manager:
        subject = next(iter(call.texts("subjects")), "")
        stream = await _stream(call, manager, subject)
        if call.flag("match-replies"):
            raise UsageError("cannot enable --match-replies for JetStream streams")
        if call.text("backup") and call.flag("direct") and call.flag("last-per-subject"):
            raise UsageError(
                "--backup cannot be combined with --last-per-subject on a direct get "
                "subscription, it delivers one message per batch"
            )
        info = await manager.stream_info(stream)
        subjects = await _recorded(call, manager, info, subject)
        async with recording(call, shown, subjects, info.config):
            if _directly(call, info):
                await show_directly(call, manager, info, subject, shown)
            elif call.text("durable"):
                await _from_durable(call, manager, stream, subject, shown)
            else:
                await _from_ephemeral(call, manager, stream, subject, shown)


def _directly(call: Call, info: StreamInfo) -> bool:
    """Where a consumer would take messages from others, they are read without one."""
    shared = info.config.retention is not Retention.LIMITS
    return call.flag("direct") or (shared and not call.text("durable"))


async def _recorded(call: Call, manager: Manager, info: StreamInfo, subject: str) -> list[str]:
    """The subjects that a backup is of. Raises Conflict for a durable that owes messages."""
    given = [subject] if subject else list(info.config.subjects)
    durable = call.text("durable")
    if not call.text("backup") or not durable:
        return given
    try:
        found = await manager.consumer_info(info.config.name, durable)
    except ApiError as error:
        if error.err_code != CONSUMER_NOT_FOUND:
            raise
        return given
    if found.num_ack_pending:
        raise Conflict(
            f'--backup cannot start on durable "{durable}" with {found.num_ack_pending} '
            "unacknowledged messages, their redeliveries would arrive out of sequence order"
        )
    config = found.config or ConsumerConfig()
    filters = config.filter_subjects or ((config.filter_subject,) if config.filter_subject else ())
    return list(filters) or given


async def _stream(call: Call, manager: Manager, subject: str) -> str:
    if call.text("stream"):
        return (await manager.stream_info(check_stream(call.text("stream")))).config.name
    names = await manager.stream_names(subject)
    if not names:
        raise NotFound(f"no stream found with subject: {subject}")
    return names[0]


def _start(call: Call) -> tuple[dict[str, object], str]:
    """Where a consumer starts: fields of its configuration, and how to say it."""
    given = [name for name in ("all", "new", "last", "last-per-subject") if call.flag(name)] + [
        name for name in ("start-sequence", "since") if call.text(name) not in ("", "0")
    ]
    if len(given) > 1:
        raise UsageError("only one of " + ", ".join(f"--{name}" for name in given) + " can be used")
    if not given:
        return {"deliver_policy": DeliverPolicy.ALL}, ""
    kind = given[0]
    if kind == "start-sequence":
        sequence = call.integer("start-sequence")
        fields: dict[str, object] = {
            "deliver_policy": DeliverPolicy.BY_START_SEQUENCE,
            "opt_start_seq": sequence,
        }
        return fields, f"starting at sequence {sequence}"
    if kind == "since":
        since_ns = call.duration("since")
        fields = {
            "deliver_policy": DeliverPolicy.BY_START_TIME,
            "opt_start_time": format_time(time.time_ns() - since_ns),
        }
        return fields, f"since {duration(since_ns)}"
    policies = {
        "all": (DeliverPolicy.ALL, "from first received message"),
        "new": (DeliverPolicy.NEW, "for new messages"),
        "last": (DeliverPolicy.LAST, "from last received message"),
        "last-per-subject": (DeliverPolicy.LAST_PER_SUBJECT, "for last message per subject"),
    }
    policy, text = policies[kind]
    return {"deliver_policy": policy}, text


async def _from_ephemeral(
    call: Call, manager: Manager, stream: str, subject: str, shown: Shown
) -> None:
    """What goes on where it was, whatever happens to servers meanwhile; nothing of it waits for an
    acknowledgement, as with `nats`."""
    fields, text = _start(call)
    config = ConsumerConfig(
        **fields,  # type: ignore[arg-type] # made by name above
        filter_subject=subject or (">" if call.flag("last-per-subject") else ""),
        headers_only=_bodiless(call),
    )
    arrived = Arrived()
    async with ordered(manager, stream, config) as feed:
        _announce(call, subject, text)
        if await _is_at_end(call, manager, stream, feed):
            return

        async def feeding() -> None:
            while True:
                message, _ = await feed.next()
                await arrived.put((subject or ">", message))

        taken = _Taken(call, acking=False)
        ended = _at_end(call, manager, stream, lambda: feed.name, taken, away=RENEWED)
        await _beside(feeding(), show_all(call, shown, arrived, manager.client, taken, ended))


async def _beside(filling: Coroutine[Any, Any, None], shown: Coroutine[Any, Any, None]) -> None:
    """Ends with what is shown, or with the error of what failed, be it that nobody reads it."""
    try:
        async with asyncio.TaskGroup() as tasks:
            filler = tasks.create_task(filling)
            await shown
            filler.cancel()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def _announce(call: Call, subject: str, text: str) -> None:
    if text:
        announce(call, f"Subscribing to subject {subject or '>'} {text} ")


async def _is_at_end(call: Call, manager: Manager, stream: str, feed: Feed) -> bool:
    """Whether there is nothing to wait for."""
    if not call.flag("terminate-at-end") or feed.pending:
        return False
    found = await manager.consumer_info(stream, feed.name)
    return not found.num_pending and not found.delivered.stream_seq


def _bodiless(call: Call) -> bool:
    """Whether the server may keep the bodies: it sends their sizes then, as headers."""
    return call.flag("headers-only") or call.flag("subjects-only")


async def _is_control(client: "NatsClient", message: "Msg") -> bool:
    """Heartbeats and flow control are not for people; the latter wants an answer."""
    headers = message.headers or {}
    if message.data or status_of(message.headers) != "100":
        return False
    if message.reply:
        await client.publish(message.reply)
    if stalled := headers.get("Nats-Consumer-Stalled"):
        await client.publish(stalled)
    return True


class _Taken:
    """Acknowledges messages and knows the end of the stream; `count` is how many came."""

    def __init__(self, call: Call, *, acking: bool) -> None:
        self._acking = acking
        self._stop_at_end = call.flag("terminate-at-end")
        self.count = 0

    async def __call__(self, message: "Msg") -> bool:
        """Whether it was the last one."""
        self.count += 1
        if self._acking and message.reply:
            await message._client.publish(message.reply, b"+ACK")
        stored = stored_of(message.reply)
        return self._stop_at_end and stored is not None and not stored.pending


def _at_end(
    call: Call,
    manager: Manager,
    stream: str,
    consumer: Callable[[], str],
    taken: _Taken,
    away: frozenset[int] = NOT_AVAILABLE,
) -> Callable[[], Awaitable[bool]] | None:
    """What tells in silence that nothing is left, for `--terminate-at-end`: what the last message
    said to be pending may have been purged, or gone by a limit, since then."""
    if not call.flag("terminate-at-end"):
        return None
    found_at = -1

    async def ended() -> bool:
        nonlocal found_at
        if not (name := consumer()) or (call.flag("new") and not taken.count):
            return False  # a new message is waited for, and then what comes with it
        try:
            info = await manager.consumer_info(stream, name)
        except Unreachable:
            return False
        except ApiError as error:
            if error.err_code not in away:
                raise
            return False
        if info.num_pending:
            found_at = -1
            return False
        # What was on its way when nothing was left is here a second of silence later.
        before, found_at = found_at, taken.count
        return before == taken.count

    return ended


async def _from_durable(
    call: Call, manager: Manager, stream: str, subject: str, shown: Shown
) -> None:
    name = check_name(call.text("durable"), "consumer", about="error loading durable consumer")
    config = await _durable(call, manager, stream, subject, name)
    acking = config.ack_policy is not AckPolicy.NONE and call.switch("ack") is not False
    client, arrived = manager.client, Arrived()
    taken = _Taken(call, acking=acking)
    ended = _at_end(call, manager, stream, lambda: name, taken)
    if config.deliver_subject:
        await _pushed(call, client, stream, config, arrived)
        await show_all(call, shown, arrived, client, taken, ended)
        return
    await _beside(
        pull(call, manager, stream, name, config, arrived),
        show_all(call, shown, arrived, client, taken, ended),
    )
    await client.flush()


async def _pushed(
    call: Call, client: "NatsClient", stream: str, config: ConsumerConfig, arrived: Arrived
) -> None:
    """Listens where a push consumer delivers to."""
    call.output.log(
        f'Detected push consumer "{config.name}" on stream "{stream}" — push consumers are '
        "deprecated and will be removed in a future release. Please update to use a pull-based "
        "consumer."
    )

    async def take(message: "Msg") -> None:
        if not await _is_control(client, message):
            await arrived.put((config.deliver_subject, message))

    await client.subscribe(config.deliver_subject, queue=config.deliver_group, cb=take)


async def _durable(
    call: Call, manager: Manager, stream: str, subject: str, name: str
) -> ConsumerConfig:
    """Makes the consumer unless there is one."""
    try:
        found = await manager.consumer_info(stream, name)
    except ApiError as error:
        if error.err_code != CONSUMER_NOT_FOUND:
            raise
        fields, text = _start(call)
        _announce(call, subject, text)
        config = ConsumerConfig(
            **fields,  # type: ignore[arg-type] # made by name above
            durable_name=name,
            filter_subject=subject,
            ack_policy=AckPolicy.EXPLICIT,
            headers_only=_bodiless(call),
        )
        return (await manager.create_consumer(stream, config, action="")).config or config
    config = found.config or ConsumerConfig()
    if len(config.filter_subjects) > 1:
        raise UsageError("cannot subscribe to multi filter consumers")
    kind = "push" if config.deliver_subject else "pull"
    call.output.log(
        f'Subscribing to JetStream Stream "{stream}" using existing {kind} consumer "{name}"'
    )
    return config
