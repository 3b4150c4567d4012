"""Who leads: timeouts, pre-votes, votes, stickiness, transfer, and starting over.

A node asks for pre-votes first (`term` + 1, nothing is changed anywhere by that), then for votes.
Voters refuse both while their promise to a leader runs, unless that leader asked for the election
itself (`transfer`). SUSPECT and UNKNOWN nodes never campaign (`Standing`).
"""

from jsctl.broker.raft.codec import encode_members
from jsctl.broker.raft.progress import NEVER
from jsctl.broker.raft.quorum import Verdict, quorum_size, tally
from jsctl.broker.raft.state import RaftState
from jsctl.broker.raft.types import (
    RESCUED,
    RESCUED_TERMS,
    Entry,
    EntryKind,
    Members,
    PeerId,
    Role,
    StandingKind,
    Term,
    TimeoutNow,
    VoteReply,
    VoteRequest,
)


def may_campaign(state: RaftState) -> bool:
    """Voters with a whole log may."""
    return (
        state.standing.kind == StandingKind.WHOLE
        and state.me in state.members.voters
        and state.role is not Role.LEADER
    )


def reset_timeout(state: RaftState) -> None:
    """Draw a new election timeout and start it."""
    ticks = state.timing.election_ticks
    state.timeout = ticks + state.jitter(ticks)
    state.deadline = state.now + state.timeout


def _reset_retry(state: RaftState) -> None:
    """A candidate tries again sooner than a follower would start: nobody leads anyway."""
    ticks = state.timing.election_ticks
    state.deadline = state.now + ticks // 2 + state.jitter(ticks)


def campaign_soon(state: RaftState, earliest: int = 0) -> None:
    """Campaign within a few ticks, at random so that few collide."""
    soon = max(state.now, earliest) + 1 + state.jitter(state.timing.soon_ticks + 1)
    state.deadline = min(state.deadline, soon)


def become_follower(state: RaftState, term: Term, leader: PeerId | None) -> None:
    """Follow `leader`, or nobody yet, in `term`."""
    if term > state.term:
        state.enter_term(term)
    if state.role is Role.LEADER:
        _retire(state)
    state.role = Role.FOLLOWER
    state.leader = leader
    state.verified = state.acked = state.asked = state.owed = state.leader_commit = 0
    state.leader_last = state.leader_end = None
    state.votes = {}
    state.fresh = False
    state.dirty = True
    reset_timeout(state)
    if leader is not None:
        state.gone = frozenset()  # Who was gone then may hold everything by the next election.
        if state.lowered == 1:
            state.lowered = 0  # It was to go on alone, and others are there.
    if leader is not None and not state.vote and state.standing.kind != StandingKind.WHOLE:
        # A damaged node may have forgotten a vote in this term; it gives no other one.
        state.vote = leader
        state.write_hard_state()


def _retire(state: RaftState) -> None:
    """Drop what only leaders have. Answers that were waiting fail."""
    state.out.reads_failed.extend(token for token, _, _ in state.reads_waiting)
    state.out.reads_failed.extend(state.early_reads)
    state.reads_waiting = []
    state.early_reads = []
    state.round_wanted = False
    state.peers = {}
    state.transferee = None
    state.serving = False
    state.send_dirty = False
    state.lease_allowed = False
    state.pending_bytes = 0
    state.quiet = False


def become_leader(state: RaftState) -> None:
    """Lead from now on: everything of before gets committed with the first own entry."""
    assert state.role is Role.CANDIDATE
    # Invariant: a damaged node never leads, unless the whole group starts over.
    assert state.standing.kind == StandingKind.WHOLE or state.fresh
    if state.standing.kind != StandingKind.WHOLE:
        state.become_whole()
    anew = state.expected if state.fresh and state.volatile else ()
    state.role = Role.LEADER
    state.leader = state.me
    state.gone = frozenset()
    state.fresh = False
    state.peers = {}
    state.elected_alone = state.needed(len(state.members.voters)) == 1
    state.own_term_index = state.log.last_index + 1
    state.serving = False
    state.lease_allowed = True
    state.round_commit = state.log.last_index + 1
    state.transferee = None
    state.active_tick = state.heartbeat_due = state.quorum_due = state.now
    state.sync_progress()
    first = first_entry(state, anew)
    state.append([first], None if anew else state.members)
    uncommitted = state.log.slice(state.log.commit + 1, state.log.last_index)
    state.pending_bytes = sum(len(entry.data) for entry in uncommitted)
    state.verified = state.log.last_index


def first_entry(state: RaftState, anew: tuple[PeerId, ...]) -> Entry:
    """The entry that commits all before it: empty, or the members as the first of a log.

    So the set can always be learned from the log alone, also by a node that lost everything. In a
    group that started over all that agreed to it, and are to have a replica, vote from now on
    (`anew`).
    """
    index = state.own_term_index
    if anew and (index == 1 or set(anew) != set(state.members.voters)):
        return Entry(index, state.term, EntryKind.CONFIG, encode_members(Members(anew)))
    if index == 1:
        return Entry(index, state.term, EntryKind.CONFIG, encode_members(state.members))
    return Entry(index, state.term, EntryKind.EMPTY, RESCUED if state.lowered else b"")


