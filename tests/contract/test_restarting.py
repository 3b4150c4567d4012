"""A server that ended comes back at once, on the ports that it had."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for

ANY_PORTS = ("-p", "-1", "-m", "-1", "--cluster", "nats://127.0.0.1:-1", "--cluster_name", "C")


@pytest.fixture(params=list(KINDS))
def on_any_port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A server whose ports the system chose; it writes them to a file."""
    kind = KINDS[str(request.param)]
    with kind(*ANY_PORTS, "--ports_file_dir", str(tmp_path), directory=tmp_path / "s") as running:
        yield running


def _ports(directory: Path) -> tuple[int, int, int]:
    """Of clients, the monitor and routes."""
    texts = wait_for(
        lambda: [text for file in directory.glob("*.ports") if (text := file.read_text())],
        "the file of ports",
    )
    found = json.loads(texts[0])
    client, monitor, cluster = (
        urlsplit(found[name][0]).port for name in ("nats", "monitoring", "cluster")
    )
    assert client and monitor and cluster
    return client, monitor, cluster


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_the_ports_it_got_are_free_for_its_next_life(
    on_any_port: Broker, tmp_path: Path, *, kill: bool
) -> None:
    client, monitor, cluster = _ports(tmp_path)
    with ExitStack() as open_connections:
        for port in (client, monitor, cluster):
            one = open_connections.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(b"GET /varz HTTP/1.1\r\nHost: x\r\n\r\n" if port == monitor else b"")
            assert one.recv(1)
        if kill:
            on_any_port.kill()
        else:
            on_any_port.stop()
        on_any_port.flags = (
            *("-p", str(client), "-m", str(monitor)),
            *("--cluster", f"nats://127.0.0.1:{cluster}", "--cluster_name", "C"),
        )
        on_any_port.start()
        with socket.create_connection(("127.0.0.1", client)) as again:
            assert again.recv(5) == b"INFO "
