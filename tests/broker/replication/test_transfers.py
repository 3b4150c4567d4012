"""State that is sent to replicas that are too far behind, in a cluster that runs."""

import pytest

from jsctl.broker.peers.items import ChunkKind, StateAck, StateChunk
from jsctl.broker.raft.types import StandingKind
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


def test_what_is_published_while_a_state_is_on_its_way_follows_it(cluster: ClusterPlay) -> None:
    """Else it would take another one, and so on."""
    late = lagging(cluster)
    late.disk_held = True
    cluster.wait(lambda: late.engine.groups.checkpoints.running > 0, "the state is there")
    leader = cluster.leader(cluster.group_of("S"))
    group = leader.engine.groups.by_name[cluster.group_of("S")]
    fill(cluster)
    assert group.checkpointed > group.raft.base_index + 3 * SMALL.entries_kept
    late.release_disk()
    cluster.wait(lambda: messages(late) == (120, 120), "the rest comes from the log")
    assert len([line for line in leader.logs if "Sending state of" in line]) == 1
    cluster.run(2)
    assert group.raft.applied - group.raft.base_index <= SMALL.checkpoint_entries, "forgotten again"


def test_no_checkpoint_overtakes_a_state_that_arrives(cluster: ClusterPlay) -> None:
    """One may be asked for at any time, as when the log is to be freed, or the server stops."""
    fill(cluster, 3)
    late = lagging(cluster)
    late.disk_held = True
    checkpoints = late.engine.groups.checkpoints
    cluster.wait(lambda: checkpoints.running > 0, "the state is on its way to the disk")
    group = late.engine.groups.by_name[cluster.group_of("S")]
    checkpoints.soon(group)
    cluster.run(0.1)
    late.release_disk()
    assert messages(late) == (63, 63)
    assert group.checkpointed == group.raft.applied, "the checkpoint follows"
    late.halt()
    late.begin()
    assert messages(late) == (63, 63), "what was acknowledged is there"
    raft = late.engine.groups.by_name[group.name].raft
    assert raft.standing.kind is StandingKind.WHOLE


