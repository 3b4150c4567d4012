"""Arithmetic of majorities. Pure; knows nothing of peers' state."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum


class Verdict(Enum):
    """How an election stands."""

    PENDING = "pending"
    WON = "won"
    LOST = "lost"


def quorum_size(voters: int) -> int:
    """Smallest number of voters of which any two groups overlap."""
    return voters // 2 + 1


def quorum_value(values: Sequence[int], needed: int = 0) -> int:
    """Largest value that a majority of `values` has reached, or `needed` of them; one value a
    voter, at least one."""
    count = len(values)
    if needed:
        return sorted(values)[count - needed]
    if count == 3:  # The common case, without a sort.
        first, second, third = values
        if first > second:
            first, second = second, first
        return second if second < third else max(first, third)
    return sorted(values)[count - quorum_size(count)]


def tally(
    voters: Iterable[str], votes: Mapping[str, bool], *, all_needed: bool = False, needed: int = 0
) -> Verdict:
    """Outcome of an election among `voters`; votes of others do not count.

    `all_needed` asks for every voter and is lost with the first refusal; `needed` for so many.
    """
    granted = refused = count = 0
    for voter in voters:
        count += 1
        vote = votes.get(voter)
        if vote is not None:
            granted += vote
            refused += not vote
    needed = count if all_needed else needed or quorum_size(count)
    if count and granted >= needed:
        return Verdict.WON
    if refused > count - needed:
        return Verdict.LOST
    return Verdict.PENDING
