"""How a group starts on this server: as founder, from what is on the disk, or in doubt.

Four ways. With state or log on the disk, from there. Without, as a founding member: the
assignment says that this very life of the server (or, for what only memory holds, this very run of
the process) was given a replica when the group was made, so nothing can have been promised yet
that is not on the disk. As a member that joins: its life was given a replica later, so it never
voted. Anything else is doubt: what was promised is lost, votes too. Joined or in doubt, a server
follows, but neither votes nor stands for election until a leader has filled it up (reliability:
voting of damaged nodes). Doubt is
itself in the log until it is resolved, so that a restart does not mistake a half-filled log for a
whole one.
"""

from collections.abc import Container, Sequence
from dataclasses import field

from jsctl.broker.raft import codec
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import (
    UNKNOWN,
    WHOLE,
    Entry,
    EntryKind,
    Members,
    RaftLimits,
    Standing,
    StandingKind,
    Term,
    Timing,
)
from jsctl.broker.replication.state_file import GroupState
from jsctl.broker.store.wal.log import RecoveredGroup, Wal
from jsctl.broker.store.wal.recovery import Recovered
from jsctl.broker.turn import Jitter
from jsctl.dataclass import dataclass

JOINED = 1
"""Index in the log's record of an unknown standing: it never voted before its log began."""
_STANDINGS = {
    "whole": StandingKind.WHOLE,
    "suspect": StandingKind.SUSPECT,
    "unknown": StandingKind.UNKNOWN,
}


