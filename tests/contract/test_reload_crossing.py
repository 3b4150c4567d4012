"""What a reload of accounts does to messages: imports, mappings, answers, JetStream, on both
servers. Clients are there before and stay."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.conftest import KINDS
from tests.support.kept import kept
from tests.support.login import Caller
from tests.support.reloading import Reloading

JETSTREAM = 'jetstream { store_dir: "@DIR/store", max_mem: 64MB, max_file: 64MB }\n'


def accounts(of_a: str = "", of_b: str = "", of_user: str = "") -> str:
    """Two accounts with a user each."""
    more = f", {of_user}" if of_user else ""
    return (
        f"{JETSTREAM}accounts {{\n A {{ users: [ {{user: a, password: a{more}}} ]\n {of_a}\n }}\n"
        f" B {{ users: [ {{user: b, password: b}} ]\n {of_b}\n }}\n}}"
    )


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[str], Reloading]]:
    """One server of each kind."""
    yield from kept(lambda kind: Reloading(kind, accounts()))


@pytest.fixture
def server(kind: str, servers: Callable[[str], Reloading]) -> Iterator[Reloading]:
    """That one, with accounts that have nothing."""
    found = servers(kind)
    yield found
    found.must_reload(accounts())


def client(server: Reloading, name: str, *subjects: str) -> Caller:
    """A client that listens."""
    caller = Caller(server.port)
    assert caller.login({"user": name, "pass": name})
    caller.ask("".join(f"SUB {one} {sid}\r\n" for sid, one in enumerate(subjects)).encode())
    return caller


def heard(listener: Caller, publisher: Caller, subject: str, reply: str = "") -> list[str]:
    """Subjects of what comes of a message."""
    publisher.ask(f"PUB {subject} {reply} 1\r\nx\r\n".encode())
    lines = listener.ask(b"")
    return [line.split(" ")[1] for line in lines if line.startswith(("MSG", "HMSG"))]


@pytest.mark.parametrize("kind", list(KINDS))
def test_imports_come_and_go(server: Reloading) -> None:
    exports = "exports: [ {stream: x}, {service: help} ]"
    imports = (
        "imports: [ {stream: {account: B, subject: x}, to: got},"
        " {service: {account: B, subject: help}, to: ask} ]"
    )
    with client(server, "a", "got") as a, client(server, "b", "help") as b:
        assert heard(a, b, "x") == [] and heard(b, a, "ask") == []
        server.must_reload(accounts(imports, exports))
        assert heard(a, b, "x") == ["got"]
        assert heard(b, a, "ask", "inbox") == ["help"]
        server.must_reload(accounts("", exports))
        assert heard(a, b, "x") == [] and heard(b, a, "ask") == []


@pytest.mark.parametrize("kind", list(KINDS))
def test_mappings_come_and_go(server: Reloading) -> None:
    with client(server, "a", "in", "out") as a:
        assert said(a) == ["in"]
        server.must_reload(accounts("mappings { in: out }"))
        assert said(a) == ["out"]
        server.must_reload(accounts("mappings { in: other }"))
        assert said(a) == []
        server.must_reload(accounts())
        assert said(a) == ["in"]


def said(caller: Caller) -> list[str]:
    """Where a message goes that the listener sends itself."""
    lines = caller.ask(b"PUB in 1\r\nx\r\n")
    return [line.split(" ")[1] for line in lines if line.startswith(("MSG", "HMSG"))]


@pytest.mark.parametrize("kind", list(KINDS))
def test_answers_are_allowed_and_not_any_more(server: Reloading) -> None:
    narrow = "permissions { publish: { deny: '>' } }"
    answers = "permissions { publish: { allow: ok }, allow_responses: {max: 1} }"
    server.must_reload(accounts(of_user=narrow))
    with client(server, "a", "ask", "inbox") as a:
        server.must_reload(accounts(of_user=answers))
        with Caller(server.port) as other:
            assert other.login({"user": "a", "pass": "a"})
            assert any("Permissions Violation" in line for line in other.ask(b"PUB ask 1\r\nx\r\n"))
        assert any("Permissions Violation" in line for line in a.ask(b"PUB inbox 1\r\nx\r\n"))
        server.must_reload(accounts())
        with client(server, "a") as free:
            server.must_reload(accounts(of_user=answers.replace("allow: ok", "allow: [ok, ask]")))
            assert heard(a, free, "ask", "inbox") == ["ask"]
        assert any(line.startswith("MSG inbox") for line in a.ask(b"PUB inbox 1\r\nx\r\n"))
        assert any("Permissions Violation" in line for line in a.ask(b"PUB inbox 1\r\nx\r\n"))


@pytest.mark.parametrize("kind", list(KINDS))
def test_jetstream_of_an_account_comes_and_goes(server: Reloading) -> None:
    with client(server, "a") as a:
        server.must_reload(accounts("jetstream { max_streams: 1 }"))
        stream = json.dumps({"name": "S", "subjects": ["s"]}).encode()
        answer = json.loads(a.request("$JS.API.STREAM.CREATE.S", stream)[1])
        assert "error" not in answer, answer
        second = stream.replace(b"S", b"T").replace(b'"s"', b'"t"')
        answer = json.loads(a.request("$JS.API.STREAM.CREATE.T", second)[1])
        assert answer["error"]["err_code"] == 10027
        server.must_reload(accounts("jetstream { max_streams: 2 }"))
        answer = json.loads(a.request("$JS.API.STREAM.CREATE.T", second)[1])
        assert "error" not in answer, answer
        # Fewer than there are: they go on, and may be changed.
        server.must_reload(accounts("jetstream { max_streams: 1 }"))
        answer = json.loads(a.request("$JS.API.STREAM.UPDATE.T", second)[1])
        assert "error" not in answer, answer
        for name in ("S", "T"):
            assert json.loads(a.request(f"$JS.API.STREAM.DELETE.{name}")[1])["success"]


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_account_that_loses_its_jetstream_is_deaf_until_it_is_back(server: Reloading) -> None:
    """What it has stays as it is; nobody is heard, or delivered to."""
    server.must_reload(accounts("jetstream: enabled"))
    config = {"durable_name": "C", "deliver_subject": "deliver", "ack_policy": "none"}
    pull = {"durable_name": "P", "ack_policy": "explicit"}
    with client(server, "a") as a, client(server, "a") as late:
        assert a.login({"user": "a", "pass": "a", "no_responders": True})

        def said(subject: str, **body: Any) -> dict[str, Any]:
            words = json.dumps(body).encode()
            return dict(json.loads(a.request(f"$JS.API.{subject}", words)[1] or b"{}"))

        assert "error" not in said("STREAM.CREATE.S", name="S", subjects=["s"], allow_direct=True)
        for made in (config, pull):
            name = f"CONSUMER.DURABLE.CREATE.S.{made['durable_name']}"
            assert "error" not in said(name, stream_name="S", config=made)
        assert json.loads(a.request("s", b"first")[1])["seq"] == 1
        server.must_reload(accounts())
        for subject in ("s", "$JS.API.DIRECT.GET.S", "$JS.API.CONSUMER.MSG.NEXT.S.P"):
            assert a.request(subject)[0] == "NATS/1.0 503"
        assert said("STREAM.INFO.S")["error"]["err_code"] == 10039
        late.ask(b"SUB deliver 1\r\n")
        assert not heard(late, a, "nobody")
        server.must_reload(accounts("jetstream: enabled"))
        assert late.line().startswith("MSG s 1 ")
        assert said("STREAM.INFO.S")["state"]["messages"] == 1
        assert json.loads(a.request("s", b"second")[1])["seq"] == 2
        assert a.request("$JS.API.CONSUMER.MSG.NEXT.S.P", b"1")[1] == b"first"
        assert said("STREAM.DELETE.S")["success"]


@pytest.mark.parametrize("kind", list(KINDS))
def test_who_has_no_jetstream_uses_what_another_account_offers(server: Reloading) -> None:
    offered = "exports: [ {service: '$JS.API.INFO'}, {service: '$JS.API.STREAM.>'} ]"
    of_b = f"jetstream: enabled, {offered}"
    of_a = (
        "imports: [ {service: {account: B, subject: '$JS.API.INFO'}},"
        " {service: {account: B, subject: '$JS.API.STREAM.>'}} ]"
    )

    def said(caller: Caller, subject: str) -> dict[str, Any]:
        return dict(json.loads(caller.request(f"$JS.API.{subject}")[1] or b"{}"))

    server.must_reload(accounts("", of_b))
    with client(server, "a") as a:
        assert said(a, "INFO")["error"]["err_code"] == 10039
    server.must_reload(accounts(of_a, of_b))
    with client(server, "a") as a, client(server, "b") as b:
        stream = json.dumps({"name": "S", "subjects": ["s"]}).encode()
        assert "error" not in json.loads(b.request("$JS.API.STREAM.CREATE.S", stream)[1])
        assert said(a, "INFO")["streams"] == 1
        assert said(a, "STREAM.NAMES")["streams"] == ["S"]
        loud = {"user": "a", "pass": "a", "no_responders": True}
        assert a.login(loud)
        assert a.request("$JS.API.CONSUMER.NAMES.S")[0] == "NATS/1.0 503"
        assert said(b, "STREAM.DELETE.S")["success"]
