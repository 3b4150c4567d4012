"""Majorities against a brute-force model."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.raft.quorum import Verdict, quorum_size, quorum_value, tally

VALUES = st.lists(st.integers(0, 20), min_size=1, max_size=7)


@given(st.integers(1, 9))
def test_any_two_quorums_overlap_and_smaller_ones_need_not(voters: int) -> None:
    size = quorum_size(voters)
    assert 2 * size > voters
    assert 2 * (size - 1) <= voters


@given(VALUES)
def test_quorum_value_is_the_best_that_some_quorum_shares(values: list[int]) -> None:
    quorums = combinations(values, quorum_size(len(values)))
    assert quorum_value(values) == max(min(quorum) for quorum in quorums)


@given(
    st.integers(1, 7),
    st.dictionaries(st.sampled_from("abcdefghi"), st.booleans()),
    st.booleans(),
)
def test_tally_is_decided_when_no_outstanding_vote_can_change_it(
    count: int, votes: dict[str, bool], all_needed: bool
) -> None:
    voters = "abcdefg"[:count]
    needed = count if all_needed else quorum_size(count)
    granted = sum(votes.get(voter) is True for voter in voters)
    open_votes = sum(voter not in votes for voter in voters)
    if granted >= needed:
        expected = Verdict.WON
    elif granted + open_votes < needed:
        expected = Verdict.LOST
    else:
        expected = Verdict.PENDING

    assert tally(voters, votes, all_needed=all_needed) is expected


def test_nobody_elects_nobody() -> None:
    assert tally([], {}) is not Verdict.WON
    assert tally([], {}, all_needed=True) is not Verdict.WON
