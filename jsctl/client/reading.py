"""Messages of a stream in order, through a consumer that exists only meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING

from jsctl.api.codec import dumps
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.errors import ApiError
from jsctl.api.subjects import api_subject, parse_ack
from jsctl.api.times import SECOND_NS
from jsctl.api.words import AckPolicy, DeliverPolicy
from jsctl.client.failures import foreign_errors, translate
from jsctl.client.headers import status_of
from jsctl.client.requests import api_prefix
from jsctl.dataclass import dataclass
from jsctl.errors import Unreachable

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

BATCH = 500
BATCH_BYTES = 4 * 1024 * 1024
INACTIVE_NS = 60 * SECOND_NS
INACTIVE_TOO_LONG = 10153
AGAIN_S = 0.02
NO_RESPONDERS, NO_MESSAGE = "503", "408"


class _NotKnownYet(Unreachable):
    """The consumer is on a server that this one has not heard of it from."""


class _Nothing(Unreachable):
    """The server waited, and had no message for the consumer."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message and its place in the stream; `pending` is how many follow."""

    seq: int
    subject: str
    time_ns: int
    pending: int
    headers: dict[str, str] = field(default_factory=dict)
    data: bytes = b""


async def passing_consumer(
    manager: "Manager", stream: str, config: ConsumerConfig, *, action: str
) -> ConsumerInfo:
    """Makes one that acknowledges nothing, whatever limits its stream has for consumers.

    Raises ApiError.
    """
    # Left open, the stream's limit would be taken for it: no consumer that pushes has one then.
    config = replace(config, ack_policy=AckPolicy.NONE, max_ack_pending=-1)
    try:
        return await manager.create_consumer(stream, config, action=action)
    except ApiError as error:
        if error.err_code != INACTIVE_TOO_LONG:
            raise
    # As long as the stream allows.
    return await manager.create_consumer(
        stream, replace(config, inactive_threshold=0), action=action
    )


async def read_stream(
    manager: "Manager",
    stream: str,
    *,
    from_seq: int = 0,
    from_time: str = "",
    subject: str = "",
    headers_only: bool = False,
) -> AsyncGenerator[StoredMessage, None]:
    """Everything from a sequence or a time on that is there when it begins, then it ends.

    Raises ApiError, and Unreachable when the server falls silent or a message got lost on its way.
    """
    policy = DeliverPolicy.ALL
    if from_seq > 1:
        policy = DeliverPolicy.BY_START_SEQUENCE
    elif from_time:
        policy = DeliverPolicy.BY_START_TIME
    info = await passing_consumer(
        manager,
        stream,
        ConsumerConfig(
            deliver_policy=policy,
            opt_start_seq=from_seq if policy is DeliverPolicy.BY_START_SEQUENCE else 0,
            opt_start_time=from_time if policy is DeliverPolicy.BY_START_TIME else "",
            filter_subject=subject,
            headers_only=headers_only,
            inactive_threshold=INACTIVE_NS,
            num_replicas=1,
            mem_storage=True,
        ),
        action="create",
    )
    loop = asyncio.get_running_loop()
    patience = loop.time() + manager.settings.timeout
    try:
        left, seen = info.num_pending, 0
        while left > 0:
            try:
                async for message in _batch(manager, stream, info.name, min(BATCH, left), seen):
                    left, seen = message.pending, seen + 1
                    yield message
            except _NotKnownYet:
                if loop.time() > patience:
                    raise
                await asyncio.sleep(AGAIN_S)
            except _Nothing:
                # What was left may have been removed, or is too old, meanwhile.
                left = (await manager.consumer_info(stream, info.name)).num_pending
                if left:
                    raise
    finally:
        await asyncio.shield(_forget(manager, stream, info.name))


async def _forget(manager: "Manager", stream: str, name: str) -> None:
    """Deletes a consumer, which would go away by itself where nobody can be told."""
    if manager.client.is_connected:
        with suppress(Unreachable):
            await manager.delete_consumer(stream, name)


def heed_interrupt() -> None:
    """Raises CancelledError if the task is to end: `asyncio.wait_for` of Python 3.11 passes over
    that when it has an answer already, and who reads on would never hear of it."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def _batch(
    manager: "Manager", stream: str, consumer: str, count: int, seen: int
) -> AsyncIterator[StoredMessage]:
    """One pull; it may end early because of its bytes. `seen`: what came before. Raises Unreachable
    if nothing came, or what comes is not the next."""
    client, settings = manager.client, manager.settings
    subject = api_subject("consumer_msg_next", stream, consumer, prefix=api_prefix(settings))
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    body = dumps({"batch": count, "max_bytes": BATCH_BYTES, "expires": settings.timeout_ns})
    found, status = 0, ""
    try:
        await client.publish(subject.decode(), body, reply=inbox)
        while found < count:
            message = await subscription.next_msg(timeout=settings.timeout + 1)
            heed_interrupt()
            ack = parse_ack(message.reply.encode())
            if ack is None:
                status = status_of(message.headers)
                break
            found += 1
            if ack.consumer_seq != seen + found:
                # As when the connection was made anew: the server does not deliver it again.
                raise Unreachable(f"messages of stream {stream} got lost on their way; try again")
            headers = message.headers or {}
            yield StoredMessage(
                ack.stream_seq, message.subject, ack.time_ns, ack.pending, headers, message.data
            )
            if not ack.pending:
                break
    except foreign_errors() as error:
        raise translate(error) from None
    finally:
        await subscription.unsubscribe()
    if not found:
        kind = _KINDS.get(status, Unreachable)
        raise kind(f"stream {stream} stopped delivering (status {status})")


_KINDS = {NO_RESPONDERS: _NotKnownYet, NO_MESSAGE: _Nothing}
