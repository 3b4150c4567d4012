"""The nouns of raft: entries, members, standings, messages, timing and limits.

Plain data only. Hot objects are slots dataclasses that are treated as immutable once they have
been handed out: an entry is shared between the log, appends to all peers and the caller.
"""

from enum import Enum, IntEnum
from typing import TypeAlias

from jsctl.dataclass import dataclass

PeerId: TypeAlias = str
"""Name of a peer inside a group; at most 255 bytes in UTF-8, eight characters in production."""

# Aliases and no NewTypes: arithmetic on a NewType gives back an int, and wrapping it again is a
# function call in the middle of the hottest loops.
Index: TypeAlias = int
"""Position in the log; the first entry has index 1, 0 means "before everything"."""
Term: TypeAlias = int
"""Election period; 0 means "before the first election"."""

RESCUED = b"rescued"
"""Content of the empty entry with which a leader begins that less than a majority elected."""
RESCUED_TERMS = 1 << 32
"""At least so much further than the last one is a term in which less than a majority elects. Those
that are away may have elected others in the terms between, and are to follow when they are back."""


class EntryKind(IntEnum):
    """What an entry is for. The numbers are part of the wire and log formats."""

    DATA = 0
    EMPTY = 1
    """Written by a new leader; carries nothing, or `RESCUED`."""
    CONFIG = 2
    """Data is `codec.encode_members` of the set in effect from this entry on."""


@dataclass(slots=True)
class Entry:
    """One thing in the log."""

    index: Index
    term: Term
    kind: EntryKind
    data: bytes


@dataclass(frozen=True, slots=True)
class Members:
    """Who takes part. Voters count in quorums; learners only receive. No one is in both."""

    voters: tuple[PeerId, ...] = ()
    learners: tuple[PeerId, ...] = ()

    def __contains__(self, peer: object) -> bool:
        return peer in self.voters or peer in self.learners

    def all(self) -> tuple[PeerId, ...]:
        """Voters, then learners."""
        return self.voters + self.learners


class StandingKind(IntEnum):
    """How far a node's own storage can be trusted; numbers are part of the wire format."""

    WHOLE = 0
    SUSPECT = 1
    """Damaged, but it is known up to which (term, index) the log had been promised."""
    UNKNOWN = 2
    """It is not known what had been promised, perhaps not even in which terms it voted."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A node's own standing in its group; term and index are the claim of a SUSPECT one."""

    kind: StandingKind = StandingKind.WHOLE
    term: Term = 0
    index: Index = 0


WHOLE = Standing()
UNKNOWN = Standing(StandingKind.UNKNOWN)


class Role(Enum):
    """What a node does at the moment. A learner is a FOLLOWER that is no voter."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


@dataclass(frozen=True, slots=True)
class Timing:
    """All times in ticks.

    Defaults are meant for ticks of 50 ms: elections after 0.8 to 1.6 s of silence, heartbeats
    each 100 ms, leases of 0.2 s; when the leader's server is seen to go down, campaigns
    start 50 to 200 ms after its lease is over for certain.
    """

    election_ticks: int = 16
    """Least silence before a campaign; the injected jitter adds 0 to as much again."""
    heartbeat_ticks: int = 2
    lease_ticks: int = 4
    """How long after *sending* a heartbeat, that a quorum acknowledged, reads need no round."""
    margin_ticks: int = 2
    """What voters wait beyond the lease: tick granularity (1) and difference of clock rates."""
    soon_ticks: int = 3
    """A follower whose leader's server went down campaigns 1 to 1 + soon_ticks later."""
    transfer_ticks: int = 16
    rescue_ticks: int = 6000
    """How long less than a majority is enough when an operator said so."""
    quiet_ticks: int = 40
    """Idle time before a group hibernates; 0 means never."""

    def __post_init__(self) -> None:
        assert 0 < self.heartbeat_ticks < self.election_ticks
        assert self.lease_ticks > 0 and self.margin_ticks >= 1
        # Invariant: a lease ends before any voter is free to elect another leader.
        assert self.lease_ticks + self.margin_ticks <= self.election_ticks
        assert self.soon_ticks > 0 and self.transfer_ticks > 0 and self.quiet_ticks >= 0


