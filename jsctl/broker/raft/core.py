"""`Raft`: one node of one group, as a pure state machine.

Call any of the methods in any order, then take `ready()` and do what it says (see `ready`).
Nothing here blocks, calls back, or knows a clock: time is `tick`, chance is the injected jitter.

While `quiet` is true the node needs no ticks, and a tick does nothing. Messages are trusted to
come from the peer they name and from that peer's present incarnation: what was under way to or
from a crashed process must not be delivered to or from its successor.
"""

from collections.abc import Callable, Sequence

from jsctl.broker.raft import changes, election, hibernation, reads, replication
from jsctl.broker.raft.codec import encode_members
from jsctl.broker.raft.log import RaftLog
from jsctl.broker.raft.membership import Membership, next_members
from jsctl.broker.raft.progress import Flow, PeerProgress
from jsctl.broker.raft.ready import NOTHING, Base, Ready, RoleChange
from jsctl.broker.raft.state import Jitter, RaftState
from jsctl.broker.raft.types import (
    WHOLE,
    Append,
    AppendReply,
    Change,
    Entry,
    EntryKind,
    Heartbeat,
    HeartbeatReply,
    Index,
    Members,
    Message,
    PeerId,
    RaftLimits,
    Role,
    Standing,
    StandingKind,
    Term,
    TimeoutNow,
    Timing,
    VoteReply,
    VoteRequest,
)


