"""Frames between nodes, as messages of the system account."""

import pytest

from jsctl.broker.checksums import Checksums
from jsctl.broker.login_options.permissions import PermissionRules, ResponsePermission
from jsctl.broker.options import AccountJetStream, AccountOptions, AuthOptions, UserOptions
from jsctl.broker.peers.frames import encode_frames
from jsctl.broker.peers.items import PeerFrame, PeerHeartbeat
from jsctl.broker.peers.outbox import frame_subject
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import user
from tests.support.stream_requests import stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers."""
    return ClusterPlay()


def test_servers_know_each_other(cluster: ClusterPlay) -> None:
    for server in cluster:
        others = {one.peer for one in cluster if one is not server}
        assert set(server.engine.cluster.peers_up()) == others
        assert {server.engine.cluster.name_of(peer) for peer in others} == {
            one.name for one in cluster if one is not server
        }


def test_clients_of_no_account_hear_what_brokers_say() -> None:
    """Messages of all streams are in it."""
    accounts = (
        AccountOptions(name="A", users=(user("a"),), jetstream=AccountJetStream()),
        AccountOptions(name="B", users=(user("b"),)),
    )
    auth = AuthOptions(given=True, users=(user("global"),))
    cluster = ClusterPlay(no_system_account=True, accounts=accounts, auth=auth)
    others = [cluster["n1"].connect(name) for name in ("global", "b")]
    for client in others:
        client.subscribe(">")
    assert cluster["n2"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    client = cluster["n2"].connect("a")
    client.subscribe("ack")
    client.publish("s.x", b"secret", "ack")
    cluster.run(1)
    assert client.heard("ack"), "it is stored on all servers"
    assert [client.messages for client in others] == [[], []]


def test_a_frame_that_cannot_be_read_is_dropped_and_told(cluster: ClusterPlay) -> None:
    server = cluster["n1"]
    other = cluster["n2"].node.router
    system = other.accounts.system
    assert system is not None
    other.publish(system, frame_subject(server.peer), b"no frame")
    cluster.run(0.1)
    assert any("Dropped a frame" in line for line in server.logs)
    cluster.run(2)
    assert len(server.engine.cluster.peers_up()) == 2


def test_who_closes_its_connections_is_down_at_once(cluster: ClusterPlay) -> None:
    gone = cluster["n3"]
    gone.halt()
    cluster.run(0.05)
    assert not cluster["n1"].engine.cluster.online(gone.peer)
    gone.begin()
    cluster.wait(lambda: cluster["n1"].engine.cluster.online(gone.peer), "it is back")


def test_who_is_silent_is_down_after_a_while(cluster: ClusterPlay) -> None:
    cluster.isolate("n3")
    cluster.run(0.5)
    assert cluster["n1"].engine.cluster.online(cluster["n3"].peer)
    cluster.run(1)
    assert not cluster["n1"].engine.cluster.online(cluster["n3"].peer)
    assert cluster["n1"].engine.cluster.online(cluster["n2"].peer)


def test_what_a_server_leads_is_told_again_when_it_may_be_lost(cluster: ClusterPlay) -> None:
    """It was told once; whoever missed it held all requests for that stream back, for ever."""
    meta = cluster.leader()
    one, other = (server for server in cluster if server is not meta)
    client = meta.connect("a")
    cluster.cut.add(frozenset((one.name, other.name)))
    for name in ("S", "T", "U"):
        assert "error" not in client.ask(
            f"$JS.API.STREAM.CREATE.{name}", name=name, subjects=[name]
        )
    groups = [cluster.group_of(name) for name in ("S", "T", "U")]
    assert {cluster.leader(group).name for group in groups} == set(cluster.servers)
    cluster.cut.clear()
    assert not all(other.engine.cluster.leader_of(group) for group in groups)
    one.break_link(other)
    cluster.run(0.2)
    assert other.engine.cluster.online(one.peer)
    for server in cluster:
        assert all(server.engine.cluster.leader_of(group) for group in groups)


def forged(boot: int) -> bytes:
    """A frame of a broker that is not there."""
    frame = PeerFrame("forger", heartbeat=PeerHeartbeat(boot, incarnation=1, sequence=1))
    (pieces,) = encode_frames(frame, Checksums())
    return b"".join(pieces)


@pytest.mark.parametrize("responses", [False, True])
@pytest.mark.parametrize("name", ["n1", "n2"])
def test_clients_say_nothing_in_place_of_brokers(name: str, responses: bool) -> None:
    """Not even those of the system account, as an answer or otherwise."""
    rules = PermissionRules(responses=ResponsePermission()) if responses else None
    accounts = (AccountOptions("$SYS", (UserOptions("sys", "sys", permissions=rules), user("b"))),)
    cluster = ClusterPlay(accounts=accounts)
    victim, client = cluster[name], cluster["n1"].connect("sys")
    subject = frame_subject(victim.peer).decode()
    client.subscribe("ask")
    cluster["n1"].connect("b").publish("ask", reply=subject)
    assert [reply for _, reply, _ in client.messages] == [subject]
    client.publish(subject, forged(7))
    cluster.run(0.1)
    assert victim.engine.cluster.liveness.life("forger") is None
    assert (
        client.lines[-1] == b"-ERR 'Permissions Violation for Publish to \"%b\"'" % subject.encode()
    )
