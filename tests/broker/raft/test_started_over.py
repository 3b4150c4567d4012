"""Groups in memory that start over: who has to agree, as far as transcripts cannot show it."""

import pytest

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Append, Role, VoteReply
from tests.broker.raft.single import ABC, data, role, settle, take


def without_leader() -> Raft:
    """A node of a group in memory; the process of b has ended."""
    raft = Raft("a", members=ABC, term=1, volatile=True, jitter=lambda n: 0)
    raft.lost_memory(frozenset("b"))
    for _ in range(2 * raft.timing.election_ticks):
        raft.tick()
    take(raft)
    return raft


def forgot(raft: Raft) -> None:
    """c has been restarted."""
    raft.step([VoteReply("a", "c", raft.term + 1, raft.term, True, False, True)])


def test_who_lost_what_it_held_is_not_asked() -> None:
    raft = without_leader()
    forgot(raft)
    assert role(raft) is Role.CANDIDATE


@pytest.mark.parametrize("leader", ["c", "a"])
def test_who_was_gone_before_the_last_leader_is_asked_again(leader: str) -> None:
    """It came back meanwhile, and may be the only one that has what was committed with it."""
    raft = without_leader()
    if leader == "c":
        raft.step([Append("a", "c", 2, 0, 0, 0, data(1, 2))])
    else:
        forgot(raft)
        raft.step([VoteReply("a", "c", raft.term, raft.term, False, True)])
        assert role(raft) is Role.LEADER
    settle(raft)
    for _ in range(3 * raft.timing.election_ticks):
        raft.tick()  # Nobody is heard any more.
        settle(raft)
    assert role(raft) is Role.PRE_CANDIDATE
    forgot(raft)
    assert role(raft) is Role.PRE_CANDIDATE
