"""What monitoring may see of the broker: facts as plain data, read once per request.

Numbers are totals since the start; times are ns since the epoch, 0 for never; memory and CPU
are what the edge read from the operating system last.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import field
from enum import Enum
from typing import Protocol

from jsctl.api.consumer import ConsumerInfo
from jsctl.api.monitoring.connz import LeafInfo, SubDetail, SublistStats
from jsctl.api.monitoring.health import RaftzGroup
from jsctl.api.monitoring.jsz import (
    JetStreamConfig,
    JetStreamLimits,
    JetStreamStats,
    MetaClusterInfo,
    Scrub,
)
from jsctl.api.monitoring.varz import (
    ClusterOptsVarz,
    GatewayOptsVarz,
    LeafNodeOptsVarz,
    WebsocketOptsVarz,
)
from jsctl.api.server import DataStats
from jsctl.api.stream import StreamInfo
from jsctl.broker.accounts.imports import Wiring
from jsctl.broker.options import AccountOptions
from jsctl.dataclass import dataclass

Meets = Callable[[bytes], bool]
"""Whether the subject of a subscription is one of those that are asked for."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a server was configured with; changes only with a reload."""

    server_id: str
    server_name: str
    host: str
    port: int
    cluster_name: str = ""
    domain: str = ""
    version: str = "2.15.1"
    product_version: str = ""
    lane: str = ""
    """Which loop of the lane runs."""
    runtime: str = ""
    """What runs the broker, where nats-server names its Go version."""
    proto: int = 1
    auth_required: bool = False
    tls_required: bool = False
    tls_verify: bool = False
    max_connections: int = 65536
    max_subscriptions: int = 0
    ping_interval_ns: int = 120_000_000_000
    ping_max: int = 2
    http_host: str = ""
    http_port: int = 0
    http_base_path: str = ""
    https_port: int = 0
    auth_timeout_s: float = 2
    max_control_line: int = 4096
    max_payload: int = 1024 * 1024
    max_pending: int = 64 * 1024 * 1024
    cluster: ClusterOptsVarz = field(default_factory=ClusterOptsVarz)
    websocket: WebsocketOptsVarz = field(default_factory=WebsocketOptsVarz)
    tls_timeout_s: float = 2
    write_deadline_ns: int = 10_000_000_000
    write_timeout: str = ""
    started_ns: int = 0
    config_load_ns: int = 0
    config_digest: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    feature_flags: Mapping[str, bool] = field(default_factory=dict)
    system_account: str = "$SYS"
    operators: tuple[str, ...] = ()
    """JWTs of those who are trusted to sign accounts."""
    jetstream: bool = False
    """JetStream is configured."""
    clustered: bool = False
    leaf: LeafNodeOptsVarz = field(default_factory=LeafNodeOptsVarz)
    gateway: GatewayOptsVarz = field(default_factory=GatewayOptsVarz)
    gateway_at: tuple[str, int] = ("", 0)
    """Where other clusters connect, as they are told."""


@dataclass(frozen=True, slots=True)
class PerKind:
    """A count by kind of connection."""

    clients: int = 0
    routes: int = 0
    gateways: int = 0
    leafs: int = 0

    @property
    def total(self) -> int:
        """All kinds together."""
        return self.clients + self.routes + self.gateways + self.leafs


@dataclass(frozen=True, slots=True)
class Totals:
    """Counters of the whole server, with what the operating system says of the process."""

    memory_bytes: int = 0
    cpu_percent: float = 0
    cores: int = 1
    threads_max: int = 1
    connections: int = 0
    total_connections: int = 0
    remotes: int = 0
    others: int = 0
    """Servers that this one knows of, in its cluster, in others and behind leaf nodes."""
    leafs: int = 0
    in_msgs: int = 0
    in_bytes: int = 0
    out_msgs: int = 0
    out_bytes: int = 0
    in_client_msgs: int = 0
    in_client_bytes: int = 0
    out_client_msgs: int = 0
    out_client_bytes: int = 0
    slow_consumers: PerKind = PerKind()
    stale_connections: PerKind = PerKind()
    stalled_clients: int = 0
    subscriptions: int = 0
    active_accounts: int = 0
    pinned_account_fails: int = 0
    internal_errors: int = 0
    """Bugs that were kept to one operation; see the log."""
    disk_waiters: int = 0
    disk_waits: int = 0
    disk_wait_ns: int = 0
    disk_wait_max_ns: int = 0


