"""Messages of a stream in its order, without gaps: an ephemeral consumer that is made anew.

The consumer acknowledges nothing and lives in memory; when a message is missing, or the server
says nothing for two heartbeats, another one goes on behind the last message that came.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.subjects import AckSubject, parse_ack
from jsctl.api.times import SECOND_NS
from jsctl.api.words import DeliverPolicy
from jsctl.client.reading import passing_consumer
from jsctl.errors import Unreachable

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from jsctl.client.manager import Manager

HEARTBEAT_NS = 5 * SECOND_NS
SILENCES_MAX = 2
"""After so many heartbeats that did not come the consumer is taken for lost."""
INACTIVE_NS = 30 * SECOND_NS
AGAIN_S = 1.0
CONSUMER_NOT_FOUND = 10014
_NOT_AVAILABLE = frozenset({10008, 10118, 10119})
"""Errors of servers that are about to be there again."""

Delivered = tuple["Msg", AckSubject]


class Feed:
    """The messages; `pending` is how many there were when it began, `name` the consumer's now."""

    def __init__(self, manager: "Manager", stream: str, config: ConsumerConfig) -> None:
        self.pending = 0
        self._manager = manager
        self._stream = stream
        self._config = config
        self._arrived: asyncio.Queue[Msg] = asyncio.Queue()
        self._subscription: Subscription | None = None
        self.name = ""
        self._consumer_seq = 0
        self._stream_seq: int | None = None
        """Behind which the next consumer goes on; None to begin where this one did."""

    async def start(self) -> None:
        """Makes a consumer; the first one where it was asked to begin, others behind the last."""
        config = self._config
        if self._stream_seq is not None:
            config = replace(
                config,
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._stream_seq + 1,
                opt_start_time="",
            )
        client = self._manager.client
        inbox = client.new_inbox()
        self._arrived, self._consumer_seq = asyncio.Queue(), 0
        self._subscription = await client.subscribe(
            inbox, cb=self._arrived.put, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
        made = await passing_consumer(
            self._manager, self._stream, replace(config, deliver_subject=inbox), action=""
        )
        self.name = made.name
        if self._stream_seq is None:
            # Some of them may have been delivered before that was answered.
            self.pending = made.num_pending + made.delivered.consumer_seq
            if config.deliver_policy is DeliverPolicy.NEW:
                # What is new from now on is not to be missed by the next one.
                self._stream_seq = made.delivered.stream_seq

    async def next(self) -> Delivered:
        """The next message and where it is stored; waits for ever."""
        while True:
            found = await self._one(patient=True)
            if found is not None:
                return found

    async def present(self) -> AsyncIterator[Delivered]:
        """What was there when it began. What goes away meanwhile is not waited for: a heartbeat
        says that nothing is on its way any more."""
        for _ in range(self.pending):
            found = await self._one(patient=False)
            if found is None:
                return
            yield found
            if not found[1].pending:
                return

    async def _one(self, *, patient: bool) -> Delivered | None:
        """The next message, or None at a heartbeat of a consumer that has delivered everything.

        Who is patient waits for servers that are away, however long.
        """
        while True:
            try:
                async with asyncio.timeout(SILENCES_MAX * HEARTBEAT_NS / SECOND_NS):
                    message = await self._arrived.get()
            except TimeoutError:
                await self._again(patient=patient)
                continue
            stored = parse_ack(message.reply.encode()) if message.reply else None
            if stored is None:
                if await self._has_all(message):
                    return None
                if self._lacks(message):
                    await self._again(patient=patient)
            elif stored.consumer_seq != self._consumer_seq + 1:
                await self._again(patient=patient)
            else:
                self._consumer_seq, self._stream_seq = stored.consumer_seq, stored.stream_seq
                return message, stored

    async def _has_all(self, message: "Msg") -> bool:
        """Whether a heartbeat says that all has come; flow control gets its answer."""
        if message.reply:
            await self._manager.client.publish(message.reply)
        if stalled := (message.headers or {}).get("Nats-Consumer-Stalled"):
            await self._manager.client.publish(stalled)
            return False
        return _last_of(message) == self._consumer_seq

    def _lacks(self, message: "Msg") -> bool:
        """Whether a heartbeat tells of more than came."""
        return _last_of(message) > self._consumer_seq

    async def _again(self, *, patient: bool) -> None:
        """Another consumer goes on; who is patient asks for it until there is one."""
        while True:
            try:
                await self.stop()
                await self.start()
            except Unreachable:
                if not patient:
                    raise
            except ApiError as error:
                if not patient or error.err_code not in _NOT_AVAILABLE:
                    raise
            else:
                return
            await asyncio.sleep(AGAIN_S)

    async def stop(self) -> None:
        """Forgets the consumer; it would go away by itself, only later."""
        if self._subscription is not None:
            await self._subscription.unsubscribe()
            self._subscription = None
        if not self.name:
            return
        name, self.name = self.name, ""
        try:
            await self._manager.delete_consumer(self._stream, name)
        except ApiError as error:
            if error.err_code != CONSUMER_NOT_FOUND:
                raise


def _last_of(message: "Msg") -> int:
    """What a heartbeat says was delivered last; -1 for other messages."""
    last = (message.headers or {}).get("Nats-Last-Consumer", "")
    return int(last) if last.isdecimal() else -1


@asynccontextmanager
async def ordered(
    manager: "Manager", stream: str, config: ConsumerConfig | None = None
) -> AsyncIterator[Feed]:
    """A feed of a stream; `config` says where it starts and what is left out."""
    feed = Feed(
        manager,
        stream,
        replace(
            config or ConsumerConfig(),
            max_deliver=1,
            flow_control=True,
            idle_heartbeat=HEARTBEAT_NS,
            inactive_threshold=INACTIVE_NS,
            num_replicas=1,
            mem_storage=True,
        ),
    )
    await feed.start()
    try:
        yield feed
    finally:
        if manager.client.is_connected:
            with suppress(Unreachable):  # Why the body ended is what counts.
                await feed.stop()
