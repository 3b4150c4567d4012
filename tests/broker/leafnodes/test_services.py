"""Leaf nodes, and what the hub's accounts take from each other."""

import json

import pytest

from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.options import AccountOptions, ExportOptions, ImportOptions
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient, user

ACCOUNTS = (
    AccountOptions(
        "A",
        (user("a"),),
        imports=(
            ImportOptions("B", "do.*", service=True, share=True),
            ImportOptions("B", "news.>", to="n.>"),
        ),
    ),
    AccountOptions(
        "B",
        (user("b"),),
        exports=(ExportOptions("do.*", service=True), ExportOptions("news.>")),
    ),
    AccountOptions("$SYS", (user("sys"),)),
)
HEADERS = [b"", b"NATS/1.0\r\nNats-Trace-Dest: traces\r\n\r\n"]


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers where leaf nodes may connect."""
    return ClusterPlay(accounts=ACCOUNTS, leafnodes=LeafNodeOptions(port=7422))


class LeafPlay(PlayClient):
    """A leaf node; its messages are not worded as those of clients."""

    def take(self, data: bytes) -> None:
        """What the hub sent."""
        self.lines += data.split(b"\r\n")


def leaf(server: ServerPlay, name: str) -> LeafPlay:
    """A server's leaf node, in the account of a user."""
    conn = server.new_conn()
    found = LeafPlay(server, conn)
    server.clients[conn] = found
    server.turn(accepted=[Accepted(conn, ConnKind.LEAF, "127.0.0.1", 40000 + conn)])
    said = {"user": name, "pass": name, "name": "l", "cluster": "l", "headers": True}
    found.send(b"CONNECT %s\r\n" % json.dumps(said).encode())
    return found


def ask(asking: LeafPlay, headers: bytes) -> None:
    """Over a leaf node's connection."""
    size = len(headers)
    head = b"HMSG do.x back %d %d\r\n" % (size, size + 2) if size else b"LMSG do.x back 2\r\n"
    asking.send(head + headers + b"hi\r\n")


@pytest.mark.parametrize("headers", HEADERS, ids=["plain", "traced"])
@pytest.mark.parametrize("place", ["n1", "n2"])
def test_a_queue_group_is_asked(cluster: ClusterPlay, place: str, headers: bytes) -> None:
    """The leaf node knows nothing of the groups of that account."""
    member = cluster[place].connect("b")
    member.send(b"SUB do.* many 1\r\n")
    ask(leaf(cluster["n1"], "a"), headers)
    assert [(subject, body) for subject, _, body in member.messages] == [("do.x", b"hi")]


@pytest.mark.parametrize("group", [b"", b" many 1"], ids=["each", "group"])
@pytest.mark.parametrize("place", ["n1", "n2"])
def test_the_same_leaf_node_answers(cluster: ClusterPlay, place: str, group: bytes) -> None:
    """It has a connection in both accounts."""
    asking, answering = leaf(cluster["n1"], "a"), leaf(cluster[place], "b")
    answering.send(b"LS+ do.*%s\r\n" % group)
    asking.send(b"LS+ back\r\n")
    ask(asking, b"")
    (line,) = [line for line in answering.lines if line.startswith(b"HMSG do.x ")]
    reply = next(word for word in line.split() if word.startswith(b"_R_."))
    answering.send(b"LMSG %s 6\r\nanswer\r\n" % reply)
    assert asking.lines[-3:] == [b"LMSG back 6", b"answer", b""]


def test_the_same_leaf_node_hears_a_stream(cluster: ClusterPlay) -> None:
    """The hub tells it that the one account listens to what the other one says."""
    listening, saying = leaf(cluster["n1"], "a"), leaf(cluster["n1"], "b")
    listening.send(b"LS+ n.x\r\n")
    assert b"LS+ news.x" in saying.lines
    saying.send(b"LMSG news.x 2\r\nhi\r\n")
    assert listening.lines[-3:] == [b"LMSG n.x 2", b"hi", b""]
    listening.send(b"LS- n.x\r\n")
    assert saying.lines[-2:] == [b"LS- news.x", b""]


def test_a_leaf_node_is_introduced_as_what_it_is(cluster: ClusterPlay) -> None:
    """To who is told in detail who asks."""
    owner = cluster["n1"].connect("b")
    owner.subscribe("do.*")
    ask(leaf(cluster["n1"], "a"), b"")
    told = json.loads(owner.heads[0].partition(b"Nats-Request-Info:")[2])
    assert (told["kind"], told["user"], told["name"]) == ("Leafnode", "a", "l")
    assert "client_type" not in told
