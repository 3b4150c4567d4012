"""What clients make a real broker hold: it is bounded, and given back when they go."""

import socket
from contextlib import suppress
from pathlib import Path

import pytest

from jsctl.testing import Broker
from jsctl.testing.broker import HOST
from tests.support.waiting import wait_for
from tests.support.wire_client import WireClient

MIB = 1 << 20
BEGUN = b'CONNECT {"verbose":false}\r\nPUB a 1048576\r\n' + b"x" * (MIB - 1000)
CLIENTS = 200
ALLOWED_BYTES = 64 * MIB
STATUS = Path("/proc/self/status")
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not STATUS.exists(), reason="reads /proc"),
]


def resident_bytes(broker: Broker) -> int:
    """What the process has in memory."""
    lines = Path(f"/proc/{broker.pid}/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith("VmRSS"))
    return int(found.split()[1]) * 1024


def begin(broker: Broker) -> socket.socket:
    """A client that stops in the middle of a payload."""
    client = socket.create_connection((HOST, broker.port), 30)
    with suppress(ConnectionError):  # It may be the one that has to go.
        client.sendall(BEGUN)
    return client


def test_payloads_that_are_never_finished() -> None:
    with Broker() as broker:
        innocent = WireClient(broker.url)
        before = resident_bytes(broker)
        for _ in range(CLIENTS):
            begin(broker).close()
        open_ = [begin(broker) for _ in range(CLIENTS)]
        innocent.flush()
        for client in open_:
            client.close()
        wait_for(
            lambda: resident_bytes(broker) < before + ALLOWED_BYTES,
            "the memory of closed connections is given back",
        )
        innocent.flush()
        innocent.close()


def test_all_together_hold_no_more_than_the_limit() -> None:
    with Broker() as broker:
        innocent = WireClient(broker.url)
        before = resident_bytes(broker)
        clients = [begin(broker) for _ in range(330)]
        innocent.flush()
        assert resident_bytes(broker) < before + (256 + 96) * MIB
        # Whoever goes on is not hit: the flood from one address is silent.
        innocent.publish(b"a", b"x" * MIB)
        innocent.flush()
        heard = [bytearray() for _ in clients]

        def ended() -> int:
            for client, said in zip(clients, heard, strict=True):
                said += all_of(client)
            return sum(b"Too Much Unfinished Input" in said for said in heard)

        # What was sent may not have been read yet, and who has to go not been told.
        wait_for(lambda: ended() >= 330 - 256, "so many have ended that the rest is below it")
        innocent.close()
        assert ended() < 200
        for client in clients:
            client.close()


def all_of(client: socket.socket) -> bytes:
    """What the server has said since the last look."""
    client.setblocking(False)
    heard = b""
    with suppress(BlockingIOError, ConnectionError):
        while data := client.recv(1 << 16):
            heard += data
    return heard
