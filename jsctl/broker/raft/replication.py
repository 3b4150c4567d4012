"""Entries from the leader to everyone, acks back, and commit.

The leader sends entries while its own disk syncs; a node counts for an entry only when it is
durable there. Appends are built when a Ready is taken, so one append carries all of a turn.
"""

from jsctl.broker.raft import hibernation, reads
from jsctl.broker.raft.election import become_follower
from jsctl.broker.raft.progress import Flow, FollowerProgress
from jsctl.broker.raft.quorum import quorum_value
from jsctl.broker.raft.state import RaftState
from jsctl.broker.raft.types import (
    RESCUED,
    Append,
    AppendReply,
    Entry,
    EntryKind,
    Heartbeat,
    HeartbeatReply,
    Index,
    PeerId,
    Role,
    StandingKind,
    TimeoutNow,
)

# -- leader: sending -------------------------------------------------------------------------------


def send_appends(state: RaftState) -> None:
    """Send every peer what it lacks and may be sent."""
    state.send_dirty = False
    for peer, progress in state.peers.items():
        send_to(state, peer, progress)
    state.telling = False


def send_to(state: RaftState, peer: PeerId, progress: FollowerProgress) -> None:
    """Send one peer entries and the commit index, as far as flow control lets.

    A `resend` goes out even when the window is full, but without entries then: a peer that
    lacks what is in the window rejects it, one that is only slow stays silent.
    """
    log, limits = state.log, state.limits
    while True:
        full = progress.blocked(limits.inflight_bytes_max)
        if full and not (progress.resend and progress.flow is Flow.REPLICATE):
            return
        prev = progress.next - 1
        prev_term = log.term_at(prev)
        if prev_term is None:
            progress.become_snapshot()
            state.out.needs_snapshot.append(peer)
            return
        if prev == log.last_index or full:
            if progress.flow is Flow.REPLICATE and not progress.resend:
                if log.commit <= progress.commit_sent:
                    return
                asked = state.telling or progress.commit_sent < progress.asked
                if state.patient and not asked:
                    state.out.untold = True
                    return
            entries: list[Entry] = []
            size = 0
        else:
            entries, size = log.slice_bytes(
                progress.next, limits.append_bytes_max, limits.append_entries_max
            )
        append = Append(peer, state.me, state.term, prev, prev_term, log.commit, entries)
        state.out.send.append(append)
        progress.commit_sent = log.commit
        progress.resend = False
        if not entries:
            progress.paused = progress.flow is Flow.PROBE
            return
        progress.sent(prev + len(entries), size)


def send_heartbeats(state: RaftState) -> None:
    """Start a new round: it shows life, carries commit, and confirms the lease and the reads that
    wait for one, whoever wanted it."""
    state.round += 1
    state.round_wanted = False
    state.heartbeat_due = state.now + state.timing.heartbeat_ticks
    quiet = hibernation.wanted(state)
    if not quiet:
        hibernation.start_proposing(state)
    commit, last_index = state.log.commit, state.log.last_index
    for peer, progress in state.peers.items():
        known = min(progress.match, commit)
        state.send(
            Heartbeat(peer, state.me, state.term, known, state.round, state.now, quiet, last_index)
        )
    state.round_commit = commit
    if state.reads_waiting:
        reads.assign_round(state)


# -- leader: answers -------------------------------------------------------------------------------


def leads(state: RaftState, term: int, sender: PeerId) -> FollowerProgress | None:
    """Progress of the sender of an answer to this leader; None when it does not count."""
    if term > state.term:
        become_follower(state, term, None)
        return None
    if state.role is not Role.LEADER or term < state.term:
        return None
    progress = state.peers.get(sender)
    if progress is not None:
        progress.heard_tick = state.now
    return progress


