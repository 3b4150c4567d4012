"""Who has something to do, and whom time concerns."""

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


def test_who_is_quiet_gets_no_more_ticks() -> None:
    schedule = Schedule()
    group = lone_group("S-1")
    group.raft.campaign()
    group.raft.ready()
    schedule.wake(group)
    for _ in range(10_000):
        schedule.tick(1)
        ready = group.raft.ready()
        if ready.to_persist:
            group.raft.persisted(*ready.to_persist)
        if ready.committed:
            group.raft.applied_to(ready.committed[-1].index)
        if not schedule.awake:
            return
    raise AssertionError("a lone leader without work never went to sleep")


def test_who_is_forgotten_is_neither_taken_nor_ticked() -> None:
    schedule = Schedule()
    group, other = lone_group("S-1", ABC), lone_group("S-2", ABC)
    schedule.wake(group)
    schedule.wake(other)
    schedule.forget(group)
    assert schedule.take() == [other]
    schedule.clear()
    assert not schedule.awake and not schedule.busy
