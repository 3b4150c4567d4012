"""States that are worded a portion a turn."""

from collections.abc import Iterator

import pytest

from jsctl.broker.replication import state_file
from jsctl.broker.replication.drafts import Draft
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.replication.state_file import GroupState, WriteState
from tests.support.groups_rig import Checkpoint, Rig

PORTIONS = (b"one ", b"two ", b"three ", b"four ", b"five")


@pytest.fixture
def rig() -> Rig:
    """A group `S` whose states have five portions."""
    made = Rig()
    made.add("S")
    generations = iter(range(1, 100))

    def checkpoint(index: int, term: int, members: bytes) -> Draft:
        state = GroupState(next(generations), index, term, members, b"")
        worded: list[bytes | memoryview] = []
        return Draft(WriteState(made.disk, "S", state, (), worded), worded, portions())

    made.units["S"].checkpoint = checkpoint  # type: ignore[method-assign]
    return made


def portions() -> Iterator[bytes]:
    yield from PORTIONS


def group_of(rig: Rig) -> RaftGroup:
    return rig.groups.by_name["S"]


def go_on(rig: Rig) -> int:
    """Turns until there is nothing to do; how many went on with a state."""
    turns = 0
    while rig.groups.checkpoints.drafting or rig.batches:
        turns += rig.groups.checkpoints.drafting
        rig.run_disk()
        assert turns < 50
    return turns


def test_a_state_is_worded_in_several_turns_and_written_whole(rig: Rig) -> None:
    group = group_of(rig)
    rig.groups.checkpoints.soon(group)
    rig.turn()
    assert rig.groups.checkpoints.running == 1 and not rig.batches
    begun = group.raft.applied
    rig.groups.propose(group, [b"x"], None)
    assert go_on(rig) == len(PORTIONS) - 2, "two are taken in the turn in which it begins"
    assert rig.groups.idle and group.checkpointed == begun < group.raft.applied
    found = state_file.load(rig.disk, "S").state
    assert found is not None
    assert (found.snapshot, found.index) == (b"".join(PORTIONS), begun)


def test_what_is_asked_for_meanwhile_follows(rig: Rig) -> None:
    group = group_of(rig)
    told: list[int] = []
    rig.groups.checkpoints.soon(group)
    rig.turn()
    rig.groups.propose(group, [b"x"], None)
    rig.groups.checkpoints.soon(group)
    rig.groups.checkpoints.when_written(group, lambda: told.append(group.checkpointed))
    go_on(rig)
    assert told == [group.raft.applied]
    assert len(rig.units["S"].checkpoints) == 2


def test_a_state_that_is_replaced_meanwhile_is_not_written(rig: Rig) -> None:
    group, imported = group_of(rig), Checkpoint(5)
    rig.groups.checkpoints.soon(group)
    rig.turn()
    rig.groups.checkpoints.run(group, imported)
    rig.turn()
    assert not rig.groups.checkpoints.drafting
    assert rig.units["S"].told[-1] == "overtaken", "else nothing is due until there is news"
    go_on(rig)
    assert imported.ran and not rig.units["S"].checkpoints
    rig.groups.checkpoints.taken(group)
    rig.turn()
    go_on(rig)
    assert len(rig.units["S"].checkpoints) == 1


def test_a_group_that_goes_takes_its_state_along(rig: Rig) -> None:
    rig.groups.checkpoints.soon(group_of(rig))
    rig.turn()
    rig.groups.remove(group_of(rig))
    assert not rig.groups.checkpoints.drafting
    rig.settle()
    assert rig.groups.idle and not rig.disk.list("S")


def test_one_that_is_not_whole_is_never_written(rig: Rig) -> None:
    draft = rig.units["S"].checkpoint(1, 1, b"")
    assert isinstance(draft, Draft)
    for _ in range(len(PORTIONS)):
        with pytest.raises(AssertionError, match="not whole"):
            draft.run()
        whole = draft.go_on()
    assert whole
    draft.run()
    again = rig.units["S"].checkpoint(2, 1, b"")
    assert isinstance(again, Draft)
    again.finish()
    again.run()
    found = state_file.load(rig.disk, "S").state
    assert found is not None and (found.snapshot, found.index) == (b"".join(PORTIONS), 2)
