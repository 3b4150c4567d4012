"""What the operator's log says, without any flag, of clients that are refused something: the same
words on both servers."""

import socket
from collections.abc import Callable, Iterator

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.kept import kept
from tests.support.waiting import wait_for

USERS = """accounts { A { users: [ {user: u, password: secret, permissions: {
  publish: {deny: "no.>"}, subscribe: {deny: ["shut", "q w"]}
}} ] } }"""
GREETING = b'CONNECT {"verbose":false,"headers":true,"user":"u","pass":"%s"}\r\nPING\r\n'
ALLOWED = GREETING % b"secret"


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], Broker]]:
    """One server of each kind."""
    yield from kept(lambda kind: KINDS[kind](config=USERS))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(
    ("said", "logged"),
    [
        (GREETING % b"guessed", ['authentication error - User "u"']),
        (b'CONNECT {"verbose":false}\r\nPING\r\n', ["authentication error"]),
        (b'CONNECT {"auth_token":"secret"}\r\nPING\r\n', ["authentication error"]),
        (b"PING\r\n", ["authentication error"]),
        (
            ALLOWED + b"PUB no.x 1\r\nx\r\nPUB yes 1\r\nx\r\n",
            ['"A/user:u" - Publish Violation - Subject "no.x"'],
        ),
        (
            ALLOWED + b"SUB shut 1\r\nSUB q w 2\r\nSUB open 3\r\n",
            [
                'Subscription Violation - Subject "shut", SID 1',
                'Subscription Violation - Subject "q", Queue: "w", SID 2',
            ],
        ),
        (ALLOWED + b"PUB no.\x1b[2J 1\r\nx\r\n", [r'Subject "no.\x1b[2J"']),
    ],
)
def test_refusals_are_logged(
    kind: str, servers: Callable[[str], Broker], said: bytes, logged: list[str]
) -> None:
    broker = servers(kind)
    with socket.create_connection(("127.0.0.1", broker.port)) as one, one.makefile("rb") as told:
        port = one.getsockname()[1]
        one.sendall(said + b"PING\r\n")
        expected = said.count(b"PING") + 1
        while expected and (line := told.readline()) and b"Authorization" not in line:
            expected -= line == b"PONG\r\n"
    wait_for(lambda: len(_errors(broker, port)) == len(logged), "all lines")
    for text, words in zip(_errors(broker, port), logged, strict=True):
        assert words in text and text.isprintable()


def _errors(broker: Broker, port: int) -> list[str]:
    lines = broker.logs.splitlines()
    return [line for line in lines if f"[ERR] 127.0.0.1:{port} - cid:" in line]