class Raft(RaftState):
    """A node of a group. Public attributes are read-only for callers.

    `term`, `role`, `leader`, `applied`, `members` (the set in effect), `standing`, `quiet`,
    `serving` (leader whose first own entry is committed), and the properties below.
    """

    __slots__ = ()

    def __init__(
        self,
        me: PeerId,
        *,
        members: Members,
        term: Term = 0,
        vote: PeerId = "",
        base_index: Index = 0,
        base_term: Term = 0,
        entries: Sequence[Entry] = (),
        commit: Index = 0,
        applied: Index = 0,
        standing: Standing = WHOLE,
        hard_state_known: bool | None = None,
        volatile: bool = False,
        salvageable: bool = False,
        reached: Index = 0,
        timing: Timing | None = None,
        jitter: Jitter,
        limits: RaftLimits | None = None,
    ) -> None:
        """Start with what was recovered; all of it counts as durable.

        `members` is the set at the base; sets in `entries` come on top. A node that is to join
        starts without members and learns them from the leader. `applied` is where the state
        machine stands: entries behind it are given out again. `hard_state_known` matters to an
        UNKNOWN node, which is taken to have forgotten votes unless this says that term and
        vote are certain. `volatile`: the log is in memory only. `salvageable`: see the state.
        `reached`: what is on this disk of the state machine has these entries applied, so that they
        were committed.
        """
        known = max(commit, applied, min(reached, base_index + len(entries)))
        log = RaftLog(base_index, base_term, entries, known)
        membership = Membership(base_index, members)
        membership.append(entries)
        super().__init__(me, log, membership, timing or Timing(), jitter, limits or RaftLimits())
        assert base_index <= max(applied, base_index) <= log.last_index
        if hard_state_known is None:
            hard_state_known = standing.kind != StandingKind.UNKNOWN
        self.applied = self.emitted = max(applied, base_index)
        self.term = max(term, log.last_term)
        self.vote = vote if term == self.term else ""
        self.standing = self._mended(standing)
        self.hard_state_known = hard_state_known
        self.volatile = volatile
        self.salvageable = salvageable
        self.reached = reached
        self.reported = RoleChange(Role.FOLLOWER, self.term, None)
        self.poll_due = 1 + jitter(self.timing.heartbeat_ticks)
        self.dirty = log.commit > self.emitted
        if self.term > 0 and standing.kind != StandingKind.UNKNOWN:
            # A promise made before the restart may still run.
            self.promise_until = self.timing.election_ticks
        election.reset_timeout(self)
        if self.members.voters == (me,):
            self.campaign()
            if standing.kind == StandingKind.UNKNOWN:
                election.poll(self)

    def _mended(self, standing: Standing) -> Standing:
        """A SUSPECT log that reaches the claim again was filled up before the restart."""
        own = (self.log.last_term, self.log.last_index)
        suspect = standing.kind == StandingKind.SUSPECT
        return WHOLE if suspect and own >= (standing.term, standing.index) else standing

    # -- what callers read ---------------------------------------------------------------------

    @property
    def next_index(self) -> Index:
        """Index that the next proposed entry will get, should this node lead then."""
        return self.log.last_index + 1

    @property
    def commit(self) -> Index:
        """Highest index known to be committed."""
        return self.log.commit

    @property
    def base_index(self) -> Index:
        """Highest compacted index."""
        return self.log.base_index

    @property
    def last_index(self) -> Index:
        """Highest index in the log, durable or not."""
        return self.log.last_index

    def progress(self) -> list[PeerProgress]:
        """Leader: how the others do, sorted by name. Empty elsewhere."""
        since = self.now - self.timing.election_ticks
        most = self.limits.inflight_bytes_max
        return [one.report(peer, self.now, since, most) for peer, one in sorted(self.peers.items())]

    # -- proposals -----------------------------------------------------------------------------

    @property
    def accepting(self) -> bool:
        """Whether `propose` takes entries."""
        room = self.pending_bytes < self.limits.proposal_bytes_max
        return room and self.transferee is None and self.role is Role.LEADER

    def propose(self, batch: Sequence[bytes]) -> Index | None:
        """Append one DATA entry for each item; index of the first.

        None when this node does not lead, is handing over, or has too much uncommitted.
        """
        if not batch or not self.accepting:
            return None
        size = sum(map(len, batch))
        log = self.log
        first = index = log.last_index + 1
        term = self.term
        kind = EntryKind.DATA
        entries = []
        for data in batch:
            entries.append(Entry(index, term, kind, data))
            index += 1
        assert term >= log.last_term, "terms must not fall"
        self.pending_bytes += size
        if self.quiet and self.peers:
            hibernation.wake(self)
        self.active_tick = self.now
        log.entries.extend(entries)
        log.last_index = self.verified = index - 1
        self.out.append.extend(entries)
        self.send_dirty = self.dirty = True
        return first

    def propose_members(self, change: Change) -> Index | None:
        """Append a membership change; None when `refusal` has a reason against it."""
        if self.refusal(change):
            return None
        members = next_members(self.membership.active, change)
        assert members is not None
        if self.quiet:
            hibernation.wake(self)
        index = self.next_index
        data = encode_members(members)
        self.pending_bytes += len(data)
        self.active_tick = self.now
        self.append([Entry(index, self.term, EntryKind.CONFIG, data)])
        self.verified = index
        self.send_dirty = True
        return index

    def refusal(self, change: Change) -> str:
        """Why a membership change is not possible now; empty when it is."""
        return changes.refusal(self, change)

    # -- messages, time, disk ------------------------------------------------------------------

    def step(self, messages: Sequence[Message]) -> None:
        """Take messages of peers, in the order of arrival."""
        for message in messages:
            assert message.to == self.me, "message for another node"
            if self.quiet and not _lets_sleep(message):
                hibernation.wake(self)
            _HANDLERS[type(message)](self, message)

    def fell_behind(self, ticks: int) -> None:
        """So many more ticks went by, and come behind messages that waited meanwhile."""
        self.behind = ticks

    def tick(self) -> None:
        """One tick of time went by. Cheap, and does nothing while `quiet`."""
        if self.behind:
            self.behind -= 1
        if self.quiet:
            return
        self.now += 1
        if self.lowered and self.now >= self.lowered_until:
            self.lowered = 0
        if self.role is Role.LEADER:
            if self.peers:
                self._tick_leader()
            else:
                self.quiet = True
            return
        if self.now >= self.deadline:
            election.start(self)
        if self.standing.kind == StandingKind.UNKNOWN and self.now >= self.poll_due:
            election.poll(self)

    def _tick_leader(self) -> None:
        if self.transferee is not None and self.now >= self.transfer_deadline:
            self.transferee = None
        if self.now >= self.quorum_due:
            # Rounds for reads put the next heartbeat off; this look is never put off.
            self.quorum_due = self.now + self.timing.heartbeat_ticks
            if not self._hears_quorum():
                election.become_follower(self, self.term, None)
                return
        if self.now >= self.heartbeat_due:
            replication.send_heartbeats(self)

    def _hears_quorum(self) -> bool:
        """On disks those that forgot everything do not count: nothing is committed or confirmed
        with them, and who asks is to hear so. In memory they get all from the one that leads."""
        since, peers = self.now - self.timing.election_ticks, self.peers
        voters = self.members.voters
        heard = sum(
            voter == self.me
            or (peers[voter].heard_tick if self.volatile else peers[voter].counted_tick) > since
            for voter in voters
        )
        return heard >= self.needed(len(voters))

    def persisted(self, index: Index, term: Term) -> None:
        """The write of a Ready with this `to_persist`, and all before it, are durable."""
        replication.on_persisted(self, index, term)

    def applied_to(self, index: Index) -> None:
        """The state machine has taken everything up to `index`."""
        assert self.applied <= index <= self.emitted, "applied what was not given out"
        self.applied = index

    # -- reads, leadership -----------------------------------------------------------------------

    def read_index(self, token: int) -> None:
        """Ask for a linearizable read; `token` comes back in `reads` or `reads_failed`."""
        if self.quiet and self.role is Role.LEADER and self.peers:
            hibernation.wake(self)
        reads.read_index(self, token)

    def ask(self) -> None:
        """Follower: somebody waits to hear whether all that is in the log is committed."""
        reads.ask(self)

    def transfer(self, to: PeerId | None = None) -> bool:
        """Hand leadership to a voter, by default the one that is furthest.

        False when that is not possible. Proposals are refused until it is done or timed out.
        """
        if self.role is not Role.LEADER or self.transferee is not None:
            return False
        target = to or replication.best_voter(self)
        progress = self.peers.get(target) if target is not None else None
        if target is None or progress is None or progress.learner or progress.down:
            return False
        if progress.standing != StandingKind.WHOLE:
            return False
        if self.quiet:
            hibernation.wake(self)
        self.transferee = target
        self.transfer_deadline = self.now + self.timing.transfer_ticks
        self.active_tick = self.now
        if progress.match == self.log.last_index:
            replication.send_timeout_now(self, target)
        else:
            progress.resend = True
            self.send_dirty = self.dirty = True
        return True

    def campaign(self) -> None:
        """Stand for election now, e.g. as the preferred peer of a new group."""
        if self.quiet:
            hibernation.wake(self)
        if self.role is not Role.LEADER:
            election.start(self)

    def rescue(self, quorum: int) -> str:
        """Operator's command: so many voters are enough for a while, as others will not come back.

        With 1 this node's log is trusted as well, although entries may be missing. What only nodes
        that are gone or damaged held may be lost for good by it. Why it is not done, or "".
        """
        return election.rescue(self, quorum)

    def peer_down(self, peer: PeerId) -> None:
        """The server of `peer` is seen to be gone: its connections closed, it fell silent."""
        if peer == self.me or peer in self.down:
            return
        self.down.add(peer)
        if self.role is Role.LEADER:
            progress = self.peers.get(peer)
            if progress is not None:
                progress.down = True
                if self.quiet and not hibernation.sees_quorum(self):
                    hibernation.wake(self)
        elif self.leader == peer:
            if self.quiet:
                hibernation.wake(self)
            # The leader may be alive behind a broken route: its lease runs out first.
            lease = self.timing.lease_ticks + self.timing.margin_ticks
            self.promise_until = min(self.promise_until, self.heard_tick + lease)
            election.campaign_soon(self, self.promise_until)

    def peer_up(self, peer: PeerId) -> None:
        """The server of `peer` is seen again, perhaps restarted."""
        self.down.discard(peer)
        progress = self.peers.get(peer)
        if progress is not None:
            progress.down = False
            if self.quiet:
                hibernation.wake(self)

    # -- compaction and state transfer -----------------------------------------------------------

    def compact(self, index: Index) -> None:
        """Forget entries up to `index`, all applied; peers that need them get the state."""
        assert index <= self.applied, "compaction of unapplied entries"
        if index <= self.log.base_index:
            return
        term = self.log.term_at(index)
        assert term is not None
        members = self.membership.compact(index)
        self.log.compact(index, term)
        self.out.base = Base(index, term, members)
        self.dirty = True

    def snapshot_sent(self, peer: PeerId, index: Index) -> None:
        """Leader: the peer's state machine stands at `index` now; go on behind it."""
        progress = self.peers.get(peer)
        if progress is not None and progress.flow is Flow.SNAPSHOT:
            assert index <= self.log.commit, "a state of more than what is committed"
            progress.become_probe(index + 1)
            self.send_dirty = self.dirty = True

    def snapshot_failed(self, peer: PeerId) -> None:
        """Leader: the transfer did not work; try again at the next sign of life."""
        progress = self.peers.get(peer)
        if progress is not None and progress.flow is Flow.SNAPSHOT:
            progress.become_probe(progress.match + 1)
            progress.paused = True

    def restore(self, index: Index, term: Term, members: Members) -> bool:
        """The state machine was replaced by a leader's, at `index`; False when that is no news.

        Part of the log behind `index` that provably belongs there stays.
        """
        if index <= self.log.commit:
            return False
        assert self.role is not Role.LEADER, "a leader has all committed entries"
        assert term > 0, "a state of no term"
        kept = self.log.term_at(index) == term
        dropped = self.log.restart(index, term)
        if dropped is not None:
            self.forget_unwritten(dropped)
        if kept:
            self.membership.compact(index)
            self.out.append = [entry for entry in self.out.append if entry.index > index]
            self.handed = max(self.handed, index)
        else:
            self.out.append.clear()
            self.handed = index
            if self.membership.restart(index, members):
                self.members_changed()
            self.verified = self.acked = self.asked = self.owed = 0
        self.emitted = self.applied = index
        self.out.base = Base(index, term, members)
        self.dirty = True
        assert self.log.base_index == index <= self.log.last_index
        return True

    # -- output ----------------------------------------------------------------------------------

    def ready(self) -> Ready:
        """Everything to be done since the last call; `NOTHING` (false) when there is none."""
        if not self.dirty:
            return NOTHING
        if self.role is Role.LEADER:
            if self.round_wanted:
                replication.send_heartbeats(self)
            if self.send_dirty:
                replication.send_appends(self)
        self.dirty = False
        out = self.out
        self.out = Ready()
        self._give_committed(out)
        if out.append:
            last = out.append[-1]
            self.handed = last.index
            out.to_persist = (last.index, last.term)
        elif out.base is not None:
            out.to_persist = (out.base.index, out.base.term)
        role, leader, reported = self.role, self.leader, self.reported
        if role is not reported.role or leader != reported.leader or self.term != reported.term:
            out.role_change = self.reported = RoleChange(role, self.term, leader)
        self.guard_promises(out)
        return out

    def _give_committed(self, out: Ready) -> None:
        log = self.log
        upto = log.commit if log.commit < log.stable else log.stable
        emitted = self.emitted
        if upto > emitted:
            if upto - emitted > self.limits.committed_entries_max:
                upto = emitted + self.limits.committed_entries_max
                self.dirty = True
            out.committed = log.slice(emitted + 1, upto)
            self.emitted = upto
        assert self.applied <= self.emitted <= log.commit <= log.last_index

    def guard_promises(self, out: Ready) -> None:
        """Messages that rest on an unsynced term wait for it."""
        if self.hard_dirty:
            self.hard_dirty = False
            out.hard_state = (self.term, self.vote)
        elif not (self.elected_alone and self.log.stable < self.own_term_index):
            # A leader elected by others had its term synced before it asked them for votes.
            return
        if out.send:
            out.send_after_sync = out.send + out.send_after_sync
            out.send = []


def _lets_sleep(message: Message) -> bool:
    """Messages of falling asleep do not wake."""
    return isinstance(message, Heartbeat | HeartbeatReply) and message.quiet


_HANDLERS: dict[type[Message], Callable[..., None]] = {
    VoteRequest: election.on_vote_request,
    VoteReply: election.on_vote_reply,
    Append: replication.on_append,
    AppendReply: replication.on_append_reply,
    Heartbeat: replication.on_heartbeat,
    HeartbeatReply: replication.on_heartbeat_reply,
    TimeoutNow: election.on_timeout_now,
}
