"""What a leaf node says crosses no border: not into the lines of a route, not beyond what its user
may say."""

import json

import pytest

from jsctl.broker.jsapi.archives.subjects import DONE
from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.login_options.permissions import PermissionRules, SubjectPermission
from jsctl.broker.options import AccountJetStream, AccountOptions, UserOptions
from jsctl.broker.peers.outbox import frame_subject
from jsctl.broker.routing.limits import LINE_BYTES_MAX
from jsctl.broker.routing.shown import ANSWER
from jsctl.broker.turn import Accepted, ConnKind
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient, user

ACCOUNTS = (
    AccountOptions(
        name="A",
        users=(
            user("a"),
            UserOptions(
                name="few",
                password="few",
                permissions=PermissionRules(publish=SubjectPermission(("few.*", "$JS.API.INFO"))),
            ),
        ),
        jetstream=AccountJetStream(),
    ),
    AccountOptions(name="B", users=(user("b"),)),
    AccountOptions(name="$SYS", users=(user("sys"),)),
)


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers where leaf nodes may connect."""
    return ClusterPlay(accounts=ACCOUNTS, leafnodes=LeafNodeOptions(port=7422))


def leaf(server: ServerPlay, name: str, **more: object) -> PlayClient:
    """A leaf node that has logged in as a user."""
    conn = server.new_conn()
    found = server.clients[conn] = PlayClient(server, conn)
    server.turn(accepted=[Accepted(conn, ConnKind.LEAF, "127.0.0.1", 40000 + conn)])
    said = {"user": name, "pass": name, "name": "l", "cluster": "l", "headers": True, **more}
    found.send(b"CONNECT %s\r\n" % json.dumps(said).encode())
    return found


SAYS = "x\tA\ty\r\nRMSG\tB\tsecret\t4\r\nevil\r\nRS+"
"""A cluster's name that would end a line to a route, and say something in another account."""


@pytest.mark.parametrize("name", [SAYS, "x y", "x\ty", "x\n", "\r"])
def test_a_cluster_is_one_word(cluster: ClusterPlay, name: str) -> None:
    """Its name stands in the lines that other servers of this cluster are told."""
    victim = cluster["n2"].connect("b")
    victim.subscribe("secret")
    other = leaf(cluster["n1"], "a", cluster=name)
    other.send(b"LS+ any\r\n")
    assert victim.messages == []
    assert b"-ERR 'cluster name cannot contain spaces'" in other.lines
    assert len(cluster["n2"].engine.cluster.peers_up()) == 2


def routes_of(cluster: ClusterPlay) -> list[set[int]]:
    """The routes of each server."""
    return [set(server.routes) for server in cluster]


@pytest.mark.parametrize("line", [b"LS+ %s", b"LMSG %s 0\r\n", b"LMSG a %s 0\r\n"])
def test_the_longest_line_goes_on_over_routes(cluster: ClusterPlay, line: bytes) -> None:
    """There it has the account and the cluster before it, and is not too long."""
    client = cluster["n2"].connect("a")
    client.subscribe(">")
    before = routes_of(cluster)
    other = leaf(cluster["n1"], "a")
    around = len(line.strip()) - len(b"LS+ %s" if line.startswith(b"LS+") else b"LMSG %s")
    longest = b"s" * (LINE_BYTES_MAX - around)
    other.send(line % longest + b"\r\n")
    assert routes_of(cluster) == before
    assert len(client.messages) == line.startswith(b"LMSG")


def test_a_cluster_with_a_name_without_end_is_turned_away(cluster: ClusterPlay) -> None:
    """It stands before each of its messages."""
    before = routes_of(cluster)
    other = leaf(cluster["n1"], "a", cluster="l" * 100_000)
    other.send(b"LS+ any\r\n")
    assert b"-ERR 'cluster name is too long'" in other.lines
    assert routes_of(cluster) == before


DELIVERED = "$JS.ACK.S.C.1.1.1.1.1@"
"""What stands before the subject of a message that a consumer delivers elsewhere."""


@pytest.mark.parametrize("where", ["l", ""])
@pytest.mark.parametrize("beside", [True, False])
def test_what_a_user_may_not_say_is_not_said_by_a_reply(
    cluster: ClusterPlay, beside: bool, where: str
) -> None:
    """Receivers of a delivery see another subject than the one that found them: no stream keeps
    that, and no service answers it, for who may not say so. Who only reads sees it."""
    client = cluster["n1"].connect("a")
    client.subscribe("few.*")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["few.>"])
    leader = cluster.leader(cluster.group_of("S"))
    other = leaf(next(one for one in cluster if (one is leader) is beside), "few", cluster=where)
    other.send(f"LMSG few.a {DELIVERED}other 1\r\nx\r\n".encode())
    other.send(f"LMSG $JS.API.INFO {DELIVERED}$JS.API.STREAM.DELETE.S 0\r\n\r\n".encode())
    assert client.messages[-1][0] == "other"
    info = client.ask("$JS.API.STREAM.INFO.S", subjects_filter=">")
    assert info["state"]["subjects"] == {"few.a": 1}


@pytest.mark.parametrize("reply", ["", "back"])
@pytest.mark.parametrize("name", ["sys", "a"])
def test_leaf_nodes_say_nothing_in_place_of_brokers(
    cluster: ClusterPlay, name: str, reply: str
) -> None:
    """Frames go by the system account, and over routes and gateways alone."""
    subject = frame_subject(cluster["n2"].peer).decode()
    client = cluster["n2"].connect(name)
    client.subscribe(">")
    other = leaf(cluster["n1"], name)
    other.send(f"LMSG {subject} {reply} 1\r\nx\r\n".encode())
    cluster.run(0.1)
    assert not [line for server in cluster for line in server.logs if "Dropped a frame" in line]


def test_leaf_nodes_answer_no_request_in_place_of_servers(cluster: ClusterPlay) -> None:
    """A server that decides tells another one by this reply, and is believed."""
    client = cluster["n2"].connect("a")
    client.subscribe(">")
    other = leaf(cluster["n1"], "a")
    other.send(b"LMSG %b\xff %b 1\r\nx\r\n" % (DONE, ANSWER))
    assert client.messages[-1][1:] == ("", b"x")
    assert [server.exit for server in cluster] == [None] * 3


def test_isolated_leaf_nodes_do_not_hear_of_each_other(cluster: ClusterPlay) -> None:
    """Wherever in the cluster they hang, as one of them asks for it."""
    alone = leaf(cluster["n1"], "a", isolate=True)
    other = leaf(cluster["n2"], "a", cluster="o")
    other.send(b"LS+ there\r\n")
    cluster["n2"].connect("a").subscribe("here")
    assert b"LS+ here" in alone.lines
    assert b"LS+ there" not in alone.lines
    alone.send(b"LS+ alone\r\n")
    assert b"LS+ alone" in other.lines


@pytest.mark.parametrize(("name", "told"), [("a", True), ("few", False)])
def test_a_trace_is_told_where_its_leaf_node_may_publish(
    cluster: ClusterPlay, name: str, told: bool
) -> None:
    """The message itself goes on in any case."""
    server = cluster["n1"]
    client = server.connect("a")
    client.subscribe("few.*")
    client.subscribe("traces")
    headers = b"NATS/1.0\r\nNats-Trace-Dest: traces\r\n\r\n"
    size = len(headers)
    leaf(server, name).send(b"HMSG few.x %d %d\r\n%s\r\n" % (size, size, headers))
    cluster.run(1)
    heard = [subject for subject, _, _ in client.messages]
    assert heard == ["few.x", *["traces"] * told]
