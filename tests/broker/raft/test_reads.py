"""Reads at a leader, and who confirms that it leads: what transcripts cannot show."""

import pytest

from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import (
    AppendReply,
    Heartbeat,
    HeartbeatReply,
    RaftLimits,
    Role,
    StandingKind,
    VoteReply,
    VoteRequest,
)
from tests.broker.raft.single import data, follower, leader, role, serving, settle, take


def test_reads_are_bounded() -> None:
    raft = serving(RaftLimits(reads_max=1))
    raft.read_index(1)
    raft.read_index(2)
    assert raft.ready().reads_failed == [2]


def test_a_read_takes_the_round_that_was_due_anyway() -> None:
    """A turn that comes late has a request first, and then the time that went by."""
    raft = serving()
    for _ in range(raft.timing.lease_ticks):
        raft.tick()
    settle(raft)
    raft.read_index(1)
    while raft.round_wanted:
        raft.tick()
    rounds = [m.round for m in raft.ready().send if isinstance(m, Heartbeat) and m.to == "b"]
    assert len(rounds) == 1
    raft.step([HeartbeatReply("a", "b", raft.term, rounds[0], raft.now, raft.commit)])
    assert raft.ready().reads == [(1, raft.commit)]


@pytest.mark.parametrize("more", ["nothing", "its leader's server goes down", "it sleeps"])
def test_a_follower_that_was_held_up_keeps_what_it_promises_now(more: str) -> None:
    """Its answer extends the leader's lease: the ticks that come late went by before it."""
    raft = follower(*data(1, 2))
    settle(raft)
    timing = raft.timing
    late = timing.election_ticks + 4
    raft.fell_behind(late)
    raft.step([Heartbeat("a", "b", 2, 1, 1, 50, quiet=more == "it sleeps", last_index=1)])
    (reply,) = take(raft).send
    assert isinstance(reply, HeartbeatReply) and reply.tick == 50
    if more == "its leader's server goes down":
        raft.peer_down("b")
    for _ in range(late + timing.lease_ticks):
        raft.tick()
    raft.step([VoteRequest("a", "c", 3, 9, 2, pre=True)])
    (vote,) = take(raft).send
    assert isinstance(vote, VoteReply) and not vote.granted
    assert role(raft) is Role.FOLLOWER


def _alive(raft: Raft, standing: StandingKind) -> HeartbeatReply:
    return HeartbeatReply("a", "b", raft.term, raft.round, raft.now, raft.commit, standing=standing)


def test_who_forgot_everything_confirms_no_read() -> None:
    """It may have voted for somebody who leads by now, and committed with that one."""
    raft = serving()
    raft.read_index(1)
    assert raft.ready().send
    raft.step([_alive(raft, StandingKind.UNKNOWN)])
    assert not raft.ready().reads
    raft.step([_alive(raft, StandingKind.SUSPECT)])
    assert raft.ready().reads == [(1, raft.commit)]


@pytest.mark.parametrize("standing", StandingKind)
def test_a_leader_that_hears_only_who_forgot_everything_steps_down(standing: StandingKind) -> None:
    raft = serving()
    for _ in range(raft.timing.election_ticks + raft.timing.heartbeat_ticks):
        raft.read_index(raft.now)
        raft.tick()
        raft.ready()
        raft.step([_alive(raft, standing)])
    expected = Role.FOLLOWER if standing is StandingKind.UNKNOWN else Role.LEADER
    assert role(raft) is expected


def test_early_reads_fail_with_the_leadership() -> None:
    raft = leader()
    raft.read_index(1)
    raft.step([AppendReply("a", "b", raft.term + 1, 0, True)])
    assert role(raft) is Role.FOLLOWER
    assert raft.ready().reads_failed == [1]
