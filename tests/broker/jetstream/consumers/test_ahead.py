"""What is known to come is all that comes, or nothing is said to be known."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.jetstream.consumers.ahead import AHEAD_MAX, Ahead

batches = st.lists(st.lists(st.booleans(), min_size=1, max_size=9), max_size=9)


def without_thirds(seqs: Sequence[int]) -> list[int]:
    """Some were removed."""
    return [seq for seq in seqs if seq % 3]


@given(batches, st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9)), max_size=9))
def test_it_is_all_or_nothing(stored: list[list[bool]], looks: list[tuple[int, int]]) -> None:
    ahead, seqs, first = Ahead(), list[int](), 1
    told: int | None = None
    for batch in stored:
        passing = [first + at for at, passes in enumerate(batch) if passes]
        if passing:
            told = told or first
            ahead.stored(first, passing)
            seqs += passing
        first += len(batch)
    for cursor, count in looks:
        found = ahead.next(cursor, count, without_thirds)
        there = [seq for seq in without_thirds(seqs) if seq >= cursor]
        assert found is None or found == there[:count]
        assert found is not None or told is None or cursor < max(told, *[at for at, _ in looks])


def test_who_is_far_behind_looks_for_itself() -> None:
    ahead = Ahead()
    ahead.stored(1, range(1, AHEAD_MAX + 1))
    assert ahead.next(1, 2, list) == [1, 2]
    ahead.stored(AHEAD_MAX + 1, [AHEAD_MAX + 1])
    assert ahead.next(1, 2, list) is None
    ahead.stored(AHEAD_MAX + 2, [AHEAD_MAX + 2])
    assert ahead.next(AHEAD_MAX + 1, 1, list) is None
    assert ahead.next(AHEAD_MAX + 2, 1, list) == [AHEAD_MAX + 2]