@dataclass(frozen=True, slots=True)
class RaftLimits:
    """Bounds of one group's memory and messages."""

    append_bytes_max: int = 256 * 1024
    """Entry data in one append message; a larger single entry goes alone."""
    append_entries_max: int = 4096
    inflight_bytes_max: int = 2 * 1024 * 1024
    """Unacknowledged entry data to one peer; beyond it, sending waits for acks."""
    proposal_bytes_max: int = 256 * 1024 * 1024
    """Uncommitted entry data on the leader; beyond it, `propose` answers None.

    Well above what a stream's leader admits (128 MiB and one turn's): its refusal names the remedy.
    """
    committed_entries_max: int = 4096
    """Entries in one Ready's `committed`; the rest follows in the next."""
    reads_max: int = 65536
    """Waiting reads; beyond it, a read fails at once."""


ENTRY_OVERHEAD_BYTES = 32
"""What an entry costs besides its data, for the byte limits."""


@dataclass(slots=True)
class VoteRequest:
    """Ask for a vote, or (`pre`) whether one would be given.

    `term` is the term of the election, so one above the sender's own for a pre-vote. `transfer`
    says that the leader itself asked for the election. `poll` is sent by an UNKNOWN node that
    only wants to know the terms of the others; `fresh` starts a group over of which every voter
    said that it is UNKNOWN with an empty log.
    """

    to: PeerId
    sender: PeerId
    term: Term
    last_index: Index
    last_term: Term
    pre: bool = False
    transfer: bool = False
    poll: bool = False
    fresh: bool = False


@dataclass(slots=True)
class VoteReply:
    """`term` is that of the request, `voter_term` the voter's own after handling it."""

    to: PeerId
    sender: PeerId
    term: Term
    voter_term: Term
    pre: bool
    granted: bool
    empty: bool = False
    """The voter is UNKNOWN and has nothing that the candidate lacks: see `State.yields`."""


@dataclass(slots=True)
class Append:
    """Entries behind (prev_index, prev_term), perhaps none, and the leader's commit index."""

    to: PeerId
    sender: PeerId
    term: Term
    prev_index: Index
    prev_term: Term
    commit: Index
    entries: list[Entry]


@dataclass(slots=True)
class AppendReply:
    """Durable up to `index` as in the leader's log; or `rejected`, with `index` the prev_index.

    On a rejection (hint_index, hint_term) is the last entry of the follower that may match.
    """

    to: PeerId
    sender: PeerId
    term: Term
    index: Index
    rejected: bool = False
    hint_index: Index = 0
    hint_term: Term = 0
    standing: StandingKind = StandingKind.WHOLE


@dataclass(slots=True)
class Heartbeat:
    """Sign of life. `round` and `tick` come back in the reply: reads and leases rest on them.

    `quiet` proposes to hibernate to a follower that has all up to `last_index`, committed.
    """

    to: PeerId
    sender: PeerId
    term: Term
    commit: Index
    round: int
    tick: int
    quiet: bool = False
    last_index: Index = 0


@dataclass(slots=True)
class HeartbeatReply:
    """`match` is what an `AppendReply` would say now, so a lost one is made good."""

    to: PeerId
    sender: PeerId
    term: Term
    round: int
    tick: int
    match: Index
    quiet: bool = False
    standing: StandingKind = StandingKind.WHOLE


@dataclass(slots=True)
class TimeoutNow:
    """The leader asks the receiver to take over."""

    to: PeerId
    sender: PeerId
    term: Term


Message: TypeAlias = (
    VoteRequest | VoteReply | Append | AppendReply | Heartbeat | HeartbeatReply | TimeoutNow
)


@dataclass(frozen=True, slots=True)
class AddLearner:
    """Membership change: `peer` starts to receive the log."""

    peer: PeerId


@dataclass(frozen=True, slots=True)
class Promote:
    """Membership change: a learner that has caught up becomes a voter."""

    peer: PeerId


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Membership change: `peer` leaves.

    `forced` goes ahead although fewer voters than a quorum of the rest were heard lately.
    """

    peer: PeerId
    forced: bool = False


Change: TypeAlias = AddLearner | Promote | RemoveMember
