"""What replicas found out in a turn, for whoever answers requests and tells operators of it.

Nobody is called from within the application of an entry: facts are noted in the order in which
they happened, and taken from `Engine.take_facts` between the rounds of a turn. They name what
they are about by its parts, not by the replica, which may be gone by then.
"""

from enum import Enum

from jsctl.api.stream import StreamState
from jsctl.broker.jetstream.batches.words import BatchEnd
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.facts import Advisory
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment, StreamAssignment
from jsctl.broker.jetstream.meta.state import MetaChange
from jsctl.broker.jetstream.requests import ApiRequest, ClientInfo
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.replication.group import LeaderChange
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StreamServes:
    """A stream's leader serves what a request asked for: it is to be answered."""

    assignment: StreamAssignment
    stream: Stream
    request: ApiRequest


@dataclass(frozen=True, slots=True)
class ConsumerServes:
    """The same for a consumer."""

    assignment: ConsumerAssignment
    consumer: Consumer
    leader: ConsumerLeader
    request: ApiRequest
    """Once it is answered, the replica is told of it: nothing is delivered until then."""


@dataclass(frozen=True, slots=True)
class ConsumerAdvisories:
    """What a consumer's leader has to tell operators of its deliveries."""

    assignment: ConsumerAssignment
    advisories: list[Advisory]


@dataclass(frozen=True, slots=True)
class MetaChanged:
    """A change of the meta state was applied and followed here."""

    change: MetaChange
    led: bool
    """Whether this server led the meta group then: who leads tells others of it."""


class DamageNews(Enum):
    """What became of messages of a replica."""

    FOUND = "found"
    """They cannot be read here."""
    LOST = "lost"
    """Nor on any other replica."""
    REPAIRED = "repaired"
    """They can be read again."""


@dataclass(frozen=True, slots=True)
class ReplicaDamageChanged:
    """Messages of a stream turned out to be damaged on this server, or are whole again."""

    account: str
    stream: str
    news: DamageNews
    messages: int
    ranges: tuple[tuple[int, int], ...] = ()
    """The first of them; what is repaired is only counted."""


@dataclass(frozen=True, slots=True)
class MirrorCaughtUp:
    """A mirror that this server leads has nearly all of its origin: it may answer for it."""

    account: str
    stream: str


@dataclass(frozen=True, slots=True)
class BatchesAbandoned:
    """Atomic batches were given up by the leader of their stream."""

    account: str
    stream: str
    ends: tuple[BatchEnd, ...]


class ArchiveEvent(Enum):
    """What becomes of snapshots and restores; the words of the advisory."""

    SNAPSHOT_CREATE = "SNAPSHOT_CREATE"
    SNAPSHOT_COMPLETE = "SNAPSHOT_COMPLETE"
    RESTORE_CREATE = "RESTORE_CREATE"
    RESTORE_COMPLETE = "RESTORE_COMPLETE"


@dataclass(frozen=True, slots=True)
class ArchiveNews:
    """A snapshot or a restore began or ended on this server. Times in ns."""

    event: ArchiveEvent
    account: str
    stream: str
    client: ClientInfo
    began_ns: int
    state: StreamState | None = None
    bytes: int = 0
    error: str = ""


Fact = (
    StreamServes
    | ConsumerServes
    | ConsumerAdvisories
    | MetaChanged
    | LeaderChange
    | ReplicaDamageChanged
    | MirrorCaughtUp
    | ArchiveNews
    | BatchesAbandoned
)
