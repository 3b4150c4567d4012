"""Disks that rot, or cannot be read: what is damaged is found and named, and no more is missing."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from jsctl.broker.assets.repair.agent import RepairAgent
from jsctl.broker.assets.repair.range_server import RangeServer
from jsctl.broker.assets.repair.records import records_of
from jsctl.broker.assets.repair.repairs import Again
from jsctl.broker.peers.items import RangeAnswer, RangeRequest
from jsctl.broker.raft.types import WHOLE
from jsctl.broker.replication import bootstrap
from jsctl.broker.store import record
from jsctl.broker.store.index import LostRecords
from jsctl.broker.store.segments.segment import REMOVE, Envelope, walk
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.store.wal.recovery import Scan
from tests.simulation import rot
from tests.simulation.disks import MachineDisk
from tests.simulation.hunting import drawn, hunt
from tests.simulation.kept import kept
from tests.simulation.outcomes import outcome
from tests.simulation.plan import (
    ConsumerKind,
    Item,
    Plan,
    StreamKind,
    draw_damage,
    draw_lost_log,
    draw_rot,
)
from tests.simulation.run import Simulation, failure
from tests.support.sim_disk import SECTOR

Patch = pytest.MonkeyPatch
FOUND = [
    # A damaged leader ended when it was to send its state.
    (123, 3),
    (140, 3),
    # Interest and work-queue streams: consumers that were not known yet, or whose state came whole.
    (141, 3),
    (217, 3),
    # A group with one replica starts over when its state is lost.
    (225, 3),
    # With the state of the meta group the records of all other groups were forgotten.
    (700010, 3),
    # The claim of the last frame was gone with the page cache when that frame rotted.
    (6000025, 5),
    # A replica that a damaged leader brings up lacks what that lacks, until it is repaired.
    (3029, 3),
    # What is written where the disk cannot be read is as unreadable as what was there before.
    (3092, 3),
    # The scrub is right about files that could not be opened, or read, for a while.
    (20000001, 5),
    (20000010, 5),
    # A consumer was made while the entry that removes a message was on its way.
    (20000008, 3),
    # A delivery waited until other messages were removed, and left behind the one that followed it.
    (31000005, 3),
    # The only bytes that told of a removal rotted, and what was removed came back.
    (22000014, 3),
    # A segment did not open while it was scrubbed, and was not damaged.
    (263000020, 5),
    # Who ended in the middle of a turn had told of a message before.
    (671000002, 5),
]
"""(seed, servers)"""


@pytest.mark.parametrize("first", [0, pytest.param(3, marks=pytest.mark.mutants)])
def test_fixed_seeds_of_rotting_disks(first: int) -> None:
    for seed in range(first, first + 3):
        plan = draw_rot(seed)
        assert not outcome(plan).failure, plan


def test_a_lone_replica_may_forget_what_was_removed(monkeypatch: Patch) -> None:
    """Its catalogue and the removal are damaged, and nobody else knows."""
    damaged: list[str] = []

    def choose(disk: MachineDisk, rng: Random, decay: rot.Decay) -> rot.Place | None:
        for path in disk.paths():
            content = disk.content(path)
            if damaged and path == damaged[0].replace(".cat", ".seg"):
                found = [one for one in walk(content, 0, 0) if isinstance(one, Envelope)]
                start = next(one.start for one in found if one.kind == REMOVE)
                damaged.append(path)
                return path, start, start + SECTOR
            if not damaged and "-R1F-" in path and rot.kind_of(path) == rot.CATALOGUE:
                damaged.append(path)
                return path, 0, len(content)
        return None

    monkeypatch.setattr(rot, "choose", choose)
    streams = (1, "file", 30), (3, "memory", -1)
    for pick, at in product(range(3), (2_000, 3_000)):  # Until it is the one with the replica
        damaged.clear()
        items = Item(at, "unreadable", pick, 36180, 300), Item(at + 34, "rot", pick, 38621, 50)
        assert not failure(replace(draw_rot(22000014), streams=streams, items=items))
        if len(damaged) == 2:
            return
    pytest.fail("not both were damaged")


def test_damage_is_met_by_who_reads_everything_anew() -> None:
    """A message that was put back was followed by one before the chunk that was read last."""
    for seed in (4, 5):
        plan = draw_damage(seed)
        assert not failure(plan), plan


def test_what_was_put_off_is_applied_before_a_state_takes_the_place_of_all() -> None:
    """A follower had entries that were given out, and was sent a state behind them in that turn."""
    assert not outcome(draw_lost_log(780000003)).failure


def test_a_lost_log_while_a_replica_leaves() -> None:
    """A voter that was healthy left, while one of the two others was dead and not known to be; it
    came back without its log, and nobody could lead."""
    plan = draw_lost_log(72000068)
    assert not failure(plan), plan


@pytest.mark.parametrize(("seed", "servers"), kept(FOUND, 8))
def test_seeds_of_rotting_disks_that_failed_once(seed: int, servers: int) -> None:
    plan = draw_rot(seed, servers)
    assert not outcome(plan).failure, plan


def _damaged_logs_count_as_whole(patch: Patch) -> None:
    patch.setattr(bootstrap, "_standing", lambda found: WHOLE)


def _frames_of_the_log_are_not_verified(patch: Patch) -> None:
    patch.setattr(Scan, "_verified", lambda self, header, body: body)


def _damaged_messages_are_taken_for_removed(patch: Patch) -> None:
    patch.setattr(LostRecords, "add", lambda self, seq, facts: None)


def _hopeless_at_once(patch: Patch) -> None:
    """A damaged message counts as lost for good before any other replica was asked for it, and
    before it was read once more."""
    judge = RepairAgent.judge
    patch.setattr(RepairAgent, "judge", lambda self, lost, voters: judge(self, lost, ()))
    patch.setattr(Again, "waited_for", lambda self, unread, now_ns: SeqSet())


def _the_last_message_of_an_answer_is_left_out(patch: Patch) -> None:
    real = RangeServer._answer

    def answer(self: RangeServer, request: RangeRequest) -> RangeAnswer:
        made = real(self, request)
        return replace(made, frames=made.frames[:-1])

    patch.setattr(RangeServer, "_answer", answer)


def _other_messages_are_believed(patch: Patch) -> None:
    real = RangeServer._answer

    def answer(self: RangeServer, request: RangeRequest) -> RangeAnswer:
        made = real(self, request)
        frames = []
        for frame in made.frames:
            rows = record.decode_records(frame, record.FRAME_HEADER_BYTES, len(frame))
            other = [row._replace(payload=row.payload + b"?") for row in rows]
            frames.append(record.encode_rows(b"", other)[0])
        return replace(made, frames=frames)

    def given(
        self: StreamStore, first_seq: int, last_seq: int, frames: Iterable[bytes]
    ) -> dict[int, bytes]:
        return {seq: raw for seq, raw in records_of(frames).items() if self.is_live(seq)}

    patch.setattr(RangeServer, "_answer", answer)
    patch.setattr(StreamStore, "_given", given)


CALM = Plan(7, 3, kinds=(StreamKind(consumers=(ConsumerKind(),)),), chaos_ms=3_000)
SEEDS = 40


def rotten_log(seed: int, servers: int) -> Plan:
    """A bit of something, most of the time of the log, is another one when a server starts."""
    items = (Item(2_000, "rot", 0, seed, 50),)
    return replace(CALM, servers=servers, checkpoint_entries=50_000, items=items)


def read_anew(seed: int, servers: int) -> Plan:
    """A consumer is made again, and reads everything where some of it is damaged."""
    items = (Item(2_000, "unreadable", 0, seed, 600), Item(2_010, "consumer", 0, 0, 10))
    slow = replace(
        CALM, seed=seed, delay_ms=5.0
    )  # It is looked at before the others have answered.
    return replace(slow, servers=servers, checkpoint_entries=5, entries_kept=0, items=items)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("plant", "drawing", "first"),
    [
        (_the_last_message_of_an_answer_is_left_out, draw_rot, 123),
        (_other_messages_are_believed, draw_rot, 123),
        pytest.param(*(_damaged_logs_count_as_whole, draw_rot, 25), marks=pytest.mark.mutants),
        pytest.param(
            *(_frames_of_the_log_are_not_verified, rotten_log, 13), marks=pytest.mark.mutants
        ),
        (_damaged_messages_are_taken_for_removed, draw_rot, 183),
        (_hopeless_at_once, read_anew, 124),
    ],
)
def test_damage_that_is_not_seen_is_found(
    plant: Callable[[Patch], None], drawing: Callable[..., Plan], first: int, monkeypatch: Patch
) -> None:
    hunt(plant, drawn(drawing, first, SEEDS), monkeypatch)


def test_damage_is_met() -> None:
    """Messages are lost on the one server, and only there, and others are read and compared."""
    met = 0
    for seed in range(15, 15 + SEEDS):
        run = Simulation(draw_rot(seed)).run()
        rotten = run.faults.rotten
        assert all(not one.decay.places for one in run.machines if one is not rotten)
        lost = rotten is not None and any(rotten.decay.lost.values())
        met += lost and run.checker.acknowledged > 50
        if met == 2:
            return
    pytest.fail(f"{met} in {SEEDS} seeds")
