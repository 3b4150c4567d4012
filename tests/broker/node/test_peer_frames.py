"""Frames between nodes, as messages of the system account."""

import pytest

from jsctl.broker.peers.outbox import frame_subject
from tests.support.cluster_play import ClusterPlay


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


def test_a_frame_that_cannot_be_read_is_dropped_and_told(cluster: ClusterPlay) -> None:
    server = cluster["n1"]
    system = server.connect("sys")
    system.publish(frame_subject(server.peer).decode(), b"no frame")
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
