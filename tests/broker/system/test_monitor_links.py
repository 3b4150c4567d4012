"""What reports tell of leaf nodes and other clusters, and what that costs: both may listen to very
much, and statistics are told every second where something changes all the time."""

import json
from dataclasses import replace

import pytest

from jsctl.broker.gateway_options import GatewayOptions, GatewayUrl, RemoteGateway
from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.options import AccountOptions
from jsctl.broker.sessions import listing
from jsctl.broker.sessions.session import KEPT_SUBSCRIPTIONS_MAX
from jsctl.broker.turn import Accepted, ConnKind
from tests.broker.system.test_monitor_cost import counting
from tests.support.node_play import NodePlay, PlayClient, node_options, user

MANY = 100
ACCOUNTS = tuple(
    AccountOptions(name=name, users=(user(name.strip("$").lower()),)) for name in ("A", "B", "$SYS")
)
GATE = GatewayOptions(name="A", port=7222, remotes=(RemoteGateway("B", (GatewayUrl("b", 1),)),))
OPTIONS = node_options(accounts=ACCOUNTS, leafnodes=LeafNodeOptions(port=7422))


@pytest.fixture
def play() -> NodePlay:
    """A server where leaf nodes may connect."""
    return NodePlay(OPTIONS)


def comes(play: NodePlay, kind: ConnKind, said: bytes, token: int = 0) -> PlayClient:
    """A server connects, or answers a dial, and says who it is."""
    conn = 900 + len(play.clients)
    found = play.clients[conn] = PlayClient(play, conn)
    play.turn(accepted=[Accepted(conn, kind, "127.0.0.1", 40000 + conn, dial_token=token)])
    found.send(said)
    return found


def leaf(play: NodePlay, name: str) -> PlayClient:
    """A leaf node of an account that listens to very much."""
    said = {"user": name, "pass": name, "name": "l", "cluster": "l", "headers": True}
    found = comes(play, ConnKind.LEAF, f"CONNECT {json.dumps(said)}\r\n".encode())
    found.send(b"".join(b"LS+ s.%d\r\n" % number for number in range(MANY)))
    return found


def test_connections_of_leaf_nodes(play: NodePlay, monkeypatch: pytest.MonkeyPatch) -> None:
    leaf(play, "a")
    client = play.connect("a")
    calls = counting(monkeypatch, listing, "_facts")
    asked = "$SYS.REQ.ACCOUNT.PING.CONNZ"
    rows = client.ask(asked)["data"]["connections"]
    assert [(one["kind"], one["subscriptions"]) for one in rows[:1]] == [("Leafnode", MANY)]
    assert play.get("/leafz")[1]["leafs"][0]["subscriptions"] == MANY
    assert play.get("/connz")[1]["num_connections"] == 2
    assert not calls
    rows = client.ask(asked, subscriptions=True)["data"]["connections"]
    assert len(rows[0]["subscriptions_list"]) == MANY
    assert len(play.get("/leafz", subs="1")[1]["leafs"][0]["subscriptions_list"]) == MANY


def test_leaf_nodes_are_found_by_what_they_listen_to(play: NodePlay) -> None:
    leaf(play, "a")
    play.connect("a").subscribe("t")
    for subject, kinds in (("s.7", ["Leafnode"]), ("s.*", ["Leafnode"]), ("t", ["Client"])):
        rows = play.get("/connz", acc="A", filter_subject=subject)[1]["connections"]
        assert [one["kind"] for one in rows] == kinds


def test_a_leaf_node_that_comes_and_goes_leaves_little(play: NodePlay) -> None:
    """Thousands that are gone are remembered."""
    play.hang_up(leaf(play, "a"))
    (row,) = play.get("/connz", state="closed", subs="1")[1]["connections"]
    assert row["subscriptions"] == MANY
    assert len(row["subscriptions_list"]) == KEPT_SUBSCRIPTIONS_MAX


def test_statistics_of_other_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    play = NodePlay(replace(OPTIONS, gateway=GATE))
    (dial,) = play.dials
    gate = comes(play, ConnKind.GATEWAY, b'INFO {"gateway":"B","server_id":"NB"}\r\n', dial.token)
    gate.send(b"".join(b"RS+ A s.%d\r\n" % number for number in range(MANY)))
    calls = counting(monkeypatch, listing, "_facts")
    system = play.connect("sys")
    (told,) = system.ask("$SYS.REQ.SERVER.PING")["statsz"]["gateways"]
    assert told["name"] == "B"
    assert play.get("/gatewayz")[1]["outbound_gateways"]["B"]["connection"]["subscriptions"] == MANY
    assert not calls
    page = play.get("/gatewayz", acc_name="A")[1]
    assert page["outbound_gateways"]["B"]["accounts"][0]["num_subs"] == MANY
