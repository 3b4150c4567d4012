"""Disks of a cluster that do not do what they should."""

import pytest

from jsctl.broker.assets.disk_watch import DISK_RESERVE_BYTES
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers with a stream S."""
    play = ClusterPlay()
    (answer,) = play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    assert "error" not in answer
    return play


def test_a_leader_whose_disk_stands_still_lets_another_one_lead(cluster: ClusterPlay) -> None:
    stalled = cluster.leader(cluster.group_of("S"))
    other = next(one for one in cluster if one is not stalled)
    client = other.connect("a")
    client.subscribe("ack")
    stalled.disk_held = True
    client.publish("s.x", b"1", "ack")
    cluster.run(1)
    assert not client.heard("ack")
    group = cluster.group_of("S")
    cluster.wait(lambda: cluster.maybe_leader(group) not in (None, stalled), "another leads", 5)
    client.publish("s.x", b"2", "ack")
    cluster.wait(lambda: bool(client.heard("ack")), "it acknowledges")
    cluster.run(30)
    assert any("does not answer" in line for line in stalled.logs)
    stalled.release_disk()
    replica = stalled.engine.assets.streams[("A", "S")]
    last = other.engine.assets.streams[("A", "S")].store.last_seq
    cluster.wait(lambda: replica.store.last_seq == last, "it has what it missed")
    cluster.run(2)
    assert any("answers again" in line for line in stalled.logs)
    assert all(one.exit is None for one in cluster)


def test_where_all_disks_stand_still_nothing_is_acknowledged_and_all_goes_on(
    cluster: ClusterPlay,
) -> None:
    leader = cluster.leader(cluster.group_of("S"))
    client = leader.connect("a")
    client.subscribe("ack")
    for one in cluster:
        one.disk_held = True
    client.publish("s.x", b"1", "ack")
    cluster.run(30)
    assert not client.heard("ack")
    for one in cluster:
        one.release_disk()
    cluster.wait(lambda: cluster.maybe_leader(cluster.group_of("S")) is not None, "it is led")
    client.publish("s.x", b"2", "ack")
    cluster.wait(lambda: bool(client.heard("ack")), "it acknowledges")
    cluster.run(2)
    stores = [one.engine.assets.streams[("A", "S")].store for one in cluster]
    assert len({(store.last_seq, store.digest()) for store in stores}) == 1


def test_a_state_for_which_there_was_no_room_is_written_when_there_is(
    cluster: ClusterPlay,
) -> None:
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    full = next(one for one in cluster if one is not leader)
    replica = full.engine.assets.streams[("A", "S")]
    room = full.disk.free_bytes()
    full.disk.capacity -= room
    leader.connect("a").publish("s.x", b"1")
    cluster.wait(lambda: replica.store.last_seq == 1, "it is applied")
    checkpoints = full.engine.groups.checkpoints
    checkpoints.soon(replica.group)
    cluster.run(0.5)
    assert replica.group.checkpointed < replica.group.raft.applied
    full.disk.capacity += room
    checkpoints.soon(replica.group)
    cluster.run(0.5)
    assert replica.group.checkpointed == replica.group.raft.applied


def test_no_state_is_written_behind_the_one_that_replaces_it(cluster: ClusterPlay) -> None:
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    behind = next(one for one in cluster if one is not leader)
    client = leader.connect("a")
    client.publish("s.x", b"1")
    cluster.run(0.5)
    cluster.isolate(behind.name)
    for number in range(5):
        client.publish("s.x", b"%d" % number)
    cluster.run(0.5)
    led = leader.engine.groups.by_name[group]
    leader.engine.groups.checkpoints.soon(led)
    cluster.run(0.5)
    led.raft.compact(led.raft.applied)
    behind.disk_held = True
    cluster.cut.clear()
    checkpoints = behind.engine.groups.checkpoints
    cluster.wait(lambda: checkpoints.running > 0, "a state is received", 30)
    checkpoints.soon(behind.engine.groups.by_name[group])
    cluster.run(0.2)
    behind.release_disk()
    cluster.run(1)
    behind.halt()
    behind.logs.clear()
    behind.begin()
    streams = behind.engine.assets.streams
    cluster.wait(lambda: ("A", "S") in streams, "it is there again")
    assert not [line for line in behind.logs if "damage" in line]
    assert streams[("A", "S")].store.last_seq == 6


def fill(one: ServerPlay) -> None:
    """Leave less room than a server keeps for its log."""
    one.disk.capacity -= one.disk.free_bytes() - DISK_RESERVE_BYTES // 2


def test_a_leader_whose_disk_is_full_lets_one_lead_that_has_room(cluster: ClusterPlay) -> None:
    group = cluster.group_of("S")
    full = cluster.leader(group)
    also_full, other = (one for one in cluster if one is not full)
    client = other.connect("a")
    client.subscribe("ack")
    fill(also_full)
    cluster.run(3)
    fill(full)
    cluster.wait(lambda: full.engine.context.disk_full, "it takes nothing any more")
    cluster.wait(lambda: cluster.maybe_leader(group) is other, "who has room leads", 5)
    client.publish("s.x", b"1", "ack")
    cluster.wait(lambda: bool(client.heard("ack")), "it acknowledges")
    assert client.heard("ack") == [{"stream": "S", "seq": 1}]


def test_who_may_not_use_the_room_that_there_is_counts_as_full(cluster: ClusterPlay) -> None:
    group = cluster.group_of("S")
    short = cluster.leader(group)
    client = next(one for one in cluster if one is not short).connect("a")
    client.subscribe("ack")
    short.logs.clear()
    short.disk.quota = short.disk.capacity - short.disk.free_bytes()
    client.publish("s.x", b"1", "ack")
    cluster.wait(lambda: short.engine.context.disk_full, "it takes nothing any more")
    (line,) = (one for one in short.logs if "Disk is full" in one)
    assert "cannot write: no space left on device" in line
    cluster.wait(lambda: cluster.maybe_leader(group) not in (None, short), "another one leads", 5)
    client.publish("s.x", b"2", "ack")
    cluster.wait(lambda: len(client.heard("ack")) == 2, "it acknowledges")
    short.disk.quota = short.disk.capacity
    cluster.wait(lambda: not short.engine.context.disk_full, "it has room", 10)
    replica = short.engine.assets.streams[("A", "S")]
    others = [one.engine.assets.streams[("A", "S")] for one in cluster if one is not short]
    cluster.wait(
        lambda: all(replica.store.last_seq == one.store.last_seq == 2 for one in others),
        "it has what it missed",
    )


def test_where_all_disks_are_full_the_leader_stays(cluster: ClusterPlay) -> None:
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    term = leader.engine.groups.by_name[group].led_term
    for one in cluster:
        fill(one)
    cluster.run(30)
    assert cluster.leader(group) is leader
    assert leader.engine.groups.by_name[group].led_term == term


def test_new_streams_go_to_servers_that_have_room(cluster: ClusterPlay) -> None:
    full, *others = cluster
    fill(full)
    cluster.run(3)
    for number in range(6):
        asked = stream(f"N{number}", 1)
        (answer,) = others[0].request_all(f"$JS.API.STREAM.CREATE.N{number}", 1, **asked)
        assert answer["cluster"]["leader"] != full.name
