"""Idle groups stop ticking, so that thousands of them cost nothing.

The leader of a group in which nothing is left to do proposes it with its heartbeats; followers
that agree stop at once and say so; the leader stops when every member that is not known to be
down has agreed. Nobody ticks then, so nothing times out: that the servers of the others are alive
must be known from elsewhere (`peer_down`). Any message, proposal, read or bad news wakes a node,
which then starts its timeouts from zero. A lease does not survive the sleep.

A follower may sleep while its leader does not (the answer was lost): the leader asks again.
"""

from jsctl.broker.raft import reads
from jsctl.broker.raft.progress import FollowerProgress
from jsctl.broker.raft.state import RaftState
from jsctl.broker.raft.types import Heartbeat, Role, StandingKind


def wanted(state: RaftState) -> bool:
    """Leader: whether the group may hibernate, as far as this node knows."""
    timing, log = state.timing, state.log
    if not timing.quiet_ticks or state.now - state.active_tick < timing.quiet_ticks:
        return False
    last = log.last_index
    idle = (
        state.serving
        and log.commit == last == log.stable == state.emitted
        and state.transferee is None
        and not state.lowered  # That ends with time, which stands still meanwhile.
        and not state.reads_waiting
        and not state.round_wanted
    )
    if not idle:
        return False
    return sees_quorum(state) and all(
        progress.down or (progress.match == last and progress.standing == StandingKind.WHOLE)
        for progress in state.peers.values()
    )


def sees_quorum(state: RaftState) -> bool:
    """Leader: whether enough voters are not known to be down."""
    voters = state.members.voters
    up = sum(peer == state.me or peer not in state.down for peer in voters)
    return up >= state.needed(len(voters))


def agrees(state: RaftState, m: Heartbeat) -> bool:
    """Follower: whether it has everything, durable, committed and handed out."""
    log = state.log
    return (
        log.last_index == m.last_index
        and log.commit == m.last_index == state.emitted
        and state.durable_match() == m.last_index
        and state.standing.kind == StandingKind.WHOLE
        and m.sender not in state.down
        and not state.lowered
    )


def on_quiet_reply(state: RaftState, progress: FollowerProgress) -> None:
    """Leader: one more member sleeps; the last one lets the leader sleep too."""
    progress.quiet = True
    if wanted(state) and all(p.quiet or p.down for p in state.peers.values()):
        state.quiet = True
        reads.end_lease(state)


def start_proposing(state: RaftState) -> None:
    """Leader: answers to earlier quiet heartbeats no longer count."""
    state.quiet_round = state.round + 1
    for progress in state.peers.values():
        progress.quiet = False


def wake(state: RaftState) -> None:
    """Tick again, with all timeouts from zero."""
    state.quiet = False
    now = state.now
    if state.role is Role.LEADER:
        # The clock stood still meanwhile: leap, so that no late answer looks like a fresh one.
        now = state.now = now + state.timing.election_ticks
        reads.end_lease(state)
        state.active_tick = state.heartbeat_due = state.quorum_due = now
        start_proposing(state)
        for progress in state.peers.values():
            progress.heard_tick = progress.counted_tick = now
    else:
        now += state.behind
        state.heard_tick = now
        state.promise_until = now + state.timing.election_ticks
        state.deadline = now + state.timeout
    state.dirty = True
