"""Clients of one consumer that ask for every acknowledgement to be confirmed, until it is: also
when it was taken before, and its confirmation got lost."""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error

from tests.faults.rig import STREAM
from tests.support.load import connected
from tests.support.waiting import eventually

CONSUMER = "C"
CONFIG: dict[str, Any] = {
    "durable_name": CONSUMER,
    "ack_policy": "explicit",
    "deliver_policy": "all",
    "ack_wait": 2_000_000_000,
    "max_ack_pending": 1000,
}
BATCH = 10
PULL = json.dumps({"batch": BATCH, "expires": 1_000_000_000}).encode()
ACK_S = 1.0
ACKED_S = 20.0
"""So long an acknowledgement is sent again and again."""
ON_ITS_WAY_S = 1.0
"""A message that was sent before its acknowledgement was confirmed may arrive so much later; behind
a link that was cut even later, but with a lower number than the delivery that was acknowledged."""


@dataclass(slots=True)
class Readers:
    """`urls` are those of the servers; one client each."""

    urls: list[str]
    delivered: set[int] = field(default_factory=set)
    confirmed: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Sequence -> when its acknowledgement was confirmed, and the number of that delivery."""
    again: set[int] = field(default_factory=set)
    """Delivered once more although that was confirmed."""
    repeated: int = 0
    """Acknowledgements that were sent once more."""
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _clients: list[Client] = field(default_factory=list)
    _stopping: bool = False

    async def __aenter__(self) -> "Readers":
        await self._tasks.__aenter__()
        for url in self.urls:
            client = await connected([url, *self.urls])
            self._clients.append(client)
            self._tasks.create_task(self._read(client))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping = True
        await self._tasks.__aexit__(None, None, None)
        for client in self._clients:
            await client.close()

    async def drained(self, wanted: set[int], limit_s: float) -> None:
        """Wait until all of these sequences were delivered and confirmed: none is skipped."""

        async def all_there() -> bool:
            return wanted <= self.confirmed.keys()

        await eventually(all_there, "every message is delivered and confirmed", limit_s)

    async def _read(self, client: Client) -> None:
        inbox = client.new_inbox()
        heard = asyncio.Queue[tuple[float, Msg]]()

        async def note(message: Msg) -> None:
            # It may wait here while an earlier one is acknowledged again and again.
            heard.put_nowait((time.monotonic(), message))

        await client.subscribe(inbox, cb=note)
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{CONSUMER}"
        while not self._stopping:
            try:
                await client.publish(subject, PULL, reply=inbox)
                end_s = time.monotonic() + 1.2
                for _ in range(BATCH):
                    async with asyncio.timeout(max(end_s - time.monotonic(), 0.01)):
                        heard_s, message = await heard.get()
                    if message.headers and "Status" in message.headers:
                        break
                    await self._take(client, message, heard_s)
            except (Error, TimeoutError):
                continue

    async def _take(self, client: Client, message: Msg, heard_s: float) -> None:
        seq, number = map(int, message.reply.split(".")[-4:-2])
        self.delivered.add(seq)
        confirmed_s, confirmed = self.confirmed.get(seq, (heard_s, number))
        if heard_s > confirmed_s + ON_ITS_WAY_S and number > confirmed:
            self.again.add(seq)
        sent = 0

        async def acked() -> bool:
            nonlocal sent
            sent += 1
            return await self._acked(client, message.reply)

        with suppress(AssertionError):
            await eventually(acked, f"{seq} is acknowledged", ACKED_S)
            self.confirmed.setdefault(seq, (time.monotonic(), number))
        self.repeated += sent - 1

    @staticmethod
    async def _acked(client: Client, reply: str) -> bool:
        try:
            await client.request(reply, b"+ACK", timeout=ACK_S)
        except Error:
            return False
        return True
