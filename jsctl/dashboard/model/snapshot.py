"""What there is to show, as plain data: made by `model`, drawn by widgets, printed by `once`.

A snapshot is never changed. Times are nanoseconds of the Unix epoch, rates are per second,
sizes are bytes. Nothing is left out because it is away: what was known stays, with `stale_ns`.
"""

from dataclasses import field
from enum import Enum, IntEnum

from jsctl.api.times import SECOND_NS
from jsctl.dataclass import dataclass


class Level(IntEnum):
    """How bad; lists are ordered by it."""

    OK = 0
    NOTE = 1
    WARN = 2
    BAD = 3


class Badge(Enum):
    """The word in the top bar."""

    CONNECTING = "CONNECTING"
    NO_ACCESS = "NO ACCESS"
    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    DOWN = "DOWN"
    UNKNOWN = "UNKNOWN"


STALE_NS = 3 * SECOND_NS
"""Data older than this are not of now: shown greyed, with their age, and no base for a word."""


class PeerState(Enum):
    """A replica, as its leader and our own look at its server say."""

    LEADER = "leader"
    CURRENT = "in sync"
    BEHIND = "behind"
    OFFLINE = "offline"


class Kind(Enum):
    """What a stream is the store of."""

    STREAM = "stream"
    BUCKET = "kv"
    OBJECTS = "objects"
    OTHER = "other"


Trend = tuple[float, ...]
"""Samples of a number, oldest first."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One replica of a group. `active_ns` is the time since its leader heard it."""

    name: str
    state: PeerState
    lag: int = 0
    active_ns: int = 0


@dataclass(frozen=True, slots=True)
class Server:
    """A server; `age_ns` is how long ago it answered last. CPU in percent of one core."""

    name: str
    id: str = ""
    cluster: str = ""
    version: str = ""
    host: str = ""
    level: Level = Level.OK
    why: str = ""
    up: bool = True
    age_ns: int = 0
    lame_duck: bool = False
    meta_leader: bool = False
    jetstream: bool = True
    cpu: float = 0.0
    cores: int = 1
    mem: int = 0
    connections: int = 0
    subscriptions: int = 0
    slow_consumers: int = 0
    routes: int = 0
    in_msgs: float = 0.0
    out_msgs: float = 0.0
    in_bytes: float = 0.0
    out_bytes: float = 0.0
    store: int = 0
    store_max: int = 0
    memory_store: int = 0
    leaders: int = 0
    assets: int = 0
    api_total: int = 0
    api_errors: int = 0
    rtt_ns: int = 0
    uptime_ns: int = 0
    cpu_trend: Trend = ()
    in_trend: Trend = ()
    out_trend: Trend = ()
    mem_trend: Trend = ()
    connections_trend: Trend = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A mirror or source of a stream and how far it is."""

    name: str
    mirror: bool
    lag: int = 0
    active_ns: int = -1
    error: str = ""
    external: str = ""


@dataclass(frozen=True, slots=True)
class Damage:
    """Messages that a server cannot read in its replica of a stream."""

    server: str
    messages: int = 0
    lost: int = 0
    """Of these, those that no replica has."""
    ranges: str = ""
    """The first of them, for people."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream; `lag` is what all its consumers have not got yet, `rate` is stored a second."""

    account: str
    name: str
    kind: Kind = Kind.STREAM
    level: Level = Level.OK
    why: str = ""
    replicas: int = 1
    subjects: tuple[str, ...] = ()
    retention: str = ""
    storage: str = ""
    messages: int = 0
    bytes: int = 0
    bytes_max: int = -1
    messages_max: int = -1
    first_seq: int = 0
    last_seq: int = 0
    last_ns: int = 0
    idle_ns: int = -1
    """Since the last message; -1 if there was none."""
    num_subjects: int = 0
    deleted: int = 0
    lost: int = 0
    damage: tuple[Damage, ...] = ()
    consumers: int = 0
    sealed: bool = False
    leader: str = ""
    group: str = ""
    peers: tuple[Peer, ...] = ()
    sources: tuple[Source, ...] = ()
    lag: int = 0
    rate: float = 0.0
    trend: Trend = ()
    stale_ns: int = 0

    @property
    def key(self) -> str:
        """Unique in a snapshot."""
        return f"{self.account}/{self.name}"

    @property
    def replica_lag(self) -> int:
        """Operations that the replica furthest behind has to catch up."""
        return max((peer.lag for peer in self.peers), default=0)


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer; `lag` is messages not delivered yet, `lag_rate` its growth a second."""

    account: str
    stream: str
    name: str
    level: Level = Level.OK
    why: str = ""
    push: bool = False
    bound: bool = False
    ack: str = ""
    filters: tuple[str, ...] = ()
    lag: int = 0
    lag_rate: float = 0.0
    ack_pending: int = 0
    ack_pending_max: int = 0
    ack_wait_ns: int = 0
    redelivered: int = 0
    waiting: int = 0
    delivered_seq: int = 0
    floor_seq: int = 0
    paused: bool = False
    pause_left_ns: int = 0
    pinned: tuple[tuple[str, str], ...] = ()
    """Priority groups and the client each is pinned to."""
    leader: str = ""
    group: str = ""
    peers: tuple[Peer, ...] = ()
    rate: float = 0.0
    trend: Trend = ()
    stale_ns: int = 0

    @property
    def key(self) -> str:
        """Unique in a snapshot."""
        return f"{self.account}/{self.stream}/{self.name}"


@dataclass(frozen=True, slots=True)
class Meta:
    """The group that administers JetStream; `need` of `size` make a quorum."""

    leader: str = ""
    term: int = 0
    since_ns: int = 0
    size: int = 0
    need: int = 0
    peers: tuple[Peer, ...] = ()
    pending: int = 0
    known: bool = False

    @property
    def have(self) -> int:
        """Members that answer and are current."""
        fit = (PeerState.LEADER, PeerState.CURRENT)
        return sum(peer.state in fit for peer in self.peers)

    @property
    def up(self) -> int:
        """Members that are not offline."""
        return sum(peer.state is not PeerState.OFFLINE for peer in self.peers)

    @property
    def spare(self) -> int:
        """How many more members may fail before nothing can be changed any more."""
        return self.up - self.need


@dataclass(frozen=True, slots=True)
class Member:
    """A raft group as one server sees it."""

    server: str
    state: str
    term: int = 0
    committed: int = 0
    applied: int = 0
    last_index: int = 0
    log_entries: int = 0
    log_bytes: int = 0
    snapshot_index: int = 0
    lag: int = 0
    seen_ns: int = -1
    catching_up: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class RaftGroup:
    """A raft group with what all its members say about it."""

    account: str
    name: str
    asset: str = ""
    leader: str = ""
    leader_since_ns: int = 0
    term: int = 0
    size: int = 0
    need: int = 0
    committed: int = 0
    members: tuple[Member, ...] = ()
    level: Level = Level.OK
    why: str = ""

    @property
    def key(self) -> str:
        """Unique in a snapshot."""
        return f"{self.account}/{self.name}"

    @property
    def lag(self) -> int:
        """Entries that the member furthest behind has not applied."""
        return max((self.committed - one.applied for one in self.members), default=0)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `what` is its category, `who` the thing it happened to."""

    time_ns: int
    level: Level
    what: str
    who: str
    said: str
    subject: str = ""
    serial: int = 0


