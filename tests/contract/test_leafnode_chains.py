"""Leaf nodes that are hubs of others, and those of two hubs, of either kind: what accounts export
and import goes through all of them, and queue groups keep their weights through restarts."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError

from jsctl.testing import HOST, Broker, ReservedPort
from tests.contract.conftest import KINDS
from tests.support.leafs import IDS, PAIRS, hub_block, leaf_port, leafz, linked, remote, spoke_block
from tests.support.listeners import WAIT_S, Heard, connected, known, listen, settle
from tests.support.waiting import eventually, wait_for

COUNT = 400
TOP = """accounts {
  T {
    users: [ {user: t, password: p} ]
    exports: [ {service: "top.svc"}, {stream: "top.news.>"} ]
  }
  U {
    users: [ {user: u, password: p} ]
    imports: [
      {service: {account: T, subject: "top.svc"}, to: "my.svc"}
      {stream: {account: T, subject: "top.news.>"}, prefix: u}
    ]
  }
}
"""
MIDDLE = """accounts {
  X {
    users: [ {user: x, password: p} ]
    exports: [
      {service: "mid.svc"}, {service: "my.svc"}, {stream: "mid.news.>"}, {stream: "u.top.news.>"}
    ]
  }
  Y {
    users: [ {user: y, password: p} ]
    imports: [
      {service: {account: X, subject: "mid.svc"}, to: "y.svc"}
      {service: {account: X, subject: "my.svc"}, to: "y.my"}
      {stream: {account: X, subject: "mid.news.>"}, prefix: y}
      {stream: {account: X, subject: "u.top.news.>"}, to: "down.>"}
    ]
  }
}
"""
BOTTOM = """accounts {
  L {
    users: [ {user: l, password: p} ]
    exports: [ {service: "y.svc"}, {service: "y.my"}, {stream: "y.mid.news.>"}, {stream: "down.>"} ]
  }
  M {
    users: [ {user: m, password: p} ]
    imports: [
      {service: {account: L, subject: "y.svc"}, to: "m.svc"}
      {service: {account: L, subject: "y.my"}, to: "m.my"}
      {stream: {account: L, subject: "y.mid.news.>"}, prefix: m}
      {stream: {account: L, subject: "down.>"}, prefix: m}
    ]
  }
}
"""
PLACES = {"t": "top", "u": "top", "x": "middle", "y": "middle", "l": "bottom", "m": "bottom"}
ASKED = {
    "t": ("top.svc", {"u": "my.svc", "x": "my.svc", "y": "y.my", "l": "y.my", "m": "m.my"}),
    "x": ("mid.svc", {"u": "mid.svc", "y": "y.svc", "l": "y.svc", "m": "m.svc"}),
}
"""Who answers -> on what, and how others ask for it."""
NEWS = {
    "t": ("top.news.1", {"u": "u.top.news.1", "x": "u.top.news.1", "y": "down.1", "l": "down.1",
                         "m": "m.down.1"}),
    "x": ("mid.news.1", {"u": "mid.news.1", "y": "y.mid.news.1", "l": "y.mid.news.1",
                         "m": "m.y.mid.news.1"}),
    "u": ("mid.news.1", {"x": "mid.news.1", "y": "y.mid.news.1", "l": "y.mid.news.1",
                         "m": "m.y.mid.news.1"}),
}  # fmt: skip
"""Who publishes -> what, and as what others hear it."""


@pytest.fixture(scope="module", params=PAIRS, ids=IDS)
def chain(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """The one in the middle is a leaf node of the top, and of the other kind if there are two."""
    kind, other = (KINDS[one] for one in request.param)
    with ExitStack() as stack:
        top = stack.enter_context(kind(config=hub_block() + TOP, name="top"))
        up = f"remotes: [ {remote(leaf_port(top), 'account: X', 'u:p')} ]"
        middle = stack.enter_context(other(config=hub_block(up) + MIDDLE, name="middle"))
        linked(middle)
        down = spoke_block(remote(leaf_port(middle), "account: L", "y:p"))
        bottom = stack.enter_context(kind(config=down + BOTTOM, name="bottom"))
        linked(bottom)
        linked(middle, 2)
        yield {"top": top, "middle": middle, "bottom": bottom}


@pytest.fixture
async def users(chain: dict[str, Broker]) -> AsyncIterator[dict[str, Client]]:
    """A client of each account."""
    async with AsyncExitStack() as stack:
        yield {name: await connected(stack, chain[at], name) for name, at in PLACES.items()}


@pytest.mark.parametrize("owner", list(ASKED))
async def test_services_are_asked_through_a_chain(users: dict[str, Client], owner: str) -> None:
    async def answer(message: Msg) -> None:
        await message.respond(b"re: " + message.subject.encode())

    subject, asked = ASKED[owner]
    await users[owner].subscribe(subject, cb=answer)
    await users[owner].flush()
    for name, words in asked.items():

        async def fact(name: str = name, words: str = words) -> bytes:
            try:
                return (await users[name].request(words, timeout=WAIT_S)).data
            except NoRespondersError:
                return b""

        assert await eventually(fact, f"{name} has an answer") == b"re: " + subject.encode()


@pytest.mark.parametrize("owner", list(NEWS))
async def test_streams_are_heard_through_a_chain(users: dict[str, Client], owner: str) -> None:
    subject, heard_as = NEWS[owner]
    heard = {name: await listen(users[name], words) for name, words in heard_as.items()}
    await known(users[owner], subject, *heard.values())
    await users[owner].publish(subject, b"now")
    for name, one in heard.items():
        await one.reach(1)
        assert one[0].subject == heard_as[name]
    await settle(*users.values())
    assert all(len(one) == 1 for one in heard.values())


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_an_account_of_two_hubs(kinds: tuple[str, str]) -> None:
    """Each of them hears the leaf node, and not the other one's clients but by a listener there."""
    async with AsyncExitStack() as stack:
        hubs = [
            stack.enter_context(KINDS[kinds[0]](config=hub_block(), name=name))
            for name in ("one", "other")
        ]
        remotes = [remote(leaf_port(hub)) for hub in hubs]
        leaf = KINDS[kinds[1]](config=spoke_block(*remotes), name="leaf")
        stack.enter_context(leaf)
        linked(leaf, 2)
        one, other, near = [await connected(stack, server) for server in (*hubs, leaf)]
        everywhere = [await listen(client, "all") for client in (one, other, near)]
        groups = [await listen(client, "group", "g") for client in (one, other)]
        far = await listen(other, "far")
        await known(near, "far", far)
        for client in (one, other, near):
            await known(client, "all", *everywhere)
            await client.publish("all")
            for heard in everywhere:
                await heard.reach(1)
                assert len(heard) == 1
        await one.publish("far")
        for _ in range(COUNT):
            await near.publish("group")
        await shared(groups, COUNT)
        assert all(groups) and far == []


