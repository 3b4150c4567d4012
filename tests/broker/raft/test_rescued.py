"""An operator had a group go on with less than a majority: what becomes of those who had more."""

import pytest

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import (
    RESCUED,
    UNKNOWN,
    WHOLE,
    Append,
    AppendReply,
    Entry,
    EntryKind,
    Heartbeat,
    HeartbeatReply,
    Members,
    Role,
    VoteReply,
)
from tests.broker.raft.single import ABC, ALONE, ack, asleep, data, node, role, settle, take

TERM = 5
TICKS = 16
"""Of one election timeout."""


def rescued(term: int, index: int) -> Entry:
    """What such a leader begins with."""
    return Entry(index, term, EntryKind.EMPTY, RESCUED)


def append(prev: int, prev_term: int, *entries: Entry, commit: int = 0) -> Append:
    """From the rescued leader."""
    return Append("b", "a", TERM, prev, prev_term, commit, list(entries))


def applied(terms: list[int], reached: int, base: int = 0, **more: object) -> Raft:
    """A server that was away, whose state machine stands at `reached`."""
    entries = data(base + 1, *terms) if terms else []
    return Raft(
        "b",
        members=ABC,
        term=1,
        base_index=base,
        base_term=1 if base else 0,
        entries=entries,
        applied=base,
        reached=reached,
        jitter=lambda n: 0,
        **more,  # type: ignore[arg-type]
    )


def test_the_log_tells_that_less_than_a_majority_elected() -> None:
    raft = node(ABC, [1])
    assert raft.rescue(1) == ""
    first = next(entry for entry in take(raft).append if entry.term == raft.term)
    assert (first.kind, first.data) == (EntryKind.EMPTY, RESCUED)


def test_one_is_not_enough_any_more_when_a_majority_is_there_again() -> None:
    raft = node(ABC, [1])
    raft.rescue(1)
    settle(raft)
    ack(raft, "b", raft.last_index - 1)
    assert raft.lowered == 1, "what others had before says nothing of now"
    ack(raft, "b", raft.last_index)
    assert raft.lowered == 0
    before = raft.commit
    assert raft.propose([b"x"])
    settle(raft)
    assert raft.commit == before, "cut off from here on, it does not go on alone"


def test_one_is_not_enough_any_more_where_another_one_leads() -> None:
    raft = node(ABC, [1])
    raft.rescue(1)
    settle(raft)
    raft.step([Append("a", "b", raft.term + 1, 1, 1, 0, [])])
    assert raft.lowered == 0


@pytest.mark.parametrize("lowered", [0, 2])
def test_a_group_does_not_sleep_while_less_than_a_majority_is_enough(lowered: int) -> None:
    """The five minutes would not end: time stands still for those that sleep."""
    raft = node(Members(("a", "b", "c", "d", "e")), [1])
    for _ in range(raft.timing.election_ticks):
        raft.tick()
    settle(raft)
    raft.rescue(lowered or 3)
    for pre in (True, False):
        term = raft.term + pre
        for voter in "b" if lowered else "bc":
            raft.step([VoteReply("a", voter, term, raft.term, pre, True)])
    assert role(raft) is Role.LEADER
    for voter in "cde":
        raft.peer_down(voter) if lowered or voter == "d" else ack(raft, voter, raft.last_index)
    ack(raft, "b", raft.last_index)
    for _ in range(3 * raft.timing.quiet_ticks):
        beats = [one for one in take(raft).send if isinstance(one, Heartbeat)]
        raft.step(
            [
                HeartbeatReply("a", m.to, m.term, m.round, m.tick, raft.last_index, m.quiet)
                for m in beats
                if m.to not in raft.down
            ]
        )
        raft.tick()
    assert asleep(raft) is not bool(lowered)


def test_a_group_of_one_is_its_own_majority() -> None:
    raft = node(ALONE, [1])
    settle(raft)
    assert all(entry.data != RESCUED for entry in raft.log.entries if entry.kind is EntryKind.EMPTY)


