"""Publishers that never give up on a message, and the reading back of what they stored."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType

import nats
from nats.aio.client import Client
from nats.errors import Error

from tests.support.waiting import eventually

REQUEST_S = 1.0
RECONNECT_S = 0.05
BATCH = 1000
READ_S = 30.0
GIVE_UP_S = 30.0


async def quiet(error: Exception) -> None:
    """Lost connections are expected here."""


async def connected(urls: list[str]) -> Client:
    """A client that stays through failures, of the first server that answers."""
    return await nats.connect(
        urls,
        dont_randomize=True,  # All publishers at the one server that is cut off would be silent.
        max_reconnect_attempts=-1,
        reconnect_time_wait=RECONNECT_S,
        connect_timeout=1,
        # A server that stands still keeps its connections; who waits there goes elsewhere.
        ping_interval=1,
        max_outstanding_pings=2,
        error_cb=quiet,
    )


@asynccontextmanager
async def connection(urls: list[str]) -> AsyncIterator[Client]:
    """The same, closed at the end."""
    client = await connected(urls)
    try:
        yield client
    finally:
        await client.close()


@dataclass(frozen=True, slots=True)
class Acked:
    """One acknowledged message. `at_s` is a monotonic time."""

    message: str
    seq: int
    duplicate: bool
    at_s: float


@dataclass(slots=True)
class Load:
    """Several publishers on one subject; each message has an id and is sent until it is
    acknowledged."""

    urls: list[str]
    subject: str
    workers: int = 4
    acked: list[Acked] = field(default_factory=list)
    _stopping: bool = False
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _clients: list[Client] = field(default_factory=list)

    async def __aenter__(self) -> "Load":
        await self._tasks.__aenter__()
        for worker in range(self.workers):
            turned = self.urls[worker % len(self.urls) :] + self.urls[: worker % len(self.urls)]
            client = await connected(turned)
            self._clients.append(client)
            self._tasks.create_task(self._publish(client, worker))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping = True
        await self._tasks.__aexit__(kind, error, trace)
        for client in self._clients:
            await client.close()

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is published."""
        return self._stopping

    async def more(self, count: int) -> None:
        """Wait for so many more acknowledgements."""
        wanted = len(self.acked) + count

        async def enough() -> bool:
            return len(self.acked) >= wanted

        await eventually(enough, f"{count} more acknowledgements")

    def silence_s(self, since_s: float) -> float:
        """The longest time without an acknowledgement from a moment on."""
        times = sorted(one.at_s for one in self.acked)
        before = [at for at in times if at <= since_s][-1:] or [since_s]
        after = before + [at for at in times if at > since_s]
        return max(later - at for at, later in pairwise(after))

    async def _publish(self, client: Client, worker: int) -> None:
        number = 0
        while not self._stopping:
            await self._store(client, f"{worker}-{number}")
            number += 1

    async def _store(self, client: Client, message: str) -> None:
        async def stored() -> Acked | None:
            return await self._try(client, message)

        self.acked.append(await eventually(stored, f"{message} to be stored", GIVE_UP_S))

    async def _try(self, client: Client, message: str) -> Acked | None:
        try:
            reply = await client.request(
                self.subject,
                message.encode(),
                timeout=REQUEST_S,
                headers={"Nats-Msg-Id": f"{self.subject}:{message}"},
            )
        except Error:
            return None
        answer = json.loads(reply.data)
        if "error" in answer:
            return None
        duplicate = bool(answer.get("duplicate"))
        return Acked(message, answer["seq"], duplicate, time.monotonic())


async def contents(url: str, stream: str, last_seq: int) -> dict[int, tuple[str, str, bytes]]:
    """All messages of a stream: sequence -> (time, subject, payload).

    Asked of one server; if it has a fresh replica, it answers from its own.
    """
    async with connection([url]) as client:
        inbox = client.new_inbox()
        heard = await client.subscribe(inbox)
        found: dict[int, tuple[str, str, bytes]] = {}
        following = 1
        while following <= last_seq:
            body = json.dumps({"seq": following, "batch": BATCH}).encode()
            await client.publish(f"$JS.API.DIRECT.GET.{stream}", body, reply=inbox)
            while True:
                message = await heard.next_msg(timeout=READ_S)
                headers = message.headers or {}
                if "Status" in headers:
                    break
                seq = int(headers["Nats-Sequence"])
                found[seq] = (headers["Nats-Time-Stamp"], headers["Nats-Subject"], message.data)
                following = seq + 1
            if headers["Status"] != "204":
                break
    return found
