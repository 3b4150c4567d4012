"""When states are written, who is told, and what the log may forget then."""

import random
from itertools import count

import pytest

from jsctl.broker.replication.checkpoints import Checkpointer, GroupLimits
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.replication.schedule import Schedule
from jsctl.broker.store.wal.log import Wal
from tests.support.groups_rig import OPTIONS, Checkpoint, Unit, lone_group
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


def test_no_checkpoint_begins_while_a_state_is_replaced() -> None:
    checkpoints, group = checkpointer(), with_entries(5)
    checkpoints.soon(group)
    (own,) = checkpoints.seal()
    checkpoints.run(group, Checkpoint(9))
    (other,) = checkpoints.seal()
    checkpoints.soon(group)
    checkpoints.done(own.ticket)
    assert not checkpoints.seal()
    checkpoints.done(other.ticket)
    assert [one.work.index for one in checkpoints.seal()] == [group.raft.applied]