@pytest.mark.parametrize("elections", [1, 2, 1000])
def test_no_election_of_the_others_reaches_the_term_of_the_rescued(elections: int) -> None:
    """Two entries with one index and one term are taken for the same, and a later term wins."""
    raft = node(ABC, [1, 1], term=1)
    raft.rescue(1)
    settle(raft)
    theirs = 1 + elections
    away = applied([1, 1, theirs, theirs], 4)
    away.step([Heartbeat("b", "c", theirs, 4, 0, 1, quiet=False, last_index=4)])
    away.step([Append("b", "a", raft.term, 2, 1, 0, raft.log.slice(3, raft.last_index))])
    assert away.superseded


def test_two_that_are_rescued_alone_lead_in_terms_of_their_own() -> None:
    terms = set()
    for share in (0, 1):
        raft = Raft("a", members=ABC, term=1, entries=data(1, 1), jitter=share.__rmul__)
        assert raft.rescue(1) == ""
        terms.add(raft.term)
    assert len(terms) == 2


def test_what_the_state_has_applied_was_committed() -> None:
    raft = applied([1, 1, 1, 1], 3)
    assert raft.commit == 3
    assert [entry.index for entry in take(raft).committed] == [1, 2, 3]


@pytest.mark.parametrize("reached", [3, 4])
def test_other_entries_in_place_of_what_was_applied_void_this_replica(reached: int) -> None:
    raft = applied([1, 1, 1, 1], reached)
    raft.step([append(2, 1, rescued(TERM, 3))])
    assert raft.superseded


def test_what_was_not_applied_just_goes() -> None:
    raft = applied([1, 1, 1, 1], 2)
    raft.step([append(2, 1, rescued(TERM, 3))])
    settle(raft)
    assert not raft.superseded
    assert (raft.last_index, raft.log.last_term) == (3, TERM)


def test_a_log_that_lost_what_was_applied_is_told_by_the_first_entry_of_the_rescued() -> None:
    raft = applied([1, 1], 6, standing=UNKNOWN)
    raft.step([append(2, 1, *data(3, 1, 1), rescued(TERM, 5))])
    assert raft.superseded


def test_a_log_that_lost_what_was_applied_is_whole_when_it_has_that_again() -> None:
    raft = applied([1, 1], 6, standing=UNKNOWN, hard_state_known=True)
    raft.step([Heartbeat("b", "a", TERM, 0, 1, 0, quiet=False, last_index=7)])
    raft.step([append(2, 1, *data(3, 1, TERM), commit=4)])
    settle(raft)
    assert (raft.commit, raft.standing) == (4, UNKNOWN)
    raft.step([append(4, TERM, *data(5, TERM, TERM, TERM), commit=7)])
    settle(raft)
    assert not raft.superseded
    assert raft.standing == WHOLE


def test_a_leader_that_lacks_what_is_committed_is_believed_after_a_while() -> None:
    raft = applied([], 9, base=9)

    def beat(tick: int, last: int) -> None:
        raft.step([Heartbeat("b", "a", TERM, 0, 0, tick, quiet=False, last_index=last)])

    beat(1, 5)
    beat(TICKS, 9)
    beat(TICKS + 1, 5)
    beat(2 * TICKS, 5)
    assert not raft.superseded
    beat(2 * TICKS + 2, 5)
    assert raft.superseded


def test_an_ack_of_more_than_the_leader_has_counts_for_nothing() -> None:
    raft = node(ABC, [1])
    raft.rescue(1)
    settle(raft)
    assert role(raft).name == "LEADER"
    last = raft.last_index
    raft.step([AppendReply("a", "b", raft.term, last + 7)])
    assert raft.progress()[0].match < last
    ack(raft, "b", last)
    assert raft.progress()[0].match == last
