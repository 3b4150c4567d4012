"""Linearizable reads on the leader: by lease, or by a heartbeat round.

Lease: voters that answered a heartbeat elect no one for `lease_ticks + margin_ticks` after they
*received* it, which is after it was *sent*. So the leader may count from the sending, of the
heartbeats that a quorum has answered, and is alone for `lease_ticks`. The margin covers that a
tick is a step, and clocks that run apart. A caller that was held up, and takes messages before all
of the ticks that it missed, says first how many follow (`Raft.fell_behind`): they count here, so
that an expired lease shows.

Round: a heartbeat sent after the read arrived and answered by a quorum proves that no later
leader had committed anything by then. All reads of a turn share one round.

A follower that reads what it has itself needs to know how much of that is committed. What it has
acknowledged already, acknowledged again, is the question.
"""

from jsctl.broker.raft.progress import NEVER
from jsctl.broker.raft.quorum import quorum_value
from jsctl.broker.raft.state import RaftState
from jsctl.broker.raft.types import AppendReply, Role


def read_index(state: RaftState, token: int) -> None:
    """Answer `token` in a Ready's `reads` once it is safe, or in `reads_failed`."""
    state.dirty = True
    waiting = len(state.reads_waiting) + len(state.early_reads)
    if state.role is not Role.LEADER or waiting >= state.limits.reads_max:
        state.out.reads_failed.append(token)
        return
    state.active_tick = state.now
    if not state.serving:
        state.early_reads.append(token)
    elif lease_valid(state):
        state.out.reads.append((token, state.log.commit))
    else:
        state.reads_waiting.append((token, state.log.commit, 0))
        state.round_wanted = True


def ask(state: RaftState) -> None:
    """Follower: have the leader tell what is committed of what is in the log, once it is."""
    log, leader = state.log, state.leader
    if state.role is not Role.FOLLOWER or leader is None:
        return
    if log.last_index <= max(log.commit, state.asked):
        return
    index = min(state.acked, log.stable)
    # This waits for no sync. An entry of this term that is on the disk says that the term is, too:
    # nothing is promised that was not.
    if log.term_at(index) == state.term:
        state.asked = log.last_index
        state.send(AppendReply(leader, state.me, state.term, index, standing=state.standing.kind))


def start_early(state: RaftState) -> None:
    """The leader's first own entry is committed: reads that waited for it start."""
    tokens, state.early_reads = state.early_reads, []
    for token in tokens:
        read_index(state, token)


def lease_valid(state: RaftState) -> bool:
    """Whether no other leader can exist at this moment."""
    voters = state.members.voters
    if len(voters) == 1 and voters[0] == state.me:
        return True
    if not state.lease_allowed or state.quiet:
        return False
    return quorum_tick(state) + state.timing.lease_ticks > state.now + state.behind


def quorum_tick(state: RaftState) -> int:
    """The tick since which a quorum is known to follow: when its heartbeats were sent."""
    progress = state.peers
    return quorum_value(
        [
            state.now if peer == state.me else progress[peer].acked_tick
            for peer in state.members.voters
        ],
        state.lowered,
    )


def assign_round(state: RaftState) -> None:
    """Reads that wait for the next round wait for the one that was just sent."""
    current = state.round
    state.reads_waiting = [
        (token, index, round_ or current) for token, index, round_ in state.reads_waiting
    ]
    if state.members.voters == (state.me,):
        release(state)  # The others left while reads waited for them: nobody will answer.


def release(state: RaftState) -> None:
    """Answer the reads whose round a quorum has answered."""
    progress = state.peers
    done = quorum_value(
        [
            state.round if peer == state.me else progress[peer].acked_round
            for peer in state.members.voters
        ],
        state.lowered,
    )
    waiting = state.reads_waiting
    count = 0
    while count < len(waiting) and 0 < waiting[count][2] <= done:
        count += 1
    if count:
        state.out.reads.extend((token, index) for token, index, _ in waiting[:count])
        del waiting[:count]
        state.dirty = True


def end_lease(state: RaftState) -> None:
    """Forget what confirmed the lease; the next read needs a fresh round."""
    for progress in state.peers.values():
        progress.acked_tick = NEVER
