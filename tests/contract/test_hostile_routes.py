"""Who connects to the route port without being a server: it costs him his connection."""

import json
import socket
from collections.abc import Iterator

import pytest

from jsctl.testing import Broker
from jsctl.testing.broker import HOST, ReservedPort
from tests.contract.conftest import KINDS
from tests.support.wire_client import WireClient

INFO = {
    "server_id": "N" * 56,
    "server_name": "stranger",
    "cluster": "C",
    "host": HOST,
    "port": 1,
    "headers": True,
    "route_pool_size": 1,
    "gossip_mode": 0,
}


def info(**more: object) -> bytes:
    """An INFO of a server."""
    return b"INFO %s\r\n" % json.dumps({**INFO, **more}).encode()


SAID = {
    "half a pair of a broker": info(server_name="A", jsctl=True).replace(b'"A"', b'"\\ud800"'),
    "half a pair": info(server_name="A").replace(b'"A"', b'"\\ud800"'),
    "half a pair in a host": info(ip="I").replace(b'"I"', b'"nats-route://\\udc00:1/"'),
    "deep": b'INFO {"server_id":%s}\r\n' % (b"[" * 1500 + b"]" * 1500),
    "deep CONNECT": b'CONNECT {"name":%s}\r\n' % (b"[" * 1500 + b"]" * 1500),
    "a host that no resolver takes": info(ip=f"nats-route://{'x' * 200}:1/"),
    "a host with NUL": info(ip="nats-route://a\0b:1/"),
    "half a message": b"RMSG $G a 5000000\r\n" + b"x" * 100_000,
    "an endless line": b"INFO " + b"x" * 300_000,
    "pings": b"PING\r\n" * 50_000,
}


@pytest.fixture(scope="module", params=list(KINDS))
def member(request: pytest.FixtureRequest) -> Iterator[tuple[Broker, int]]:
    """A server of a cluster, and its route port."""
    port = ReservedPort()
    place = f"{HOST}:{port.number}"
    config = (
        f"jetstream: enabled, cluster {{ name: C, listen: '{place}', routes: ['nats://{place}'] }}"
    )
    with KINDS[str(request.param)](config=config, name="member") as running:
        yield running, port.number
        port.release()


@pytest.mark.parametrize("said", SAID.values(), ids=SAID.keys())
def test_what_a_stranger_says(member: tuple[Broker, int], said: bytes) -> None:
    server, port = member
    with socket.create_connection((HOST, port), 30) as stranger:
        stranger.settimeout(2)
        try:
            stranger.sendall(b'CONNECT {"cluster":"C","name":"%s"}\r\n' % (b"N" * 56))
            stranger.sendall(said)
            while stranger.recv(1 << 16):
                pass
        except (TimeoutError, ConnectionError):
            pass
    client = WireClient(server.url)
    client.flush()
    client.close()
    assert server.running
