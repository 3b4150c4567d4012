"""Two clusters of two servers, of either kind: what crosses does so once, whichever servers the
connections between the clusters happen to be at."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from itertools import product

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from jsctl.testing import Broker
from tests.support.gateways import IDS, PAIRS, pair, told
from tests.support.leafs import hub_block, leaf_port, spoke_block
from tests.support.leafs import linked as leafs_linked
from tests.support.leafs import remote as leaf_remote
from tests.support.leafs import told as leaf_told
from tests.support.listeners import WAIT_S, connected, listen, settle
from tests.support.super_clusters import super_cluster
from tests.support.waiting import eventually

SIZES = {"a": 2, "b": 2}


@pytest.fixture(scope="module", params=PAIRS, ids=IDS)
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The servers by name."""
    kinds = dict(zip(SIZES, request.param, strict=True))
    with super_cluster(kinds, SIZES) as found:
        yield found


@pytest.fixture
async def clients(servers: dict[str, Broker]) -> AsyncIterator[dict[str, Client]]:
    """A client of each."""
    async with AsyncExitStack() as stack:
        yield {name: await connected(stack, server) for name, server in servers.items()}


async def test_everybody_hears_everything_once(
    servers: dict[str, Broker], clients: dict[str, Client]
) -> None:
    heard = {name: await listen(client, "all.*") for name, client in clients.items()}
    for server in servers.values():
        told(server, "all.*")
    await settle(*clients.values())
    for name, client in clients.items():
        for number in range(25):
            await client.publish(f"all.{name}", b"%d" % number)
    for one in heard.values():
        await one.reach(100)
    await settle(*clients.values())
    for one in heard.values():
        assert len(one) == 100
        for name in clients:
            said = [int(m.data) for m in one if m.subject == f"all.{name}"]
            assert said == list(range(25))


async def test_one_member_of_a_group_gets_it_and_one_near_by(
    servers: dict[str, Broker], clients: dict[str, Client]
) -> None:
    heard = {name: await listen(client, "work.*", "q") for name, client in clients.items()}
    for server in servers.values():
        told(server, "work.*")
    await settle(*clients.values())
    for name, client in clients.items():
        for number in range(50):
            await client.publish(f"work.{name}", b"%d" % number)

    async def all_there() -> bool:
        return sum(map(len, heard.values())) >= 200

    await eventually(all_there, "somebody has each message")
    await settle(*clients.values())
    assert sum(map(len, heard.values())) == 200
    for cluster in SIZES:
        near = [m for name in heard if name[0] == cluster for m in heard[name]]
        assert {m.subject[5] for m in near} == {cluster}, "the own cluster serves first"


async def test_a_group_elsewhere_shares_what_comes(
    servers: dict[str, Broker], clients: dict[str, Client]
) -> None:
    heard = {name: await listen(clients[name], "far.*", "q") for name in ("b1", "b2")}
    for name in ("a1", "a2"):
        told(servers[name], "far.*")
    await settle(*clients.values())
    for name in ("a1", "a2"):
        for number in range(100):
            await clients[name].publish(f"far.{name}", b"%d" % number)

    async def all_there() -> bool:
        return sum(map(len, heard.values())) >= 200

    await eventually(all_there, "somebody has each message")
    await settle(*clients.values())
    assert sum(map(len, heard.values())) == 200


async def test_answers_find_the_server_that_asked(
    servers: dict[str, Broker], clients: dict[str, Client]
) -> None:
    """Each from a server to each of the other cluster, with inboxes that nobody heard of yet."""

    async def answer(message: Msg) -> None:
        await message.respond(b"re: " + message.data)

    for name, client in clients.items():
        await client.subscribe(f"ask.{name}", cb=answer)
        await client.flush()
    for name in servers:
        for server in servers.values():
            if server.name[0] != name[0]:
                told(server, f"ask.{name}")
    await settle(*clients.values())
    for here, there in product(clients, clients):
        for number in range(10):
            inbox = clients[here].new_inbox()
            heard = await clients[here].subscribe(inbox, max_msgs=1)
            await clients[here].publish(f"ask.{there}", b"%d" % number, reply=inbox)
            got = await heard.next_msg(WAIT_S)
            assert (got.subject, got.data) == (inbox, b"re: %d" % number)


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_leaf_nodes_reach_beyond_gateways(kinds: tuple[str, str]) -> None:
    """One of our leaf nodes hangs on `a`; it and the clients of `b` hear and answer each other."""
    with ExitStack() as stack:
        system = "accounts { SYS: {} }\nsystem_account: SYS\n"
        hub, far = stack.enter_context(pair(kinds, a=hub_block() + system, b=system))
        config = spoke_block(leaf_remote(leaf_port(hub)))
        leaf = stack.enter_context(Broker(config=config, name="leaf"))
        leafs_linked(hub)
        async with AsyncExitStack() as clients:
            near, there = await connected(clients, leaf), await connected(clients, far)

            async def answer(message: Msg) -> None:
                await message.respond(b"re: " + message.data)

            await near.subscribe("ask.leaf", cb=answer)
            await there.subscribe("ask.far", cb=answer)
            await near.flush()
            await there.flush()
            told(far, "ask.leaf")
            leaf_told(leaf, "ask.far")
            for number in range(20):
                got = await there.request("ask.leaf", b"%d" % number, timeout=WAIT_S)
                assert got.data == b"re: %d" % number
                got = await near.request("ask.far", b"%d" % number, timeout=WAIT_S)
                assert got.data == b"re: %d" % number