async def shared(groups: list[Heard], count: int) -> None:
    """Wait until all members together have so many."""

    async def fact() -> bool:
        return sum(map(len, groups)) >= count

    await eventually(fact, f"{count} messages", WAIT_S)


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_weights_are_told_anew(kinds: tuple[str, str]) -> None:
    """Of four members, three are at one leaf node; the hub goes and comes again."""
    async with AsyncExitStack() as stack:
        port = ReservedPort()
        stack.callback(port.release)
        config = f'leafnodes {{ listen: "{HOST}:{port.number}" }}\n'
        hub = stack.enter_context(KINDS[kinds[0]](config=config, name="hub"))
        heavy, light = [
            stack.enter_context(KINDS[kinds[1]](config=spoke_block(remote(port.number)), name=name))
            for name in ("heavy", "light")
        ]
        linked(hub, 2)
        there, here = await connected(stack, heavy), await connected(stack, light)
        groups = [await listen(there, "group", "g") for _ in range(3)]
        groups.append(await listen(here, "group", "g"))
        last = [await listen(there, "last"), await listen(here, "last")]
        for again in (False, True):
            if again:
                hub.kill()
                wait_for(lambda: not leafz(heavy) and not leafz(light), "they are alone")
                hub.start()
                linked(hub, 2)
            publisher = await connected(stack, hub)
            await known(publisher, "last", *last)
            for heard in groups:
                heard.clear()
            for _ in range(COUNT):
                await publisher.publish("group")
            await shared(groups, COUNT)
            assert COUNT // 8 < len(groups[-1]) < COUNT * 3 // 8, "about a quarter"
            await publisher.close()
