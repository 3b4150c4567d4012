"""The system account of a live node: requests, events, orders."""

import json

import pytest

from jsctl.broker.login_options.permissions import (
    PermissionRules,
    ResponsePermission,
    SubjectPermission,
)
from jsctl.broker.options import (
    AccountJetStream,
    AccountOptions,
    JetStreamOptions,
    MonitorOptions,
    UserOptions,
)
from jsctl.broker.turn import Accepted, Command, ConnKind
from tests.support.node_play import SERVER_ID, NodePlay, PlayClient, node_options, user


@pytest.fixture
def play() -> NodePlay:
    """A node, a while after its start."""
    return NodePlay()


@pytest.fixture
def system(play: NodePlay) -> PlayClient:
    """A client of the system account."""
    return play.connect("sys")


@pytest.mark.parametrize("target", ["PING", SERVER_ID])
@pytest.mark.parametrize(
    "kind", ["VARZ", "CONNZ", "SUBSZ", "ACCOUNTZ", "JSZ", "HEALTHZ", "ROUTEZ", "STATSZ"]
)
def test_server_requests(system: PlayClient, target: str, kind: str) -> None:
    answer = system.ask(f"$SYS.REQ.SERVER.{target}.{kind}")
    assert answer["server"]["name"] == "n1" and answer["server"]["id"] == SERVER_ID
    assert "error" not in answer


def test_ping_and_filter(system: PlayClient) -> None:
    answer = system.ask("$SYS.REQ.SERVER.PING")
    assert answer["statsz"]["connections"] == 1
    assert system.ask("$SYS.REQ.SERVER.PING.IDZ")["id"] == SERVER_ID
    assert system.request("$SYS.REQ.SERVER.PING.VARZ", b'{"server_name":"other"}') == []
    assert system.request("$SYS.REQ.SERVER.NOBODY.VARZ") == []


def test_account_requests(play: NodePlay, system: PlayClient) -> None:
    play.connect("a").subscribe("foo")
    assert system.ask("$SYS.REQ.ACCOUNT.A.INFO")["data"]["client_connections"] == 1
    (connection,) = system.ask("$SYS.REQ.ACCOUNT.A.CONNZ")["data"]["connections"]
    assert connection["name"] == "test a"
    (stat,) = system.ask("$SYS.REQ.ACCOUNT.A.STATZ")["data"]["account_statz"]
    assert stat["conns"] == 1
    stats = system.ask("$SYS.REQ.ACCOUNT.PING.STATZ")["data"]["account_statz"]
    assert {one["acc"] for one in stats} == {"A", "$SYS"}
    assert system.request("$SYS.REQ.ACCOUNT.NSUBS", b'{"acc":"A","subject":"foo"}') == [b"1"]
    assert system.ask("$SYS.REQ.ACCOUNT.A.JSZ")["data"]["name"] == "A"


def test_services_that_every_account_imports(play: NodePlay) -> None:
    client, other = play.connect("a"), play.connect("b")
    for subject in ("$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ"):
        connections = client.ask(subject)["data"]["connections"]
        assert [one["name"] for one in connections] == ["test a"]
    stats = other.ask("$SYS.REQ.ACCOUNT.PING.STATZ")["data"]["account_statz"]
    assert [one["acc"] for one in stats] == ["B"]
    assert client.ask("$SYS.REQ.USER.INFO")["data"] == {
        "user": "a",
        "account": "A",
        "account_name": "A",
    }
    client.subscribe("mine.*")
    assert client.request("$SYS.DEBUG.SUBSCRIBERS", b"mine.x") == [b"1"]
    assert other.request("$SYS.DEBUG.SUBSCRIBERS", b"mine.x") == [b"0"]
    assert client.request("$SYS.REQ.SERVER.PING.VARZ") == []


def test_permissions_are_told() -> None:
    rules = PermissionRules(
        publish=SubjectPermission(allow=("$SYS.>", "x"), deny=("y",)),
        responses=ResponsePermission(2, 1_000_000_000),
    )
    limited = UserOptions(name="p", password="p", permissions=rules)
    play = NodePlay(node_options(accounts=(AccountOptions(name="A", users=(limited, user("a"))),)))
    found = play.connect("p").ask("$SYS.REQ.USER.INFO")["data"]["permissions"]
    assert found["publish"] == {"allow": ["$SYS.>", "x"], "deny": ["y"]}
    assert found["responses"] == {"max": 2, "ttl": 1_000_000_000}


