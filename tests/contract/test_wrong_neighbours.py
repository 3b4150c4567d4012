"""Who connects to the ports of gateways and leaf nodes and is none: he hears what nats-server says
to him, the operator finds a line in the log, and the links that there are go on."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import NamedTuple

import pytest

from jsctl.testing import HOST, Broker
from tests.contract.conftest import KINDS
from tests.support import gateways, leafs
from tests.support.gateways import block, gateway_port, gatewayz
from tests.support.leafs import hub_block, leaf_port, leafz, spoke_block
from tests.support.listeners import connected, listen
from tests.support.ports import free_port

ACCOUNTS = """
system_account: "$SYS"
accounts {
    $SYS: { users: [ {user: admin, password: p} ] }
    APP: { users: [ {user: u, password: p} ] }
}
no_auth_user: u
"""
ID = "N" * 56
WAIT_S = 30


def line(word: str, **fields: object) -> bytes:
    """An INFO or CONNECT."""
    return f"{word} {json.dumps(fields)}\r\n".encode()


def gate(name: str, **info: object) -> bytes:
    """What a server of another cluster says."""
    told = {"server_id": ID, "server_name": "x", "gateway": name, "gateway_url": "1.2.3.4:5"}
    return line("CONNECT", name=ID, gateway=name) + line("INFO", **(told | info))


def refused(text: str) -> bytes:
    """What is said before the end."""
    return f"-ERR '{text}'\r\n".encode()


CLIENT = line("CONNECT", verbose=False, lang="go", version="1")
LEAF = line("CONNECT", name="x", cluster="x", server_id=ID)
TO_GATES, TO_LEAFS = (
    "attempted to connect to gateway port",
    "attempted to connect to leaf node port",
)
UNKNOWN = 'Connection to gateway "A" rejected'
STRANGER, WRONG_DOOR = "Authorization Violation", 'Rejecting connection from gateway "B" on the '
AT_GATES = {
    "a client": (CLIENT, refused(TO_GATES), TO_GATES),
    "a leaf node": (LEAF, refused(TO_GATES), TO_GATES),
    "a route": (line("CONNECT", name=ID, cluster="x", lnoc=True), refused(TO_GATES), TO_GATES),
    "an unknown cluster": (gate("X"), refused(UNKNOWN), 'Rejecting connection from gateway "X"'),
    "its own name": (gate("A"), refused(UNKNOWN), 'Rejecting connection from gateway "A"'),
    "a server's name": (gate("B", server_name="srv"), b"", 'has a duplicate name: "srv"'),
    "a browser": (b"GET / HTTP/1.1\r\n\r\n", refused(STRANGER), "authentication error"),
    "TLS": (b"\x16\x03\x01\x00\xf8x\r\n", refused(STRANGER), "authentication error"),
    "a message": (b"RMSG $G x 2\r\nhi\r\n", refused(STRANGER), "authentication error"),
    "a subscription": (b"SUB x 1\r\nPING\r\n", refused(STRANGER), "authentication error"),
}
AT_LEAFS = {
    "a client": (CLIENT, refused(TO_LEAFS), TO_LEAFS),
    "a gateway": (gate("B"), refused(WRONG_DOOR + "leafnode port"), WRONG_DOOR),
    "a user": (
        line("CONNECT", name="x", user="z", **{"pass": "z"}),
        refused(STRANGER),
        "authentication error",
    ),
    "a browser": (b"GET / HTTP/1.1\r\n\r\n", refused(STRANGER), "authentication error"),
    "TLS": (b"\x16\x03\x01\x00\xf8x\r\n", refused(STRANGER), "authentication error"),
    "a message": (b"LMSG x 2\r\nhi\r\n", refused(STRANGER), "authentication error"),
    "nobody": (b"", refused("Authentication Timeout"), "Authentication Timeout"),
}


class Neighbours(NamedTuple):
    """A server, one of another cluster, and a leaf node, which are all of a kind."""

    server: Broker
    far: Broker
    leaf: Broker


@pytest.fixture(scope="module", params=list(KINDS))
def neighbours(request: pytest.FixtureRequest) -> Iterator[Neighbours]:
    """Linked with each other."""
    kind = KINDS[str(request.param)]
    with ExitStack() as stack:
        port = free_port()
        more = "reject_unknown_cluster: true"
        known = block("A", gateways.remote("B", port), more=more)
        server = stack.enter_context(kind(config=known + hub_block() + ACCOUNTS, name="srv"))
        there = gateways.remote("A", gateway_port(server))
        far = stack.enter_context(kind(config=block("B", there, port=port) + ACCOUNTS, name="far"))
        hangs = spoke_block(leafs.remote(leaf_port(server), "account: APP", "u:p"))
        leaf = stack.enter_context(kind(config=hangs + ACCOUNTS, name="leaf"))
        gateways.linked(server, "B")
        leafs.linked(server)
        yield Neighbours(server, far, leaf)


def answer(port: int, said: bytes) -> bytes:
    """What a server says until it closes, but for its INFO."""
    with socket.create_connection((HOST, port), WAIT_S) as stranger:
        heard = b""
        while not heard.endswith(b"\r\n"):
            heard += stranger.recv(1 << 16)
        stranger.sendall(said)
        try:
            while part := stranger.recv(1 << 16):
                heard += part
        except ConnectionResetError:
            pass  # What it has not read any more.
    return re.sub(rb"INFO \{.*?\} ?\r\n", b"", heard)


async def unharmed(found: Neighbours, links: tuple[object, object]) -> None:
    """The links are those of before, and carry messages."""
    assert links_of(found.server) == links
    async with AsyncExitStack() as stack:
        heard = [await listen(await connected(stack, one), "still") for one in found[1:]]
        gateways.told(found.server, "still")
        leafs.told(found.server, "still")
        await (await connected(stack, found.server)).publish("still", b"here")
        for one in heard:
            await one.reach(1)
    gateways.told(found.server, "still", gone=True)


def links_of(server: Broker) -> tuple[object, object]:
    """By which numbers they are known."""
    outbound = gatewayz(server, "")["outbound_gateways"]["B"]["connection"]["cid"]
    return outbound, [row["id"] for row in leafz(server)]


@pytest.mark.parametrize("who", AT_GATES)
async def test_at_the_port_of_gateways(neighbours: Neighbours, who: str) -> None:
    said, heard, logged = AT_GATES[who]
    await _refused(neighbours, gateway_port(neighbours.server), said, heard, logged)


@pytest.mark.parametrize("who", AT_LEAFS)
async def test_at_the_port_of_leaf_nodes(neighbours: Neighbours, who: str) -> None:
    said, heard, logged = AT_LEAFS[who]
    await _refused(neighbours, leaf_port(neighbours.server), said, heard, logged)


async def _refused(found: Neighbours, port: int, said: bytes, heard: bytes, logged: str) -> None:
    links, start = links_of(found.server), len(found.server.logs)
    assert answer(port, said) == heard
    found.server.wait_log(logged)
    assert logged in found.server.logs[start:]
    await unharmed(found, links)
