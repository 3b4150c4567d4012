"""How a leaf node dials: which address first, when again, what it is told of others, and what a hub
does not take. A remote may also turn the roles round, and stand for several accounts."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from itertools import pairwise

import pytest

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.leafs import (
    IDS,
    PAIRS,
    hub_block,
    leaf_port,
    leafz,
    linked,
    pair,
    remote,
    route_port,
    spoke_block,
)
from tests.support.listeners import connected, known, listen, settle
from tests.support.ports import free_port
from tests.support.waiting import wait_for

both_kinds = pytest.mark.parametrize("kind", list(KINDS))
four_pairs = pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
RECONNECT_S = 0.4
TRIES = 4
TWO_ACCOUNTS = """
accounts {
  A { users: [ {user: a, password: p} ] }
  B { users: [ {user: b, password: p} ] }
}
"""


@contextmanager
def doors(count: int) -> Iterator[list[socket.socket]]:
    """Listeners that nobody answers behind."""
    with ExitStack() as stack:
        yield [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]


@both_kinds
def test_who_is_not_answered_comes_again_after_the_pause(kind: str) -> None:
    """Each connection is closed at once: the next one comes a pause later, not much after."""
    with doors(1) as (door,):
        block = f'reconnect: "{int(RECONNECT_S * 1000)}ms", remotes: [ {remote(_port(door))} ]'
        with KINDS[kind](config=f"leafnodes {{ {block} }}\n", name="leaf"):
            times = []
            for _ in range(TRIES):
                connection, _address = door.accept()
                times.append(time.monotonic())
                connection.close()
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert all(one > RECONNECT_S * 0.8 for one in pauses), pauses
    assert min(pauses) < RECONNECT_S * 3, pauses


@both_kinds
def test_without_chance_addresses_have_their_order(kind: str) -> None:
    with doors(3) as several:
        urls = ", ".join(f'"nats://{HOST}:{_port(door)}"' for door in several)
        more = f"remotes: [ {{ urls: [ {urls} ], no_randomize: true }} ]"
        config = f'leafnodes {{ reconnect: "50ms", {more} }}\n'
        with KINDS[kind](config=config, name="leaf"):
            for door in [*several, *several]:
                door.settimeout(30)
                others = [one for one in several if one is not door]
                door.accept()[0].close()
                assert not any(map(_waits, others)), "another one was dialed first"


def _port(door: socket.socket) -> int:
    return int(door.getsockname()[1])


def _waits(door: socket.socket) -> bool:
    """Whether somebody has connected."""
    door.setblocking(False)
    try:
        door.accept()[0].close()
    except BlockingIOError:
        return False
    finally:
        door.setblocking(True)
    return True


@four_pairs
@pytest.mark.parametrize("ignored", [False, True])
def test_other_hubs_are_told_of_and_may_be_ignored(kinds: tuple[str, str], ignored: bool) -> None:
    """A leaf node finds the other server of its hub's cluster when its hub dies."""
    with ExitStack() as stack:
        block = f'cluster {{ name: H, listen: "{HOST}:-1" }}\n'
        first = stack.enter_context(KINDS[kinds[0]](config=hub_block() + block, name="h1"))
        routes = f'routes: ["nats://{HOST}:{route_port(first)}"]'
        block = f'cluster {{ name: H, listen: "{HOST}:-1", {routes} }}\n'
        second = stack.enter_context(KINDS[kinds[0]](config=hub_block() + block, name="h2"))
        more = f"ignore_discovered_servers: {str(ignored).lower()}"
        config = spoke_block(remote(leaf_port(first), more))
        other = stack.enter_context(KINDS[kinds[1]](config=config, name="leaf"))
        linked(other)
        wait_for(lambda: len(_told(leaf_port(first))) == 2, "the hubs know each other")
        first.kill()
        if ignored:
            wait_for(lambda: f":{leaf_port(first)}" in _tries(other), "it is dialed again")
            assert leafz(second) == []
        else:
            linked(second)


def _told(port: int) -> list[str]:
    """Where else a hub says that leaf nodes may connect."""
    with socket.create_connection((HOST, port), 30) as stranger:
        line = stranger.makefile("rb").readline()
    found = json.loads(line[5:])["leafnode_urls"]
    assert isinstance(found, list)
    return found


