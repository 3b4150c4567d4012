"""What brokers say to each other: the items of peer frames, as plain data.

`frames` has their bytes.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Generic, TypeVar

from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.peers.use_items import AccountUse, TierUse
from jsctl.broker.peers.work_items import FinishedSeqs, WorkQuestion
from jsctl.broker.pieces import Piece
from jsctl.dataclass import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Founding:
    """A meta group's id and its first voters; what a founder announces.

    `lives` are the incarnations of the members' disks, in the same order: a member that comes
    back with another one is not taken for the founder that it was.
    """

    meta_id: str
    members: tuple[str, ...]
    lives: tuple[int, ...]

    def life_of(self, peer: str) -> int | None:
        """The incarnation with which a server was a founder; None when it was none."""
        return dict(zip(self.members, self.lives, strict=True)).get(peer)


class ChunkKind(IntEnum):
    """Where a chunk stands in its transfer."""

    FIRST = 0
    MORE = 1
    LAST = 2


@dataclass(frozen=True, slots=True)
class StateChunk:
    """A piece of a group's state. `index`, `term`, `members` say what the whole stands for."""

    key: bytes
    transfer: int
    kind: ChunkKind
    offset: int
    index: int
    term: int
    members: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class StateAck:
    """The follower has `offset` bytes; `done` once the state is durable and in use."""

    key: bytes
    transfer: int
    offset: int
    done: bool
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Announcement:
    """`leader` leads `group` since `term`; sent by the leader itself. Empty: nobody does."""

    group: str
    term: int
    leader: str


@dataclass(frozen=True, slots=True)
class PeerHeartbeat:
    """One pulse of a server pair. `boot` is random per start of the process.

    `echo` is the last sequence heard from the receiver, `echo_held_ns` how long ago.
    """

    boot: int
    incarnation: int
    sequence: int
    echo: int = 0
    echo_held_ns: int = 0
    leaving: bool = False
    """The server is shutting down on purpose."""


@dataclass(frozen=True, slots=True)
class RaftBatch:
    """Messages of one group, in the encoding of the raft codec and in pieces.

    What was received is one piece, and a view into the frame that it came in.
    """

    group: bytes
    messages: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Forward:
    """An API request for the receiver to answer; it came through `hops` servers, and came in so
    long ago."""

    hops: int
    request: ApiRequest
    age_ns: int = 0


@dataclass(frozen=True, slots=True)
class ForwardReply:
    """The answer to a `Forward`. The receiver publishes it where the request came in."""

    account: str
    reply: bytes
    headers: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Answered:
    """A forwarded request was answered by the sender, whose message does not pass the receiver."""

    account: str
    reply: bytes


@dataclass(frozen=True, slots=True)
class Returned:
    """A request that came in at the receiver is not answered by who was to decide on it."""

    account: str
    reply: bytes
    subject: bytes
    untouched: bool
    """Nothing was done about it, so it may be passed on once more; else that is not known."""


@dataclass(frozen=True, slots=True)
class ApiCount:
    """How many frames with words of the API the sender sent to the receiver since its start.

    `words`: this frame is the last of them. `missed`: how many of the receiver's it did not get.
    """

    sent: int
    missed: int
    words: bool


@dataclass(frozen=True, slots=True)
class ServerNews:
    """What a server tells of itself: on first contact, on change, and now and then."""

    facts: ServerFacts
    server_id: str
    host: str
    version: str
    lame_duck: bool = False


@dataclass(frozen=True, slots=True)
class GatherRequest:
    """Asks for the infos of the assets that the receiver leads. Consumer "" means stream."""

    token: int
    account: str
    assets: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class GatherReply:
    """(stream, consumer, JSON of the info) of those that the sender leads; `more` follows."""

    token: int
    infos: list[tuple[str, str, bytes]]
    more: bool = False


@dataclass(frozen=True, slots=True)
class Introduction:
    """The leader of a consumer to that of its stream: is all applied that the meta group had
    decided up to `seen`? `key` is that of the stream's group."""

    key: bytes
    token: int
    seen: int


@dataclass(frozen=True, slots=True)
class Introduced:
    """It is, and the sender was the stream's leader then. `token` is that of the question."""

    token: int


@dataclass(frozen=True, slots=True)
class MetaProposal:
    """Entries for the meta group's log, from a server that saw the need for them."""

    entries: list[bytes]


@dataclass(frozen=True, slots=True)
class Eviction:
    """An operator removed the receiver from the cluster, in this life of its."""

    life: int


@dataclass(frozen=True, slots=True)
class DamagedReplica:
    """Damage that the sender knows of in its replica of a stream."""

    group: str
    messages: int
    """That cannot be read."""
    lost: int
    """Of these, those that no replica has."""
    ranges: list[tuple[int, int]]
    """The first of them."""


@dataclass(frozen=True, slots=True)
class DamagedReplicas:
    """All of the sender's replicas that have damage; none: all are whole."""

    replicas: tuple[DamagedReplica, ...]


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """Whether the sender takes messages: while its disk is `full` it takes none."""

    full: bool


