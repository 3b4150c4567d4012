"""Disks that rot, or cannot be read: what is damaged is found and named, and no more is missing."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from jsctl.broker.assets.repair.agent import RepairAgent
from jsctl.broker.assets.repair.range_server import RangeServer
from jsctl.broker.assets.repair.records import records_of
from jsctl.broker.peers.items import RangeAnswer, RangeRequest
from jsctl.broker.raft.types import WHOLE
from jsctl.broker.replication import bootstrap
from jsctl.broker.store import record
from jsctl.broker.store.index import LostRecords
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.store.wal.recovery import Scan
from tests.simulation.plan import ConsumerKind, Item, Plan, StreamKind, draw_damage, draw_rot
from tests.simulation.run import Simulation, failure

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
]
"""(seed, servers)"""


@pytest.mark.parametrize("first", [0, 3])
def test_fixed_seeds_of_rotting_disks(first: int) -> None:
    for seed in range(first, first + 3):
        plan = draw_rot(seed)
        assert not failure(plan), plan


def test_damage_is_met_by_who_reads_everything_anew() -> None:
    """A message that was put back was followed by one before the chunk that was read last."""
    for seed in (4, 5):
        plan = draw_damage(seed)
        assert not failure(plan), plan


@pytest.mark.parametrize(("seed", "servers"), FOUND)
def test_seeds_of_rotting_disks_that_failed_once(seed: int, servers: int) -> None:
    plan = draw_rot(seed, servers)
    assert not failure(plan), plan


def _damaged_logs_count_as_whole(patch: Patch) -> None:
    patch.setattr(bootstrap, "_standing", lambda found: WHOLE)


def _frames_of_the_log_are_not_verified(patch: Patch) -> None:
    patch.setattr(Scan, "_verified", lambda self, header, body: body)


def _damaged_messages_are_taken_for_removed(patch: Patch) -> None:
    patch.setattr(LostRecords, "add", lambda self, seq, facts: None)


def _hopeless_at_once(patch: Patch) -> None:
    """A damaged message counts as lost for good before any other replica was asked for it."""
    judge = RepairAgent.judge
    patch.setattr(RepairAgent, "judge", lambda self, lost, voters: judge(self, lost, ()))


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
            frames.append(record.encode_behind(b"", other)[0])
        return replace(made, frames=frames)

    def given(
        self: StreamStore, first_seq: int, last_seq: int, frames: Iterable[bytes]
    ) -> dict[int, bytes]:
        return {seq: raw for seq, raw in records_of(frames).items() if self.is_live(seq)}

    patch.setattr(RangeServer, "_answer", answer)
    patch.setattr(StreamStore, "_given", given)


CALM = Plan(7, 3, kinds=(StreamKind(consumers=(ConsumerKind(),)),), chaos_ms=3_000)
READ_ANEW = replace(
    CALM,
    checkpoint_entries=5,
    entries_kept=0,
    items=(Item(2_000, "unreadable", 0, 22, 600), Item(2_030, "consumer", 0, 0, 10)),
)
"""A consumer is made again, and reads everything where some of it is damaged."""
LOG_READ_ANEW = replace(CALM, checkpoint_entries=50_000, items=(Item(2_000, "rot", 0, 39, 50),))
"""A bit of the log is another one when the server starts."""


@pytest.mark.parametrize(
    ("plant", "plan"),
    [
        (_the_last_message_of_an_answer_is_left_out, draw_rot(6)),
        (_other_messages_are_believed, draw_rot(6)),
        (_damaged_logs_count_as_whole, draw_rot(10)),
        pytest.param(_frames_of_the_log_are_not_verified, LOG_READ_ANEW, marks=pytest.mark.mutants),
        pytest.param(
            _damaged_messages_are_taken_for_removed, draw_rot(24), marks=pytest.mark.mutants
        ),
        (_hopeless_at_once, READ_ANEW),
    ],
    ids=lambda one: "" if isinstance(one, Plan) else one.__name__,
)
def test_damage_that_is_not_seen_is_found(
    plant: Callable[[Patch], None], plan: Plan, monkeypatch: Patch
) -> None:
    assert not failure(plan)
    with monkeypatch.context() as planted:
        plant(planted)
        assert failure(plan).startswith("Violation")


@pytest.mark.mutants  # Timings moved: it has to be tuned anew
def test_damage_is_met() -> None:
    """Messages are lost on the one server, and only there, and others are read and compared."""
    runs = [Simulation(draw_rot(seed)).run() for seed in (123, 140)]

    for run in runs:
        rotten = run.faults.rotten
        assert rotten is not None and any(rotten.decay.lost.values())
        assert all(not one.decay.places for one in run.machines if one is not rotten)
        assert run.checker.acknowledged > 50
