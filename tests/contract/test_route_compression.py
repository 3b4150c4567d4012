"""Compression of routes: what two servers agree on, what they show of it, that messages of all
shapes pass, and what broken bytes cost."""

import json
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial

import pytest

from jsctl.backups.s2 import compressed
from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support.compression import AGREED, carried
from tests.support.gateways import IDS, PAIRS, page, route_port
from tests.support.listeners import connected
from tests.support.ports import free_port
from tests.support.reloading import Reloading
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

POOLS = {"pool": "", "no pool": "pool_size: -1,"}
ROUTES = {"pool": 4, "no pool": 1}


def clustered(mode: str, more: str = "", port: int = -1) -> str:
    """A `cluster` block."""
    return f'cluster {{ name: C, listen: "{HOST}:{port}", compression: {mode}, {more} }}\n'


def shown(broker: Broker) -> list[str]:
    """How each of its routes is compressed."""
    return [row["compression"] for row in page(broker, "/routez")["routes"]]


def _is_whole(server: Broker, pool: str) -> bool:
    return len(shown(server)) == ROUTES[pool]


@contextmanager
def pair(
    kinds: tuple[str, str], one: str, other: str, pool: str = "pool"
) -> Iterator[tuple[Broker, Broker]]:
    """Two servers of a cluster, of which the other one dials, and all their routes."""
    with KINDS[kinds[0]](config=clustered(one, POOLS[pool]), name="one") as first:
        routes = f'routes: ["nats://{HOST}:{route_port(first)}"], {POOLS[pool]}'
        with KINDS[kinds[1]](config=clustered(other, routes), name="other") as second:
            for server in (first, second):
                wait_for(partial(_is_whole, server, pool), f"{server.name} has all routes")
            yield first, second


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
@pytest.mark.parametrize(("mode", "dialing", "shows", "dialing_shows"), AGREED)
async def test_what_is_agreed_is_shown_and_carries_messages(
    kinds: tuple[str, str], mode: str, dialing: str, shows: str, dialing_shows: str
) -> None:
    with pair(kinds, mode, dialing) as (one, other):
        assert set(shown(one)) == {shows}
        assert set(shown(other)) == {dialing_shows}
        async with AsyncExitStack() as stack:
            near, far = await connected(stack, one), await connected(stack, other)
            await carried(near, far)
            await carried(far, near)


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_a_single_route_is_compressed_as_well(kinds: tuple[str, str]) -> None:
    with pair(kinds, "accept", "s2_fast", "no pool") as (one, other):
        assert (shown(one), shown(other)) == (["s2_fast"], ["s2_fast"])
        async with AsyncExitStack() as stack:
            near, far = await connected(stack, one), await connected(stack, other)
            await carried(near, far)


CONNECT = b'CONNECT {"name":"x","cluster":"C"}\r\n'
BROKEN = {
    "no stream": b"PING\r\n",
    "another sum": compressed(b"PING\r\n")[:-1] + b"x",
    "an endless line": compressed(b"RS+ " + b"x" * (1 << 20)) * 50,
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN.keys())
def test_broken_bytes_end_their_connection_and_no_other(kind: str, said: bytes) -> None:
    with KINDS[kind](config=clustered("s2_fast"), name="one") as one:
        with socket.create_connection((HOST, route_port(one)), 30) as stranger:
            told = {"server_id": "N" * 56, "server_name": "x", "cluster": "C"}
            line = json.dumps({**told, "compression": "s2_fast"})
            stranger.sendall(CONNECT + f"INFO {line}\r\n".encode())
            answer = b""
            while b"\xff\x06\x00\x00" not in answer:
                part = stranger.recv(1 << 16)
                assert part, answer
                answer += part
            try:
                stranger.sendall(said)
                while stranger.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
        client = WireClient(one.url)
        client.flush()
        client.close()
        assert one.running and not shown(one)


@pytest.mark.parametrize("kinds", PAIRS, ids=IDS)
async def test_a_reload_changes_how_routes_are_compressed(kinds: tuple[str, str]) -> None:
    port = free_port()

    def config(mode: str) -> str:
        return "server_name: one\n" + clustered(mode, port=port)

    with Reloading(kinds[0], config("s2_fast")) as one:
        routes = f'routes: ["nats://{HOST}:{port}"]'
        with KINDS[kinds[1]](config=clustered("accept", routes), name="other") as other:

            def has(mode: str) -> None:
                wait_for(lambda: shown(one.broker) == [mode] * 4, f"routes show {mode}")

            has("s2_fast")
            ids = {row["rid"] for row in page(one.broker, "/routez")["routes"]}
            one.must_reload(config("s2_best"))
            has("s2_best")
            assert {row["rid"] for row in page(one.broker, "/routez")["routes"]} == ids
            one.must_reload(config("off"))
            has("off")
            async with AsyncExitStack() as stack:
                near, far = await connected(stack, one.broker), await connected(stack, other)
                await carried(near, far)