def test_clients_that_come_and_go(play: NodePlay, system: PlayClient) -> None:
    system.subscribe("$SYS.ACCOUNT.>")
    client = play.connect("a")
    play.run(0.1)
    (event,) = system.heard("$SYS.ACCOUNT.A.CONNECT")
    assert event["client"]["user"] == "a" and event["server"]["name"] == "n1"
    (event,) = system.heard("$SYS.ACCOUNT.A.SERVER.CONNS")
    assert event["conns"] == 1
    client.publish("x", b"123")
    play.hang_up(client)
    play.run(0.1)
    (event,) = system.heard("$SYS.ACCOUNT.A.DISCONNECT")
    assert event["reason"] == "Client Closed" and event["sent"] == {"msgs": 1, "bytes": 3}
    assert [one["conns"] for one in system.heard("$SYS.ACCOUNT.A.SERVER.CONNS")] == [1, 0]
    play.run(31)
    assert len(system.heard("$SYS.ACCOUNT.A.SERVER.CONNS")) == 2


def test_operators_are_told_of_other_operators(play: NodePlay, system: PlayClient) -> None:
    system.subscribe("$SYS.ACCOUNT.>")
    play.hang_up(play.connect("sys"))
    play.run(0.1)
    told = [subject.removeprefix("$SYS.ACCOUNT.$SYS.") for subject, *_ in system.messages]
    assert sorted({*told}) == ["CONNECT", "DISCONNECT", "SERVER.CONNS"]
    assert [one["conns"] for one in system.heard("$SYS.ACCOUNT.$SYS.SERVER")][-1] == 1


def test_clients_that_take_their_time(play: NodePlay, system: PlayClient) -> None:
    system.subscribe("$SYS.ACCOUNT.>")
    late = play.connect("a", said=False)
    play.run(1.5)
    assert not system.heard("$SYS.ACCOUNT.A.CONNECT")
    late.log_in("a")
    play.run(1.1)
    assert len(system.heard("$SYS.ACCOUNT.A.CONNECT")) == 1


def test_refused_clients(play: NodePlay, system: PlayClient) -> None:
    system.subscribe(f"$SYS.SERVER.{SERVER_ID}.CLIENT.AUTH.ERR")
    system.subscribe("$SYS.ACCOUNT.*.DISCONNECT")
    play.connect("a", "wrong")
    play.run(0.1)
    (event,) = system.heard("$SYS.SERVER")
    assert event["reason"] == "Authentication Failure" and event["client"]["user"] == "a"
    (row,) = play.get("/connz", state="closed", auth="1")[1]["connections"]
    assert row["authorized_user"] == "a"
    (event,) = system.heard("$SYS.ACCOUNT.$G.DISCONNECT")
    conn = 77
    play.clients[conn] = PlayClient(play, conn)
    play.turn(accepted=[Accepted(conn, ConnKind.CLIENT, "127.0.0.1", 1)])
    play.run(3)
    assert system.heard("$SYS.SERVER")[-1]["reason"] == "Authentication Timeout"


def test_statistics_come_by_themselves(play: NodePlay, system: PlayClient) -> None:
    system.subscribe("$SYS.SERVER.*.STATSZ")
    play.run(25)
    events = system.heard("$SYS.SERVER")
    assert 2 <= len(events) <= 6
    assert events[0]["statsz"]["start"].startswith("2026-")


def test_stale_clients_are_counted(play: NodePlay, system: PlayClient) -> None:
    play.connect("a")
    play.run(1)
    play.now_ns += 10 * 60 * 1_000_000_000
    for _ in range(4):
        play.run(121)
    assert play.get("/varz")[1]["stale_connection_stats"]["clients"] >= 1


def test_kick(play: NodePlay, system: PlayClient) -> None:
    client = play.connect("a")
    (shown,) = play.get("/connz", acc="A")[1]["connections"]
    answer = system.ask(f"$SYS.REQ.SERVER.{SERVER_ID}.KICK", cid=shown["cid"])
    assert "error" not in answer
    play.hang_up(client)
    assert play.get("/connz", acc="A", state="closed")[1]["connections"][0]["reason"] == "Kicked"
    answer = system.ask(f"$SYS.REQ.SERVER.{SERVER_ID}.KICK", cid=4711)
    assert "no such client" in answer["error"]["description"]


