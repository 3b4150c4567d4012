"""Who has something to do, and whom time concerns."""

from jsctl.broker.raft.types import AddLearner, Heartbeat
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.replication.schedule import Schedule
from tests.support.groups_rig import ABC, lone_group


def test_a_touched_group_is_taken_once_in_order() -> None:
    schedule = Schedule()
    first, second = lone_group("S-1"), lone_group("S-2")
    for group in (first, second, first):
        schedule.touch(group)
    assert schedule.busy and not schedule.awake
    assert schedule.take() == [first, second]
    assert schedule.take() == []
    schedule.touch(first)
    assert schedule.take() == [first]


def test_time_reaches_who_is_awake_and_makes_it_do_something() -> None:
    schedule = Schedule()
    asleep, awake = lone_group("S-1", ABC), lone_group("S-2", ABC)
    schedule.wake(awake)
    schedule.take()
    schedule.tick(1000)
    assert schedule.take() == [awake]
    assert awake.raft.term and not asleep.raft.term  # It stood for election


def asleep(schedule: Schedule) -> RaftGroup:
    """A group of one leader that had nothing to do for a while."""
    group = lone_group("S-1")
    group.raft.campaign()
    schedule.wake(group)
    for _ in range(10_000):
        ready = group.raft.ready()
        if ready.to_persist:
            group.raft.persisted(*ready.to_persist)
        if ready.committed:
            group.raft.applied_to(ready.committed[-1].index)
        schedule.tick(1)
        if not schedule.awake:
            schedule.take()
            return group
    raise AssertionError("a lone leader without work never went to sleep")


def test_who_is_quiet_gets_no_more_ticks() -> None:
    schedule = Schedule()
    group = asleep(schedule)
    before = group.raft.now
    schedule.tick(100)
    assert group.raft.now == before and not schedule.take()


def test_time_that_went_by_in_sleep_does_not_come_later() -> None:
    """A promise that is given when a message wakes the group would be over at once."""
    schedule = Schedule()
    awake, slept = lone_group("S-1", ABC), lone_group("S-2", ABC)
    slept.raft.step([Heartbeat("a", "b", 1, 0, 1, 1, quiet=True)])
    assert slept.raft.quiet
    schedule.wake(awake)
    schedule.tick(2)
    schedule.fell_behind(60)
    slept.raft.step([Heartbeat("a", "b", 1, 0, 2, 7)])
    schedule.wake(slept)
    schedule.catch_up()
    assert (awake.raft.now, awake.raft.behind) == (62, 0)
    before = slept.raft.now
    assert before < slept.raft.promise_until
    schedule.catch_up()
    schedule.tick(1)
    assert slept.raft.now == before + 1


def test_a_change_of_its_members_wakes_a_group() -> None:
    """Else a first message to a new member that is lost would be the last one."""
    schedule = Schedule()
    group = asleep(schedule)
    assert group.raft.propose_members(AddLearner("b"))
    schedule.touch(group)
    assert schedule.take() == [group]
    before = group.raft.now
    schedule.tick(100)
    assert group.raft.now == before + 100


def test_who_is_forgotten_is_neither_taken_nor_ticked() -> None:
    schedule = Schedule()
    group, other = lone_group("S-1", ABC), lone_group("S-2", ABC)
    schedule.wake(group)
    schedule.wake(other)
    schedule.forget(group)
    assert schedule.take() == [other]
    schedule.clear()
    assert not schedule.awake and not schedule.busy
