"""What keeps leaf nodes from harm: loops, links that are there twice, versions, isolation; and what
holds when one end is killed."""

from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager

import pytest

from jsctl.testing import HOST, Broker, ReservedPort
from tests.contract.conftest import KINDS
from tests.support.leafs import (
    IDS,
    PAIRS,
    leaf_port,
    leafz,
    linked,
    pair,
    remote,
    spoke_block,
    told,
)
from tests.support.listeners import connected, known, listen, settle

SHARED = """
accounts {
  A { users: [ {user: a, password: p} ], exports: [ {service: "help.>"}, {stream: "news.>"} ] }
  B {
    users: [ {user: b, password: p} ]
    imports: [
      {service: {account: A, subject: "help.>"}}, {stream: {account: A, subject: "news.>"}}
    ]
  }
}
"""


@contextmanager
def circle(kinds: tuple[str, str]) -> Iterator[tuple[Broker, Broker]]:
    """Two servers, each of which hangs on the other one."""
    with ExitStack() as stack:
        port = ReservedPort()
        stack.callback(port.release)
        block = f'listen: "{HOST}:-1", remotes: [ {remote(port.number)} ], reconnect: "100ms"'
        first = KINDS[kinds[0]](config=f"leafnodes {{ {block} }}\n", name="first")
        stack.enter_context(first)
        block = f'listen: "{HOST}:{port.number}", remotes: [ {remote(leaf_port(first))} ]'
        second = KINDS[kinds[1]](config=f"leafnodes {{ {block} }}\n", name="second")
        stack.enter_context(second)
        yield first, second


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_a_loop_is_found(kinds: tuple[str, str]) -> None:
    with circle(kinds) as servers:
        servers[1].wait_log("Loop detected")
        async with AsyncExitStack() as stack:
            one, other = [await connected(stack, server) for server in servers]
            heard = await listen(other, "once")
            await one.publish("once")
            await other.publish("once")
            await settle(one, other)
            assert 1 <= len(heard) <= 2, "nothing goes round"


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_a_leaf_node_that_comes_again(kinds: tuple[str, str]) -> None:
    """Who has the name and the account of one that is there takes its place."""
    with pair(kinds) as (hub, leaf):
        block = spoke_block(remote(leaf_port(hub)))
        with KINDS[kinds[1]](config=block, name="leaf"):
            hub.wait_log("Replacing connection from same server")
            leaf.wait_log("Duplicate Remote LeafNode Connection")
            assert len(leafz(hub)) <= 1


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
def test_leaf_nodes_that_are_too_old(kinds: tuple[str, str]) -> None:
    with pair(kinds, listen='min_version: "2.99.0"', links=0) as (hub, leaf):
        text = 'connection rejected since minimum version required is "2.99.0"'
        hub.wait_log(text)
        leaf.wait_log(text)
        assert leafz(hub) == []


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize("isolated", [False, True])
async def test_leaf_nodes_that_hear_of_the_hub_only(kinds: tuple[str, str], isolated: bool) -> None:
    more = f"isolate_leafnode_interest: {str(isolated).lower()}"
    with pair(kinds, listen=more) as (hub, leaf), ExitStack() as stack:
        block = spoke_block(remote(leaf_port(hub)))
        other = stack.enter_context(KINDS[kinds[1]](config=block, name="other"))
        linked(hub, 2)
        linked(other)
        async with AsyncExitStack() as clients:
            up, near, far = [await connected(clients, one) for one in (hub, leaf, other)]
            at_far = await listen(far, "news.*")
            told(hub, "news.*")
            await listen(up, "hub.*")
            told(leaf, "hub.*")
            (row,) = leafz(leaf, subscriptions=True)
            assert ("news.*" in row["subscriptions_list"]) is not isolated
            await near.publish("news.leaf")
            await settle(near, up)
            await known(up, "news.hub", at_far)
            if not isolated:
                await near.publish("news.leaf")
                await at_far.reach(1)


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_imports_across(kinds: tuple[str, str]) -> None:
    """Account B of the hub imports what account A of the leaf node offers."""
    leaf = "accounts { A { users: [ {user: a, password: p} ] } }\n"
    more = "account: A"
    with pair(kinds, hub=SHARED, login="a:p", remote_more=more, leaf=leaf) as (hub, leaf_node):
        async with AsyncExitStack() as stack:
            up = await connected(stack, hub, "b")
            down = await connected(stack, leaf_node, "a")
            served = await down.subscribe("help.me")
            await down.flush()
            told(hub, "help.me")
            heard = await listen(up, "news.>")
            await known(down, "news.early", heard)
            await down.publish("news.now", b"1")
            await heard.reach(1)
            inbox = await up.subscribe("answer")
            await up.publish("help.me", b"2", reply="answer")
            question = await served.next_msg(timeout=30)
            assert question.data == b"2"
            await question.respond(b"3")
            assert (await inbox.next_msg(timeout=30)).data == b"3"


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize("victim", ["hub", "leaf"])
async def test_a_link_comes_back(kinds: tuple[str, str], victim: str) -> None:
    with ExitStack() as stack:
        port = ReservedPort()
        stack.callback(port.release)
        block = f'leafnodes {{ listen: "{HOST}:{port.number}" }}\n'
        hub = stack.enter_context(KINDS[kinds[0]](config=block, name="hub"))
        block = spoke_block(remote(port.number))
        leaf = stack.enter_context(KINDS[kinds[1]](config=block, name="leaf"))
        linked(hub)
        linked(leaf)
        killed, stays = (hub, leaf) if victim == "hub" else (leaf, hub)
        async with AsyncExitStack() as clients:
            there = await connected(clients, stays)
            heard = await listen(there, "again.*")
            killed.kill()
            linked(stays, 0)
            killed.start()
            linked(hub)
            linked(leaf)
            back = await connected(clients, killed)
            await known(back, "again.early", heard)
            for number in range(20):
                await back.publish(f"again.{number}")
            await heard.reach(20)
            await settle(there, back)
            assert [one.subject for one in heard] == [f"again.{number}" for number in range(20)]
