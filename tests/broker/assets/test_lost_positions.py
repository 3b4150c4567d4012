"""The position up to which a store is durable is gone, or all of the store is: what the stream's
state says of it is not forgotten, also where the first segments went long ago."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import node_options
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import stream

COUNT, KEPT = 200, 120


def without_position(disk: SimDisk) -> None:
    (path,) = [one for one in disk.paths() if one.endswith("/durable")]
    disk.remove(path)


def without_store(disk: SimDisk) -> None:
    for path in [one for one in disk.paths() if "/store." in one]:
        disk.remove(path)


def without_end(disk: SimDisk) -> None:
    """No position, and a part of the segments is gone with it."""
    without_position(disk)
    for path in sorted(one for one in disk.paths() if one.endswith((".seg", ".cat")))[-4:]:
        disk.remove(path)


def fill(cluster: ClusterPlay, server: ServerPlay, first: int, count: int) -> None:
    client = server.connect("a")
    client.subscribe("ack")
    for number in range(first, first + count):
        client.send(b"PUB s.%d ack 60\r\n%060d\r\n" % (number % 10, number))
        if number % 7 == 0:
            cluster.run(0.01)
    cluster.run(0.5)
    assert sum("seq" in ack for ack in client.heard("ack")) == count


def filled(replicas: int) -> ClusterPlay:
    """A stream with a limit whose first segment has gone."""
    raft = replace(node_options().raft, store_segment_bytes=2000)
    cluster = ClusterPlay(raft=raft)
    (answer,) = cluster["n1"].request_all(
        "$JS.API.STREAM.CREATE.S", 1, **stream(num_replicas=replicas, max_msgs=KEPT)
    )
    assert "error" not in answer
    leader = cluster.leader(cluster.group_of("S"))
    fill(cluster, leader, 0, COUNT)
    group = cluster.group_of("S")
    for groups in [one.engine.groups for one in cluster if group in one.engine.groups.by_name]:
        groups.checkpoints.soon(groups.by_name[group])
    cluster.run(1)
    return cluster


def store_of(server: ServerPlay) -> tuple[int, int, int]:
    store = server.engine.assets.streams[("A", "S")].store
    return store.first_seq, store.last_seq, store.retained_messages


def halted(server: ServerPlay, damage: Callable[[SimDisk], None]) -> None:
    """The server is down, and something was done to its disk."""
    server.halt()
    disk = server.disk
    assert not any(path.endswith("0000000001.seg") for path in disk.paths())
    damage(disk)


@pytest.mark.parametrize("damage", [without_position, without_store, without_end])
def test_the_only_replica_tells_what_is_lost(damage: Callable[[SimDisk], None]) -> None:
    cluster = filled(1)
    server = cluster.leader(cluster.group_of("S"))
    before = store_of(server)
    halted(server, damage)
    server.begin()
    cluster.run(3)
    assert store_of(server) == before
    store = server.engine.assets.streams[("A", "S")].store
    lost = store.state().lost
    assert bool(lost) is (damage is not without_position)
    assert any("damage found in its store" in line for line in server.logs)
    fill(cluster, server, COUNT, 20)
    assert store_of(server)[:2] == (before[0] + 20, COUNT + 20), "no sequence is used again"


@pytest.mark.slow
@pytest.mark.parametrize("damage", [without_position, without_store, without_end])
def test_one_of_three_replicas_has_all_again(damage: Callable[[SimDisk], None]) -> None:
    cluster = filled(3)
    leader = cluster.leader(cluster.group_of("S"))
    victim = next(one for one in cluster if one is not leader)
    halted(victim, damage)
    fill(cluster, leader, COUNT, 20)
    victim.begin()
    cluster.wait(
        lambda: (
            ("A", "S") in victim.engine.assets.streams
            and store_of(victim) == (COUNT + 21 - KEPT, COUNT + 20, KEPT)
            and not victim.engine.assets.streams[("A", "S")].store.state().lost
        ),
        "all is there again",
    )
    assert any("damage found in its store" in line for line in victim.logs)
