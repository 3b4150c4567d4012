"""Two servers with a link, of either kind: what is published at one is heard at the other.

The link is that of a leaf node, or a gateway between clusters of one server.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from jsctl.testing import Broker
from tests.support import gateways, leafs
from tests.support.listeners import WAIT_S, connected, known, listen, settle
from tests.support.waiting import eventually


@dataclass(frozen=True, slots=True)
class Link:
    """How two servers are linked, and how to wait until one is told of the other's interest."""

    pair: Callable[[tuple[str, str]], AbstractContextManager[tuple[Broker, Broker]]]
    told: Callable[..., None]


LINKS = {
    "leaf": Link(partial(leafs.pair, listen="no_advertise: true"), leafs.told),
    "gateway": Link(gateways.pair, gateways.told),
}
CASES = list(product(LINKS, leafs.PAIRS))


@pytest.fixture(
    scope="module", params=CASES, ids=[f"{link}-{one}-{two}" for link, (one, two) in CASES]
)
def linked(request: pytest.FixtureRequest) -> Iterator[tuple[Link, dict[str, Broker]]]:
    """The link, and its two ends."""
    name, kinds = request.param
    with LINKS[name].pair(kinds) as (one, other):
        yield LINKS[name], {"one": one, "other": other}


@pytest.fixture
def link(linked: tuple[Link, dict[str, Broker]]) -> Link:
    """How they are linked."""
    return linked[0]


@pytest.fixture
def servers(linked: tuple[Link, dict[str, Broker]]) -> dict[str, Broker]:
    """The hub, or who was there first, is the one."""
    return linked[1]


@pytest.fixture
async def clients(servers: dict[str, Broker]) -> AsyncIterator[dict[str, Client]]:
    """A client of each."""
    async with AsyncExitStack() as stack:
        yield {name: await connected(stack, server) for name, server in servers.items()}


both_ways = pytest.mark.parametrize(("here", "there"), [("one", "other"), ("other", "one")])


@both_ways
async def test_messages_cross(
    link: Link, servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    heard = await listen(clients[there], f"cross.{here}.*")
    link.told(servers[here], f"cross.{here}.*")
    client = clients[here]
    await client.publish(f"cross.{here}.1", b"one")
    await client.publish(f"cross.{here}.2", b"two", reply="back")
    await client.publish(f"cross.{here}.3", b"three", headers={"A": "b", "C": "d"})
    await client.publish(f"cross.{here}.4", b"", reply="back", headers={"A": "b"})
    found = await heard.reach(4)
    said = [(m.subject.rpartition(".")[2], m.data, m.reply, m.headers) for m in found]
    assert said == [
        ("1", b"one", "", None),
        ("2", b"two", "back", None),
        ("3", b"three", "", {"A": "b", "C": "d"}),
        ("4", b"", "back", {"A": "b"}),
    ]


@both_ways
async def test_many_messages_keep_their_order(
    link: Link, servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    heard = await listen(clients[there], f"many.{here}.>")
    link.told(servers[here], f"many.{here}.>")
    for number in range(5000):
        await clients[here].publish(f"many.{here}.{number % 7}", b"%d" % number)
    await heard.reach(5000)
    assert [int(message.data) for message in heard] == list(range(5000))


@both_ways
async def test_requests_are_answered(
    link: Link, servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b"re: " + message.data)

    await clients[there].subscribe(f"ask.{here}", cb=answer)
    await clients[there].flush()
    link.told(servers[here], f"ask.{here}")
    for number in range(20):
        got = await clients[here].request(f"ask.{here}", b"%d" % number, timeout=WAIT_S)
        assert got.data == b"re: %d" % number


@both_ways
async def test_nobody_is_there(clients: dict[str, Client], here: str, there: str) -> None:
    with pytest.raises(NoRespondersError):
        await clients[here].request(f"nobody.{here}.{there}", timeout=WAIT_S)


@both_ways
async def test_interest_ends(
    link: Link, servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    subject = f"ends.{here}"
    one = await clients[there].subscribe(subject)
    other = await clients[there].subscribe(subject)
    await clients[there].flush()
    link.told(servers[here], subject)
    await one.unsubscribe()
    await clients[there].flush()
    await clients[here].publish(subject, b"still")
    assert (await other.next_msg(WAIT_S)).data == b"still"
    await other.unsubscribe()
    await clients[there].flush()
    link.told(servers[here], subject, gone=True)
    with pytest.raises(NoRespondersError):
        await clients[here].request(subject, timeout=WAIT_S)


@both_ways
async def test_nothing_comes_back(
    link: Link, servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    near = await listen(clients[here], f"echo.{here}")
    far = await listen(clients[there], f"echo.{here}")
    link.told(servers[here], f"echo.{here}")
    link.told(servers[there], f"echo.{here}")
    for number in range(50):
        await clients[here].publish(f"echo.{here}", b"%d" % number)
    await far.reach(50)
    await settle(*clients.values())
    assert len(near) == len(far) == 50


@both_ways
async def test_a_queue_group_is_served_near_by(
    link: Link, servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    subject = f"near.{here}"
    near = await listen(clients[here], subject, "q")
    far = await listen(clients[there], subject, "q")
    plain = await listen(clients[there], subject)
    link.told(servers[here], subject)
    await known(clients[here], subject, near, plain)
    far.clear()
    for number in range(100):
        await clients[here].publish(subject, b"%d" % number)
    await near.reach(100)
    await plain.reach(100)
    await settle(*clients.values())
    assert (len(near), len(far), len(plain)) == (100, 0, 100)


@both_ways
async def test_a_queue_group_that_is_only_there_shares_the_work(
    link: Link, servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    subject = f"far.{here}"
    groups = {
        name: [await listen(clients[there], subject, name) for _ in range(3)] for name in "qr"
    }
    link.told(servers[here], subject, count=1)
    await settle(*clients.values())
    for number in range(300):
        await clients[here].publish(subject, b"%d" % number)

    async def all_there() -> bool:
        return all(sum(map(len, members)) >= 300 for members in groups.values())

    await eventually(all_there, "a member of each group has each message")
    await settle(*clients.values())
    for members in groups.values():
        assert sum(map(len, members)) == 300
        assert min(map(len, members)) > 30


@both_ways
async def test_large_messages(
    link: Link, servers: dict[str, Broker], clients: dict[str, Client], here: str, there: str
) -> None:
    heard = await listen(clients[there], f"large.{here}")
    link.told(servers[here], f"large.{here}")
    sizes = [1, 4095, 65_536, 262_144, 1_000_000, 1 << 20]
    for size in sizes:
        await clients[here].publish(f"large.{here}", b"x" * size)
    await heard.reach(len(sizes))
    assert [len(message.data) for message in heard] == sizes
