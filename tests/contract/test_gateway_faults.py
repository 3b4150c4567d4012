"""Connections between two clusters that are stalled and broken by a proxy, for every pair of kinds:
interest is right soon afterwards, nothing comes twice, and queue groups go on near by."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.gateways import IDS, PAIRS, block, free_port, linked, remote
from tests.support.listeners import WAIT_S
from tests.support.waiting import eventually
from tests.support.ways import Way, way

INTEREST_S = 2.0
STALLED_S = 1.0


class Play:
    """Clients of both clusters: what A publishes is heard by one in B, and by a queue group."""

    def __init__(self, ways: list[Way], here: Client, there: Client) -> None:
        self.ways = ways
        self.here, self.there = here, there
        self.heard: Counter[bytes] = Counter()
        self.near: Counter[bytes] = Counter()
        self.far: Counter[bytes] = Counter()
        self._count = 0

    async def begin(self) -> None:
        """Subscribe."""

        def into(found: Counter[bytes]) -> Callable[[Msg], Awaitable[None]]:
            async def take(message: Msg) -> None:
                found[message.data] += 1

            return take

        await self.there.subscribe("plain", cb=into(self.heard))
        await self.there.subscribe("shared", "q", cb=into(self.far))
        await self.here.subscribe("shared", "q", cb=into(self.near))
        await self.there.flush()
        await self.here.flush()

    async def publish(self, seconds: float) -> set[bytes]:
        """Publish for a while; what was said."""
        end = asyncio.get_running_loop().time() + seconds
        said: set[bytes] = set()
        while asyncio.get_running_loop().time() < end:
            self._count += 1
            said.add(b"%d" % self._count)
            await self.here.publish("plain", b"%d" % self._count)
            await self.here.publish("shared", b"%d" % self._count)
            await self.here.flush()
        return said

    async def is_whole(self) -> None:
        """From two seconds on everything is heard."""
        await self.publish(INTEREST_S)
        said = await self.publish(0.3)

        async def all_heard() -> bool:
            return said <= set(self.heard)

        await eventually(all_heard, "interest is right again", WAIT_S)
        assert max(self.heard.values()) == 1, "no message comes twice"
        assert said <= set(self.near), "the group is served near by"
        assert not self.near.keys() & self.far.keys() and max(self.near.values()) == 1


@pytest.fixture(params=PAIRS, ids=IDS)
async def play(request: pytest.FixtureRequest) -> AsyncIterator[Play]:
    """Two clusters of one server, which find each other through proxies only."""
    ports = [free_port(), free_port()]
    async with AsyncExitStack() as stack:
        ways = [await stack.enter_async_context(way(port)) for port in ports]
        found: list[Broker] = []
        for at, (name, kind) in enumerate(zip("AB", request.param, strict=True)):
            remotes = [remote(other, one.door) for other, one in zip("AB", ways, strict=True)]
            more = f'advertise: "{HOST}:{ways[at].door}"'
            config = block(name, *remotes, port=ports[at], more=more)
            server = KINDS[kind](config=config, name=f"{name.lower()}1")
            await asyncio.to_thread(server.start)
            stack.callback(server.close)
            found.append(server)
        await asyncio.to_thread(linked, found[0], "B")
        await asyncio.to_thread(linked, found[1], "A")
        clients = [await nats.connect(one.url, connect_timeout=WAIT_S) for one in found]
        made = Play(ways, clients[0], clients[1])
        await made.begin()
        yield made
        for client in clients:
            await client.close()


async def test_a_link_that_stalls_and_goes_on(play: Play) -> None:
    await play.is_whole()
    for one in play.ways:
        one.stall(True)
    await play.publish(STALLED_S)
    for one in play.ways:
        one.stall(False)
    await play.is_whole()


async def test_links_that_break(play: Play) -> None:
    await play.is_whole()
    for one in play.ways:
        one.reset()
        await play.is_whole()
