"""Reloads that the system account asks for: when they are answered, and with what."""

import gzip
import json
from typing import Any

import pytest

from tests.support.login import Caller
from tests.support.reloading import KINDS, Reloading
from tests.support.waiting import wait_for

BASE = """server_name: N
max_payload: 100000
accounts {
    $SYS { users: [ {user: s, password: s} ] }
    A { users: [ {user: a, password: a} ] }
}
"""


def write(server: Reloading, config: str) -> None:
    """Change the file."""
    server.file.write_text(server.broker.filled(config))


def ask(server: Reloading, caller: Caller, payload: bytes = b"") -> dict[str, Any]:
    """Ask for a reload; the answer."""
    answer: dict[str, Any] = json.loads(caller.request(subject_of(caller), payload)[1])
    assert answer["server"]["name"] == "N"
    return answer


def subject_of(caller: Caller) -> str:
    """Where a reload is asked for."""
    return f"$SYS.REQ.SERVER.{caller.info['server_id']}.RELOAD"


def log_in(server: Reloading, name: str = "s", password: str = "s") -> Caller:
    """A client that logs in."""
    caller = Caller(server.port)
    assert caller.login({"user": name, "pass": password})
    return caller


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_answer_comes_behind_what_the_reload_does(kind: str) -> None:
    with Reloading(kind, BASE) as server, log_in(server) as caller:
        caller.ask(b"SUB x 1\r\nSUB me 2\r\n")
        narrow = 'password: s, permissions {subscribe: {deny: "x"}}'
        write(server, BASE.replace("password: s", narrow).replace("100000", "100001"))
        caller.send(f"PUB {subject_of(caller)} me 0\r\n\r\n".encode())
        assert caller.line() == ('-ERR \'Permissions Violation for Subscription to "x" (sid "1")\'')
        assert caller.line().startswith("MSG me 2 ")
        assert list(json.loads(caller.line())) == ["server"]
        with log_in(server, "a", "a") as other:
            assert other.info["max_payload"] == 100_001


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_refusal_is_told_with_its_reason(kind: str) -> None:
    with Reloading(kind, BASE) as server, log_in(server) as caller:
        write(server, BASE.replace("server_name: N", "server_name: M"))
        assert ask(server, caller)["error"] == {
            "code": 500,
            "description": "config reload not supported for ServerName: old=N, new=M",
        }
        write(server, BASE + "nonsense: 1")
        error = ask(server, caller)["error"]
        assert error["code"] == 500
        assert f"{server.file}:" in error["description"]
        assert 'unknown field "nonsense"' in error["description"]
        server.file.unlink()
        error = ask(server, caller)["error"]
        assert error["code"] == 500 and str(server.file) in error["description"]
        write(server, BASE)
        assert "error" not in ask(server, caller)


@pytest.mark.parametrize("kind", list(KINDS))
def test_who_is_asked_and_how(kind: str) -> None:
    with Reloading(kind, BASE) as server, log_in(server) as caller:
        write(server, BASE.replace("100000", "100001"))
        assert ask(server, caller, b"{")["error"]["code"] == 400
        subject = subject_of(caller)
        other = b'{"server_name":"other"}'
        caller.ask(b"PUB %s none %d\r\n%s\r\n" % (subject.encode(), len(other), other))
        caller.ask(f"PUB {subject} 0\r\n\r\n".encode())
        caller.request("$SYS.REQ.SERVER.PING")
        with log_in(server, "a", "a") as client:
            assert client.info["max_payload"] == 100_000, "nobody was there to be answered"
        with log_in(server, "a", "a") as stranger:
            stranger.ask(f"SUB me 1\r\nPUB {subject} me 0\r\n\r\n".encode())
        assert "error" not in ask(server, caller, b'{"server_name":"N"}')
        with log_in(server, "a", "a") as client:
            assert client.info["max_payload"] == 100_001


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_answer_is_compressed_for_who_can_read_that(kind: str) -> None:
    with Reloading(kind, BASE) as server, log_in(server) as caller:
        headers = b"NATS/1.0\r\nAccept-Encoding: gzip\r\n\r\n"
        subject = subject_of(caller)
        first, body = caller.request_with(subject, headers)
        assert first == "NATS/1.0"
        assert list(json.loads(gzip.decompress(body))) == ["server"]


@pytest.mark.parametrize("kind", list(KINDS))
def test_who_asks_may_lose_its_place(kind: str) -> None:
    with Reloading(kind, BASE) as server, log_in(server) as caller:
        write(server, BASE.replace("user: s, password: s", "user: s, password: t"))
        caller.send(f"SUB me 1\r\nPUB {subject_of(caller)} me 0\r\n\r\n".encode())
        heard = []
        while line := caller.line():
            heard.append(line)
        assert "-ERR 'Authorization Violation'" in heard
        wait_for(lambda: "Reloaded server configuration" in server.broker.logs, "the reload")
        with log_in(server, "s", "t") as again:
            assert again.info["server_id"] == caller.info["server_id"]
