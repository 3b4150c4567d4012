"""A hub and a leaf node, each with a JetStream domain of its own: both are used from either."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack

import pytest
from nats.aio.client import Client

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.leafs import IDS, PAIRS, hub_block, leaf_port, linked, remote, spoke_block, told
from tests.support.listeners import WAIT_S, connected

DOMAINS = ("hub", "leaf")


@pytest.fixture(scope="module", params=PAIRS, ids=IDS)
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The domains `hub` and `leaf`, which is linked to it."""
    hub_kind, leaf_kind = (KINDS[kind] for kind in request.param)
    block = "jetstream {{ domain: {} }}\n"
    with hub_kind("-js", config=block.format("hub") + hub_block(), name="hub") as hub:
        dialing = spoke_block(remote(leaf_port(hub)))
        with leaf_kind("-js", config=block.format("leaf") + dialing, name="leaf") as leaf:
            linked(hub)
            linked(leaf)
            yield {"hub": hub, "leaf": leaf}


@pytest.fixture
async def clients(servers: dict[str, Broker]) -> AsyncIterator[dict[str, Client]]:
    """A client of each."""
    async with AsyncExitStack() as stack:
        yield {name: await connected(stack, server) for name, server in servers.items()}


@pytest.mark.parametrize("asked", DOMAINS)
@pytest.mark.parametrize("here", DOMAINS)
async def test_a_stream_of_a_domain_is_used_from_anywhere(
    servers: dict[str, Broker], clients: dict[str, Client], here: str, asked: str
) -> None:
    js = clients[here].jetstream(domain=asked, timeout=WAIT_S)
    name = f"S{here}{asked}"
    await js.add_stream(name=name, subjects=[f"{name}.>"], allow_direct=True)
    if here != asked:
        told(servers[here], f"{name}.>")
    for number in range(5):
        ack = await js.publish(f"{name}.{number}", b"%d" % number, timeout=WAIT_S)
        assert (ack.stream, ack.seq, ack.domain) == (name, number + 1, asked)
    pulled = await js.pull_subscribe(f"{name}.>", "D", stream=name)
    for message in await pulled.fetch(5, timeout=WAIT_S):
        await message.ack_sync(timeout=WAIT_S)
    info = await js.consumer_info(name, "D")
    assert (info.num_ack_pending, info.num_pending) == (0, 0)
    got = await js.get_msg(name, 3, direct=True)
    assert got.data == b"2"
    assert [one.config.name for one in await js.streams_info()].count(name) == 1


@pytest.mark.parametrize("here", DOMAINS)
async def test_without_a_domain_the_own_one_answers(clients: dict[str, Client], here: str) -> None:
    js = clients[here].jetstream(timeout=WAIT_S)
    assert (await js.account_info()).domain == here


async def test_a_leaf_node_alone_is_the_cluster_of_its_streams(clients: dict[str, Client]) -> None:
    js = clients["leaf"].jetstream(timeout=WAIT_S)
    await js.add_stream(name="ALONE", subjects=["alone"])
    found = (await js.stream_info("ALONE")).cluster
    assert found is not None
    assert (found.name, found.leader) == ("leaf", "leaf")
    [listed] = [one for one in await js.streams_info() if one.config.name == "ALONE"]
    assert listed.cluster is None