# -- campaigns -------------------------------------------------------------------------------------


def start(state: RaftState) -> None:
    """The election timeout is over, or the caller wants this node to lead."""
    if not may_campaign(state):
        reset_timeout(state)
        if state.role is not Role.FOLLOWER or state.leader is not None:
            become_follower(state, state.term, None)
        if _holds(state):
            state.polled = {}
            _broadcast(state, state.term + 1, pre=True)
        return
    if state.term == 0 and state.log.last_index == 0:
        ask_votes(state)  # Nobody has promised anything in a new group.
        return
    state.role = Role.PRE_CANDIDATE
    state.leader = None
    state.fresh = False
    state.polled = {}
    state.votes = {state.me: True}
    state.dirty = True
    _reset_retry(state)
    if _verdict(state) is Verdict.WON:
        ask_votes(state)
        return
    _broadcast(state, state.term + 1, pre=True)


def rescue(state: RaftState, quorum: int) -> str:
    """See `core.Raft.rescue`."""
    majority = quorum_size(len(state.members.voters))
    if not 1 <= quorum <= majority:
        return "raft: rescue quorum must be between 1 and current quorum"
    if state.leader is not None:
        return "raft: leader is known"
    if state.me not in state.members.voters:
        return "raft: not a voting member"
    if state.standing.kind != StandingKind.WHOLE:
        if quorum > 1:
            return (
                "the log of this server is damaged: name one that has it whole, or this one alone"
            )
        state.become_whole()
    if quorum < majority:
        state.lowered, state.lowered_until = quorum, state.now + state.timing.rescue_ticks
    state.promise_until = NEVER
    start(state)
    return ""


def ask_votes(state: RaftState, *, transfer: bool = False, fresh_term: Term = 0) -> None:
    """Stand for election; `fresh_term` for starting the group over in that term."""
    # Invariant: no two leaders in one term; each of some may be rescued alone.
    step = RESCUED_TERMS + state.jitter(RESCUED_TERMS) if state.lowered else 1
    state.enter_term(max(state.term + step, fresh_term))
    state.vote = state.me
    state.role = Role.CANDIDATE
    state.leader = None
    state.fresh = fresh_term > 0
    state.votes = {state.me: True}
    state.verified = state.acked = state.asked = state.owed = state.leader_commit = 0
    state.leader_last = state.leader_end = None
    _reset_retry(state)
    if _verdict(state) is Verdict.WON:
        become_leader(state)
        return
    _broadcast(state, state.term, transfer=transfer, fresh=state.fresh)


def _broadcast(
    state: RaftState,
    term: Term,
    *,
    pre: bool = False,
    transfer: bool = False,
    poll: bool = False,
    fresh: bool = False,
) -> None:
    emit = state.send if pre else state.send_after_sync
    everybody = fresh or (pre and state.volatile)
    for peer in state.electorate() if everybody else state.members.voters:
        if peer != state.me:
            emit(
                VoteRequest(
                    peer,
                    state.me,
                    term,
                    state.log.last_index,
                    state.log.last_term,
                    pre,
                    transfer,
                    poll,
                    fresh,
                )
            )


def poll(state: RaftState) -> None:
    """UNKNOWN: ask the voters for their terms, and whether they are empty too."""
    half = state.timing.election_ticks // 2
    state.poll_due = state.now + half + state.jitter(half + 1)
    _broadcast(state, state.term + 1, pre=True, poll=True)
    _maybe_start_over(state)  # For a group of one, nobody else is to be asked.


# -- voters ----------------------------------------------------------------------------------------


def on_vote_request(state: RaftState, m: VoteRequest) -> None:
    """Answer a candidate."""
    if m.poll or (bound(state) and not m.transfer):
        reply(state, m, granted=False)
    elif m.pre:
        granted = m.term > state.term and can_vote(state) and up_to_date(state, m)
        reply(state, m, granted=granted)
        if granted and state.role is Role.PRE_CANDIDATE:
            _maybe_give_way(state, m)
    else:
        _on_real_vote_request(state, m)


def _maybe_give_way(state: RaftState, m: VoteRequest) -> None:
    """Of two that ask at the same time one gives way, so that they do not split the votes."""
    own = (state.log.last_term, state.log.last_index, state.me)
    if (m.last_term, m.last_index, m.sender) > own:
        become_follower(state, state.term, None)


