"""What is told of traced messages on their way over leaf nodes' connections."""

import json
from typing import Any

import pytest

from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.options import (
    AccountOptions,
    ExportOptions,
    ImportOptions,
    MappingOptions,
    MappingTarget,
)
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.node_play import NodePlay, PlayClient, node_options, user

ACCOUNTS = (
    AccountOptions("A", (user("a"),), imports=(ImportOptions("B", "news.>", allow_trace=True),)),
    AccountOptions(
        "B",
        (user("b"),),
        exports=(ExportOptions("news.>"),),
        mappings=(MappingOptions("map.*", (MappingTarget("mapped.$1"),)),),
    ),
    AccountOptions("$SYS", (user("sys"),)),
)
HEADERS = b"NATS/1.0\r\nNats-Trace-Dest: traces\r\n"


class LeafPlay(PlayClient):
    """A leaf node."""

    def take(self, data: bytes) -> None:
        """What the hub sent."""
        self.lines += data.split(b"\r\n")

    def say(self, subject: bytes) -> None:
        """A traced message without a body."""
        head = HEADERS + b"\r\n"
        self.send(b"HMSG %s %d %d\r\n%s\r\n" % (subject, len(head), len(head), head))


@pytest.fixture
def play() -> NodePlay:
    """A hub."""
    return NodePlay(node_options(accounts=ACCOUNTS, leafnodes=LeafNodeOptions(port=7422)))


def leaf(play: NodePlay, name: str) -> LeafPlay:
    """A leaf node in the account of a user."""
    conn = 90 + len(play.clients)
    found = LeafPlay(play, conn)
    play.clients[conn] = found
    play.turn(accepted=[Accepted(conn, ConnKind.LEAF, "127.0.0.1", conn)])
    said = {"user": name, "pass": name, "name": f"leaf {name}", "cluster": name, "headers": True}
    said["protocol"] = 3
    found.send(b"CONNECT %s\r\n" % json.dumps(said).encode())
    return found


def events(client: PlayClient) -> list[dict[str, Any]]:
    """Of the one trace that was told."""
    client.play.run(1)
    (told,) = client.heard("traces")
    return list(told["events"])


@pytest.mark.parametrize("listens", [True, False])
def test_a_mapping_is_told(play: NodePlay, listens: bool) -> None:
    """Also where it leads to nobody."""
    client = play.connect("b")
    client.subscribe("traces")
    if listens:
        play.connect("b").subscribe("mapped.x")
    leaf(play, "b").say(b"map.x")
    came, mapped, *rest = events(client)
    assert (came["type"], came["subj"]) == ("in", "map.x")
    assert (mapped["type"], mapped["to"]) == ("sm", "mapped.x")
    assert [one["type"] for one in rest] == ["eg"] * listens


def test_who_hears_it_in_another_account_is_told_as_a_server(play: NodePlay) -> None:
    """It tells the next events under the number that it is sent with."""
    client, other = play.connect("b"), leaf(play, "a")
    client.subscribe("traces")
    other.send(b"LS+ news.x\r\nLS+ news.*\r\n")
    head = HEADERS + b"\r\n"
    client.send(b"HPUB news.x %d %d\r\n%s\r\n" % (len(head), len(head), head))
    _, went = events(client)
    assert (went["type"], went["name"], went["acc"], went["hop"]) == ("eg", "leaf a", "A", "1")
    assert sum([b"Nats-Trace-Hop" in line for line in other.lines]) == 1