@dataclass(frozen=True, slots=True)
class Card:
    """A number with its past; `change` is the growth over that time, 0.04 being 4 %."""

    value: float = 0.0
    trend: Trend = ()
    change: float = 0.0


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that is not as it should be."""

    level: Level
    who: str
    said: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one moment. `stale_ns` is by how much the youngest data are overdue."""

    taken_ns: int = 0
    context: str = ""
    account: str = ""
    badge: Badge = Badge.CONNECTING
    connected: bool = False
    system: bool = False
    """Whether servers tell about themselves."""
    jetstream: bool = False
    """Whether our own account can be administered."""
    note: str = ""
    stale_ns: int = 0
    rtt_ns: int = 0
    publish: Card = Card()
    deliver: Card = Card()
    lag: Card = Card()
    api: Card = Card()
    api_errors: float = 0.0
    store: int = 0
    store_max: int = 0
    servers: tuple[Server, ...] = ()
    streams: tuple[Stream, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    groups: tuple[RaftGroup, ...] = ()
    meta: Meta = field(default_factory=Meta)
    alerts: tuple[Alert, ...] = ()
    events: tuple[Event, ...] = ()
    """Oldest first, at most `EVENTS_MAX`."""

    def stream(self, key: str) -> Stream | None:
        """The stream of a key."""
        return next((one for one in self.streams if one.key == key), None)

    def consumer(self, key: str) -> Consumer | None:
        """The consumer of a key."""
        return next((one for one in self.consumers if one.key == key), None)

    def server(self, name: str) -> Server | None:
        """The server of a name."""
        return next((one for one in self.servers if one.name == name), None)

    def consumers_of(self, stream: Stream) -> tuple[Consumer, ...]:
        """The consumers of a stream, in the order of the snapshot."""
        return tuple(
            one
            for one in self.consumers
            if one.stream == stream.name and one.account == stream.account
        )


EVENTS_MAX = 2000
"""Older events are forgotten."""