@dataclass(slots=True)
class ConnFacts:
    """A client connection, open or (`stop_ns` > 0) closed."""

    cid: int
    host: str
    port: int
    start_ns: int
    last_ns: int
    kind: str = "Client"
    type: str = "nats"
    stop_ns: int = 0
    reason: str = ""
    rtt_ns: int = 0
    pending_bytes: int = 0
    in_msgs: int = 0
    out_msgs: int = 0
    in_bytes: int = 0
    out_bytes: int = 0
    stalls: int = 0
    subscriptions: int = 0
    name: str = ""
    lang: str = ""
    version: str = ""
    tls_version: str = ""
    tls_cipher_suite: str = ""
    user: str = ""
    account: str = ""
    account_tag: str = ""
    jwt: str = ""
    bearer: bool | None = None
    """Who has the JWT is the user; None: nobody has looked, as it was refused."""
    issuer_key: str = ""
    tags: tuple[str, ...] = ()
    kept_subscriptions: Callable[[], Sequence[SubDetail]] = tuple
    """Closed connections only: what they had subscribed. Ten thousand of them may be kept, and a
    page shows few."""


@dataclass(slots=True)
class ListedConn:
    """One of very many connections, of which a page shows few: all else is asked for of those."""

    cid: int
    facts: Callable[[], ConnFacts]
    stop_ns: int = 0


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """A registered route connection."""

    cid: int
    remote_id: str
    remote_name: str
    solicited: bool
    configured: bool
    host: str
    port: int
    start_ns: int
    last_ns: int
    rtt_ns: int = 0
    pending_bytes: int = 0
    in_msgs: int = 0
    out_msgs: int = 0
    in_bytes: int = 0
    out_bytes: int = 0
    subscriptions: int = 0
    account: str = ""
    compression: str = "off"


@dataclass(frozen=True, slots=True)
class GateFacts:
    """A connection to (`outbound`) or from a server of another cluster."""

    gateway: str
    outbound: bool
    configured: bool
    connection: ConnFacts
    accounts: Mapping[str, Sequence[SubDetail]]
    """What the other cluster listens to, by account; nothing on those that are not outbound, and
    where it is not asked for."""
    queue_subscriptions: Mapping[str, int]
    """How many of them are in queue groups."""


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """An account as this server knows it; connections and counters are local."""

    name: str
    tag: str = ""
    updated_ns: int = 0
    expired: bool = False
    jetstream: bool = False
    lacks_jetstream: bool = False
    """It does not have what it wants: the server has too little, or it is the system's."""
    clients: int = 0
    leafs: int = 0
    subscriptions: int = 0
    sent: DataStats = field(default_factory=DataStats)
    received: DataStats = field(default_factory=DataStats)
    slow_consumers: int = 0
    jwt: str = ""
    issuer_key: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """The replica of a stream on this server. `leads`: this server is its leader."""

    name: str
    messages: int
    bytes: int
    consumers: int
    leads: bool
    consumers_led: int
    raft_group: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerFacts:
    """The replica of a consumer on this server. `direct`: belongs to a mirror or source."""

    info: ConsumerInfo
    raft_group: str = ""
    direct: bool = False


@dataclass(frozen=True, slots=True)
class JsAccountFacts:
    """JetStream use of one account on this server. Reserved -1: unlimited."""

    name: str
    tag: str
    memory: int
    store: int
    memory_reserved: int
    store_reserved: int
    api_total: int
    api_errors: int
    streams: Sequence[StreamFacts] = ()


@dataclass(frozen=True, slots=True)
class JetStreamFacts:
    """JetStream on this server, when it is enabled."""

    config: JetStreamConfig
    limits: JetStreamLimits
    stats: JetStreamStats
    accounts: Sequence[JsAccountFacts]
    meta: MetaClusterInfo | None = None
    leads_meta: bool = True
    """This server is the meta leader; true without a cluster."""
    scrub: Scrub | None = None