@dataclass(frozen=True, slots=True)
class RangeRequest:
    """Asks for messages of a stream that the sender has lost. `ranges` ascend."""

    key: bytes
    token: int
    ranges: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """What the sender has in the ranges that it was asked for, from the first one up to `up_to`.

    It speaks of the stream as of entry `index`: a message that is neither in a frame nor among
    the lost ones is removed there. `up_to` 0: it has nothing to say.
    """

    key: bytes
    token: int
    index: int
    up_to: int
    lost: list[tuple[int, int]]
    """Ranges that the sender cannot read either."""
    frames: list[bytes]


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The leader of a stream wants the receiver to read what it has of it on its disk."""

    key: bytes
    token: int


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What a replica says of its messages to the stream's leader.

    `token` is that of the request that is answered; 0: nobody asked, only digests are told.
    """

    key: bytes
    token: int
    done: bool
    read: int
    total: int
    findings: int
    repaired: int
    damaged: list[tuple[int, int]]
    lost: list[tuple[int, int]]
    digests: list[tuple[int, bytes]]
    """(index, digest): of the messages as entry `index` left them."""


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The leader of a stream wants to know what the receiver has between two sequences, once it has
    applied `entry`."""

    key: bytes
    token: int
    entry: int
    first: int
    last: int
    chained: bool
    """The messages are to be compared with the stream's chain of hashes."""


@dataclass(frozen=True, slots=True)
class AuditAnswer:
    """What the sender read of its disk, from the first sequence that it was asked for to `up_to`.

    It speaks of the stream as of entry `index`. `up_to` 0: it has not come as far as it should.
    """

    key: bytes
    token: int
    index: int
    up_to: int
    end: int
    """The last sequence of the sender."""
    count: int
    """Messages that were read."""
    digest: bytes
    """Of their bytes."""
    damaged: list[tuple[int, int]]
    """Ranges that cannot be read."""
    link: bytes
    """The chain's hash behind `up_to`, in a stream that has one."""
    breaks: list[tuple[int, str]]
    """The first messages that do not fit into the chain, and why."""


Item = (
    PeerHeartbeat
    | RaftBatch
    | Announcement
    | Forward
    | ForwardReply
    | ServerNews
    | GatherRequest
    | GatherReply
    | StateChunk
    | StateAck
    | Founding
    | MetaProposal
    | AccountUse
    | TierUse
    | Eviction
    | DamagedReplicas
    | Answered
    | ApiCount
    | Returned
    | RangeRequest
    | RangeAnswer
    | CheckRequest
    | ReplicaReport
    | AuditRequest
    | AuditAnswer
    | Introduction
    | Introduced
    | WorkQuestion
    | FinishedSeqs
    | DiskRoom
)


URGENT_FIRST: tuple[type, ...] = (
    RaftBatch,
    ApiCount,
    Announcement,
    ForwardReply,
    Forward,
    ServerNews,
    StateAck,
    Founding,
    MetaProposal,
    AccountUse,
    TierUse,
    Eviction,
    DamagedReplicas,
    DiskRoom,
    Answered,
    Returned,
    GatherRequest,
    GatherReply,
    RangeRequest,
    RangeAnswer,
    CheckRequest,
    ReplicaReport,
    AuditRequest,
    AuditAnswer,
    Introduction,
    Introduced,
    WorkQuestion,
    FinishedSeqs,
    StateChunk,
)
"""How items of a frame follow one another, behind the heartbeat."""
_ROUTINE = (RaftBatch, ApiCount)
_WORDS = (Forward, ForwardReply, Answered, Returned, GatherRequest, GatherReply)


class Listed(Generic[T]):
    """A frame's items of one kind, in a list that is made when somebody asks for it."""

    def __init__(self, kind: type[T]) -> None:
        self.kind = kind

    def __get__(self, frame: "PeerFrame", _owner: type) -> list[T]:
        return frame.lists.setdefault(self.kind, [])


class PeerFrame:
    """The content of a frame by kind. `sender` is a peer id."""

    __slots__ = ("heartbeat", "lists", "sender")

    raft = Listed(RaftBatch)
    announcements = Listed(Announcement)
    forwards = Listed(Forward)
    replies = Listed(ForwardReply)
    news = Listed(ServerNews)
    gathers = Listed(GatherRequest)
    gathered = Listed(GatherReply)
    chunks = Listed(StateChunk)
    acks = Listed(StateAck)
    foundings = Listed(Founding)
    proposals = Listed(MetaProposal)
    uses = Listed(AccountUse)
    tier_uses = Listed(TierUse)
    evictions = Listed(Eviction)
    damaged = Listed(DamagedReplicas)
    answered = Listed(Answered)
    returned = Listed(Returned)
    wanted = Listed(RangeRequest)
    found = Listed(RangeAnswer)
    checks = Listed(CheckRequest)
    reports = Listed(ReplicaReport)
    counts = Listed(ApiCount)
    audits = Listed(AuditRequest)
    audited = Listed(AuditAnswer)
    introductions = Listed(Introduction)
    introduced = Listed(Introduced)
    work_questions = Listed(WorkQuestion)
    finished_work = Listed(FinishedSeqs)
    rooms = Listed(DiskRoom)

    def __init__(
        self, sender: str, heartbeat: PeerHeartbeat | None = None, items: Iterable[Item] = ()
    ) -> None:
        self.sender = sender
        self.heartbeat = heartbeat
        self.lists: dict[type, list[Any]] = {}
        """Most frames have items of one kind or two."""
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Put one more into it; there is one heartbeat."""
        if isinstance(item, PeerHeartbeat):
            self.heartbeat = item
        else:
            self.lists.setdefault(type(item), []).append(item)

    def items(self) -> Iterator[Item]:
        """Everything in it, what is urgent first."""
        if self.heartbeat is not None:
            yield self.heartbeat
        for kind in URGENT_FIRST:
            yield from self.lists.get(kind, ())

    @property
    def is_routine(self) -> bool:
        """Whether there is nothing in it but what replicated groups say to each other, and that the
        sender lives."""
        return not any([found for kind, found in self.lists.items() if kind not in _ROUTINE])

    @property
    def has_words(self) -> bool:
        """Whether there are requests of the API in it, or what came of some."""
        return any([self.lists.get(kind) for kind in _WORDS])
