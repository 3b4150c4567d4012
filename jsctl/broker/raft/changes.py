"""Which changes of members a leader may propose now."""

from jsctl.broker.raft.membership import next_members
from jsctl.broker.raft.progress import Flow, FollowerProgress
from jsctl.broker.raft.state import RaftState
from jsctl.broker.raft.types import (
    AddLearner,
    Change,
    Index,
    Members,
    PeerId,
    Promote,
    Role,
    StandingKind,
)


def refusal(state: RaftState, change: Change) -> str:
    """Why a membership change is not possible now; empty when it is."""
    if state.role is not Role.LEADER:
        return "not the leader"
    if state.transferee is not None:
        return "leadership is being handed over"
    if not state.serving:
        return "the leader has not committed an entry of its term yet"
    if state.membership.active_index > state.log.commit:
        return "another change is not committed yet"
    members = next_members(state.members, change)
    if members is None:
        return "the change does not fit the members"
    if isinstance(change, Promote) and not _caught_up(state, change.peer):
        return "the learner has not caught up"
    if isinstance(change, AddLearner) or (not isinstance(change, Promote) and change.forced):
        return ""
    if not _healthy(state, members):
        return "fewer voters than a quorum keep up"
    return ""


def _committed_lately(state: RaftState) -> Index:
    """What was committed one heartbeat ago: who keeps up has it."""
    return min(state.round_commit, state.log.commit)


def _caught_up(state: RaftState, peer: PeerId) -> bool:
    progress = state.peers[peer]
    return (
        progress.flow is Flow.REPLICATE
        and progress.match >= _committed_lately(state)
        and progress.standing == StandingKind.WHOLE
    )


def _healthy(state: RaftState, members: Members) -> bool:
    since = state.now - state.timing.election_ticks
    heard = 0
    for voter in members.voters:
        progress = state.peers.get(voter)
        if voter == state.me:
            heard += 1
        elif progress is not None and _keeps_up(state, progress):
            heard += state.quiet or progress.heard_tick > since
    return heard >= state.needed(len(members.voters))


def _keeps_up(state: RaftState, progress: FollowerProgress) -> bool:
    """Whether a peer is with this leader in its term, with a log that counts.

    One that is behind may be dead, and not be known to be. Were it one of the two voters that are
    left, and its log lost, nobody could lead any more.
    """
    whole = progress.standing == StandingKind.WHOLE
    has = progress.match >= max(state.own_term_index, _committed_lately(state))
    return whole and not progress.down and has
