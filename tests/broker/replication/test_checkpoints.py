"""When states are written, who is told, and what the log may forget then."""

import random
from itertools import count

import pytest

from jsctl.broker.raft import codec
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import ENTRY_OVERHEAD_BYTES, Entry, EntryKind, Members
from jsctl.broker.replication.checkpoints import Checkpointer, GroupLimits
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.replication.schedule import Schedule
from jsctl.broker.store.wal.log import Wal
from tests.broker.raft.single import ack, serving, take
from tests.support.groups_rig import ABC, OPTIONS, Checkpoint, Unit, lone_group
from tests.support.sim_disk import SimDisk


def checkpointer(limits: GroupLimits | None = None) -> Checkpointer:
    wal, _ = Wal.open(SimDisk(random.Random(1)), "log", OPTIONS)
    return Checkpointer(wal, Schedule(), limits or GroupLimits(), count(-1, -1))


def with_entries(number: int) -> RaftGroup:
    """A lone leader that has applied some entries."""
    group = lone_group("S")
    raft = group.raft
    raft.campaign()
    raft.propose([b"x"] * number)
    while True:
        ready = raft.ready()
        if not ready:
            return group
        if ready.to_persist:
            raft.persisted(*ready.to_persist)
        if ready.committed:
            raft.applied_to(ready.committed[-1].index)
            group.applied_term = ready.committed[-1].term


def unit(group: RaftGroup) -> Unit:
    assert isinstance(group.unit, Unit)
    return group.unit


@pytest.mark.parametrize(("entries", "log_bytes", "due"), [(5, 0, 0), (11, 0, 1), (5, 101, 1)])
def test_a_checkpoint_is_due_by_entries_or_bytes(entries: int, log_bytes: int, due: int) -> None:
    limits = GroupLimits(checkpoint_bytes=100, checkpoint_entries=10)
    checkpoints, group = checkpointer(limits), with_entries(entries)
    group.log_bytes = log_bytes
    checkpoints.applied(group)
    assert len(checkpoints.seal()) == due
    checkpoints.applied(group)
    assert not checkpoints.seal()  # One at a time


@pytest.mark.parametrize(
    ("state_bytes", "log_bytes", "due"),
    [(90, 101, 1), (300, 101, 0), (300, 301, 1), (5000, 999, 0), (5000, 1001, 1)],
)
def test_a_large_state_is_written_less_often(state_bytes: int, log_bytes: int, due: int) -> None:
    limits = GroupLimits(checkpoint_bytes=100, checkpoint_bytes_max=1000)
    checkpoints, group = checkpointer(limits), with_entries(5)
    group.log_bytes, group.state_bytes = log_bytes, state_bytes
    checkpoints.applied(group)
    assert len(checkpoints.seal()) == due


def test_what_is_written_is_released_and_told() -> None:
    checkpoints, group = checkpointer(GroupLimits(entries_kept=2)), with_entries(20)
    told: list[str] = []
    checkpoints.soon(group)
    checkpoints.when_written(group, lambda: told.append("written"))
    (job,) = checkpoints.seal()
    assert checkpoints.running == 1 and not told
    job.run()
    assert checkpoints.done(job.ticket) and not checkpoints.done(job.ticket)
    assert told == ["written"] and checkpoints.running == 0
    assert group.checkpointed == group.raft.applied
    assert unit(group).checkpoints == [job.work]
    assert group.raft.base_index == group.raft.applied
    assert checkpoints.schedule.busy


def test_another_one_is_made_when_one_is_wanted_meanwhile() -> None:
    checkpoints, group = checkpointer(), with_entries(3)
    told: list[str] = []
    checkpoints.soon(group)
    (first,) = checkpoints.seal()
    checkpoints.soon(group)
    checkpoints.when_written(group, lambda: told.append("written"))
    assert not checkpoints.seal()
    first.run()
    checkpoints.done(first.ticket)
    assert not told
    (second,) = checkpoints.seal()
    second.run()
    checkpoints.done(second.ticket)
    assert told == ["written"]