def _on_real_vote_request(state: RaftState, m: VoteRequest) -> None:
    if m.term < state.term:
        reply(state, m, granted=False)
        return
    if m.term > state.term:
        become_follower(state, m.term, None)
    free = state.vote == m.sender or (not state.vote and state.leader is None)
    able = can_vote(state) if not m.fresh else state.yields() or state.volatile
    granted = free and able and up_to_date(state, m)
    if granted:
        state.vote = m.sender
        state.write_hard_state()
        reset_timeout(state)
        if m.fresh:
            state.fresh_term = m.term
    elif free and able and may_campaign(state):
        campaign_soon(state)  # This log is ahead; the candidate cannot win with this voter.
    reply(state, m, granted=granted)


def bound(state: RaftState) -> bool:
    """Whether this node leads, or promised a leader not to elect another one yet."""
    return state.role is Role.LEADER or state.now < state.promise_until


def can_vote(state: RaftState) -> bool:
    """UNKNOWN nodes do not vote: nobody knows what they had promised."""
    return state.standing.kind != StandingKind.UNKNOWN


def up_to_date(state: RaftState, m: VoteRequest) -> bool:
    """Candidate's log is at least this one, and at least what a SUSPECT node had promised."""
    needed = (state.log.last_term, state.log.last_index)
    if state.standing.kind == StandingKind.SUSPECT:
        needed = max(needed, (state.standing.term, state.standing.index))
    return (m.last_term, m.last_index) >= needed


def reply(state: RaftState, m: VoteRequest, *, granted: bool) -> None:
    """Answer a request; an answer to a real one waits for the sync, it may be a promise."""
    emit = state.send if m.pre else state.send_after_sync
    empty = state.yields() and up_to_date(state, m)
    emit(VoteReply(m.sender, state.me, m.term, state.term, m.pre, granted, empty))


def on_vote_reply(state: RaftState, m: VoteReply) -> None:
    """Count a vote."""
    if state.standing.kind == StandingKind.UNKNOWN:
        # Who lost against another one that asked at the same time does so again with the next
        # answers to its questions, not with those to what it lost: both would, without an end.
        if m.pre:
            state.polled[m.sender] = (m.voter_term, m.empty)
    elif state.volatile and m.pre:
        state.polled[m.sender] = (m.voter_term, m.empty or m.granted)
    if m.voter_term > state.term:
        become_follower(state, m.voter_term, None)
        return
    if state.standing.kind == StandingKind.UNKNOWN and not state.fresh:
        state.review_standing()
        _maybe_start_over(state)
    elif m.pre:
        if state.role is Role.PRE_CANDIDATE and m.term == state.term + 1:
            _count(state, m)
        if state.volatile and state.role in (Role.FOLLOWER, Role.PRE_CANDIDATE):
            _maybe_start_over(state)
    elif state.role is Role.CANDIDATE and m.term == state.term:
        _count(state, m)


def _count(state: RaftState, m: VoteReply) -> None:
    state.votes.setdefault(m.sender, m.granted)
    verdict = _verdict(state)
    if verdict is Verdict.LOST:
        become_follower(state, state.term, None)
    elif verdict is Verdict.WON and m.pre:
        ask_votes(state)
    elif verdict is Verdict.WON:
        become_leader(state)


def _holds(state: RaftState) -> bool:
    """Whether this node may be the one to keep what a volatile group had: also one that was only
    about to become a voter, when the voters have forgotten everything."""
    whole = state.standing.kind == StandingKind.WHOLE
    return state.volatile and whole and state.role is not Role.LEADER


def _verdict(state: RaftState) -> Verdict:
    """How the election stands. Starting over needs all voters that have not certainly lost what
    they held, and a quorum of all."""
    if not state.fresh:
        voters = state.members.voters
        return tally(voters, state.votes, needed=state.needed(len(voters)))
    present = state.present()
    return tally(present, state.votes, all_needed=True) if present else Verdict.PENDING


def _maybe_start_over(state: RaftState) -> None:
    """Every voter is UNKNOWN with an empty log: nothing is left to lose.

    In a volatile group one that holds something may ask as well: restarts made the others forget
    what it may lack, and waiting brings nothing back. Nor does waiting for those whose process
    ended, or whose server was removed (`gone`): where a quorum is left, it goes on without them.

    The answers were given at different times, so they only allow to ask. The vote itself needs
    every voter, still empty, in one new term: none of them can hold anything of before then,
    and none takes anything of an older term afterwards.
    """
    present = state.present()
    others = [peer for peer in present if peer != state.me]
    if (
        state.me not in present
        or not (state.yields() or _holds(state))
        or state.leader is not None
        or not all(state.polled.get(peer, (0, False))[1] for peer in others)
    ):
        return
    term = max([state.term, *(state.polled[peer][0] for peer in others)]) + 1
    state.polled = {}
    ask_votes(state, fresh_term=term)


def on_timeout_now(state: RaftState, m: TimeoutNow) -> None:
    """The leader of this term wants this node to lead."""
    if m.term == state.term and state.leader == m.sender and may_campaign(state):
        state.promise_until = NEVER
        ask_votes(state, transfer=True)