def test_one_client_is_sent_away(play: NodePlay, system: PlayClient) -> None:
    client = play.connect("a")
    (shown,) = play.get("/connz", acc="A")[1]["connections"]
    system.ask(f"$SYS.REQ.SERVER.{SERVER_ID}.LDM", cid=shown["cid"])
    infos = [json.loads(line[5:]) for line in client.lines if line.startswith(b"INFO")]
    assert infos[-1]["ldm"] is True and infos[-1]["client_id"] == shown["cid"]
    answer = system.ask(f"$SYS.REQ.SERVER.{SERVER_ID}.LDM", cid=4711)
    assert answer["error"]["description"] == "no such client id"


def test_reload(play: NodePlay, system: PlayClient) -> None:
    subject = f"$SYS.REQ.SERVER.{SERVER_ID}.RELOAD"
    assert system.request(subject) == [] and system.request(subject) == []
    assert play.reloads == 2
    heard = len(system.messages)
    play.turn(reloaded=["no such key"])
    answers = [json.loads(body) for _, _, body in system.messages[heard:]]
    error = {"code": 500, "description": "no such key"}
    assert [one["error"] for one in answers] == [error, error]
    play.turn(reloaded=[""])
    assert len(system.messages) == heard + 2, "everybody is answered once"
    system.publish(subject, b"")
    assert play.reloads == 2, "nobody would hear what came of it"
    play.run(5)
    play.node.reload(node_options(config_digest="sha256:1"))
    page = play.get("/varz")[1]
    assert page["config_digest"] == "sha256:1" and page["config_load_time"] > page["start"]


@pytest.mark.parametrize(
    ("command", "kind"), [(Command.SHUTDOWN, "SHUTDOWN"), (Command.LAME_DUCK, "LAMEDUCK")]
)
def test_the_server_says_that_it_goes(
    play: NodePlay, system: PlayClient, command: Command, kind: str
) -> None:
    system.subscribe("$SYS.SERVER.*.*")
    play.command(command)
    play.run(0.5)
    (event,) = system.heard(f"$SYS.SERVER.{SERVER_ID}.{kind}")
    assert event["name"] == "n1"


def test_base_path() -> None:
    play = NodePlay(node_options(monitoring=MonitorOptions(base_path="/nats/")))
    assert play.get("/nats/varz")[1]["http_req_stats"] == {"/varz": 1}
    assert play.get("/varz")[0] == 404
    assert play.get("/nats")[0] == 200


def test_without_a_system_account() -> None:
    accounts = (AccountOptions(name="A", users=(user("a"),)),)
    jetstream = JetStreamOptions()
    play = NodePlay(node_options(accounts=accounts, jetstream=jetstream, no_system_account=True))
    client = play.connect("a")
    play.hang_up(client)
    play.run(1)
    assert client.request("$SYS.REQ.ACCOUNT.PING.CONNZ") == []
    assert play.get("/varz")[0] == 200
    assert "system_account" not in play.get("/varz")[1]


def test_jetstream_has_a_system_account() -> None:
    """What its servers say to each other must not travel where users are."""
    accounts = (AccountOptions(name="A", users=(user("a"),), jetstream=AccountJetStream()),)
    play = NodePlay(node_options(accounts=accounts, no_system_account=True))
    assert play.get("/varz")[1]["system_account"] == "$SYS"
    assert play.connect("a").request("$JS.API.INFO") != []


@pytest.mark.parametrize(
    ("queue", "count"),
    [('"Zw=="', [b"1"]), ('""', [b"2"]), ('"eA=="', [b"0"]), ('"?"', []), ("7", [])],
)
def test_a_queue_group_is_told_in_base64(
    play: NodePlay, system: PlayClient, queue: str, count: list[bytes]
) -> None:
    client = play.connect("a")
    client.send(b"SUB foo g 1\r\nSUB foo 2\r\n")
    body = f'{{"acc":"A","subject":"foo","queue":{queue}}}'
    assert system.request("$SYS.REQ.ACCOUNT.NSUBS", body.encode()) == count
