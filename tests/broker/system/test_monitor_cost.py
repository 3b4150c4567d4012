"""What reports cost on servers with many accounts, streams or clients: no more than these take to
look at once. Servers ask each other for some of them."""

from collections.abc import Iterator
from time import process_time
from typing import Any

import pytest

from jsctl.broker.jsapi.usage import Usage
from jsctl.broker.options import AccountJetStream, AccountOptions
from jsctl.broker.sessions import listing
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.system.monitoring import connection_facts
from jsctl.broker.system.monitoring.health_facts import HealthReport
from jsctl.broker.system.monitoring.jetstream_facts import JetStreamReport
from tests.support.node_play import NodePlay, node_options, user
from tests.support.stream_requests import stream

MANY = 50
Patch = pytest.MonkeyPatch


@pytest.fixture
def play() -> NodePlay:
    """A server with many accounts."""
    own = AccountOptions(name="A", users=(user("a"),), jetstream=AccountJetStream())
    system = AccountOptions(name="$SYS", users=(user("sys"),))
    others = [AccountOptions(name=f"T{number}") for number in range(MANY)]
    return NodePlay(node_options(accounts=(*others, own, system)))


def counting(patch: Patch, place: Any, name: str) -> list[None]:
    """Has an item for each call of a function."""
    calls, function = list[None](), getattr(place, name)

    def counted(*args: Any, **more: Any) -> Any:
        calls.append(None)
        return function(*args, **more)

    patch.setattr(place, name, counted)
    return calls


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("$SYS.REQ.ACCOUNT.A.CONNS", b""),
        ("$SYS.REQ.ACCOUNT.A.STATZ", b""),
        ("$SYS.REQ.ACCOUNT.A.INFO", b""),
        ("$SYS.REQ.ACCOUNT.NSUBS", b'{"acc":"A","subject":"foo"}'),
    ],
)
def test_one_account(play: NodePlay, monkeypatch: Patch, subject: str, body: bytes) -> None:
    play.connect("a")
    system = play.connect("sys")
    calls = counting(monkeypatch, connection_facts, "account_facts")
    assert len(system.request(subject, body)) == 1
    assert len(calls) == 1


def test_streams(play: NodePlay, monkeypatch: Patch) -> None:
    client = play.connect("a")
    for number in range(MANY):
        client.ask(f"$JS.API.STREAM.CREATE.S{number}", **stream(f"S{number}", 1))
    calls = counting(monkeypatch, Usage, "enabled")
    status, page = play.get("/jsz", streams="1", consumers="1", acc="A")
    assert status == 200 and len(page["account_details"][0]["stream_detail"]) == MANY
    assert len(calls) < 2 * MANY


def test_accounts_with_streams(play: NodePlay, monkeypatch: Patch) -> None:
    class Passes(dict[Any, Any]):
        """Counts who goes through all of it."""

        count = 0

        def items(self) -> Any:
            self.count += 1
            return super().items()

        def values(self) -> Any:
            self.count += 1
            return super().values()

    engine = play.node.engine
    assert engine is not None
    monkeypatch.setattr(Usage, "enabled", lambda self, name: True)
    engine.assets.streams = passes = Passes(engine.assets.streams)
    assert play.get("/jsz")[1]["accounts"] > MANY
    assert passes.count < 10


def test_subscriptions_of_clients(play: NodePlay, monkeypatch: Patch) -> None:
    for number in range(MANY):
        play.connect("a").subscribe(f"s.{number}")
    iterate, looked = Sessions.__iter__, list[None]()

    def counted(self: Sessions) -> Iterator[ClientSession]:
        for one in iterate(self):
            looked.append(None)
            yield one

    monkeypatch.setattr(Sessions, "__iter__", counted)
    page = play.get("/connz", subs="1")[1]
    shown = [one["subscriptions_list"] for one in page["connections"]]
    assert shown == [[f"s.{number}"] for number in range(MANY)]
    assert len(looked) < 4 * MANY