def test_other_work_for_a_group_comes_back_finished() -> None:
    checkpoints, group, work = checkpointer(), with_entries(3), Checkpoint(7)
    checkpoints.run(group, work)
    (job,) = checkpoints.seal()
    job.run()
    assert work.ran and checkpoints.done(job.ticket)
    assert checkpoints.finished == [(group, work)] and not group.checkpointed


def test_jobs_of_a_group_that_is_gone_keep_nobody_waiting() -> None:
    checkpoints, group = checkpointer(), with_entries(3)
    checkpoints.soon(group)
    checkpoints.run(group, Checkpoint(7))
    group.gone = True
    checkpoints.forget(group)
    assert not checkpoints.seal() and checkpoints.running == 0


def test_entries_that_a_follower_lacks_are_kept() -> None:
    checkpoints, group = checkpointer(GroupLimits(entries_kept=5)), with_entries(20)
    group.checkpointed = 8
    checkpoints.compact(group)
    assert group.raft.base_index == 8


def with_followers(number: int) -> RaftGroup:
    """A leader of three that has applied entries which only one of the others has, too."""
    group = lone_group("S")
    raft = group.raft = serving()
    raft.propose([b"x" * (100 - ENTRY_OVERHEAD_BYTES)] * number)
    take(raft)
    ack(raft, "b", raft.last_index)
    while take(raft):
        pass
    group.checkpointed = raft.applied
    return group


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (GroupLimits(entries_kept=5), 50),
        (GroupLimits(entries_kept=5, lagging_entries_max=20), 20),
        (GroupLimits(entries_kept=5, lagging_bytes_max=1050), 10),
        (GroupLimits(entries_kept=5, lagging_bytes_max=250), 5),
    ],
)
def test_entries_stay_for_followers_that_lack_them(limits: GroupLimits, kept: int) -> None:
    checkpoints, group = checkpointer(limits), with_followers(50)
    checkpoints.compact(group)
    assert group.raft.last_index - group.raft.base_index == kept
    ack(group.raft, "c", group.raft.last_index)
    checkpoints.rest()
    assert group.raft.last_index - group.raft.base_index <= 5


def test_memory_for_followers_is_shared_and_given_back() -> None:
    limits = GroupLimits(entries_kept=5, lagging_bytes_max=6000)
    checkpoints, first, second = checkpointer(limits), with_followers(50), with_followers(50)
    second.name = "T"
    for group in (first, second):
        checkpoints.compact(group)
    assert [one.raft.last_index - one.raft.base_index for one in (first, second)] == [50, 10]
    third = with_followers(50)
    third.name = "U"
    checkpoints.forget(first)
    checkpoints.compact(third)
    assert third.raft.last_index - third.raft.base_index == 50


@pytest.mark.parametrize("gone", ["down", "silent", "waits for its state"])
def test_nothing_more_stays_for_followers_that_are_not_there(gone: str) -> None:
    checkpoints, group = checkpointer(GroupLimits(entries_kept=5)), with_followers(50)
    raft = group.raft
    if gone == "down":
        raft.peer_down("c")
    elif gone == "silent":
        for _ in range(raft.timing.election_ticks):
            raft.tick()
            ack(raft, "b", raft.last_index)
    else:
        raft.peers["c"].become_snapshot()
    checkpoints.compact(group)
    assert raft.last_index - raft.base_index == 5


def test_a_state_has_the_members_of_its_last_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a restart, too: what the log has behind it is perhaps not committed."""
    checkpoints, group = checkpointer(), lone_group("S")
    change = Entry(3, 1, EntryKind.CONFIG, codec.encode_members(Members(("a", "b", "c", "d"))))
    group.raft = Raft(
        "a",
        members=ABC,
        base_index=2,
        base_term=1,
        entries=[change],
        applied=2,
        jitter=lambda n: 0,
    )
    told: list[bytes] = []

    def checkpoint(index: int, term: int, members: bytes) -> None:
        told.append(members)

    monkeypatch.setattr(unit(group), "checkpoint", checkpoint)
    checkpoints.soon(group)
    assert [codec.decode_members(one) for one in told] == [ABC]
