"""What unfinished restores leave behind is told by marks, and removed by a later start."""

import random

import pytest

from jsctl.broker.assets.prepared import MARK, Foundation, sweep
from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from tests.support.sim_disk import SimDisk


@pytest.fixture
def disk() -> SimDisk:
    """With two directories of restores, and one of a stream."""
    made = SimDisk(random.Random(1))
    for name in ("ONE", "TWO"):
        group = GroupAssignment(name, ("a", "b", "c"), "file")
        Foundation(group, f"streams/{name}", made, 2).mark()
    made.make_directory("streams/OLD")
    return made


def marked(disk: SimDisk) -> list[str]:
    return [name for name in disk.list("streams") if disk.exists(f"streams/{name}/{MARK}")]


def test_what_is_assigned_to_nobody_is_removed(disk: SimDisk) -> None:
    assert sweep(disk, {"OLD"}, ()) == ["streams/ONE", "streams/TWO"]
    assert disk.list("streams") == ["OLD"]


def test_what_is_assigned_loses_its_mark(disk: SimDisk) -> None:
    assert sweep(disk, {"OLD", "ONE", "TWO"}, ()) == []
    assert marked(disk) == []


def test_what_is_being_received_keeps_its_mark(disk: SimDisk) -> None:
    """It is as unfinished as before: if this process dies too, the next one must find it."""
    assert sweep(disk, {"OLD"}, {"ONE"}) == ["streams/TWO"]
    assert marked(disk) == ["ONE"]
    assert sweep(disk, {"OLD"}, ()) == ["streams/ONE"]
