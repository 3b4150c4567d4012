"""Damaged messages of a replica come back from its peers, whatever happens meanwhile."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from jsctl.broker.assets.repair import repairs
from jsctl.broker.assets.repair.range_server import RangeServer
from jsctl.broker.assets.repair.scrub_targets import StreamTarget
from jsctl.broker.errors import DiskError
from jsctl.broker.peers.items import RangeAnswer, RangeRequest
from jsctl.broker.store import record
from jsctl.broker.store.checkpoint import CheckpointJob
from jsctl.broker.store.segments.segment import REMOVE, Envelope, walk
from tests.broker.assets.test_damaged_replica import (
    fill,
    flip_bits,
    keep,
    remove,
    store_of,
    zero_page,
)
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import node_options
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import stream

pytestmark = pytest.mark.slow

COUNT = 200
DAMAGES = {"zeros": zero_page, "bits": flip_bits, "gone": remove}


def segments(server: ServerPlay) -> list[str]:
    return [one for one in server.disk.paths() if one.endswith(".seg")]


def filled(**config: Any) -> ClusterPlay:
    """A stream on three servers, all of it durable in segments alone."""
    cluster = ClusterPlay()
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(**config))
    assert "error" not in answer
    fill(cluster, cluster.leader(cluster.group_of("S")), 0, COUNT)
    keep(cluster)
    return cluster


def follower(cluster: ClusterPlay) -> ServerPlay:
    leader = cluster.leader(cluster.group_of("S"))
    return next(one for one in cluster if one is not leader)


def lost(server: ServerPlay) -> list[int]:
    return list(store_of(server).lost)


def told(server: ServerPlay) -> bool:
    """Whether the operator was told of damage."""
    return any("damaged on this server" in line for line in server.logs)


def contents(server: ServerPlay) -> list[object]:
    store = store_of(server)
    return [store.load(seq) for seq in range(1, store.last_seq + 1)]


def whole(cluster: ClusterPlay) -> None:
    """All replicas have all messages, the very same ones."""
    first, *others = [contents(one) for one in cluster if one.running]
    assert all(one == first for one in others)
    assert not any(lost(one) for one in cluster if one.running)
    for one in cluster:
        if one.running:
            store_of(one).check_totals()


def spoil_at_rest(server: ServerPlay, damage: Callable[[SimDisk, str], None]) -> None:
    """Damage the first segment while the server is down."""
    server.halt()
    for path in segments(server)[:1]:
        damage(server.disk, path)
    server.begin()


@pytest.mark.parametrize("of_leader", [False, True], ids=["follower", "leader"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_what_is_damaged_at_rest_comes_back(
    damage: Callable[[SimDisk, str], None], of_leader: bool
) -> None:
    cluster = filled()
    victim = cluster.leader(cluster.group_of("S")) if of_leader else follower(cluster)
    spoil_at_rest(victim, damage)
    cluster.run(3)
    assert told(victim), "the damage is in messages that are there"
    whole(cluster)
    assert any("whole again" in line for line in victim.logs)
    victim.halt()
    victim.logs.clear()
    victim.begin()
    cluster.run(2)
    assert not told(victim), "what was put back is durable"
    whole(cluster)


def test_what_is_damaged_under_a_running_server_comes_back() -> None:
    cluster = filled()
    victim = follower(cluster)
    zero_page(victim.disk, segments(victim)[0])
    # Somebody reads it.
    store_of(victim).excerpt(1, COUNT, 1 << 30)
    assert lost(victim)
    cluster.run(2)
    whole(cluster)


def test_the_own_log_needs_no_peer() -> None:
    cluster = ClusterPlay()
    config = stream(num_replicas=1)
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **config)
    assert "error" not in answer
    leader = cluster.leader(cluster.group_of("S"))
    fill(cluster, leader, 0, COUNT)
    zero_page(leader.disk, segments(leader)[0])
    store_of(leader).excerpt(1, COUNT, 1 << 30)
    assert lost(leader)
    cluster.run(2)
    assert not lost(leader)
    assert None not in contents(leader)


def test_two_replicas_with_different_damage_repair_each_other() -> None:
    cluster = filled()
    group = cluster.group_of("S")
    victims = [one for one in cluster if one is not cluster.leader(group)]
    gone = cluster.leader(group)
    gone.halt()
    for at, victim in enumerate(victims):
        victim.halt()
        path = segments(victim)[0]
        image = bytearray(victim.disk.content(path))
        start = len(image) // 3 * (at + 1) - 2048
        image[start : start + 2048] = bytes(2048)
        victim.disk.overwrite(path, bytes(image))
    for victim in victims:
        victim.begin()
    cluster.run(5)
    assert all(map(told, victims))
    assert contents(victims[0]) == contents(victims[1])
    assert not any(map(lost, victims))


def test_what_nobody_has_is_lost_and_all_else_goes_on() -> None:
    cluster = filled()
    group = cluster.group_of("S")
    one, other = [server for server in cluster if server is not cluster.leader(group)]
    for victim in (one, other):
        victim.halt()
        flip_bits(victim.disk, segments(victim)[0])
    third = cluster.leader(group)
    third.halt()
    flip_bits(third.disk, segments(third)[0])
    for victim in (one, other, third):
        victim.begin()
    cluster.run(8)
    missing = lost(one)
    assert missing
    fill(cluster, cluster.leader(group), COUNT, 20)
    for server in cluster:
        replica = server.engine.assets.streams[("A", "S")]
        assert list(replica.hopeless) == missing == lost(server)
        assert any("no replica has them" in line for line in server.logs)


def test_messages_removed_meanwhile_stay_removed() -> None:
    cluster = filled(max_msgs=COUNT)
    victim = follower(cluster)
    victim.halt()
    remove(victim.disk, segments(victim)[0])
    leader = cluster.leader(cluster.group_of("S"))
    leader.request_all("$JS.API.STREAM.MSG.DELETE.S", 1, seq=50)
    leader.request_all("$JS.API.STREAM.PURGE.S", 1, filter="s.3", keep=2)
    fill(cluster, leader, COUNT, 60)
    victim.begin()
    cluster.run(3)
    whole(cluster)
    assert store_of(victim).deleted() == store_of(leader).deleted()
    assert store_of(victim).digest() == store_of(leader).digest()


@pytest.mark.parametrize("of_leader", [False, True], ids=["follower", "leader"])
@pytest.mark.parametrize("restarts", [0, 2])
def test_what_was_removed_stays_removed_where_nothing_tells_of_it_any_more(
    of_leader: bool, restarts: int
) -> None:
    """The removal is damaged in the newest segment, and its catalogue is gone."""
    cluster = filled()
    leader = cluster.leader(cluster.group_of("S"))
    victim = leader if of_leader else follower(cluster)
    leader.request_all("$JS.API.STREAM.MSG.DELETE.S", 1, seq=50, no_erase=True)
    keep(cluster)
    victim.halt()
    _damage_removal(victim)
    victim.begin()
    for _ in range(restarts):
        cluster.run(0.1)
        victim.halt()
        victim.begin()
    cluster.run(3)
    assert any("what was removed is damaged" in line for line in victim.logs)
    whole(cluster)
    assert contents(victim)[49] is None
    assert contents(victim)[48] is not None
    victim.halt()
    victim.logs.clear()
    victim.begin()
    cluster.run(2)
    assert not any("damaged" in line for line in victim.logs), "what was fetched is durable"
    whole(cluster)


def test_a_lone_replica_keeps_what_it_has_where_a_removal_is_damaged() -> None:
    """There is nobody to ask: what was removed may be back, and everything else is there."""
    cluster = ClusterPlay()
    config = stream(num_replicas=1)
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **config)
    assert "error" not in answer
    victim = cluster.leader(cluster.group_of("S"))
    fill(cluster, victim, 0, COUNT)
    victim.request_all("$JS.API.STREAM.MSG.DELETE.S", 1, seq=50, no_erase=True)
    groups = victim.engine.groups
    groups.checkpoints.soon(groups.by_name[cluster.group_of("S")])
    cluster.run(1)
    victim.halt()
    _damage_removal(victim)
    victim.begin()
    cluster.run(3)
    found = contents(victim)
    assert len(found) == COUNT
    assert None not in found[:49] + found[50:]


def _damage_removal(server: ServerPlay) -> None:
    """In the newest segment, which has one, and of which there is no catalogue then."""
    disk, path = server.disk, max(segments(server))
    walked = [one for one in walk(disk.content(path), 0, 0) if isinstance(one, Envelope)]
    (removal,) = [one for one in walked if one.kind == REMOVE]
    disk.flip_bit(path, 8 * removal.start)
    catalogue = path.replace(".seg", ".cat")
    if disk.exists(catalogue):
        disk.remove(catalogue)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_repair_that_is_interrupted_goes_on(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power cuts, changes of leaders and more damage while it runs."""
    monkeypatch.setattr("jsctl.broker.assets.repair.range_server.ANSWER_BYTES_AIMED", 2000)
    rng = random.Random(seed)
    cluster = filled()
    group = cluster.group_of("S")
    victim = follower(cluster)
    spoil_at_rest(victim, remove)
    for _ in range(3):
        cluster.run(rng.random() * 0.3)
        what = rng.randrange(3)
        if what == 0:
            victim.disk.power_fails_in = rng.randrange(6)
            with suppress(DiskError):
                cluster.run(0.2)
            victim.halt()
            victim.disk.power_fails_in = None
            victim.disk.crash()
            victim.begin()
        elif what == 1:
            cluster["n1"].request_all("$JS.API.STREAM.LEADER.STEPDOWN.S", 1)
        else:
            spoil_at_rest(victim, flip_bits)
        cluster.run(rng.random() * 0.2)
    cluster.run(8)
    assert cluster.leader(group)
    whole(cluster)