def _tries(leaf: Broker) -> str:
    lines = leaf.logs.splitlines()
    return "\n".join(line for line in lines if "Error trying to connect as leafnode" in line)


@four_pairs
def test_a_hub_of_the_same_cluster_is_none(kinds: tuple[str, str]) -> None:
    block = f'cluster {{ name: SAME, listen: "{HOST}:-1" }}\n'
    with pair(kinds, hub=block, leaf=block, links=0) as (hub, leaf):
        hub.wait_log("remote leafnode has same cluster name")
        leaf.wait_log("remote leafnode has same cluster name")
        leaf.wait_log("Delaying attempt to reconnect for 30s")
        assert leafz(hub) == leafz(leaf) == []


@four_pairs
async def test_who_dials_may_be_the_hub(kinds: tuple[str, str]) -> None:
    with pair(kinds, remote_more="hub: true") as (one, other):
        assert [leafz(one)[0]["is_spoke"], leafz(other)[0]["is_spoke"]] == [True, False]
        async with AsyncExitStack() as stack:
            near, far = await connected(stack, one), await connected(stack, other)
            heard = await listen(far, "x.*")
            await known(near, "x.1", heard)
            back = await listen(near, "y.*")
            await known(far, "y.1", back)


@four_pairs
@pytest.mark.parametrize(
    ("more", "isolated"),
    [
        ("request_isolation: true", [True, False]),
        ("isolate_leafnode_interest: true", [False, True]),
        ("hub: true, isolate_leafnode_interest: true", [False, True]),
        ("hub: true, request_isolation: true", [True, False]),
    ],
)
def test_a_remote_isolates_itself_or_asks_for_it(
    kinds: tuple[str, str], more: str, isolated: list[bool]
) -> None:
    """Whose side is not told of other leaf nodes: the dialed one, the dialing one."""
    with pair(kinds, remote_more=more) as servers:
        assert [leafz(one)[0].get("is_isolated", False) for one in servers] == isolated


@four_pairs
async def test_each_account_has_a_remote_of_its_own(kinds: tuple[str, str]) -> None:
    with ExitStack() as servers:
        config = hub_block() + TWO_ACCOUNTS
        hub = servers.enter_context(KINDS[kinds[0]](config=config, name="hub"))
        port = leaf_port(hub)
        remotes = [remote(port, f"account: {one.upper()}", f"{one}:p") for one in "ab"]
        config = spoke_block(*remotes) + TWO_ACCOUNTS
        leaf = servers.enter_context(KINDS[kinds[1]](config=config, name="leaf"))
        linked(hub, 2)
        linked(leaf, 2)
        assert {row["account"] for row in leafz(hub)} == {"A", "B"}
        async with AsyncExitStack() as stack:
            near = {one: await connected(stack, leaf, user=one, password="p") for one in "ab"}
            far = {one: await connected(stack, hub, user=one, password="p") for one in "ab"}
            heard = {one: await listen(far[one], "x") for one in "ab"}
            await known(near["a"], "x", heard["a"])
            await near["a"].publish("x", b"only a")
            await settle(near["a"], far["a"], far["b"])
            assert [message.data for message in heard["a"]] == [b"only a"]
            assert list(heard["b"]) == []


@four_pairs
def test_an_account_takes_so_many_leaf_nodes(kinds: tuple[str, str]) -> None:
    accounts = """
    accounts { A { users: [ {user: a, password: p} ], limits: { max_leafnodes: 1 } } }
    """
    port = free_port()
    config = f'leafnodes {{ listen: "{HOST}:{port}" }}\n{accounts}'
    with ExitStack() as stack:
        hub = stack.enter_context(KINDS[kinds[0]](config=config, name="hub"))
        blocks = spoke_block(remote(port, login="a:p"))
        first = stack.enter_context(KINDS[kinds[1]](config=blocks, name="one"))
        linked(first)
        second = stack.enter_context(KINDS[kinds[1]](config=blocks, name="two"))
        wait_for(lambda: "uthorization Violation" in second.logs or "exceeded" in second.logs, "no")
        assert len(leafz(hub)) == 1