def on_append_reply(state: RaftState, m: AppendReply) -> None:
    """An ack moves the peer's match and perhaps the commit index; a rejection probes back."""
    progress = leads(state, m.term, m.sender)
    if progress is None:
        return
    note_standing(state, progress, m.standing)
    if not m.rejected:
        if m.index <= progress.match:  # What is no news is a question.
            progress.asked = progress.next - 1
            if progress.commit_sent < min(state.log.commit, progress.asked):
                state.send_dirty = state.dirty = True
        note_match(state, m.sender, progress, m.index)
        return
    if m.standing != StandingKind.WHOLE and m.hint_index < progress.match:
        progress.lost(m.hint_index)
        state.send_dirty = state.dirty = True
        return
    conflict, _ = state.log.last_not_above(m.hint_index, m.hint_term)
    if conflict == state.log.base_index and m.hint_index < conflict:
        conflict = m.hint_index
    if progress.rejected(m.index, conflict):
        state.send_dirty = state.dirty = True


def on_heartbeat_reply(state: RaftState, m: HeartbeatReply) -> None:
    """Confirms the lease and reads; makes good lost appends and acks."""
    progress = leads(state, m.term, m.sender)
    if progress is None:
        return
    note_standing(state, progress, m.standing)
    if m.standing != StandingKind.WHOLE and m.match < progress.match:
        progress.lost(m.match)
    if m.match >= progress.match and m.match > 0:
        note_match(state, m.sender, progress, m.match)
    if m.standing == StandingKind.UNKNOWN and not progress.shown and state.serving:
        _show(state, progress, m.match)
    if m.match < state.log.last_index or progress.flow is Flow.PROBE:
        if progress.flow is Flow.PROBE:
            progress.paused = False
        progress.resend = True
        state.send_dirty = state.dirty = True
    if m.standing != StandingKind.UNKNOWN:
        # Who forgot its term may have voted for a later leader, which it does not tell any more.
        progress.acked_tick = max(progress.acked_tick, m.tick)
        progress.acked_round = max(progress.acked_round, m.round)
    if m.quiet and m.round >= state.quiet_round:
        hibernation.on_quiet_reply(state, progress)
    if state.reads_waiting:
        reads.release(state)


def _show(state: RaftState, progress: FollowerProgress, match: Index) -> None:
    """A damaged or new peer has all there is: an entry that comes after it began lets it see that
    no vote which it may have forgotten counts any more."""
    log = state.log
    if match == log.last_index == log.commit:
        progress.shown = True
        state.append([Entry(log.last_index + 1, state.term, EntryKind.EMPTY, b"")])
        state.verified = log.last_index
        state.active_tick = state.now
        state.send_dirty = True


def note_standing(state: RaftState, progress: FollowerProgress, standing: StandingKind) -> None:
    """A peer that is no longer UNKNOWN counts from now on."""
    if standing != StandingKind.UNKNOWN:
        progress.counted_tick = state.now
    if progress.standing != standing:
        progress.standing = standing
        progress.shown = False
        maybe_commit(state)


def note_match(state: RaftState, peer: PeerId, progress: FollowerProgress, index: Index) -> None:
    """A peer has durably everything up to `index`."""
    if index > state.log.last_index:
        return  # Of a log that the others went on without: it will find that out itself.
    if progress.flow is Flow.SNAPSHOT:
        if index < state.log.base_index:
            return
        progress.become_probe(index + 1)
    was_blocked = progress.blocked(state.limits.inflight_bytes_max)
    news = progress.acked(index)
    if news or was_blocked:
        maybe_commit(state)
        if progress.next <= state.log.last_index or was_blocked:
            state.send_dirty = state.dirty = True
    if peer == state.transferee and progress.match == state.log.last_index:
        send_timeout_now(state, peer)


def send_timeout_now(state: RaftState, peer: PeerId) -> None:
    """Tell a peer to campaign at once.

    It may do so much later, if the message is late: the lease is over for the rest of the term.
    """
    state.lease_allowed = False
    state.send(TimeoutNow(peer, state.me, state.term))


def maybe_commit(state: RaftState) -> None:
    """Leader: commit what is durable at a quorum of voters."""
    if state.role is not Role.LEADER:
        return
    log = state.log
    voters = state.members.voters
    if len(voters) == 1 and voters[0] == state.me:
        index = log.stable
    else:
        durable = [durable_at(state, peer) for peer in voters]
        if state.lowered and quorum_value(durable) >= state.own_term_index:
            state.lowered = 0  # A majority is there again. Cut off once more, it would go on alone.
        index = quorum_value(durable, state.lowered)
    if index > log.commit and may_commit(state, index):
        advance_commit(state, index)


