"""Planted bugs: the random runs must find each within a bounded number of seeds."""

from collections.abc import Callable

import pytest

from jsctl.broker.raft import election, reads, replication
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.membership import Membership
from jsctl.broker.raft.quorum import quorum_value
from jsctl.broker.raft.ready import Ready
from jsctl.broker.raft.state import RaftState
from jsctl.broker.raft.types import AppendReply, Role, VoteReply, VoteRequest
from tests.broker.raft.chaos import Chaos

Patch = pytest.MonkeyPatch
SEEDS = 400


def _ack_before_sync(patch: Patch) -> None:
    def send_ack(state: RaftState, index: int) -> None:
        assert state.leader is not None
        state.acked = index
        state.send(AppendReply(state.leader, state.me, state.term, index))

    patch.setattr(replication, "send_ack", send_ack)
    _send_promises_at_once(patch)


def _vote_before_sync(patch: Patch) -> None:
    def reply(state: RaftState, m: VoteRequest, *, granted: bool) -> None:
        state.send(VoteReply(m.sender, state.me, m.term, state.term, m.pre, granted))

    patch.setattr(election, "reply", reply)
    _send_promises_at_once(patch)


def _send_promises_at_once(patch: Patch) -> None:
    def guard_promises(raft: Raft, out: Ready) -> None:
        if raft.hard_dirty:
            raft.hard_dirty = False
            out.hard_state = (raft.term, raft.vote)

    patch.setattr(Raft, "guard_promises", guard_promises)


def _commit_of_an_older_term_by_count(patch: Patch) -> None:
    patch.setattr(replication, "may_commit", lambda state, index: True)


def _members_not_reverted(patch: Patch) -> None:
    def truncate(membership: Membership, from_index: int) -> bool:
        while membership.history[-1][0] >= from_index:
            membership.history.pop()
        return False

    patch.setattr(Membership, "truncate", truncate)


def _suspect_campaigns(patch: Patch) -> None:
    def may_campaign(state: RaftState) -> bool:
        return state.me in state.members.voters and state.role is not Role.LEADER

    patch.setattr(election, "may_campaign", may_campaign)


def _suspect_votes_by_its_short_log(patch: Patch) -> None:
    def up_to_date(state: RaftState, m: VoteRequest) -> bool:
        return (m.last_term, m.last_index) >= (state.log.last_term, state.log.last_index)

    patch.setattr(election, "up_to_date", up_to_date)


def _unknown_votes(patch: Patch) -> None:
    patch.setattr(election, "can_vote", lambda state: True)


def _lease_without_margin(patch: Patch) -> None:
    def lease_valid(state: RaftState) -> bool:
        heard = [
            state.now if peer == state.me else state.peers[peer].heard_tick
            for peer in state.members.voters
        ]
        return quorum_value(heard) + state.timing.election_ticks > state.now

    patch.setattr(reads, "lease_valid", lease_valid)


def _no_round_for_reads(patch: Patch) -> None:
    patch.setattr(reads, "lease_valid", lambda state: True)


def _no_first_entry_wait(patch: Patch) -> None:
    def read_index(state: RaftState, token: int) -> None:
        state.dirty = True
        if state.role is Role.LEADER:
            state.out.reads.append((token, state.log.commit))

    patch.setattr(reads, "read_index", read_index)


def _time_that_follows_is_not_counted(patch: Patch) -> None:
    patch.setattr(Raft, "fell_behind", lambda raft, ticks: None)


def _a_due_heartbeat_forgets_reads(patch: Patch) -> None:
    tick = Raft.tick

    def forgetting(raft: Raft) -> None:
        waiting, raft.reads_waiting = raft.reads_waiting, []
        tick(raft)
        if raft.role is Role.LEADER:
            raft.reads_waiting = waiting
        else:
            raft.out.reads_failed.extend(token for token, _, _ in waiting)

    patch.setattr(Raft, "tick", forgetting)


def _damaged(seed: int) -> Chaos:
    return Chaos(seed, nodes=3, damage=True)


def _members(seed: int) -> Chaos:
    return Chaos(seed, nodes=3, spare=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "build"),
    [
        (_ack_before_sync, Chaos),
        (_vote_before_sync, Chaos),
        (_commit_of_an_older_term_by_count, Chaos),
        (_members_not_reverted, _members),
        (_suspect_campaigns, _damaged),
        (_suspect_votes_by_its_short_log, _damaged),
        (_unknown_votes, _damaged),
        (_lease_without_margin, Chaos),
        (_no_round_for_reads, Chaos),
        (_no_first_entry_wait, Chaos),
        (_time_that_follows_is_not_counted, Chaos),
        (_a_due_heartbeat_forgets_reads, Chaos),
    ],
)
def test_planted_bug_is_found(
    plant: Callable[[Patch], None], build: Callable[[int], Chaos], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    for seed in range(SEEDS):
        try:
            build(seed).run()
        except AssertionError:
            print(f"found with seed {seed}")
            return
    pytest.fail(f"not found in {SEEDS} seeds")
