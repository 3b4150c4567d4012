"""Leaf nodes of one hub, of a cluster of hubs, and clusters of leaf nodes.

Each message reaches each listener once, and one member of each queue group, the nearest.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.leafs import (
    IDS,
    PAIRS,
    hub_block,
    leaf_port,
    linked,
    remote,
    route_port,
    spoke_block,
)
from tests.support.listeners import WAIT_S, connected, known, listen, settle
from tests.support.waiting import eventually

COUNT = 60


def cluster(name: str, *routes: int) -> str:
    """A `cluster` block."""
    urls = ", ".join(f'"nats://{HOST}:{port}"' for port in routes)
    return f'cluster {{ name: {name}, listen: "{HOST}:-1", routes: [ {urls} ] }}\n'


@pytest.fixture(scope="module", params=PAIRS, ids=IDS)
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """Two hubs of one cluster, `h1` and `h2`; `l1` and `m1` hang on the first, `l2` on the second;
    and a cluster of leaf nodes, `c1` on the first and `c2` on the second."""
    hub_kind, leaf_kind = (KINDS[kind] for kind in request.param)
    with ExitStack() as stack:

        def start(kind: type[Broker], name: str, config: str) -> Broker:
            return stack.enter_context(kind(config=config, name=name))

        h1 = start(hub_kind, "h1", hub_block("no_advertise: true") + cluster("H"))
        block = hub_block("no_advertise: true") + cluster("H", route_port(h1))
        h2 = start(hub_kind, "h2", block)
        one, two = (spoke_block(remote(leaf_port(hub))) for hub in (h1, h2))
        found = {"h1": h1, "h2": h2}
        found["l1"] = start(leaf_kind, "l1", one)
        found["m1"] = start(leaf_kind, "m1", one)
        found["l2"] = start(leaf_kind, "l2", two)
        found["c1"] = start(leaf_kind, "c1", one + cluster("C"))
        found["c2"] = start(leaf_kind, "c2", two + cluster("C", route_port(found["c1"])))
        linked(h1, 3)
        linked(h2, 2)
        for name in ("l1", "m1", "l2", "c1", "c2"):
            linked(found[name])
        yield found


@pytest.fixture
async def clients(servers: dict[str, Broker]) -> AsyncIterator[dict[str, Client]]:
    """A client of each."""
    async with AsyncExitStack() as stack:
        yield {name: await connected(stack, server) for name, server in servers.items()}


@pytest.mark.parametrize("publisher", ["h1", "h2", "l1", "l2", "c1", "c2"])
async def test_everybody_hears_a_message_once(clients: dict[str, Client], publisher: str) -> None:
    heard = {name: await listen(client, "all.*") for name, client in clients.items()}
    await known(clients[publisher], "all.early", *heard.values())
    for number in range(COUNT):
        await clients[publisher].publish(f"all.{number % 3}", b"%d" % number)

    async def all_there() -> bool:
        await settle(clients[publisher])
        return all(len(one) >= COUNT for one in heard.values())

    await eventually(all_there, "all messages everywhere", WAIT_S)
    await settle(*clients.values())
    for name, one in heard.items():
        assert [int(message.data) for message in one] == list(range(COUNT)), name


PREFERRED = [
    # where is published, where members are, who serves
    ("h1", ("h1", "h2", "l1"), {"h1", "h2"}),
    ("h1", ("l1", "h2", "l2"), {"h2"}),
    ("h1", ("l1", "l2"), {"l1", "l2"}),
    ("l1", ("l1", "m1", "h1"), {"l1"}),
    ("l1", ("m1", "h1", "h2"), {"h1", "h2"}),
    ("l1", ("m1", "l2"), {"m1", "l2"}),
    ("l1", ("c2",), {"c2"}),
    ("c1", ("c2", "h1", "l1"), {"c2"}),
    ("c1", ("h2", "l1"), {"h2"}),
    ("h2", ("c1", "c2"), {"c1", "c2"}),
]


@pytest.mark.parametrize(("publisher", "members", "serving"), PREFERRED)
async def test_a_queue_group_has_each_message_once(
    clients: dict[str, Client], publisher: str, members: tuple[str, ...], serving: set[str]
) -> None:
    subject = f"q.{publisher}.{'-'.join(members)}"
    plain = {name: await listen(clients[name], subject) for name in members}
    heard = {name: await listen(clients[name], subject, "q") for name in members}
    await known(clients[publisher], subject, *plain.values())
    for one in heard.values():
        one.clear()
    for number in range(COUNT):
        await clients[publisher].publish(subject, b"%d" % number)

    async def all_there() -> bool:
        await settle(clients[publisher])
        return sum(map(len, heard.values())) >= COUNT

    await eventually(all_there, "each message is served", WAIT_S)
    await settle(*clients.values())
    served = sorted(int(message.data) for one in heard.values() for message in one)
    assert served == list(range(COUNT))
    assert {name for name, one in heard.items() if one} <= serving


@pytest.mark.parametrize(("asks", "answers"), [("l1", "l2"), ("c2", "m1"), ("h2", "c1")])
async def test_requests_find_their_way_and_back(
    clients: dict[str, Client], asks: str, answers: str
) -> None:
    subject = f"ask.{asks}.{answers}"

    async def answer(message: Msg) -> None:
        await message.respond(b"re: " + message.data)

    await clients[answers].subscribe(subject, queue="workers", cb=answer)
    early = await listen(clients[answers], f"{subject}.early")
    await known(clients[asks], f"{subject}.early", early)
    for number in range(10):
        got = await clients[asks].request(subject, b"%d" % number, timeout=WAIT_S)
        assert got.data == b"re: %d" % number
