"""The sets of members along the log: in effect at append, reverted by truncation.

Every CONFIG entry holds the whole set, so the set at any index is the last CONFIG at or below
it, or the base's. One step at a time: see `next_members` and the rules in `core`.
"""

from collections.abc import Sequence

from jsctl.broker.raft.codec import decode_members
from jsctl.broker.raft.types import (
    AddLearner,
    Change,
    Entry,
    EntryKind,
    Index,
    Members,
    Promote,
)


class Membership:
    """History of sets from the base on. Invariant: indexes rise; the last one is active."""

    __slots__ = ("active", "history")

    def __init__(self, base_index: Index, members: Members) -> None:
        self.history: list[tuple[Index, Members]] = [(base_index, members)]
        self.active = members

    @property
    def active_index(self) -> Index:
        """Index of the entry (or base) that holds the active set."""
        return self.history[-1][0]

    def append(self, entries: Sequence[Entry], members: Members | None = None) -> bool:
        """Take the sets in new entries, read from each but where `members` says it; True when the
        active one changed."""
        changed = False
        for entry in entries:
            if entry.kind == EntryKind.CONFIG:
                assert entry.index > self.active_index, "config entries out of order"
                self.active = members or decode_members(entry.data)
                self.history.append((entry.index, self.active))
                changed = True
        return changed

    def truncate(self, from_index: Index) -> bool:
        """Revert the sets at and behind `from_index`; True when the active one changed."""
        history = self.history
        if history[-1][0] < from_index:
            return False
        assert history[0][0] < from_index, "truncation of the base"
        while history[-1][0] >= from_index:
            history.pop()
        self.active = history[-1][1]
        return True

    def at(self, index: Index) -> Members:
        """The set in effect at `index`, which is at or above the base."""
        for start, members in reversed(self.history):
            if start <= index:
                return members
        raise AssertionError("index below the base")

    def compact(self, index: Index) -> Members:
        """Forget what came before `index`; returns the set in effect there."""
        members = self.at(index)
        self.history = [(index, members)] + [item for item in self.history if item[0] > index]
        assert self.history[-1][1] == self.active, "forgetting the past changes nothing"
        return members

    def restart(self, index: Index, members: Members) -> bool:
        """Stand at (index, members) after a state transfer; True when the set changed."""
        changed = members != self.active
        self.history = [(index, members)]
        self.active = members
        return changed


def next_members(members: Members, change: Change) -> Members | None:
    """The set after one step; None when the step makes no sense for this set."""
    peer = change.peer
    if isinstance(change, AddLearner):
        if not peer or peer in members:
            return None
        return Members(members.voters, (*members.learners, peer))
    if isinstance(change, Promote):
        if peer not in members.learners:
            return None
        learners = tuple(item for item in members.learners if item != peer)
        return Members((*members.voters, peer), learners)
    if peer not in members or members.voters == (peer,):
        return None
    return Members(
        tuple(item for item in members.voters if item != peer),
        tuple(item for item in members.learners if item != peer),
    )
