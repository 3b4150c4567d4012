"""Who takes nothing is let go after the write deadline of its kind of link: servers of the cluster,
leaf nodes, other clusters. Clients have another one."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack

import pytest

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support import gateways, leafs
from tests.support.gateways import page
from tests.support.listeners import connected
from tests.support.ports import free_port
from tests.support.waiting import eventually

SYSTEM = 'write_deadline: "60s"\naccounts { SYS {} }\nsystem_account: SYS\n'
LIMIT = 'write_deadline: "300ms"'
WHY = "Slow Consumer (Write Deadline)"
BODY = bytes(1 << 20)
COUNT = 24
"""More than the system keeps for two sockets, and less than is too much for a leaf node."""
WORDS = ("Router", "Gateway", "Leafnode")
PEERS = {"routes": "a2", "gateways": "b1", "leafs": "leaf"}


@pytest.fixture(scope="module", params=list(KINDS))
def servers(request: pytest.FixtureRequest) -> Iterator[dict[str, Broker]]:
    """A server (`a1`) with a link of each kind."""
    routes, gates, leaf = free_port(), free_port(), free_port()
    where = f'listen: "{HOST}:{routes}", pool_size: -1'
    door = gateways.block("A", port=gates, more=LIMIT)
    hub = f'leafnodes {{ listen: "{HOST}:{leaf}", {LIMIT} }}\n'
    near = f'listen: "{HOST}:-1", pool_size: -1, routes: ["nats://{HOST}:{routes}"]'
    configs = {
        "a1": f"{SYSTEM}cluster {{ name: A, {where}, {LIMIT} }}\n{door}{hub}",
        "a2": f"cluster {{ name: A, {near} }}\n{gateways.block('A')}",
        "b1": gateways.block("B", gateways.remote("A", gates)),
        "leaf": leafs.spoke_block(leafs.remote(leaf)),
    }
    with ExitStack() as stack:
        found: dict[str, Broker] = {}
        for name, config in configs.items():
            kind = request.param if name == "a1" else "jsctl"
            found[name] = stack.enter_context(KINDS[kind](config=config, name=name))
        gateways.linked(found["a1"], "B")
        leafs.linked(found["a1"])
        yield found


async def test_who_takes_nothing_is_let_go(servers: dict[str, Broker]) -> None:
    hub, others = servers["a1"], [servers[name] for name in PEERS.values()]
    async with AsyncExitStack() as stack:
        for one in others:
            listener = await connected(stack, one)
            await listener.subscribe("x")
            await listener.flush()
        await asyncio.to_thread(leafs.routed, hub, "x")
        await asyncio.to_thread(gateways.told, hub, "x")
        await asyncio.to_thread(leafs.told, hub, "x")
        client = await connected(stack, hub)
        for one in others:
            one.pause()
            stack.callback(one.resume)
        for _ in range(COUNT):
            await client.publish("x", BODY)
        await client.flush(60)

        async def let_go() -> bool:
            logs = hub.logs
            return all(f"{word} connection closed: {WHY}" in logs for word in WORDS)

        await eventually(let_go, "all three are let go")
    found = page(hub, "/varz")["slow_consumer_stats"]
    assert all(found[kind] for kind in PEERS) and not found["clients"]


def test_varz_tells_it(servers: dict[str, Broker]) -> None:
    found = page(servers["a1"], "/varz")
    shown = found["write_deadline"], found["cluster"]["write_deadline"]
    assert shown == (60_000_000_000, 300_000_000)
