"""What JetStream on one server is started with."""

from dataclasses import field

from jsctl.broker.jetstream.streams.publish_room import PublishLimits
from jsctl.broker.raft.types import RaftLimits, Timing
from jsctl.broker.replication.checkpoints import GroupLimits
from jsctl.broker.store.segments.files import StoreOptions
from jsctl.broker.store.wal.log import SEGMENT_BYTES
from jsctl.dataclass import dataclass

TICK_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class ScrubLimits:
    """How often all that rests on the disk is read (0: never), and how much in a second at most."""

    interval_ns: int = 24 * 3600 * 1_000_000_000
    bytes_per_second: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerCard:
    """What others are told of a server; a reload may change it."""

    server_id: str = ""
    host: str = ""
    tags: tuple[str, ...] = ()
    store_max: int = -1
    memory_max: int = -1
    """Bytes that streams may take; negative: no limit."""
    ha_assets_max: int = 0
    """Replicated groups that it takes at most; 0: no limit."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Who this server is. `promised`: servers that the configuration names."""

    me: str
    server_name: str
    cluster: str
    incarnation: bytes
    boot: int
    clustered: bool
    promised: int
    other_clusters: tuple[tuple[str, int], ...] = ()
    """Those that the configuration names, and how many of the promised servers are theirs."""
    domain: str = ""
    card: ServerCard = field(default_factory=ServerCard)
    timing: Timing = field(default_factory=Timing)
    limits: GroupLimits = field(default_factory=GroupLimits)
    raft_limits: RaftLimits = field(default_factory=RaftLimits)
    log_segment_bytes: int = SEGMENT_BYTES
    stores: StoreOptions = field(default_factory=StoreOptions)
    scrub: ScrubLimits = field(default_factory=ScrubLimits)
    publishing: PublishLimits = field(default_factory=PublishLimits)

    @property
    def life(self) -> int:
        """The incarnation as a number."""
        return int.from_bytes(self.incarnation[:8], "big") >> 1
