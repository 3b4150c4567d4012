"""The log in memory: by example, and against a plain list under random steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.raft.log import RaftLog
from jsctl.broker.raft.types import Entry, EntryKind


def entries(first: int, *terms: int) -> list[Entry]:
    return [Entry(first + i, term, EntryKind.DATA, b"x") for i, term in enumerate(terms)]


def log(*terms: int, base: int = 0, base_term: int = 0, commit: int = 0) -> RaftLog:
    return RaftLog(base, base_term, entries(base + 1, *terms), commit)


def test_terms_of_what_is_there_compacted_and_missing() -> None:
    made = log(2, 3, base=5, base_term=1)

    assert [made.term_at(index) for index in range(4, 9)] == [None, 1, 2, 3, None]
    assert (made.last_index, made.last_term, made.commit) == (7, 3, 5)
    assert log(base=5, base_term=4).last_term == 4


@pytest.mark.parametrize(
    "bad",
    [entries(3, 1), entries(1, 1), [*entries(2, 1), *entries(4, 1)], entries(2, 0)],
    ids=["gap", "overlap", "hole", "term falls"],
)
def test_entries_must_continue_the_log(bad: list[Entry]) -> None:
    with pytest.raises(AssertionError):
        log(1).append(bad)


def test_committed_entries_are_never_truncated() -> None:
    made = log(1, 1, 1, commit=2)
    with pytest.raises(AssertionError, match="committed"):
        made.truncate(2)
    with pytest.raises(AssertionError, match="nothing"):
        made.truncate(4)
    made.truncate(3)
    assert (made.last_index, made.stable) == (2, 2)


def test_truncation_of_what_is_not_durable_keeps_the_durable_mark() -> None:
    made = log(1)
    made.append(entries(2, 1, 1))
    made.truncate(3)
    assert made.stable == 1


def test_commit_cannot_be_beyond_the_end() -> None:
    with pytest.raises(AssertionError, match="committed beyond"):
        log(1, commit=2)


def test_notices_of_replaced_entries_are_ignored() -> None:
    made = log(1)
    made.append(entries(2, 1, 1))
    made.truncate(2)
    made.append(entries(2, 2))

    assert not made.persisted(3, 1)
    assert not made.persisted(2, 1)
    assert made.persisted(2, 2)
    assert not made.persisted(2, 2)
    assert made.stable == 2


def test_first_conflict() -> None:
    made = log(1, 1, 2)

    assert made.first_conflict([]) == 0
    assert made.first_conflict(entries(4, 2)) == 0
    assert made.first_conflict(entries(2, 1, 2)) == 2
    assert made.first_conflict(entries(2, 1, 3)) == 1
    assert made.first_conflict(entries(3, 2, 2)) == 1


def test_back_off_leaps_over_a_run_of_a_higher_term() -> None:
    made = log(1, 1, 3, 3, 3)

    assert made.last_not_above(9, 3) == (5, 3)
    assert made.last_not_above(4, 2) == (2, 1)
    assert made.last_not_above(5, 0) == (0, 0)
    assert log(base=4, base_term=2).last_not_above(9, 1) == (4, 2)


def test_slices() -> None:
    made = log(1, 1, 1, base=2, base_term=1)

    assert [e.index for e in made.slice(3, 4)] == [3, 4]
    assert made.slice(4, 3) == []
    with pytest.raises(AssertionError):
        made.slice(2, 3)
    with pytest.raises(AssertionError):
        made.slice_bytes(2, 10, 10)


def test_slices_by_bytes_hold_at_least_one_and_at_most_the_limits() -> None:
    made = log(1, 1, 1)

    assert [len(made.slice_bytes(1, limit, 9)[0]) for limit in (1, 33, 65, 66, 1000)] == [
        1, 1, 1, 2, 3,
    ]  # fmt: skip
    assert made.slice_bytes(1, 66, 9)[1] == 66
    assert made.slice_bytes(1, 1000, 2)[1] == 66


def test_compaction_remembers_the_base() -> None:
    made = log(1, 2, 2, commit=2)
    made.compact(2, 2)

    assert (made.base_index, made.base_term, made.last_index) == (2, 2, 3)
    with pytest.raises(AssertionError, match="committed"):
        made.compact(3, 2)


def test_restart_keeps_a_suffix_that_belongs_there() -> None:
    made = log(1, 2, 2)

    assert made.restart(2, 2) is None
    assert (made.base_index, made.commit, made.last_index, made.stable) == (2, 2, 3, 3)
    with pytest.raises(AssertionError, match="past"):
        made.restart(2, 2)


def test_restart_drops_what_conflicts_or_is_too_short() -> None:
    made = log(1, 1, 1, commit=1)
    assert made.restart(3, 2) == 2
    assert (made.base_index, made.base_term, made.commit, made.stable) == (3, 2, 3, 1)
    assert made.last_index == 3 and not made.entries

    assert log(1, commit=1).restart(9, 4) is None


class Model:
    """A list of terms; index 1 first."""

    def __init__(self) -> None:
        self.terms: list[int] = []
        self.base = self.commit = self.stable = 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=40))
def test_random_steps_agree_with_a_list(steps: list[tuple[int, int]]) -> None:
    made, model = log(), Model()
    for kind, number in steps:
        last = len(model.terms)
        if kind == 0:
            term = (model.terms[-1] if last else 1) + number // 5
            made.append(entries(last + 1, *[term] * (number % 3)))
            model.terms += [term] * (number % 3)
        elif kind == 1 and last - number > model.commit and number:
            made.truncate(last - number + 1)
            del model.terms[last - number :]
            model.stable = min(model.stable, len(model.terms))
        elif kind == 2:
            made.commit = model.commit = min(last, model.commit + number)
        elif kind == 3 and model.base + number <= model.commit:
            model.base += number
            made.compact(model.base, model.terms[model.base - 1] if model.base else 0)
        elif kind == 4 and number < last:
            made.persisted(number + 1, model.terms[number])
            model.stable = (
                max(model.stable, number + 1) if number + 1 >= model.base else model.stable
            )
        assert [e.term for e in made.entries] == model.terms[model.base :]
        assert made.last_index == len(model.terms) and made.stable == model.stable