@pytest.mark.parametrize(
    ("path", "asked", "rows"),
    [
        ("/subsz", {"subs": "1", "limit": "2"}, 2),
        ("/subsz", {"subs": "1", "limit": "2", "test": "s.7"}, 1),
        ("/connz", {"acc": "A", "filter_subject": "s.7"}, 0),
        ("/connz", {"state": "any", "limit": "1"}, 0),
        ("/connz", {"state": "closed", "limit": "1", "subs": "1"}, 1),
    ],
)
def test_a_page_of_many(
    play: NodePlay, monkeypatch: Patch, path: str, asked: dict[str, str], rows: int
) -> None:
    """A server may have a million subscriptions, and remembers ten thousand closed clients."""
    for number in range(MANY):
        play.connect("a").subscribe(f"s.{number}")
    for client in list(play.clients.values())[MANY // 2 :]:
        play.hang_up(client)
    calls = counting(monkeypatch, listing, "_facts")
    status, page = play.get(path, **asked)
    assert (status, len(calls)) == (200, rows)
    assert page["total"] >= 1


@pytest.mark.parametrize(
    ("subject", "count"),
    [
        (b"s.7", 2),
        (b"s.7 q", 1),
        (b"s.*", MANY + 1),
        (b"s.> q", 1),
        (b"s..7", 0),
        (b"t", 0),
    ],
)
def test_subscribers(play: NodePlay, monkeypatch: Patch, subject: bytes, count: int) -> None:
    """Any client may ask how many there are: nobody lists them for it."""
    client = play.connect("a")
    for number in range(MANY):
        client.subscribe(f"s.{number}")
    client.send(b"SUB s.* q 1000\r\n")
    calls = counting(monkeypatch, connection_facts, "sub_detail")
    assert client.request("$SYS.DEBUG.SUBSCRIBERS", subject) == [b"%d" % count]
    assert not calls


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        ("$SYS.REQ.ACCOUNT.PING.CONNZ", '{"filter_subject":"%s*"}'),
        ("$SYS.DEBUG.SUBSCRIBERS", "%s*"),
        ("$SYS.REQ.SERVER.PING.SUBSZ", '{"subscriptions":true,"test":"%sa"}'),
    ],
)
def test_a_long_subject_is_taken_apart_once(play: NodePlay, subject: str, body: str) -> None:
    """Any client may ask for one, and have thousands of subscriptions on which it is tried."""
    client = play.connect("sys" if "SERVER" in subject else "a")
    client.send(b"".join(b"SUB s.%d.* s%d\r\n" % (number, number) for number in range(2000)))
    began = process_time()
    assert client.request(subject, (body % ("s." * 200_000)).encode())
    assert process_time() - began < 2


def test_connections_of_an_account(play: NodePlay, monkeypatch: Patch) -> None:
    """Its clients may ask for them, whatever others have."""
    for _ in range(MANY):
        play.hang_up(play.connect("sys"))
        play.connect("sys")
    client = play.connect("a")
    calls = counting(monkeypatch, connection_facts, "conn_facts")
    page = client.ask("$SYS.REQ.ACCOUNT.PING.CONNZ", state=2)["data"]
    assert [one["name"] for one in page["connections"]] == ["test a"]
    assert len(calls) == 1


@pytest.mark.parametrize("state", ["open", "closed", "any"])
def test_a_page_of_connections_tells_of_no_others(
    play: NodePlay, monkeypatch: Patch, state: str
) -> None:
    for _ in range(MANY):
        play.hang_up(play.connect("a"))
        play.connect("a")
    calls = counting(monkeypatch, connection_facts, "conn_facts")
    page = play.get("/connz", limit="3", offset="2", state=state)[1]
    assert len(calls) == page["num_connections"] == 3
    assert page["total"] >= MANY
    ids = [one["cid"] for one in page["connections"]]
    assert ids == sorted(ids)
    by_name = play.get("/connz", limit="3", sort="bytes_to", state=state)[1]
    assert by_name["total"] == page["total"]


@pytest.mark.parametrize(
    ("params", "looks"), [({"js-server-only": "1"}, 0), ({"js-enabled-only": "1"}, 0), ({}, 1)]
)
def test_health(play: NodePlay, monkeypatch: Patch, params: dict[str, str], looks: int) -> None:
    """All assets are looked at once, and only where it is asked how they are."""
    calls = counting(monkeypatch, HealthReport, "_assets")
    assert play.get("/healthz", **params)[0] == 200
    assert len(calls) == looks


def test_statistics(play: NodePlay, monkeypatch: Patch) -> None:
    """They are told every second where something changes all the time."""
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream("S", 1))
    calls = counting(monkeypatch, JetStreamReport, "_stream")
    system = play.connect("sys")
    assert system.ask("$SYS.REQ.SERVER.PING")["statsz"]["jetstream"]["stats"]
    assert play.get("/varz")[1]["jetstream"]["stats"]
    assert not calls
