"""Messages of a stream in its order, without gaps: an ephemeral consumer that is made anew.

The consumer acknowledges nothing and lives in memory; when a message is missing, or the server
says nothing for two heartbeats, another one goes on behind the last message that came.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.subjects import AckSubject, parse_ack
from jsctl.api.times import SECOND_NS
from jsctl.api.words import AckPolicy, DeliverPolicy

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from jsctl.client.manager import Manager

HEARTBEAT_NS = 5 * SECOND_NS
SILENCES_MAX = 2
"""After so many heartbeats that did not come the consumer is taken for lost."""
INACTIVE_NS = 30 * SECOND_NS
CONSUMER_NOT_FOUND = 10014

Delivered = tuple["Msg", AckSubject]


class Feed:
    """The messages; `pending` is how many there were when it began."""

    def __init__(self, manager: "Manager", stream: str, config: ConsumerConfig) -> None:
        self.pending = 0
        self._manager = manager
        self._stream = stream
        self._config = config
        self._arrived: asyncio.Queue[Msg] = asyncio.Queue()
        self._subscription: Subscription | None = None
        self._name = ""
        self._stream_seq = self._consumer_seq = 0

    async def start(self) -> None:
        """Makes a consumer; the first one where it was asked to begin, others behind the last."""
        config = self._config
        if self._stream_seq:
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
        made = await self._manager.create_consumer(
            self._stream, replace(config, deliver_subject=inbox), action=""
        )
        self._name = made.name
        if not self._stream_seq:
            self.pending = made.num_pending

    async def next(self) -> Delivered:
        """The next message and where it is stored; waits for ever."""
        while True:
            try:
                async with asyncio.timeout(SILENCES_MAX * HEARTBEAT_NS / SECOND_NS):
                    message = await self._arrived.get()
            except TimeoutError:
                await self._again()
                continue
            stored = parse_ack(message.reply.encode()) if message.reply else None
            if stored is None:
                await self._control(message)
            elif stored.consumer_seq != self._consumer_seq + 1:
                await self._again()
            else:
                self._consumer_seq, self._stream_seq = stored.consumer_seq, stored.stream_seq
                return message, stored

    async def _control(self, message: "Msg") -> None:
        """Heartbeats tell what should have come; flow control wants an answer."""
        headers = message.headers or {}
        if message.reply:
            await self._manager.client.publish(message.reply)
        if stalled := headers.get("Nats-Consumer-Stalled"):
            await self._manager.client.publish(stalled)
        last = headers.get("Nats-Last-Consumer", "")
        if last.isdigit() and int(last) > self._consumer_seq:
            await self._again()

    async def _again(self) -> None:
        await self.stop()
        await self.start()

    async def stop(self) -> None:
        """Forgets the consumer; it would go away by itself, only later."""
        if self._subscription is not None:
            await self._subscription.unsubscribe()
            self._subscription = None
        if not self._name:
            return
        name, self._name = self._name, ""
        try:
            await self._manager.delete_consumer(self._stream, name)
        except ApiError as error:
            if error.err_code != CONSUMER_NOT_FOUND:
                raise


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
            ack_policy=AckPolicy.NONE,
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
        await feed.stop()
