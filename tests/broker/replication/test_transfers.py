"""State that is sent to replicas that are too far behind, in a cluster that runs."""

import pytest

from jsctl.broker.peers.items import ChunkKind, StateAck, StateChunk
from jsctl.broker.replication import transfers
from jsctl.broker.replication.catchup import STALL_NS
from jsctl.broker.replication.checkpoints import GroupLimits
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import consumer, stream

SMALL = GroupLimits(checkpoint_bytes=2_000, checkpoint_entries=20, entries_kept=5)


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers with a stream S and a consumer C; logs are kept short."""
    play = ClusterPlay()
    for server in play:
        server.engine.groups.checkpoints.limits = SMALL
    play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    play["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    play.leader(play.group_of("S"))
    return play


def behind(cluster: ClusterPlay) -> ServerPlay:
    """A server that does not lead the stream or the meta group."""
    leaders = {cluster.leader(cluster.group_of("S")).name, cluster.leader().name}
    leaders.add(cluster.leader(cluster.group_of("S", "C")).name)
    return next(server for server in cluster if server.name not in leaders)


def fill(cluster: ClusterPlay, count: int = 60) -> None:
    """Messages of 100 bytes, published where the stream is led."""
    client = cluster.leader(cluster.group_of("S")).connect("a")
    for number in range(count):
        client.publish(f"s.{number % 7}", bytes(100), "ack")
        if number % 10 == 9:
            cluster.run(0.1)


def messages(server: ServerPlay) -> tuple[int, int]:
    """(messages, last sequence) of a replica."""
    state = server.engine.assets.streams[("A", "S")].store.state()
    return state.messages, state.last_seq


def lagging(cluster: ClusterPlay) -> ServerPlay:
    """A follower that comes back when the leader's log does not reach to it any more."""
    late = behind(cluster)
    late.halt()
    cluster.run(1)
    fill(cluster)
    cluster.run(2)
    leader = cluster.leader(cluster.group_of("S"))
    group = leader.engine.groups.by_name[cluster.group_of("S")]
    leader.engine.groups.checkpoints.compact(group)
    group.raft.compact(min(group.checkpointed, group.raft.applied))
    assert group.raft.base_index > 5
    late.begin()
    return late


def test_a_replica_too_far_behind_gets_the_state(cluster: ClusterPlay) -> None:
    late = lagging(cluster)
    cluster.wait(lambda: messages(late) == (60, 60), "the state arrives")
    leader = cluster.leader(cluster.group_of("S"))
    assert any("Sending state" in line for line in leader.logs)
    unit = late.engine.assets.streams[("A", "S")]
    assert unit.store.load(60) == leader.engine.assets.streams[("A", "S")].store.load(60)
    late.halt()
    late.begin()
    cluster.run(2)
    assert messages(late) == (60, 60), "it is still there after a restart"


def test_a_transfer_that_breaks_leaves_nothing_half_built(cluster: ClusterPlay) -> None:
    late = lagging(cluster)
    directory = f"streams/{cluster.group_of('S')}"
    before = late.disk.list(directory)
    group = late.engine.groups.by_name[cluster.group_of("S")]
    peer = cluster.leader(cluster.group_of("S")).peer
    feed = late.engine.transfers.received
    begin = StateChunk(group.key, 901, ChunkKind.FIRST, 0, 50, 1, b"", b"")
    feed(peer, begin)
    feed(peer, StateChunk(group.key, 901, ChunkKind.MORE, 0, 50, 1, b"", b"\xff" * 8))
    (answer,) = late.engine.outbox.parcel(peer).acks[-1:]
    assert answer.failed and answer.transfer == 901
    assert late.disk.list(directory) == before
    # The rest of it is no beginning of another one.
    feed(peer, StateChunk(group.key, 901, ChunkKind.LAST, 8, 50, 1, b"", b""))
    assert late.engine.outbox.parcel(peer).acks[-1] is answer
    cluster.wait(lambda: messages(late) == (60, 60), "the next transfer works")


def test_a_newer_transfer_replaces_one_that_did_not_end(cluster: ClusterPlay) -> None:
    late = behind(cluster)
    group = late.engine.groups.by_name[cluster.group_of("S")]
    for transfer in (1, 2):
        late.engine.transfers.received(
            "x", StateChunk(group.key, transfer, ChunkKind.FIRST, 0, 50, 1, b"", b"")
        )
    acks = late.engine.outbox.parcel("x").acks
    assert [ack.transfer for ack in acks] == [1, 2] and not any(ack.failed for ack in acks)


def test_chunks_for_unknown_groups_and_leaders_are_dropped(cluster: ClusterPlay) -> None:
    leader = cluster.leader(cluster.group_of("S"))
    group = leader.engine.groups.by_name[cluster.group_of("S")]
    for key in (group.key, b"no group"):
        leader.engine.transfers.received(
            "x", StateChunk(key, 1, ChunkKind.FIRST, 0, 50, 1, b"", b"")
        )
    assert leader.engine.outbox.parcel("x").acks == []


def test_a_sender_gives_up_what_does_not_move(cluster: ClusterPlay) -> None:
    leader = cluster.leader(cluster.group_of("S"))
    engine, now_ns = leader.engine, cluster.now_ns
    group = engine.groups.by_name[cluster.group_of("S")]
    engine.transfers.wanted(group, "x", now_ns)
    engine.transfers.wanted(group, "x", now_ns)
    assert {chunk.transfer for chunk in engine.outbox.parcel("x").chunks} == {1}
    engine.transfers.acked("x", StateAck(b"no group", 1, 5, False), now_ns)
    engine.transfers.acked("x", StateAck(group.key, 77, 5, False), now_ns)
    engine.transfers.acked("x", StateAck(group.key, 1, 5, False), now_ns)
    engine.transfers.tick(now_ns + STALL_NS)
    engine.transfers.tick(now_ns + STALL_NS + 1)
    assert "no progress" in engine.context.logs[-1].text
    engine.transfers.wanted(group, "x", now_ns)
    engine.transfers.acked("x", StateAck(group.key, 2, 5, False, "bad disk"), now_ns)
    assert "bad disk" in engine.context.logs[-1].text


def test_others_wait_until_a_sender_is_free(
    cluster: ClusterPlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "SENDERS_MAX", 1)
    leader = cluster.leader(cluster.group_of("S"))
    engine, now_ns = leader.engine, cluster.now_ns
    group = engine.groups.by_name[cluster.group_of("S")]
    engine.transfers.wanted(group, "x", now_ns)
    engine.transfers.wanted(group, "y", now_ns)
    assert not engine.outbox.parcel("y").chunks
    engine.transfers.acked("x", StateAck(group.key, 1, 5, True), now_ns)
    assert engine.outbox.parcel("y").chunks
