"""Everything one group's node knows, and the small steps that keep it consistent.

`election`, `replication`, `reads` and `hibernation` are functions over this state; `core.Raft` is
the state with the public methods. Time is `now`, a count of ticks that only ever rises.

Rules that hold everywhere:

* What was promised (a term, a vote, an entry) leaves in messages that wait for the sync.
* `verified` is how far the log is known to equal the current leader's; only what is verified
  *and* durable is acknowledged, and only what is verified is taken as committed.
* A follower that heard a leader refuses to elect another until `promise_until`; leases of the
  leader rest on that (`reads`).
"""

from collections.abc import Callable, Sequence

from jsctl.broker.raft.log import RaftLog
from jsctl.broker.raft.membership import Membership
from jsctl.broker.raft.progress import NEVER, FollowerProgress
from jsctl.broker.raft.quorum import quorum_size
from jsctl.broker.raft.ready import Ready, RoleChange
from jsctl.broker.raft.types import (
    AppendReply,
    Entry,
    EntryKind,
    Index,
    Members,
    Message,
    PeerId,
    RaftLimits,
    Role,
    Standing,
    StandingKind,
    Term,
    Timing,
)

Jitter = Callable[[int], int]
"""jitter(n) gives a number from 0 to n - 1."""


class RaftState:
    """See the module. Fields are changed by this package only."""

    __slots__ = (
        "acked", "active_tick", "applied", "asked", "behind",
        "deadline", "dirty", "down", "early_reads",
        "elected_alone", "emitted", "expected", "far_behind",
        "fresh", "fresh_term", "gone", "handed", "hard_dirty",
        "hard_state_known", "heard_tick", "heartbeat_due", "jitter", "leader", "leader_commit",
        "leader_end", "leader_last", "lease_allowed", "limits", "log", "lowered",
        "lowered_until", "me", "members",
        "membership", "now",
        "out", "owed",
        "own_term_index", "patient", "peers", "pending_bytes", "poll_due", "polled",
        "promise_until",
        "quiet", "quiet_round", "quorum_due", "reached", "reads_waiting", "reported", "role",
        "round", "round_commit", "round_wanted", "salvageable", "send_dirty", "serving", "standing",
        "superseded", "telling", "term", "timeout",
        "timing", "transfer_deadline", "transferee", "verified", "volatile", "vote", "votes",
    )  # fmt: skip

    def __init__(
        self,
        me: PeerId,
        log: RaftLog,
        membership: Membership,
        timing: Timing,
        jitter: Jitter,
        limits: RaftLimits,
    ) -> None:
        self.me = me
        self.log = log
        self.membership = membership
        self.members: Members = membership.active
        self.timing = timing
        self.jitter = jitter
        self.limits = limits
        self.volatile = False
        """The log is in memory: what its holders lost together is lost for good."""
        self.superseded = False
        """The others went on without what is committed here: in a volatile group, or because an
        operator said so, with fewer than a majority. Nothing of what is here counts any more: the
        caller starts this node anew."""
        self.reached: Index = 0
        """Entries up to here were applied once, also if the log lost them."""
        self.far_behind: int | None = None
        """Follower: the leader's tick when its log was first seen to end before what is committed
        here."""
        self.salvageable = False
        """Part of what this node had is damaged, and the rest is there: nobody starts over."""
        self.now = 0
        self.behind = 0
        """Ticks that went by and are still to come: the caller was held up."""
        self.out = Ready()
        self.dirty = False
        self.handed: Index = log.last_index
        """Last index that the caller was given to write, in a Ready or at the start."""
        self.emitted: Index = 0
        """Last index given out in `committed`."""
        self.applied: Index = 0
        self.pending_bytes = 0
        """Leader: entry data that is proposed and not yet committed."""
        self.quiet = False
        self.active_tick = 0
        """Leader: last tick at which there was work."""
        self.quiet_round = 0
        self.down: set[PeerId] = set()
        """Peers whose server is known to be down."""
        self.reported = RoleChange(Role.FOLLOWER, 0, None)
        self._init_election()
        self._init_leader()

    def _init_election(self) -> None:
        self.role = Role.FOLLOWER
        self.term: Term = 0
        self.vote: PeerId = ""
        self.hard_dirty = False
        self.standing = Standing()
        self.hard_state_known = True
        """Term and vote are certain even if the log is not."""
        self.leader: PeerId | None = None
        self.heard_tick = NEVER
        self.timeout = self.timing.election_ticks
        self.deadline = self.timeout
        self.promise_until = NEVER
        """Tick before which this node elects no other leader."""
        self.verified: Index = 0
        self.acked: Index = 0
        """Follower: last index acknowledged to the current leader."""
        self.asked: Index = 0
        """Follower: up to here it has asked the current leader what is committed."""
        self.owed: Index = 0
        """Follower: index whose ack waits for a sync that is under way."""
        self.leader_commit: Index = 0
        self.leader_last: Index | None = None
        """Follower: end of the leader's log as of its last heartbeat; None before the first."""
        self.leader_end: Index | None = None
        """Follower: that of its first heartbeat to this process; None before it."""
        self.lowered = 0
        """An operator's word that so many voters are enough for now; 0: a majority is needed."""
        self.lowered_until = 0
        self.votes: dict[PeerId, bool] = {}
        self.fresh = False
        """Candidate that starts the group over: needs every vote."""
        self.fresh_term: Term = 0
        """Term in which this node granted such a vote."""
        self.polled: dict[PeerId, tuple[Term, bool]] = {}
        """(term, `VoteReply.empty`) of the voters that answered an UNKNOWN or volatile node."""
        self.expected: tuple[PeerId, ...] = ()
        """Volatile: who holds or is to hold a replica, as far as the caller knows."""
        self.gone: frozenset[PeerId] = frozenset()
        """Volatile: voters that have certainly lost what they held, and cannot be asked."""
        self.poll_due = 1

    def _init_leader(self) -> None:
        self.peers: dict[PeerId, FollowerProgress] = {}
        self.own_term_index: Index = 0
        """Index of the empty entry of the own term."""
        self.elected_alone = False
        self.serving = False
        self.send_dirty = False
        self.patient = False
        """Nobody at a peer waits to hear that entries are committed: that is told with the next
        ones, to a peer that asks, or when the caller says so (`tell`). Set by the caller."""
        self.telling = False
        """The next appends tell it."""
        self.heartbeat_due = 0
        self.quorum_due = 0
        """When it is looked whether a quorum is heard."""
        self.transferee: PeerId | None = None
        self.transfer_deadline = 0
        self.lease_allowed = False
        self.round = 0
        """Number of the newest heartbeat round."""
        self.round_wanted = False
        self.round_commit: Index = 0
        """Commit index one heartbeat ago: a learner that has it is caught up."""
        self.reads_waiting: list[tuple[int, Index, int]] = []
        """(token, index, round): rounds rise; 0 stands for the next one."""
        self.early_reads: list[int] = []

    # -- the log and what is written of it ---------------------------------------------------

    def append(self, entries: Sequence[Entry], members: Members | None = None) -> None:
        """Add entries at the end of the log and to what is to be written. `members`: what the one
        with a set has, where that is known."""
        self.log.append(entries)
        self.out.append.extend(entries)
        self.dirty = True
        if any(entry.kind == EntryKind.CONFIG for entry in entries) and self.membership.append(
            entries, members
        ):
            self.members_changed()

    def truncate(self, from_index: Index) -> None:
        """Drop the end of the log, here and in what was or is to be written."""
        self.log.truncate(from_index)
        self.forget_unwritten(from_index)
        # An ack for a past leader that was to leave after this sync: what it names is not written.
        self.out.send_after_sync = [
            one
            for one in self.out.send_after_sync
            if not (isinstance(one, AppendReply) and not one.rejected and one.index >= from_index)
        ]
        if self.membership.truncate(from_index):
            self.members_changed()
        self.verified = min(self.verified, from_index - 1)
        self.acked = min(self.acked, from_index - 1)
        self.asked = min(self.asked, from_index - 1)
        self.owed = 0

    def forget_unwritten(self, from_index: Index) -> None:
        """Take back entries from `from_index` on that were handed out, or are about to be."""
        out = self.out
        while out.append and out.append[-1].index >= from_index:
            out.append.pop()
        assert not out.append or out.append[-1].index == from_index - 1, "a gap in what is written"
        if from_index <= self.handed:
            self.handed = from_index - 1
            out.truncate_from = min(from_index, out.truncate_from or from_index)
        self.dirty = True

    def members_changed(self) -> None:
        """The active set is another one: follow it."""
        members = self.members = self.membership.active
        if quorum_size(len(members.voters)) <= self.lowered:
            self.lowered = 0  # Those that are left are a majority again.
        self.out.members = members
        self.dirty = True
        if self.role is Role.LEADER:
            self.sync_progress()
            self.round_wanted = self.round_wanted or bool(self.reads_waiting)

    def sync_progress(self) -> None:
        """Leader: one Progress for each member but this node."""
        assert self.role is Role.LEADER, "only a leader follows others"
        members = self.members
        self.peers = {peer: p for peer, p in self.peers.items() if peer in members}
        for peer in members.all():
            if peer != self.me and peer not in self.peers:
                self.peers[peer] = FollowerProgress(
                    self.log.last_index + 1, self.now, learner=False, down=peer in self.down
                )
        for peer, progress in self.peers.items():
            progress.learner = peer not in members.voters
        self.send_dirty = self.dirty = True

    def durable_match(self) -> Index:
        """Up to where the log is durable here and equal to the leader's."""
        return min(self.verified, self.log.stable)

    # -- term, vote, standing ----------------------------------------------------------------

    def enter_term(self, term: Term) -> None:
        """Move to a later term, in which no vote was given yet."""
        assert term > self.term, "terms only rise"
        self.term = term
        self.vote = ""
        self.write_hard_state()

    def writes(self) -> bool:
        """Whether the next Ready has something to write, so that something syncs with it."""
        return self.hard_dirty or self.out.writes()

    def write_hard_state(self) -> None:
        """Have term and vote written with the next Ready.

        Also called for a vote that is given a second time: its reply must wait for the sync of
        the first, which may still be under way.
        """
        self.hard_dirty = self.dirty = True

    def become_whole(self) -> None:
        """What this node lost has been made good."""
        assert self.standing.kind != StandingKind.WHOLE, "nothing was lost"
        self.standing = Standing()
        self.out.standing = self.standing
        self.dirty = True

    def review_standing(self) -> None:
        """Become whole if the conditions for it hold now.

        SUSPECT: durable and verified by a leader at least as far as what had been promised; a
        later term behind it supersedes the promise. UNKNOWN: filled up to the commit index of a
        leader of this term, by an entry of this term; and if votes may have been forgotten, they
        can elect no one any more. So it is when all other voters were asked for their terms and
        none is in a later one, in which the candidate of a forgotten vote would be. Or when what
        is committed was proposed after this node began: a quorum without this node and without
        that candidate, which follows no older leader, has it, and refuses a log that lacks it.
        Or, where all voters agreed to start over: everything that their leader began its term
        with is here.
        """
        kind = self.standing.kind
        match = self.durable_match()
        if kind == StandingKind.SUSPECT:
            term = self.log.term_at(match) if match else None
            if term is not None and (term, match) >= (self.standing.term, self.standing.index):
                self.become_whole()
        elif kind == StandingKind.UNKNOWN and self.leader is not None:
            commit = self.log.commit
            filled = (
                commit >= max(self.leader_commit, self.reached)
                and commit > 0
                and match >= commit
                and self.log.term_at(commit) == self.term
            )
            agreed = self.fresh_term == self.term and self.vote == self.leader
            begun = agreed and match > 0 and self.log.term_at(match) == self.term
            newer = self.leader_end is not None and commit > self.leader_end
            if begun or (filled and (newer or self.knows_terms())):
                self.become_whole()

    def knows_terms(self) -> bool:
        """Whether no vote that this node may have forgotten can still count."""
        if self.hard_state_known:
            return True
        return bool(self.members.voters) and all(
            peer == self.me or (peer in self.polled and self.polled[peer][0] <= self.term)
            for peer in self.members.voters
        )

    @property
    def abreast(self) -> bool:
        """Whether all that the leader had when it was last heard is applied here."""
        if self.role is Role.LEADER:
            return self.serving and self.applied >= self.own_term_index
        return self.leader_last is not None and self.applied >= self.leader_last

    @property
    def founding(self) -> bool:
        """Whether this node was elected, and its first entry is all that was ever in the log."""
        first = self.own_term_index == 1 == self.log.last_index
        return first and self.role is Role.LEADER and not self.serving

    def needed(self, voters: int) -> int:
        """How many of so many voters decide."""
        size = quorum_size(voters)
        return min(size, self.lowered) if self.lowered else size

    def electorate(self) -> tuple[PeerId, ...]:
        """Who is asked when a group starts over: in a volatile one all that may hold something."""
        if not self.volatile:
            return self.members.voters
        return tuple(dict.fromkeys((*self.members.all(), *self.expected)))

    def present(self) -> list[PeerId]:
        """Who has to agree when a group starts over; empty where it may not, as those that are
        left are no quorum."""
        for voters in (self.members.voters, self.expected):
            left = sum(peer not in self.gone for peer in voters)
            if voters and left < quorum_size(len(voters)):
                return []
        return [peer for peer in self.electorate() if peer not in self.gone]

    @property
    def is_empty(self) -> bool:
        """UNKNOWN, and nothing in the log."""
        return self.standing.kind == StandingKind.UNKNOWN and self.log.last_index == 0

    def yields(self) -> bool:
        """Whether this node has nothing of its own to defend when a group starts over.

        What an UNKNOWN node of a volatile group was sent, a leader has that is not gone; or else
        it is what is left.
        """
        unknown = self.standing.kind == StandingKind.UNKNOWN and not self.salvageable
        return unknown and (self.volatile or self.log.last_index == 0)

    def expect(self, peers: Sequence[PeerId]) -> None:
        """These hold or are to hold a replica: one that starts a volatile group over must ask all
        of them, also those that joined while it held nothing."""
        if self.volatile:
            self.expected = tuple(peers)
        if self.volatile and self.is_empty and set(peers) != set(self.members.all()):
            self.membership.restart(0, Members(tuple(peers)))
            self.members_changed()

    def lost_memory(self, peers: frozenset[PeerId]) -> None:
        """These voters' processes have ended, or their servers were removed: what was there is
        gone, and a group without a leader may go on without."""
        assert self.volatile, "what is on a disk comes back"
        self.gone = peers

    def retime(self, timing: Timing) -> None:
        """Use other timeouts from now on. Leases, which rest on promises made, must stay."""
        assert timing.lease_ticks == self.timing.lease_ticks, "a lease that is out would change"
        assert timing.margin_ticks == self.timing.margin_ticks, "a lease that is out would change"
        self.timeout += timing.election_ticks - self.timing.election_ticks
        self.timing = timing

    # -- output --------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """Send without waiting for the disk: the message promises nothing."""
        assert message.to != self.me, "a message to oneself"
        self.out.send.append(message)
        self.dirty = True

    def tell(self) -> None:
        """Leader: have peers told what is committed, even if nobody waits for that."""
        self.telling = self.send_dirty = self.dirty = True

    def send_after_sync(self, message: Message) -> None:
        """Send once this Ready is durable."""
        assert message.to != self.me, "a message to oneself"
        self.out.send_after_sync.append(message)
        self.dirty = True