def durable_at(state: RaftState, peer: PeerId) -> Index:
    """Up to where a voter counts. UNKNOWN ones do not, they may have forgotten a later term."""
    if peer == state.me:
        return state.log.stable
    progress = state.peers[peer]
    return 0 if progress.standing == StandingKind.UNKNOWN else progress.match


def may_commit(state: RaftState, index: Index) -> bool:
    """Only entries of the own term are committed by counting (raft paper, figure 8)."""
    return index >= state.own_term_index


def advance_commit(state: RaftState, index: Index) -> None:
    """Leader: `index` is committed; what waited for it goes ahead."""
    log = state.log
    for entry in log.slice(log.commit + 1, index):
        state.pending_bytes -= len(entry.data)
    log.commit = index
    state.active_tick = state.now
    state.dirty = True
    if state.peers:
        state.send_dirty = True
    if not state.serving:
        state.serving = True
        state.out.serving = True
        reads.start_early(state)
    if state.me not in state.members.voters and index >= state.membership.active_index:
        _leave(state)


def _leave(state: RaftState) -> None:
    """This leader's own removal is committed: tell everyone, hand over, step down."""
    send_appends(state)
    best = best_voter(state)
    if best is not None:
        send_timeout_now(state, best)
    become_follower(state, state.term, None)


def best_voter(state: RaftState) -> PeerId | None:
    """The voter to hand over to: whole, heard lately, with the longest log."""
    since = state.now - state.timing.election_ticks
    able = [
        (progress.match, peer)
        for peer, progress in state.peers.items()
        if not progress.learner
        and not progress.down
        and progress.standing == StandingKind.WHOLE
        and progress.heard_tick > since
    ]
    return max(able)[1] if able else None


# -- follower --------------------------------------------------------------------------------------


def hear_leader(state: RaftState, term: int, leader: PeerId) -> bool:
    """Take note of a leader's message; False when it comes from a past term."""
    if term < state.term:
        return False
    if term > state.term or state.leader != leader or state.role is not Role.FOLLOWER:
        # Invariant: one leader a term.
        assert state.role is not Role.LEADER or term > state.term, "two leaders in one term"
        assert state.leader is None or term > state.term, "two leaders in one term"
        become_follower(state, term, leader)
    # Ticks that are still to come went by before this: the promise begins behind them.
    now = state.now + state.behind
    state.heard_tick = now
    state.promise_until = now + state.timing.election_ticks
    state.deadline = now + state.timeout
    return True


def on_append(state: RaftState, m: Append) -> None:
    """Store entries that continue the log, or say where it may continue."""
    if not hear_leader(state, m.term, m.sender):
        _reply_stale(state, m.sender, m.prev_index)
        return
    log = state.log
    prev, entries = m.prev_index, m.entries
    if prev < log.commit:
        # What is committed matches by definition, and may be compacted: start behind it.
        skip = min(log.commit - prev, len(entries))
        if state.superseded or _contradicts(state, entries[:skip]):
            return
        entries = entries[skip:]
        # A leader of a group that started over may not have as much as is committed here, nor one
        # that an operator made it; what is compacted here cannot be compared.
        met = min(log.commit, prev + skip)
        prev = met if state.volatile or log.term_at(met) is not None else log.commit
    elif log.term_at(prev) != m.prev_term:
        _reject(state, m)
        return
    if log.last_index < state.reached and _goes_another_way(state, entries):
        return
    position = log.first_conflict(entries)
    if position < len(entries):
        first = entries[position].index
        if first <= log.last_index:
            state.truncate(first)
        state.append(entries[position:] if position else entries)
    matched = prev + len(entries)
    state.verified = max(state.verified, matched)
    commit_to(state, m.commit)
    acknowledge(state, matched)


def _contradicts(state: RaftState, entries: list[Entry]) -> bool:
    """Whether a leader has others in place of committed entries."""
    for entry in entries:
        term = state.log.term_at(entry.index)
        if term is not None and term != entry.term:
            state.superseded = True
            return True
    return False


