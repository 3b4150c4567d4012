"""How clusters find each other: passwords, the address that is told, pauses between dials, and a
server that leaves in peace."""

import json
import signal
import socket
import time
from contextlib import AsyncExitStack, ExitStack
from itertools import pairwise

import pytest

from jsctl.testing import HOST
from tests.contract.conftest import KINDS
from tests.support.gateways import (
    IDS,
    PAIRS,
    block,
    gateway_port,
    gatewayz,
    linked,
    page,
    remote,
    route_port,
)
from tests.support.listeners import connected, known, listen
from tests.support.ports import free_port
from tests.support.waiting import wait_for

both_kinds = pytest.mark.parametrize("kind", list(KINDS))
four_pairs = pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
LOGIN = "authorization { user: gate, password: secret }"


@four_pairs
@pytest.mark.parametrize("login", ["gate:secret", "gate:wrong", ""])
def test_clusters_log_in(kinds: tuple[str, str], login: str) -> None:
    """With what the URL says, else with what the own block says; the other side dials back with
    the latter."""
    with ExitStack() as stack:
        one = KINDS[kinds[0]](config=block("A", more=LOGIN), name="a1")
        stack.enter_context(one)
        there = remote("A", gateway_port(one), login=login)
        more = LOGIN if login != "gate:wrong" else ""
        other = KINDS[kinds[1]](config=block("B", there, more=more), name="b1")
        stack.enter_context(other)
        if login == "gate:wrong":
            other.wait_log("Authorization Violation")
            assert not gatewayz(one, "")["inbound_gateways"]
            return
        linked(one, "B")
        linked(other, "A")


@both_kinds
@pytest.mark.parametrize("said", ["gate.example:7555", "gate.example"])
def test_an_address_that_is_told_instead(kind: str, said: str) -> None:
    with KINDS[kind](config=block("A", more=f'advertise: "{said}"'), name="a1") as one:
        port = gateway_port(one)
        with socket.create_connection((HOST, port), 30) as stranger:
            told = json.loads(stranger.makefile("rb").readline()[5:])
        assert told["gateway_url"] == (said if ":" in said else f"{said}:{port}")
        assert told["gateway_urls"] == [told["gateway_url"]]


@both_kinds
def test_a_cluster_that_is_not_there_is_dialed_about_once_a_second(kind: str) -> None:
    """Ours somewhat sooner while it starts."""
    with socket.create_server((HOST, 0)) as door:
        config = block("A", remote("B", door.getsockname()[1]))
        with KINDS[kind](config=config, name="a1"):
            times = []
            for _ in range(6):
                connection, _address = door.accept()
                connection.close()
                times.append(time.monotonic())
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert max(pauses) < 10, pauses
    assert sum(pauses) > 0.5, pauses


@four_pairs
async def test_who_leaves_in_peace_is_replaced(kinds: tuple[str, str]) -> None:
    """The other cluster sends to another server then, and hears it."""
    port = free_port()
    with ExitStack() as stack:
        near = f'cluster {{ name: A, listen: "{HOST}:{port}" }}\n'
        first = KINDS[kinds[0]](config=block("A") + near, name="a1")
        stack.enter_context(first)
        routes = f'routes: ["nats://{HOST}:{route_port(first)}"]'
        near = f'cluster {{ name: A, listen: "{HOST}:-1", {routes} }}\n'
        second = stack.enter_context(KINDS[kinds[0]](config=block("A") + near, name="a2"))
        wait_for(lambda: page(second, "/routez")["num_routes"] > 0, "a1 and a2 are linked")
        there = remote("A", gateway_port(first))
        other = stack.enter_context(KINDS[kinds[1]](config=block("B", there), name="b1"))
        linked(first, "B")
        linked(second, "B", inbound=0)
        linked(other, "A", inbound=2)
        first.signal(signal.SIGUSR2)
        wait_for(lambda: not first.running, "it has left")
        identity = page(second, "/varz")["server_id"]

        def replaced() -> bool:
            there = (gatewayz(other, "")["outbound_gateways"] or {}).get("A")
            return there is not None and there["connection"]["name"] == identity

        wait_for(replaced, "b1 sends to a2")
        linked(other, "A")
        async with AsyncExitStack() as clients:
            here, far = await connected(clients, second), await connected(clients, other)
            heard, back = await listen(far, "x"), await listen(here, "y")
            await known(here, "x", heard)
            await known(far, "y", back)