@dataclass(slots=True)
class GroupBootstrap:
    """Starts rafts for one server. `life` is the server's incarnation, `boot` this run."""

    me: str
    life: int
    boot: int
    wal: Wal
    timing: Timing
    jitter: Jitter
    limits: RaftLimits = field(default_factory=RaftLimits)
    recovered: dict[bytes, RecoveredGroup] = field(default_factory=dict)
    """What the log held at start, by group; taken out when the group starts."""
    log_damaged: bool = False
    lost: str = ""
    """What of the log is lost without a trace, see `lost_log`; empty when nothing is, or when all
    groups that were assigned to this server began since."""
    loss_marked: bool = False
    """The disk says so, too."""
    doubtful: bool = False
    """The meta log here lacks what it had: nobody knows yet which groups it named."""
    meta_term: Term | None = None
    """Of the meta log at the start; None if that lacks something."""
    tombstones: dict[bytes, int] = field(default_factory=dict)
    """Groups that were removed here -> the index of the meta log that has to be durable before
    they may be forgotten: as long as an older assignment can be replayed, the record that they
    were here keeps this server from founding them anew."""

    def take(self, recovered: Recovered, lost: str) -> None:
        """What the start of the log found."""
        self.recovered = dict(recovered.groups)
        self.log_damaged = bool(recovered.damage) or recovered.empty
        self.lost, self.loss_marked = lost, bool(lost)

    def remember(self, key: bytes, term: int, vote: str) -> None:
        """A group that was removed begins anew in this very process, which voted in it. However
        long it takes until it does, and whatever is durable by then: that is not forgotten."""
        self.tombstones.pop(key, None)
        self.wal.add_vote(key, term, vote.encode())
        known = RecoveredGroup(term, vote.encode(), standing="unknown", suspect_index=JOINED)
        self.recovered[key] = known

    def tombstone(self, key: bytes, index: int) -> None:
        """A group's replica was removed, by what the meta log has up to `index`."""
        self.wal.add_drop(key)
        self.wal.add_standing(key, "unknown", 0, JOINED)
        self.tombstones[key] = index

    def found_meta(self, term: Term, index: int) -> None:
        """The meta log is whole: it ends there."""
        self.meta_term = term
        self.expect(index)

    def doubt(self) -> None:
        """The meta log lacks something: until `expect`, nobody knows what it named."""
        self.doubtful = True

    def begun(self) -> None:
        """All groups that were assigned to this server began since the log was lost."""
        self.lost = ""

    def forget_mark(self) -> None:
        """The disk does not say any more that the log was lost."""
        self.loss_marked = False

    def expect(self, index: int) -> None:
        """All that was recovered belongs to groups that the meta log names up to `index`, or to
        ones that were removed."""
        self.doubtful = False
        self.tombstones.update(dict.fromkeys(self.recovered, index))

    def forget(self, index: int, alive: Container[bytes]) -> list[bytes]:
        """The meta state is durable up to `index`: let go of what was removed before it. Returned
        is what has not been here since the start."""
        left: list[bytes] = []
        for key, needed in list(self.tombstones.items()):
            if needed > index:
                continue
            del self.tombstones[key]
            if key not in alive:
                if self.recovered.pop(key, None) is not None:
                    left.append(key)
                self.wal.add_drop(key)
        return left

    def left_over(self, key: bytes) -> bool:
        """Whether files of a group, if there are any, are what a removal left behind."""
        found = self.recovered.get(key)
        if found is None:
            return not self.log_damaged
        empty = not found.entries and not found.base_index
        return empty and found.standing == "unknown" and self._joined(found)

    def start(
        self,
        key: bytes,
        state: GroupState | None,
        *,
        peers: Sequence[str],
        founders: Sequence[str],
        life: int | None,
        volatile: bool,
        damaged: bool = False,
        doubt: bool = False,
        salvage: bool = False,
        reached: int = 0,
    ) -> Raft:
        """The raft of a group.

        `peers` are all that hold or are to hold a replica, `founders` those it began with.
        `life` is the one of this server that was given the replica, None when it is not known;
        `damaged`: a copy of the state on the disk is. The log keeps all entries behind the base
        that it has itself: with every one of them behind the copy that is left nothing is missing.
        `doubt`: the log cannot tell that. `salvage`: what is left of a state then may be of use,
        so that the group does not start over even if nobody has more. `reached`: up to which entry
        what is on the disk besides the state has the log applied.
        """
        found = self.recovered.pop(key, None)
        self.tombstones.pop(key, None)
        doubt = doubt or (damaged and found is None)
        mine = life == (self.boot if volatile else self.life) and not doubt
        mine = mine and (volatile or not self.lost)
        if volatile and (found is not None or state is not None or not mine):
            # What memory held is gone. When it is gone everywhere, the group starts over.
            self.wal.add_drop(key)
            term, vote = (found.term, found.vote.decode()) if found is not None else (0, "")
            self.wal.add_vote(key, term, vote.encode())
            self.wal.add_standing(key, "unknown", 0, JOINED if found is not None else 0)
            return self._raft(
                Members(tuple(peers)),
                term,
                vote,
                standing=UNKNOWN,
                hard_state_known=found is not None,
                volatile=True,
            )
        if found is None and state is None:
            if not mine or self.me not in founders:
                self.wal.add_standing(key, "unknown", 0, JOINED if mine else 0)
                return self._raft(
                    Members(),
                    0,
                    "",
                    standing=UNKNOWN,
                    hard_state_known=mine,
                    volatile=volatile,
                    reached=reached,
                )
            members = Members(tuple(founders))
            self.wal.add_base(key, 0, 0, codec.encode_members(members))
            return self._raft(members, 0, "", standing=WHOLE, volatile=volatile)
        defends = damaged or doubt or self._lost_before(found, life)
        return self._from_disk(key, state, found, doubt, salvage and defends, salvage, reached)

    def begin(self, key: bytes, members: Members, index: int, term: int, volatile: bool) -> Raft:
        """The raft of a group that begins with a state on its only member, as the log knows."""
        self.recovered.pop(key, None)
        self.tombstones.pop(key, None)
        base = (index, term)
        return self._raft(members, term, "", standing=WHOLE, base=base, volatile=volatile)

    def _from_disk(
        self,
        key: bytes,
        state: GroupState | None,
        found: RecoveredGroup | None,
        doubt: bool,
        defends: bool,
        salvage: bool,
        reached: int,
    ) -> Raft:
        term, vote = (found.term, found.vote.decode()) if found is not None else (0, "")
        index, base_term, members = 0, 0, Members()
        if found is not None and found.members:
            index, base_term = found.base_index, found.base_term
            members = codec.decode_members(found.members)
        if state is not None and state.index >= index:
            index, base_term = state.index, state.term
            members = codec.decode_members(state.members)
        entries = _entries(found, index, base_term)
        if not entries and index > (0 if found is None else found.base_index):
            # The state was received, and the process ended before the log said so; or the log is
            # lost. Without this record, the entries to come would not follow what the log holds.
            self.wal.add_base(key, index, base_term, codec.encode_members(members))
        # A state without a log: what the log promised is lost.
        standing = UNKNOWN if found is None else _standing(found)
        has = state.index if state is not None else 0
        torn = has < index or (bool(entries) and entries[0].index != index + 1)
        if torn:
            # What lies between state and log is missing: believe neither.
            entries, standing = [], UNKNOWN
            index, base_term = (state.index, state.term) if state is not None else (0, 0)
        if doubt:
            standing = UNKNOWN
        votes_known = found is not None and found.standing == "unknown" and self._joined(found)
        if torn:
            # The log goes on behind the state: nothing of what it held may come back then.
            self.wal.add_drop(key)
            self.wal.add_vote(key, term, vote.encode())
            self.wal.add_base(key, index, base_term, codec.encode_members(members))
        if standing.kind is StandingKind.UNKNOWN:
            self.wal.add_standing(key, "unknown", 0, JOINED if votes_known else 0)
        return self._raft(
            members,
            term,
            vote,
            standing=standing,
            base=(index, base_term),
            entries=entries,
            hard_state_known=votes_known if standing == UNKNOWN else None,
            salvageable=defends or (salvage and (torn or reached > index)),
            reached=reached,
        )

    def _lost_before(self, found: RecoveredGroup | None, life: int | None) -> bool:
        """Whether an earlier start with this very disk found that what it had is lost: there may
        be something to defend, although nothing tells of it any more."""
        if found is None or life != self.life:
            return False
        return found.standing == "unknown" and found.suspect_index != JOINED

    def _joined(self, found: RecoveredGroup) -> bool:
        """Whether the doubt that the log tells of is that of a member that joined."""
        return found.suspect_index == JOINED and not self.log_damaged

    def _raft(
        self,
        members: Members,
        term: int,
        vote: str,
        *,
        standing: Standing,
        base: tuple[int, int] = (0, 0),
        entries: Sequence[Entry] = (),
        hard_state_known: bool | None = None,
        volatile: bool = False,
        salvageable: bool = False,
        reached: int = 0,
    ) -> Raft:
        return Raft(
            self.me,
            members=members,
            term=term,
            vote=vote,
            base_index=base[0],
            base_term=base[1],
            entries=entries,
            commit=base[0],
            applied=base[0],
            standing=standing,
            hard_state_known=hard_state_known,
            volatile=volatile,
            salvageable=salvageable,
            reached=reached,
            timing=self.timing,
            jitter=self.jitter,
            limits=self.limits,
        )


def consequence(raft: Raft, *, alone: bool) -> str:
    """What it means for a group that a copy of its state is damaged; `alone`: on the only server
    that has one."""
    if raft.standing == WHOLE:
        return "the other copy and the log have what it said"
    if alone:
        return "no other server has it; `jsctl stream cluster rescue` goes on with what is left"
    return "it is fetched from a peer that has it"


def _entries(found: RecoveredGroup | None, base: int, base_term: int) -> list[Entry]:
    """What of the log follows a base; nothing when it holds another entry in the base's place."""
    if found is None:
        return []
    in_place = next((entry[1] for entry in found.entries if entry[0] == base), base_term)
    if in_place != base_term:
        return []
    return [
        Entry(index, term, EntryKind(kind), data)
        for index, term, kind, data in found.entries
        if index > base
    ]


def _standing(found: RecoveredGroup) -> Standing:
    kind = _STANDINGS[found.standing]
    if kind is StandingKind.SUSPECT:
        return Standing(kind, found.suspect_term, found.suspect_index)
    return WHOLE if kind is StandingKind.WHOLE else UNKNOWN
