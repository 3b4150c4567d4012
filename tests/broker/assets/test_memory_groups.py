"""Streams in memory while some of their servers are gone and others have forgotten everything."""

import json

import pytest

from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import consumer, stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers with a memory stream S of three replicas, a consumer C and 20 messages."""
    play = ClusterPlay()
    (answer,) = play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(storage="memory"))
    assert "error" not in answer
    body = consumer(mem_storage=True)
    (answer,) = play["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **body)
    assert "error" not in answer
    fill(play, 20)
    return play


def fill(cluster: ClusterPlay, count: int) -> None:
    """Acknowledged messages."""
    client = cluster.leader(cluster.group_of("S")).connect("a")
    client.subscribe("ack")
    for _ in range(count):
        client.publish("s.x", b"x", "ack")
    cluster.wait(lambda: len(client.heard("ack")) == count, "all are acknowledged")
    cluster.run(0.3)


def last(server: ServerPlay) -> int:
    """The last sequence of a replica."""
    return server.engine.assets.streams[("A", "S")].store.last_seq


def restart(server: ServerPlay) -> None:
    """The process ends, and another one begins."""
    server.halt()
    server.cluster.run(0.5)
    server.begin()


@pytest.mark.parametrize(("dead", "restarted"), [("follower", "leader"), ("leader", "follower")])
def test_one_is_dead_and_another_restarts(cluster: ClusterPlay, dead: str, restarted: str) -> None:
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    gone = leader if dead == "leader" else next(one for one in cluster if one is not leader)
    gone.halt()
    cluster.run(2)
    leader = cluster.leader(group)
    follower = next(one for one in cluster if one.running and one is not leader)
    restart(leader if restarted == "leader" else follower)
    both = (group, cluster.group_of("S", "C"))
    cluster.wait(lambda: all(map(cluster.maybe_leader, both)), "both are led")
    fill(cluster, 5)
    assert {last(one) for one in cluster if one.running} == {25}
    gone.begin()
    cluster.wait(lambda: ("A", "S") in gone.engine.assets.streams and last(gone) == 25, "all three")


def test_nobody_goes_on_without_one_that_is_only_silent(cluster: ClusterPlay) -> None:
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    away, other = (one for one in cluster if one is not leader)
    cluster.isolate(away.name)
    cluster.run(2)
    restart(other)
    cluster.run(10)
    assert cluster.maybe_leader(group) is None, "who is cut off may have what the others lack"
    cluster.cut.clear()
    cluster.leader(group)
    fill(cluster, 5)
    assert {last(one) for one in cluster} == {25}


def test_one_that_an_operator_removed_is_not_waited_for(cluster: ClusterPlay) -> None:
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    away, other = (one for one in cluster if one is not leader)
    cluster.isolate(away.name)
    cluster.run(2)
    restart(other)
    cluster.run(3)
    client = cluster.leader().connect("sys")
    client.subscribe("answer")
    client.publish("$JS.API.SERVER.REMOVE", b'{"peer":"%s"}' % away.name.encode(), "answer")
    cluster.wait(lambda: cluster.maybe_leader(group) is not None, "it is led")
    fill(cluster, 5)


def cut_off(server: ServerPlay) -> None:
    """All connections of a server are reset, and no others come to be."""
    for conn, (other, theirs) in list(server.routes.items()):
        other.routes.pop(theirs, None)
        other.inbox.chunks = [one for one in other.inbox.chunks if one[0] != theirs]
        other.inbox.closed.append((theirs, "reset"))
        server.inbox.closed.append((conn, "reset"))
    server.routes.clear()
    server.cluster.isolate(server.name)


def test_one_that_was_wrongly_taken_for_dead_gives_up_what_only_it_has(
    cluster: ClusterPlay,
) -> None:
    group = cluster.group_of("S")
    kept = cluster.leader(group)
    forgetful, behind = (one for one in cluster if one is not kept)
    behind.pause()
    fill(cluster, 10)
    cut_off(kept)
    behind.go_on()
    restart(forgetful)
    cluster.wait(lambda: cluster.maybe_leader(group) in (behind, forgetful), "the others go on")
    client = behind.connect("a")
    for _ in range(30):
        client.publish("s.y", b"y", "ack")
    cluster.run(1)
    assert last(behind) == last(forgetful) == 50
    assert last(kept) == 30
    cluster.cut.clear()
    cluster.wait(
        lambda: ("A", "S") in kept.engine.assets.streams and last(kept) == 50, "it has the same"
    )
    cluster.run(3)
    stores = [one.engine.assets.streams[("A", "S")].store for one in cluster]
    assert len({store.digest() for store in stores}) == 1
    assert any("that is given up" in line for line in kept.logs)
    assert all(one.exit is None for one in cluster)
    fill(cluster, 5)
    assert {last(one) for one in cluster} == {55}


@pytest.mark.parametrize("after_s", [0.1, 0.2])
def test_the_only_server_restarts_while_replicas_are_added(after_s: float) -> None:
    """Whoever has the messages by then leads, if anybody has, although it does not vote yet."""
    cluster = ClusterPlay()
    body = stream(storage="memory", replicas=1)
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **body)
    assert "error" not in answer
    fill(cluster, 20)
    host = cluster.leader(cluster.group_of("S"))
    client = next(one for one in cluster if one is not host).connect("a")
    body = stream(storage="memory", replicas=3)
    client.publish("$JS.API.STREAM.UPDATE.S", json.dumps(body).encode(), "answer")
    cluster.run(after_s)
    with_all = [
        one for one in cluster if one is not host and ("A", "S") in one.engine.assets.streams
    ]
    assert with_all and any(last(one) == 20 for one in with_all)
    restart(host)
    cluster.leader(cluster.group_of("S"))
    fill(cluster, 5)
    assert {last(one) for one in cluster} == {25}
    raft = host.engine.groups.by_name[cluster.group_of("S")].raft
    assert set(raft.members.voters) == {one.peer for one in cluster}


def test_all_restart_in_the_same_moment(cluster: ClusterPlay) -> None:
    """Two that ask for votes at the same time do not do so again with what refused them."""
    groups = (cluster.group_of("S"), cluster.group_of("S", "C"))
    for _ in range(3):
        for one in cluster:
            one.halt()
        for one in cluster:
            one.begin()
        cluster.wait(lambda: all(map(cluster.maybe_leader, groups)), "both are led")
        cluster.run(1)
    for name in groups:
        assert max(one.engine.groups.by_name[name].raft.term for one in cluster) < 30
