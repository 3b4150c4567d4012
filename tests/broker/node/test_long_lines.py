"""Lines that are longer than what a subject or a reply has room for in records and frames: whoever
sends one goes, whatever the configuration says of lines."""

import pytest

from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.options import ClientLimits
from jsctl.broker.routing.limits import LINE_BYTES_MAX
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import PlayClient

LONG = "x" * 70_000


@pytest.fixture(scope="module")
def cluster() -> ClusterPlay:
    """Three servers whose clients may send lines of any length, with a stream."""
    client = ClientLimits(control_line_bytes_max=1 << 20)
    made = ClusterPlay(client=client, leafnodes=LeafNodeOptions(port=7422))
    asker = made.leader().connect("a")
    asker.request("$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["s.>"],"num_replicas":3}')
    made.leader(made.group_of("S"))
    return made


@pytest.mark.parametrize(
    "line", [f"s.{LONG}", f"s.a {LONG}", f"$JS.API.STREAM.SNAPSHOT.S {LONG}", f"none {LONG}"]
)
def test_nothing_that_is_too_long_is_taken(cluster: ClusterPlay, line: str) -> None:
    for server in cluster:
        client = server.connect("a")
        client.send(f"PUB {line} 1\r\n1\r\n".encode())
        assert client.lines[-1] == b"-ERR 'maximum control line exceeded'"
        conn = server.new_conn()
        leaf = server.clients[conn] = PlayClient(server, conn)
        server.turn(accepted=[Accepted(conn, ConnKind.LEAF, "127.0.0.1", 1)])
        leaf.send(b'CONNECT {"user":"a","pass":"a","name":"l","cluster":"l"}\r\n')
        leaf.send(f"LMSG {line} 1\r\n1\r\n".encode())
        assert leaf.lines[-1] == b"-ERR 'maximum control line exceeded'"
    cluster.run(1)
    assert [server.exit for server in cluster] == [None] * 3


def test_the_longest_subject_is_stored_everywhere(cluster: ClusterPlay) -> None:
    client = cluster["n1"].connect("a")
    longest = "s." + "y" * (LINE_BYTES_MAX - len("s. r 1"))
    client.subscribe("r")
    client.publish(longest, b"x", "r")
    cluster.run(1)
    assert b'"seq"' in client.messages[-1][2]
