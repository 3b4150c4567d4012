"""What leaf nodes say while their password is being checked."""

import json

import bcrypt
import pytest

from jsctl.broker.compression_options import FAST, OFF, Compression
from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.linking.compression import packed
from jsctl.broker.options import AccountLimits, AccountOptions, ClientLimits, UserOptions
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.node_play import NodePlay, PlayClient, node_options

HASHED = bcrypt.hashpw(b"x", bcrypt.gensalt(4)).decode()


class Leafs(NodePlay):
    """A node that leaf nodes connect to; what it says to them is not read."""

    def take(self, data: bytes) -> None:
        """The client's side of a connection."""

    def leaf(self, mode: str, *said: bytes) -> int:
        """One that says how it compresses, and all of the rest at once."""
        conn = 99
        client = PlayClient(self, conn)
        client.take = self.take  # type: ignore[method-assign]  # it is compressed
        self.clients[conn] = client
        self.turn(accepted=[Accepted(conn, ConnKind.LEAF, "127.0.0.1", 1)])
        if mode != OFF:
            self.turn(chunks=[(conn, b'INFO {"compression":"%b"}\r\n' % mode.encode())])
        self.turn(chunks=[(conn, line if mode == OFF else packed(mode, line)) for line in said])
        return conn


@pytest.mark.parametrize("mode", [OFF, FAST])
def test_what_is_said_meanwhile_waits(mode: str) -> None:
    accounts = (AccountOptions("A", (UserOptions("h", HASHED), UserOptions("a", "a"))),)
    leafnodes = LeafNodeOptions(port=7422, compression=Compression(mode))
    play = Leafs(node_options(accounts=accounts, leafnodes=leafnodes))
    client = play.connect("a")
    client.subscribe("s")
    login = {"user": "h", "pass": "x", "name": "l", "cluster": "l"}
    connect = b"CONNECT %b\r\n" % json.dumps(login).encode()
    conn = play.leaf(mode, connect + b"PING\r\n", b"LMSG s 1\r\nx\r\n")
    assert client.messages == []
    play.turn(verified=[(conn, True)])
    assert client.messages == [("s", "", b"x")]


def test_who_dials_as_a_hub_is_answered_where_its_requests_come_from() -> None:
    """They may come from another cluster, of which this server knows nothing."""
    play = NodePlay(node_options(leafnodes=LeafNodeOptions(port=7422)))
    client = play.connect("a")
    client.subscribe("ask")
    hub = play.clients[99] = PlayClient(play, 99)
    play.turn(accepted=[Accepted(99, ConnKind.LEAF, "127.0.0.1", 1)])
    hub.send(b'CONNECT {"user":"a","pass":"a","name":"h","cluster":"h","is_hub":true}\r\n')
    hub.send(b"LS+ _GR_.>\r\n")
    reply = "_GR_.abcdef.ABCDEF.in.1"
    hub.send(f"LMSG ask {reply} 1\r\nx\r\n".encode())
    assert client.messages == [("ask", "in.1", b"x")]
    client.publish("in.1", b"y")
    assert f"LMSG {reply} 1".encode() in hub.lines


@pytest.mark.parametrize("of_account", [True, False])
def test_more_subscriptions_than_are_allowed_are_refused(of_account: bool) -> None:
    """Those that fit count on, and so does the connection."""
    limits = AccountLimits(subscriptions_max=2 if of_account else -1)
    accounts = (AccountOptions("A", (UserOptions("a", "a"),), limits=limits),)
    client_options = ClientLimits(subscriptions_max=0 if of_account else 2)
    leafnodes = LeafNodeOptions(port=7422)
    play = NodePlay(node_options(accounts=accounts, leafnodes=leafnodes, client=client_options))
    client = play.connect("a")
    leaf = play.clients[99] = PlayClient(play, 99)
    play.turn(accepted=[Accepted(99, ConnKind.LEAF, "127.0.0.1", 1)])
    leaf.send(b'CONNECT {"user":"a","pass":"a","name":"l","cluster":"l"}\r\n')
    leaf.send(b"LS+ one\r\nLS+ two\r\nLS+ three\r\nLS+ four\r\nLS+ two\r\n")
    assert leaf.lines.count(b"-ERR 'maximum subscriptions exceeded'") == 2
    for subject in ("one", "two", "three"):
        client.publish(subject)
    assert [line for line in leaf.lines if line.startswith(b"LMSG")] == [
        b"LMSG one 0",
        b"LMSG two 0",
    ]
    leaf.send(b"LS- one\r\nLS+ three\r\n")
    client.publish("three")
    assert b"LMSG three 0" in leaf.lines
