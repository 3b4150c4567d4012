"""The words of the mesh: its options, what it reports, and what it wants done.

Plain data. The mesh never sees a socket: connections are the numbers of `turn.Accepted`.
"""

from collections.abc import Sequence
from dataclasses import field
from enum import Enum, auto

from jsctl.broker.compression_options import NOT_SUPPORTED, OFF, Compression
from jsctl.broker.turn import Dial, LogLine
from jsctl.dataclass import dataclass

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000

DIAL_RETRY_NS = SECOND_NS
"""Pause before an explicit route is tried again."""
DIAL_RETRY_FIRST_NS = 50 * MILLISECOND_NS
"""The same while a server starts: doubles up to `DIAL_RETRY_NS` until it first connected."""
DIAL_BACKOFF_MAX_NS = 30 * SECOND_NS
RECONNECT_JITTER_NS = 100 * MILLISECOND_NS
FIRST_PING_NS = SECOND_NS
PING_INTERVAL_MAX_NS = 30 * SECOND_NS
IMPLICIT_RETRIES = 5
"""How often a gossiped route is tried again, unless `connect_retries` says more."""
HANDSHAKES_MAX = 512
"""Connections that may be in handshake at a time; one more is closed."""
POOL_SIZE_MAX = 1024
"""As large may a pool be configured, and as large may that of another server be."""


@dataclass(frozen=True, slots=True)
class RouteUrl:
    """A configured route; user and password override the cluster block's."""

    host: str
    port: int
    user: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True)
class MeshOptions:
    """The cluster block and what of the server is told to its peers.

    `pool_size` below 1 switches pooling and dedicated account links off. The system account
    has a link of its own whenever pooling is on. `client_urls` are this server's own, and
    `leafnode_url` and `gateway_url` are where leaf nodes and other clusters connect, empty if they
    are not to be told.
    """

    server_id: str
    server_name: str
    cluster: str
    host: str
    port: int
    cluster_dynamic: bool = False
    advertised: bool = False
    """Whether `host` and `port` are what the configuration wants others to dial."""
    version: str = "2.15.1"
    domain: str = ""
    jetstream: bool = False
    max_payload: int = 1024 * 1024
    client_urls: tuple[str, ...] = ()
    leafnode_url: str = ""
    gateway_url: str = ""
    no_advertise: bool = False
    routes: tuple[RouteUrl, ...] = ()
    user: str = ""
    password: str = ""
    auth_timeout_ns: int = 2 * SECOND_NS
    pool_size: int = 3
    accounts: tuple[str, ...] = ()
    system_account: str = "$SYS"
    connect_retries: int = 0
    connect_backoff: bool = False
    ping_interval_ns: int = PING_INTERVAL_MAX_NS
    ping_max: int = 2
    compression: Compression = Compression()

    @property
    def delays_info(self) -> bool:
        """Whether a dialing side has to read the other one's INFO before it gives its own."""
        return self.pool_size >= 1 or self.compression.mode not in (OFF, NOT_SUPPORTED)

    @property
    def pinned(self) -> tuple[str, ...]:
        """Accounts with a link of their own to every peer."""
        if self.pool_size < 1:
            return ()
        return tuple(dict.fromkeys((self.system_account, *self.accounts)))


class PeerChange(Enum):
    """What becomes of the links to a broker."""

    LINKED = auto()
    BROKEN = auto()
    """One of several is gone, with what was on its way."""
    GONE = auto()
    """The last one is."""


@dataclass(frozen=True, slots=True)
class PeerUp:
    """The first link to a server was registered."""

    server_id: str
    name: str
    native: bool
    """The peer is a jsctl broker, not a nats-server."""


@dataclass(frozen=True, slots=True)
class PeerDown:
    """The last link to a server is gone: it is dead, or cut off."""

    server_id: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class LinkAdded:
    """A connection may carry routed traffic from now on.

    `account` is set on a dedicated link, whose lines carry no account names. Other links carry
    the accounts with `pool_index(account, pool_size)` equal to `pool_index`, by this server's
    own size; without pooling the size is 1.
    """

    conn: int
    server_id: str
    name: str
    account: str
    pool_index: int
    pool_size: int
    solicited: bool
    traces: bool = True
    serves: bool = False
    """The peer is a broker with a JetStream."""


@dataclass(frozen=True, slots=True)
class LinkRemoved:
    """A registered connection is gone, with all interest learned on it."""

    conn: int
    server_id: str
    account: str
    reason: str


@dataclass(frozen=True, slots=True)
class ConnectUrlsChanged:
    """Client URLs of the whole cluster, own ones first: clients get a new INFO."""

    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeafnodeUrlsChanged:
    """Where leaf nodes may connect at the other servers of the cluster."""

    urls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GatewayTold:
    """A server of the cluster tells of another cluster, and where that is reached."""

    gateway: str
    urls: tuple[str, ...]
    teller: str
    """That server's id."""


@dataclass(frozen=True, slots=True)
class ClusterRenamed:
    """A generated cluster name gave way to a peer's."""

    cluster: str


MeshEvent = (
    PeerUp
    | PeerDown
    | LinkAdded
    | LinkRemoved
    | ConnectUrlsChanged
    | LeafnodeUrlsChanged
    | GatewayTold
    | ClusterRenamed
)


@dataclass(slots=True)
class MeshOutput:
    """What the mesh wants done, in order within each list; writes come before closes."""

    writes: list[tuple[int, bytes]] = field(default_factory=list)
    closes: list[tuple[int, str]] = field(default_factory=list)
    pauses: list[int] = field(default_factory=list)
    resumes: list[int] = field(default_factory=list)
    dials: list[Dial] = field(default_factory=list)
    events: list[MeshEvent] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """A registered link for reports (`/routez`)."""

    conn: int
    server_id: str
    name: str
    account: str
    solicited: bool
    configured: bool
    host: str
    port: int
    opened_ns: int
    rtt_ns: int
    compression: str


@dataclass(frozen=True, slots=True)
class PeerFacts:
    """A server that is connected now."""

    server_id: str
    name: str
    native: bool
    jetstream: bool
    domain: str
    version: str
    connect_urls: Sequence[str]
    conns: Sequence[int]
    gateway_url: str = ""
