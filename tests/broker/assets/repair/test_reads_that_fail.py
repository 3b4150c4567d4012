"""A disk that cannot read for a moment: what it could not read is no damage once it can."""

import pytest

from jsctl.broker.assets.repair.repairs import LOOK_AGAIN_NS_MAX, PATIENCE_NS, Repairs
from jsctl.broker.errors import Damaged
from jsctl.broker.peers.items import RangeRequest
from tests.broker.assets.repair.test_repairs import lost, segments
from tests.broker.assets.test_damaged_replica import fill, keep, store_of
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient
from tests.support.stream_requests import stream

COUNT = 20
PULL = "$JS.API.CONSUMER.MSG.NEXT.S.C"


def leader_of(cluster: ClusterPlay) -> ServerPlay:
    return cluster.leader(cluster.group_of("S"))


def filled(replicas: int) -> ClusterPlay:
    """A stream whose log has let go of its messages, and a consumer."""
    play = ClusterPlay()
    first = play["n1"]
    first.request_all("$JS.API.STREAM.CREATE.S", 1, **stream(num_replicas=replicas))
    config = {"durable_name": "C", "ack_policy": "explicit"}
    first.request_all("$JS.API.CONSUMER.CREATE.S.C", 1, stream_name="S", config=config)
    fill(play, leader_of(play), 0, COUNT)
    keep(play)
    for one in play:
        group = one.engine.groups.by_name.get(play.group_of("S"))
        if group is not None:
            group.raft.compact(group.raft.applied)
    store_of(leader_of(play)).close()
    return play


def fail_reads(server: ServerPlay) -> None:
    disk = server.disk
    disk.unreadable += [(one, 0, len(disk.content(one))) for one in segments(server)]


def pull(server: ServerPlay) -> PlayClient:
    client = server.connect("a")
    client.subscribe("inbox")
    client.publish(PULL, b'{"batch": 100, "expires": 60000000000}', "inbox")
    return client


def delivered(client: PlayClient) -> list[bytes]:
    return [payload for _, reply, payload in client.messages if reply.startswith("$JS.ACK")]


def test_a_consumer_of_a_lone_replica_misses_nothing() -> None:
    cluster = filled(1)
    leader = leader_of(cluster)
    fail_reads(leader)
    client = pull(leader)
    cluster.run(1)
    assert lost(leader)
    leader.disk.unreadable.clear()
    cluster.run(3)
    assert len(delivered(client)) == COUNT
    assert not lost(leader)
    store_of(leader).check_totals()


def test_a_consumer_goes_on_where_the_disk_fails_for_good() -> None:
    cluster = filled(1)
    leader = leader_of(cluster)
    fail_reads(leader)
    client = pull(leader)
    cluster.run(PATIENCE_NS // 10**9 - 1)
    leader.connect("a").publish("s.1", b"new")
    cluster.run(0.5)
    assert not delivered(client)
    cluster.run(1)
    assert delivered(client) == [b"new"]
    leader.disk.unreadable.clear()
    cluster.run(LOOK_AGAIN_NS_MAX // 10**9)
    assert not lost(leader)
    store_of(leader).check_totals()


def test_nothing_is_fetched_from_peers_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = filled(3)
    asked: list[RangeRequest] = []
    monkeypatch.setattr(Repairs, "asked", lambda self, peer, request: asked.append(request))
    leader = leader_of(cluster)
    fail_reads(leader)
    with pytest.raises(Damaged):
        store_of(leader).load(7)
    assert lost(leader) == [7]
    leader.disk.unreadable.clear()
    cluster.run(2)
    assert not lost(leader) and not asked
    store_of(leader).check_totals()


def test_what_is_removed_meanwhile_stays_removed() -> None:
    cluster = filled(1)
    leader = leader_of(cluster)
    fail_reads(leader)
    with pytest.raises(Damaged):
        store_of(leader).load_many(list(range(1, COUNT + 1)))
    (answer,) = leader.request_all("$JS.API.STREAM.PURGE.S", 1, seq=5)
    assert answer["success"], answer
    leader.disk.unreadable.clear()
    cluster.run(3)
    assert not lost(leader) and store_of(leader).messages == COUNT - 4
    store_of(leader).check_totals()