def _goes_another_way(state: RaftState, entries: list[Entry]) -> bool:
    """Whether the group was rescued before an entry that this node applied and lost from its log:
    what it applied from there on is not what the others have."""
    for entry in entries:
        if entry.index <= state.reached and entry.data == RESCUED and entry.kind is EntryKind.EMPTY:
            state.superseded = True
            return True
    return False


def _reply_stale(state: RaftState, sender: PeerId, index: Index) -> None:
    """Tell the leader of a past term which term it is."""
    state.send_after_sync(
        AppendReply(sender, state.me, state.term, index, True, 0, 0, state.standing.kind)
    )


def _reject(state: RaftState, m: Append) -> None:
    hint_index, hint_term = state.log.last_not_above(m.prev_index, m.prev_term)
    if hint_index == m.prev_index:  # The same index with a lower term here: it is no match.
        hint_index, hint_term = state.log.last_not_above(hint_index - 1, m.prev_term)
    state.send_after_sync(
        AppendReply(
            m.sender,
            state.me,
            state.term,
            m.prev_index,
            True,
            hint_index,
            hint_term,
            state.standing.kind,
        )
    )


def commit_to(state: RaftState, commit: Index) -> None:
    """Follower: take the leader's commit index as far as the log is verified."""
    state.leader_commit = max(state.leader_commit, commit)
    commit = min(commit, state.verified)
    if commit > state.log.commit:
        state.log.commit = commit
        state.dirty = True
    if state.standing.kind != StandingKind.WHOLE:
        state.review_standing()


def acknowledge(state: RaftState, matched: Index) -> None:
    """Follower: promise what is verified, once it is durable.

    The ack may go with this Ready when the entries are durable already or written by it. What an
    earlier Ready is still writing is owed: this one may have nothing to write to wait for.
    """
    if matched <= state.acked:
        return
    if matched > state.log.stable and not (state.out.append or state.writes()):
        state.owed = matched
        matched = state.log.stable
        if matched <= state.acked:
            return
    send_ack(state, matched)


def send_ack(state: RaftState, index: Index) -> None:
    """Follower: tell the leader what is, or will be with this Ready, durable."""
    assert state.leader is not None
    state.acked = index
    waiting = state.out.send_after_sync
    if waiting:
        last = waiting[-1]
        if (
            isinstance(last, AppendReply)
            and not last.rejected
            and last.to == state.leader
            and last.term == state.term
        ):
            last.index = index
            return
    state.send_after_sync(
        AppendReply(state.leader, state.me, state.term, index, standing=state.standing.kind)
    )


def _note_lead(state: RaftState, m: Heartbeat) -> None:
    """A leader has all that is committed, unless an operator made it one without a majority. That
    it has not is believed when it is seen for a while: what is here is given up then."""
    if state.volatile or m.last_index >= max(state.log.commit, state.reached):
        state.far_behind = None
    elif state.far_behind is None or m.tick < state.far_behind:
        state.far_behind = m.tick
    elif m.tick - state.far_behind > state.timing.election_ticks:
        state.superseded = True


def on_heartbeat(state: RaftState, m: Heartbeat) -> None:
    """Answer a leader's sign of life."""
    if not hear_leader(state, m.term, m.sender):
        _reply_stale(state, m.sender, 0)
        return
    state.leader_last = m.last_index
    _note_lead(state, m)
    if state.leader_end is None:
        state.leader_end = m.last_index
    commit_to(state, m.commit)
    quiet = m.quiet and hibernation.agrees(state, m)
    state.quiet = quiet
    state.send(
        HeartbeatReply(
            m.sender,
            state.me,
            state.term,
            m.round,
            m.tick,
            state.durable_match(),
            quiet,
            state.standing.kind,
        )
    )


def on_persisted(state: RaftState, index: Index, term: int) -> None:
    """Own entries are durable: count them, or pay owed acks."""
    if not state.log.persisted(index, term):
        return
    state.dirty = True
    if state.role is Role.LEADER:
        maybe_commit(state)
        return
    if state.standing.kind != StandingKind.WHOLE:
        state.review_standing()
    if state.owed and state.leader is not None:
        reached = min(state.owed, state.durable_match())
        if state.owed <= reached:
            state.owed = 0
        if reached > state.acked:
            send_ack(state, reached)
