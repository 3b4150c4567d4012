"""Links between clusters, and of leaf nodes, that are stalled, broken and long, for every pair of
kinds: interest is right soon afterwards, nothing comes twice, queue groups go on near by, and what
a hub acknowledged to a leaf node is there."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.errors import APIError

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support import leafs
from tests.support.gateways import IDS, PAIRS, block, linked, remote
from tests.support.listeners import WAIT_S
from tests.support.ports import free_port
from tests.support.waiting import eventually
from tests.support.ways import Way, way

INTEREST_S = 2.0
STALLED_S = 0.5
LONG_S = 0.05
SOON_S = 0.3
BURST = 20
ACK_S = 0.5


def into(found: Counter[bytes]) -> Callable[[Msg], Awaitable[None]]:
    """A listener that counts what it hears."""

    async def take(message: Msg) -> None:
        found[message.data] += 1

    return take


async def answer(message: Msg) -> None:
    """A service."""
    await message.respond(message.data)


class Play:
    """Clients of both ends: what `here` publishes is heard by one over there, by a queue group that
    has members at both ends, and by one that has two over there."""

    def __init__(self, ways: list[Way], here: Client, there: Client) -> None:
        self.ways = ways
        self.here, self.there = here, there
        self.heard: Counter[bytes] = Counter()
        self.near: Counter[bytes] = Counter()
        self.far: Counter[bytes] = Counter()
        self.two: Counter[bytes] = Counter()
        self._count = 0

    async def begin(self) -> None:
        """Subscribe."""
        await self.there.subscribe("plain", cb=into(self.heard))
        await self.there.subscribe("shared", "q", cb=into(self.far))
        await self.here.subscribe("shared", "q", cb=into(self.near))
        for _ in range(2):
            await self.there.subscribe("plain", "two", cb=into(self.two))
        await self.there.subscribe("service", cb=answer)
        await self.there.flush()
        await self.here.flush()

    async def burst(self) -> set[bytes]:
        """Publish some; what was said."""
        said = {b"%d" % (self._count + number) for number in range(BURST)}
        self._count += BURST
        for word in said:
            await self.here.publish("plain", word)
            await self.here.publish("shared", word)
        await self.here.flush()
        return said

    async def publish(self, seconds: float) -> None:
        """Publish for a while."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            await self.burst()

    async def is_whole(self) -> None:
        """Soon everything is heard, at the latest what is said two seconds from now."""
        begun, heard = asyncio.get_running_loop().time(), False
        while not heard:
            late = asyncio.get_running_loop().time() - begun > INTEREST_S
            said = await self.burst()

            async def all_heard(said: set[bytes] = said) -> bool:
                return said <= set(self.heard) & set(self.two)

            try:
                heard = await eventually(all_heard, "all is heard", WAIT_S if late else SOON_S)
            except AssertionError:
                assert not late, "interest is right again"
        assert max(self.heard.values()) == max(self.two.values()) == 1, "no message comes twice"
        assert said <= set(self.near), "the group is served near by"
        assert not self.near.keys() & self.far.keys() and max(self.near.values()) == 1

    async def suffer(self) -> None:
        """A stall, a break and a long way."""
        await self.is_whole()
        self.stall(True)
        await self.publish(STALLED_S)
        self.stall(False)
        await self.is_whole()
        for one in self.ways:
            one.reset()
            await self.is_whole()
        for one in self.ways:
            one.lengthen(LONG_S)
        await self.is_whole()
        took = await eventually(self.asked, "the service answers", WAIT_S)
        assert took >= 2 * LONG_S, "it went the long way"

    async def asked(self) -> float:
        """How long the service took; 0 while the way back is not there again."""
        begun = asyncio.get_running_loop().time()
        try:
            await self.here.request("service", b"x", timeout=ACK_S)
        except Error:
            return 0.0
        return asyncio.get_running_loop().time() - begun

    def stall(self, stalled: bool) -> None:
        """All ways, or none any more."""
        for one in self.ways:
            one.stall(stalled)


@asynccontextmanager
async def playing(ways: list[Way], here: Broker, there: Broker) -> AsyncIterator[Play]:
    """Clients of two linked servers."""
    clients = [await nats.connect(one.url, connect_timeout=WAIT_S) for one in (here, there)]
    made = Play(ways, *clients)
    await made.begin()
    yield made
    for client in clients:
        await client.close()


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_links_between_clusters(kinds: tuple[str, str]) -> None:
    """The clusters find each other through proxies only."""
    ports = [free_port(), free_port()]
    async with AsyncExitStack() as stack:
        ways = [await stack.enter_async_context(way(port)) for port in ports]
        found: list[Broker] = []
        for at, (name, kind) in enumerate(zip("AB", kinds, strict=True)):
            remotes = [remote(other, one.door) for other, one in zip("AB", ways, strict=True)]
            more = f'advertise: "{HOST}:{ways[at].door}"'
            config = block(name, *remotes, port=ports[at], more=more)
            server = KINDS[kind](config=config, name=f"{name.lower()}1")
            await asyncio.to_thread(server.start)
            stack.callback(server.close)
            found.append(server)
        await asyncio.to_thread(linked, found[0], "B")
        await asyncio.to_thread(linked, found[1], "A")
        play = await stack.enter_async_context(playing(ways, *found))
        await play.suffer()


class Stored:
    """What a leaf node's client publishes to a stream of the hub."""

    def __init__(self, client: Client) -> None:
        self.context = client.jetstream(domain="hub", timeout=WAIT_S)
        self.acked: dict[int, bytes] = {}
        self.over = False

    async def run(self) -> None:
        """One after the other; what has no answer may be stored or not."""
        number = 0
        while not self.over:
            number += 1
            try:
                ack = await self.context.publish("S.x", b"%d" % number, timeout=ACK_S)
                self.acked[ack.seq] = b"%d" % number
            except (Error, APIError):
                continue

    async def look(self) -> None:
        """All that was acknowledged is there."""
        reader = await self.context.pull_subscribe("S.>", stream="S")
        found: dict[int, bytes] = {}
        while not self.acked.keys() <= found.keys():
            for message in await reader.fetch(500, timeout=WAIT_S):
                found[message.metadata.sequence.stream] = message.data
        assert {seq: found[seq] for seq in self.acked} == self.acked and self.acked


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_links_of_leaf_nodes(kinds: tuple[str, str]) -> None:
    """The leaf node finds the hub through a proxy only."""
    port = free_port()
    async with AsyncExitStack() as stack:
        road = await stack.enter_async_context(way(port))
        listen = f'leafnodes {{ listen: "{HOST}:{port}", advertise: "{HOST}:{road.door}" }}\n'
        spoke = leafs.spoke_block(leafs.remote(road.door))
        hub = KINDS[kinds[0]]("-js", config="jetstream { domain: hub }\n" + listen, name="hub")
        leaf = KINDS[kinds[1]](config=spoke, name="leaf")
        for server in (hub, leaf):
            await asyncio.to_thread(server.start)
            stack.callback(server.close)
        await asyncio.to_thread(leafs.linked, leaf)
        play = await stack.enter_async_context(playing([road], leaf, hub))
        stored = Stored(play.here)
        await play.there.jetstream(timeout=WAIT_S).add_stream(name="S", subjects=["S.>"])
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(stored.run())
            await play.suffer()
            stored.over = True
            await running
        await stored.look()