class Ailment(Enum):
    """What is wrong with an asset."""

    MISSING = "could not be recovered"
    WRITE_ERROR = "write error"
    NOT_CURRENT = "is not current"


@dataclass(frozen=True, slots=True)
class AssetHealth:
    """A stream (consumer "") or consumer that is assigned to this server."""

    account: str
    stream: str
    consumer: str = ""
    ailment: Ailment | None = None
    reason: str = ""
    """Says more; damaged ranges and running repairs are named here too."""


@dataclass(frozen=True, slots=True)
class HealthFacts:
    """What `/healthz` decides on. `not_ready`: why connections are not accepted yet."""

    not_ready: str = ""
    jetstream_enabled: bool = True
    meta_problem: str = ""
    """Cluster only: why the meta layer is not healthy, as a sentence of the real server."""
    assets: Sequence[AssetHealth] = ()
    accounts: Set[str] = frozenset()
    """Those that have streams anywhere in the cluster, while `assets` are those of this server."""


class ServerView(Protocol):
    """The server at the moment of a request."""

    now_ns: int
    settings: Settings

    def totals(self) -> Totals:
        """Counters of the whole server."""

    def connect_urls(self) -> Sequence[str]:
        """Client URLs told to clients."""

    def http_requests(self) -> Mapping[str, int]:
        """How often each monitoring path was asked for."""

    def connections(self, account: str = "") -> Sequence[ListedConn]:
        """Open client connections, of all accounts unless one is named."""

    def closed_connections(self, account: str = "") -> Sequence[ListedConn]:
        """The last closed ones, likewise."""

    def subscriptions_of(self, cid: int) -> Sequence[SubDetail]:
        """Subscriptions of an open connection, a leaf node's too, or route."""

    def listens(self, cid: int, wanted: Meets) -> bool:
        """Whether an open client or leaf node has such a subscription."""

    def routes(self) -> Sequence[RouteFacts]:
        """Registered route connections."""

    def gateways(self, *, interest: bool) -> Sequence[GateFacts]:
        """Connections to and from other clusters; with what these listen to, if it is wanted."""

    def leafs(self, account: str, *, subscriptions: bool) -> Sequence[LeafInfo]:
        """Leaf nodes and hubs, of one account if it is named."""

    def accounts(self) -> Sequence[AccountFacts]:
        """All accounts known here."""

    def account(self, name: str) -> AccountFacts | None:
        """One account, if it is known."""

    def account_options(self, name: str) -> AccountOptions:
        """How an account is configured; nothing of one that is not known."""

    def imports(self, name: str) -> Sequence[Wiring]:
        """What an account has of others: all that it wants, but for what it is not given."""

    def account_subscriptions(
        self, account: str, wanted: Meets | None, offset: int, limit: int
    ) -> tuple[int, Sequence[SubDetail]]:
        """How many local subscriptions an account has, internal ones included, with the details of
        a page of them; all, or those that are `wanted`."""

    def reached(self, account: str, subject: str, queue: str) -> int:
        """How many of these a subject reaches, in a queue group if one is named."""

    def sublist_stats(self, account: str) -> SublistStats:
        """How an account's subscriptions are matched."""

    def jetstream(self, *, accounts: bool = True) -> JetStreamFacts | None:
        """With each account and its streams, if that is wanted; None while JetStream is not
        enabled."""

    def stream_info(self, account: str, stream: str) -> StreamInfo | None:
        """Info of a local replica, with its cluster part."""

    def consumers(self, account: str, stream: str) -> Sequence[ConsumerFacts]:
        """Local replicas of a stream's consumers."""

    def raft_groups(self) -> Sequence[tuple[str, str, RaftzGroup]] | None:
        """(account, group name, state) of all groups here; None when there never were any."""

    def queues(self) -> Mapping[str, tuple[int, int]]:
        """(waiting, in progress) of internal queues by name."""

    def health(self, *, assets: bool = True) -> HealthFacts:
        """What health depends on, with the state of all assets if that is wanted."""