def test_who_is_damaged_lets_another_one_send_the_state(cluster: ClusterPlay) -> None:
    damaged = cluster.leader(cluster.group_of("S"))
    late = lagging(cluster)
    (path,) = [one for one in damaged.disk.paths() if one.endswith(".seg")]
    damaged.disk.flip_bit(path, 8 * (len(damaged.disk.content(path)) // 2))
    cluster.wait(lambda: messages(late) == (60, 60), "the state arrives")
    assert cluster.leader(cluster.group_of("S")) is not damaged
    assert any("it is damaged here, and another server leads" in line for line in damaged.logs)
    store = damaged.engine.assets.streams[("A", "S")].store
    assert store.state().lost and store.retained_messages == 60


def zero(server: ServerPlay, start: float, size: int) -> None:
    """Zero some of the one segment of S on a server's disk."""
    (path,) = [one for one in server.disk.paths() if one.endswith(".seg")]
    image = bytearray(server.disk.content(path))
    at = int(len(image) * start)
    image[at : at + size] = bytes(size)
    server.disk.overwrite(path, bytes(image))


def lost(server: ServerPlay) -> set[int]:
    """What a replica of S knows to be damaged."""
    ranges = server.engine.assets.streams[("A", "S")].store.state().lost
    return {seq for first, last in ranges for seq in range(first, last + 1)}


def test_with_damage_on_all_that_have_it_the_rest_is_sent_and_the_damage_named(
    cluster: ClusterPlay,
) -> None:
    late = lagging(cluster)
    others = [server for server in cluster if server is not late]
    for server in others:
        zero(server, 0.4, 300)
    terms = cluster.leader(cluster.group_of("S")).engine.groups.by_name[cluster.group_of("S")].raft
    before = terms.term
    cluster.wait(
        lambda: late.engine.assets.streams[("A", "S")].store.retained_messages == 60,
        "the state arrives",
    )
    assert cluster.leader(cluster.group_of("S")) in others
    assert any(lost(late) == lost(server) != set() for server in others)
    cluster.run(15)
    assert any("damaged on this server" in line for line in late.logs)
    assert all(server.exit is None for server in cluster)
    assert terms.term <= before + 2, "those that are damaged do not pass leadership around"
    late.halt()
    late.begin()
    cluster.run(2)
    assert lost(late), "it is known after a restart"
    fill(cluster, 10)
    cluster.run(1)
    assert {messages(server)[1] for server in cluster} == {70}


def test_what_is_damaged_at_the_sender_comes_from_others(cluster: ClusterPlay) -> None:
    late = lagging(cluster)
    others = [server for server in cluster if server is not late]
    for number, server in enumerate(others):
        zero(server, 0.3 + 0.3 * number, 300)
    cluster.wait(lambda: messages(late) == (60, 60), "everything is there, from one or the other")
    cluster.wait(lambda: not any(map(lost, cluster)), "each has what it lacked from the other", 60)
    stores = [server.engine.assets.streams[("A", "S")].store for server in cluster]
    assert len({store.digest() for store in stores}) == 1
    assert all(store.load(seq) is not None for store in stores for seq in range(1, 61))


def test_a_damaged_stream_gets_more_replicas() -> None:
    cluster = ClusterPlay()
    for server in cluster:
        server.engine.groups.checkpoints.limits = SMALL
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(num_replicas=1))
    owner = cluster.leader(cluster.group_of("S"))
    fill(cluster)
    cluster.run(2)
    groups = owner.engine.groups
    groups.checkpoints.soon(groups.by_name[cluster.group_of("S")])
    cluster.run(1)
    owner.halt()
    for start in (0.2, 0.5, 0.8):
        zero(owner, start, 300)
    owner.begin()
    cluster.run(3)
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.UPDATE.S", 5, **stream(num_replicas=3))
    assert "error" not in answer
    names = cluster.group_of("S")
    cluster.wait(
        lambda: all(
            names in one.engine.groups.by_name
            and set(one.engine.groups.by_name[names].raft.members.voters)
            == {other.peer for other in cluster}
            for one in cluster
        ),
        "three replicas",
    )
    assert all(server.exit is None for server in cluster)
    assert len(lost(owner)) > 3
    assert all(lost(server) == lost(owner) for server in cluster)
    stores = [server.engine.assets.streams[("A", "S")].store for server in cluster]
    whole = [seq for seq in range(1, 61) if seq not in lost(owner)]
    assert all(stores[0].load(seq) == one.load(seq) for one in stores for seq in whole)


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


def test_what_came_of_a_state_goes_when_the_rest_does_not_come(cluster: ClusterPlay) -> None:
    """The next leader may have the log, so that no other state follows."""
    late = behind(cluster)
    leader = cluster.leader(cluster.group_of("S"))
    name = cluster.group_of("S")
    group = late.engine.groups.by_name[name]
    before = late.disk.list(f"streams/{name}")
    (payload, *_) = leader.engine.groups.by_name[name].unit.export()
    first = StateChunk(group.key, 1, ChunkKind.FIRST, 0, 50, 1, b"", payload)
    late.engine.transfers.received("x", first)
    assert late.disk.list(f"streams/{name}") != before
    cluster.run(transfers.GIVEN_UP_NS / 1e9 + 2)
    assert late.disk.list(f"streams/{name}") == before


def test_states_of_two_leaders_are_not_mixed(cluster: ClusterPlay) -> None:
    """Each process numbers what it sends from 1, also one that was restarted meanwhile."""
    late = behind(cluster)
    group = late.engine.groups.by_name[cluster.group_of("S")]
    seen = []
    for peer, kind, offset, payload in (
        ("x", ChunkKind.FIRST, 0, b"\x20\0\0\0aa"),
        ("y", ChunkKind.FIRST, 0, b"\x20\0\0\0"),
        ("x", ChunkKind.MORE, 6, b"aa"),
        ("y", ChunkKind.MORE, 4, b"bb"),
        ("y", ChunkKind.FIRST, 0, b"\x30"),
    ):
        late.engine.outbox.take()
        chunk = StateChunk(group.key, 1, kind, offset, 50, 1, b"", payload)
        late.engine.transfers.received(peer, chunk)
        seen.append([ack.offset for ack in late.engine.outbox.parcel(peer).acks])
    assert seen == [[6], [4], [], [6], [1]]


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


@pytest.mark.parametrize("ending", ["STREAM.DELETE.S", "STREAM.LEADER.STEPDOWN.S"])
def test_what_waits_for_a_sender_is_forgotten_with_the_leadership(
    cluster: ClusterPlay, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """A stream that was deleted has nothing to send, and another leader sends what it has."""
    monkeypatch.setattr(transfers, "SENDERS_MAX", 1)
    leader = cluster.leader(cluster.group_of("S"))
    group = leader.engine.groups.by_name[cluster.group_of("S")]
    for peer in "xy":
        leader.engine.transfers.wanted(group, peer, cluster.now_ns)
    leader.request_all(f"$JS.API.{ending}", 2)
    told = [line for line in leader.logs if "ending state" in line]
    assert [line.endswith(" to peer x") for line in told[:1]] == [True]
    assert not any("to peer y" in line for line in told)
