"""What the operator's log says of clients with -D and -V: the same words on both servers."""

import re
import socket
from collections.abc import Iterator

import pytest

from jsctl.testing import Broker
from tests.contract.conftest import KINDS
from tests.support.waiting import wait_for

CONNECT = (
    b'CONNECT {"verbose":false,"headers":true,"lang":"here","version":"9","name":"n",'
    b'"user":"u","pass":"secret"}\r\n'
)
SAID = (
    b"SUB foo.* 1\r\nSUB bar q 2\r\nPUB foo.x 5\r\nhello\r\n"
    b'PUB foo.y reply 7\r\n\x00"\n\xff\x7f\xc3\xa4\r\n'
    b"HPUB foo.h 18 22\r\nNATS/1.0\r\nA: b\r\n\r\nbody\r\nUNSUB 2\r\nUNSUB 1 9\r\nPING\r\n"
)


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> type[Broker]:
    """A server of each kind."""
    return KINDS[str(request.param)]


def _lines(kind: type[Broker], *flags: str) -> Iterator[str]:
    """What is logged of one client, from its beginning to its end."""
    users = "accounts { A { users: [{user: u, password: secret}] } }"
    with kind(*flags, config=users) as broker:
        with (
            socket.create_connection(("127.0.0.1", broker.port)) as one,
            one.makefile("rb") as told,
        ):
            port = one.getsockname()[1]
            for text in (CONNECT + b"PING\r\n", SAID):
                one.sendall(text)
                while told.readline() != b"PONG\r\n":
                    pass
        if "-D" in flags:
            broker.wait_log("Client connection closed")
        else:
            broker.wait_log("->> [PONG]")
            wait_for(lambda: broker.logs.count("->> [PONG]") == 2, "the last answer")
        logs = broker.logs
    for line in logs.splitlines():
        if f"127.0.0.1:{port}" in line and "DELSUB" not in line:
            yield re.sub(r"^.*\[(TRC|DBG)\] 127.0.0.1:\d+ - cid:\d+", r"\1", line)


def _by_direction(lines: list[str]) -> dict[str, list[str]]:
    return {way: [line for line in lines if way in line] for way in ("<<-", "->>")}


def test_operations_are_logged_with_trace(kind: type[Broker]) -> None:
    who = 'TRC - "v9:here:n" - "A/user:u" - '
    connect = CONNECT.decode().strip().replace("secret", "[REDACTED]")
    # A turn is heard before it is answered: what is said and what is told have their own orders.
    lines = list(_lines(kind, "-V"))
    assert _by_direction(lines) == _by_direction(
        [
            f"TRC - <<- [{connect}]",
            f"{who}<<- [PING]",
            f"{who}->> [PONG]",
            f"{who}<<- [SUB foo.* 1]",
            f"{who}<<- [SUB bar q 2]",
            f"{who}<<- [PUB foo.x 5]",
            f'{who}<<- MSG_PAYLOAD: ["hello"]',
            f"{who}->> [MSG foo.x 1 5]",
            f'{who}->> MSG_PAYLOAD: ["hello"]',
            f"{who}<<- [PUB foo.y reply 7]",
            f'{who}<<- MSG_PAYLOAD: ["\\x00\\"\\n\\xff\\x7fä"]',
            f"{who}->> [MSG foo.y 1 reply 7]",
            f'{who}->> MSG_PAYLOAD: ["\\x00\\"\\n\\xff\\x7fä"]',
            f"{who}<<- [HPUB foo.h 18 22]",
            f'{who}<<- MSG_PAYLOAD: ["NATS/1.0\\r\\nA: b\\r\\n\\r\\nbody"]',
            f"{who}->> [HMSG foo.h 1 18 22]",
            f'{who}->> MSG_PAYLOAD: ["NATS/1.0\\r\\nA: b\\r\\n\\r\\nbody"]',
            f"{who}<<- [UNSUB 2]",
            f"{who}<<- [UNSUB 1 9]",
            f"{who}<<- [PING]",
            f"{who}->> [PONG]",
        ]
    )


def test_connections_are_logged_with_debug(kind: type[Broker]) -> None:
    assert list(_lines(kind, "-D")) == [
        "DBG - Client connection created",
        'DBG - "v9:here:n" - "A/user:u" - Client connection closed: Client Closed',
    ]


def test_payloads_are_cut_as_wanted(kind: type[Broker]) -> None:
    lines = list(_lines(kind, "-V", "--max_traced_msg_len", "3"))
    assert any(line.endswith('<<- MSG_PAYLOAD: ["hel..."]') for line in lines)
    assert any(line.endswith('->> MSG_PAYLOAD: ["NAT..."]') for line in lines)


def test_nothing_is_logged_of_clients_unless_wanted(kind: type[Broker]) -> None:
    with kind() as broker, socket.create_connection(("127.0.0.1", broker.port)) as one:
        one.sendall(CONNECT + SAID)
        while b"PONG" not in one.recv(1 << 16):
            pass
        assert "foo" not in broker.logs
