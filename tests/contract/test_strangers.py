"""Who has not said who he is: nothing that he says is kept."""

import socket
from collections.abc import Iterator

import pytest

from jsctl.testing import Broker
from jsctl.testing.broker import HOST
from tests.contract.conftest import KINDS

VIOLATION = b"-ERR 'Authorization Violation'\r\n"


@pytest.fixture(scope="module", params=list(KINDS))
def guarded(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A server that wants a password."""
    config = "authorization { user: ann, password: pw, timeout: 20 }"
    with KINDS[str(request.param)](config=config) as running:
        yield running


@pytest.mark.parametrize(
    "said", [b"P", b"PUB a 5\r\nhe", b"SUB a 1\r\n", b"PING\r\n", b"x" * 100, b"\r\n"]
)
def test_the_first_byte_that_is_no_connect_ends_it(guarded: Broker, said: bytes) -> None:
    with socket.create_connection((HOST, guarded.port), 10) as stranger:
        stranger.settimeout(10)
        lines = stranger.makefile("rb")
        assert lines.readline().startswith(b"INFO ")
        stranger.sendall(said)
        assert lines.readline() == VIOLATION
        assert lines.read(1) == b""