class Liar(RangeServer):
    """Answers with other messages than were stored."""

    def _answer(self, request: RangeRequest) -> RangeAnswer:
        answer = super()._answer(request)
        frames = []
        for frame in answer.frames:
            rows = record.decode_records(frame, record.FRAME_HEADER_BYTES, len(frame))
            made = [row._replace(payload=row.payload + b"?") for row in rows]
            frames.append(record.encode_rows(b"", made)[0])
        return RangeAnswer(
            answer.key, answer.token, answer.index, answer.up_to, answer.lost, frames
        )


def test_an_answer_with_other_messages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = filled()
    victim = follower(cluster)
    monkeypatch.setattr(repairs, "RangeServer", Liar)
    for one in cluster:
        if one is not victim:
            one.halt()
            one.begin()
    monkeypatch.undo()
    before = contents(victim)
    spoil_at_rest(victim, zero_page)
    cluster.run(5)
    assert lost(victim)
    assert any("is refused" in line for line in victim.logs)
    for one in cluster:
        if one is not victim:
            one.halt()
            one.begin()
    cluster.run(15)
    whole(cluster)
    assert contents(victim) == before


def test_damage_all_over_many_segments_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks come upon one damaged message a segment, faster than the rest of it is read."""
    for name, size in (("EXAMINED_BYTES", 2000), ("EXAMINED_STEP_BYTES", 500)):
        monkeypatch.setattr(repairs, name, size)
    cluster = ClusterPlay(raft=replace(node_options().raft, store_segment_bytes=2000))
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    assert "error" not in answer
    fill(cluster, cluster.leader(cluster.group_of("S")), 0, COUNT)
    keep(cluster)
    victim = follower(cluster)
    damaged = segments(victim)
    assert len(damaged) >= 8
    for path in damaged:
        for at in range(200, len(victim.disk.content(path)), 300):
            victim.disk.flip_bit(path, 8 * at)
    at_work = victim.engine.upkeep.repairs
    target = StreamTarget(victim.engine.assets.streams[("A", "S")], at_work)
    for check in target.checks():
        while not check.done:
            check.step(victim.disk, 4096)
        assert not check.damage or target.found(check)
    cluster.wait(lambda: not at_work.at_work(cluster.group_of("S")), "the repair ends", 60)
    victim.logs.clear()
    whole(cluster)
    cluster.run(2)
    assert not told(victim), "nothing is left for who reads it"


def test_few_segments_are_written_anew_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log waits for a checkpoint; so much is written that it need not wait for long."""
    written: list[int] = []
    run = CheckpointJob.run

    def counted(job: CheckpointJob) -> None:
        written.append(len(job.rewrites))
        run(job)

    cluster = ClusterPlay(raft=replace(node_options().raft, store_segment_bytes=2000))
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    fill(cluster, cluster.leader(cluster.group_of("S")), 0, COUNT)
    keep(cluster)
    victim = follower(cluster)
    damaged = segments(victim)[:-1]
    for path in damaged:
        flip_bits(victim.disk, path)
    monkeypatch.setattr(CheckpointJob, "run", counted)
    store_of(victim).excerpt(1, COUNT, 1 << 30)
    cluster.run(3)
    assert sum(written) >= len(damaged) > max(written) == repairs.SAVED_FILES_MAX
    victim.halt()
    victim.logs.clear()
    victim.begin()
    cluster.run(2)
    assert not told(victim), "all of it is durable"
    whole(cluster)
