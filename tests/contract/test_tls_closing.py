"""Who is let go over TLS is told so, and not waited for, on both servers."""

import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from select import select

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.certificates import make_certificates

CONFIG = """
tls {{ cert_file: "{path}/cert.pem", key_file: "{path}/key.pem", timeout: 5 }}
authorization {{ user: a, password: b }}
"""
WAIT_S = 10.0
"""A third of what asyncio waits for the other side's goodbye."""
LOGIN = b'CONNECT {"verbose":false,"user":"a","pass":"b"}\r\n'
PAYLOAD = bytes(100_000)
COUNT = 200


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and the server's certificate."""
    return make_certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=list(KINDS))
def server(request: pytest.FixtureRequest, path: Path) -> Iterator[Broker]:
    """A server with TLS, for one user."""
    with KINDS[str(request.param)](config=CONFIG.format(path=path), name="one") as running:
        yield running


@pytest.fixture
def secure(server: Broker, path: Path) -> Iterator[ssl.SSLSocket]:
    """A connection whose side never says goodbye by itself, as Python's sockets do not."""
    context = ssl.create_default_context(cafile=str(path / "ca.pem"))
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S)
    plain.recv(1 << 16)
    with context.wrap_socket(plain, server_hostname="localhost") as made:
        yield made


def heard_until_the_goodbye(secure: ssl.SSLSocket) -> bytes:
    """All that the server says; then it says that this was all."""
    found = bytearray()
    while data := secure.recv(1 << 16):
        found += data
    return bytes(found)


def heard_meanwhile(secure: ssl.SSLSocket, data: bytes) -> bytes:
    """Say something; what is heard until all of it is said. By one thread: OpenSSL's connections
    are not for two at a time."""
    found, left = bytearray(), memoryview(data)
    secure.setblocking(False)
    while left:
        readable, writable, _ = select([secure], [secure], [], WAIT_S)
        assert readable or writable, "nothing comes, and nothing is taken"
        with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            while more := secure.recv(1 << 16):
                found += more
        with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            left = left[secure.send(left[: 1 << 16]) :]
    secure.settimeout(WAIT_S)
    return bytes(found)


def socket_ends(secure: ssl.SSLSocket) -> bool:
    """Whether the server closes the socket, too, although it got no answer to its goodbye."""
    with socket.socket(fileno=os.dup(secure.fileno())) as plain:
        plain.settimeout(WAIT_S)
        try:
            return plain.recv(1) == b""
        except TimeoutError:
            return False


@pytest.mark.processes
def test_who_is_refused_and_does_not_answer_is_not_kept(secure: ssl.SSLSocket) -> None:
    secure.sendall(b'CONNECT {"user":"x","pass":"y"}\r\nPING\r\n')
    assert b"Authorization Violation" in heard_until_the_goodbye(secure)
    assert socket_ends(secure)


@pytest.mark.processes
def test_what_was_written_comes_before_the_end(secure: ssl.SSLSocket) -> None:
    publish = b"PUB a %d\r\n%s\r\n" % (len(PAYLOAD), PAYLOAD)
    words = (LOGIN, b"SUB a 1\r\n", *([publish] * COUNT), b"JUNK\r\n")
    heard = heard_meanwhile(secure, b"".join(words)) + heard_until_the_goodbye(secure)
    assert heard.count(b"MSG a 1 ") == COUNT
    assert heard.endswith(b"-ERR 'Unknown Protocol Operation'\r\n")
    assert socket_ends(secure)
