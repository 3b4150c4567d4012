"""Every option and every limit of the broker, with its unit: one frozen tree, built once.

File, flags and tests all end here; the rest of the broker knows nothing of them. Names carry their
unit (`_ns`, `_bytes`, `_max` for limits). Unless a field says otherwise a limit of -1 is none, port
-1 is "any free port", port 0 is "off", an empty string is "not set".
"""

from dataclasses import field
from enum import Enum

from jsctl.broker.compression_options import ACCEPT, Compression
from jsctl.broker.gateway_options import GatewayOptions
from jsctl.broker.leafnode_options import LeafNodeOptions
from jsctl.broker.login_options.operators import AccountClaims, OperatorOptions
from jsctl.broker.login_options.permissions import PermissionRules
from jsctl.broker.tls_options import TlsOptions, login_time_ns
from jsctl.broker.write_options import WriteTimeout
from jsctl.dataclass import dataclass

COMPATIBLE_VERSION = "2.15.1"
"""The nats-server version whose behaviour clients may expect; shown in INFO and /varz."""
COMPATIBLE_API_LEVEL = 5

MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000 * MILLISECOND_NS
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
UNLIMITED = -1
ANY_PORT = -1
PORT_OFF = 0

CLIENT_PORT = 4222
CLUSTER_PORT = 6222
ANY_HOST = "0.0.0.0"
GLOBAL_ACCOUNT = "$G"
SYSTEM_ACCOUNT = "$SYS"


class SyncMode(Enum):
    """When a publish is acknowledged: after fsync, or before one that follows some time later."""

    ALWAYS = "always"
    INTERVAL = "interval"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen."""

    host: str = ANY_HOST
    port: int = CLIENT_PORT


@dataclass(frozen=True, slots=True)
class UserOptions:
    """One user: by name and password, or by public nkey."""

    name: str = ""
    password: str = ""
    """Plain text or bcrypt (`$2a$...`)."""
    nkey: str = ""
    permissions: PermissionRules | None = None
    connection_types: tuple[str, ...] = ()
    """Upper case names such as STANDARD; empty allows all."""
    proxy_required: bool = False
    """Never true: the configuration refuses it."""


@dataclass(frozen=True, slots=True)
class AuthOptions:
    """The `authorization` block: its users belong to `$G`."""

    given: bool = False
    """Whether the configuration has such a block at all."""
    user: str = ""
    password: str = ""
    token: str = ""
    users: tuple[UserOptions, ...] = ()
    timeout_ns: int = 0  # See `login_time_ns`.
    default_permissions: PermissionRules | None = None

    @property
    def required(self) -> bool:
        """Whether anything here makes clients authenticate."""
        return bool(self.user or self.token or self.users)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What an account offers to others; `accounts` empty is a public export."""

    subject: str = ""
    service: bool = False
    accounts: tuple[str, ...] = ()
    response_type: str = "singleton"
    response_threshold_ns: int = 2 * MINUTE_NS
    account_token_position: int = 0
    allow_trace: bool = False
    latency_subject: str = ""
    latency_sampling: int = 100
    """Percent; 0 means "as the headers of the request say"."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What an account takes from another one's exports."""

    account: str = ""
    subject: str = ""
    service: bool = False
    to: str = ""
    prefix: str = ""
    share: bool = False
    allow_trace: bool = False


@dataclass(frozen=True, slots=True)
class MappingTarget:
    """One destination of a subject mapping; `weight` in percent."""

    destination: str = ""
    weight: int = 100
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """A subject mapping with its weighted destinations."""

    source: str = ""
    targets: tuple[MappingTarget, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountJetStream:
    """JetStream limits of one account."""

    memory_bytes_max: int = UNLIMITED
    store_bytes_max: int = UNLIMITED
    streams_max: int = UNLIMITED
    consumers_max: int = UNLIMITED
    ack_pending_max: int = UNLIMITED
    memory_stream_bytes_max: int = UNLIMITED
    store_stream_bytes_max: int = UNLIMITED
    stream_bytes_required: bool = False
    cluster_traffic: str = "system"
    tiers: "tuple[tuple[str, AccountJetStream], ...]" = ()
    """Name (`R3`: streams with three replicas) -> limits of its own. With tiers the limits above
    mean nothing, and a stream needs the tier of its number of replicas."""


@dataclass(frozen=True, slots=True)
class AccountLimits:
    """Connection limits of one account."""

    connections_max: int = UNLIMITED
    subscriptions_max: int = UNLIMITED
    leafnodes_max: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class AccountOptions:
    """One entry of the `accounts` block."""

    name: str = ""
    users: tuple[UserOptions, ...] = ()
    nkey: str = ""
    exports: tuple[ExportOptions, ...] = ()
    imports: tuple[ImportOptions, ...] = ()
    jetstream: AccountJetStream | None = None
    default_permissions: PermissionRules | None = None
    mappings: tuple[MappingOptions, ...] = ()
    limits: AccountLimits = field(default_factory=AccountLimits)
    trace_subject: str = ""
    trace_sampling: int = 100
    claims: AccountClaims | None = None
    """In operator mode, where users are not configured but come with JWTs of their own."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The operator's log."""

    debug: bool = False
    trace: bool = False
    trace_verbose: bool = False
    trace_headers: bool = False
    logtime: bool = True
    logtime_utc: bool = False
    file: str = ""
    size_bytes_max: int = 0
    """The file is rotated beyond this size; 0 never."""
    files_max: int = 0
    """Rotated files that are kept; 0 keeps all."""
    traced_bytes_max: int = 0
    """Bytes of a message shown in the trace; 0 shows all."""


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """The HTTP monitoring port."""

    host: str = ""
    """Empty: the client listener's host."""
    port: int = PORT_OFF
    https_port: int = PORT_OFF
    base_path: str = "/"
    request_bytes_max: int = 16 * KIB
    header_ns: int = 5 * SECOND_NS
    """How long a peer may take for a TLS handshake and for the head of a request."""
    idle_ns: int = 120 * SECOND_NS
    """How long a connection may wait for its next request, or for its peer to read."""
    connections_max: int = 256


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits of client connections and how long they are waited for."""

    control_line_bytes_max: int = 4096
    payload_bytes_max: int = MIB
    pending_bytes_max: int = 64 * MIB
    connections_max: int = 65536
    """0 allows none."""
    subscriptions_max: int = UNLIMITED
    subscription_tokens_max: int = UNLIMITED
    ping_interval_ns: int = 2 * MINUTE_NS
    pings_out_max: int = 2
    write_deadline_ns: int = 10 * SECOND_NS
    write_timeout: WriteTimeout = WriteTimeout.DEFAULT
    closed_clients_max: int = 10000
    unfinished_bytes_max: int = 256 * MIB
    """What all clients together may have begun to send and not finished, at least four messages
    of the maximum size. At the limit the connections close that hold it for longest, of the user
    and address that hold the most."""
    no_header_support: bool = False
    no_fast_producer_stall: bool = False


@dataclass(frozen=True, slots=True)
class Url:
    """The address of a route, with the credentials written into it."""

    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    secured: bool = False
    """It begins with `tls://`: the way there is meant to be."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The `cluster` block; its presence with a port makes the server a cluster member."""

    name: str = ""
    host: str = ANY_HOST
    port: int = PORT_OFF
    advertise: str = ""
    no_advertise: bool = False
    user: str = ""
    password: str = ""
    auth_timeout_ns: int = 0  # See `login_time_ns`.
    routes: tuple[Url, ...] = ()
    tls: TlsOptions | None = None
    connect_retries: int = 0
    """For implicit routes; explicit ones are retried for ever."""
    connect_backoff: bool = False
    pool_size: int = 3
    accounts: tuple[str, ...] = ()
    compression: Compression = Compression(ACCEPT)
    ping_interval_ns: int = 30 * SECOND_NS
    pings_out_max: int = 2
    write_deadline_ns: int = 0
    """0: that of clients."""
    write_timeout: WriteTimeout = WriteTimeout.DEFAULT
    dial_timeout_ns: int = SECOND_NS
    dial_retry_ns: int = SECOND_NS


@dataclass(frozen=True, slots=True)
class JetStreamLimits:
    """The `limits` block of JetStream and what goes with it; 0 means "no limit of its own"."""

    ack_pending_max: int = 0
    ha_assets_max: int = 0
    request_batch_max: int = 0
    duplicate_window_ns: int = 0
    consumers_default_max: int = 1000
    batches_per_stream_max: int = 0
    batches_total_max: int = 0
    batch_messages_max: int = 1000
    batch_timeout_ns: int = 10 * SECOND_NS
    request_queue_max: int = 10_000
    info_queue_max: int = 10_000
    turn_units_max: int = 256
    """Work of requests that one turn does; see `node.portions`."""
    catchup_bytes_max: int = 64 * MIB
    buffered_bytes_max: int = 128 * MIB
    buffered_messages_max: int = 10_000


@dataclass(frozen=True, slots=True)
class JetStreamOptions:
    """The `jetstream` block."""

    enabled: bool = False
    store_dir: str = ""
    """Files lie below its subdirectory `jetstream`. Empty: `$TMPDIR/nats/jetstream`."""
    memory_bytes_max: int = UNLIMITED
    """UNLIMITED here and below: three quarters of what the machine has, of a disk beside what is
    stored already."""
    store_bytes_max: int = UNLIMITED
    memory_is_found: bool = False
    """The limit was not set, and is what there was at the start."""
    store_is_found: bool = False
    sync: SyncMode = SyncMode.ALWAYS
    sync_interval_ns: int = 2 * MINUTE_NS
    """Only with SyncMode.INTERVAL."""
    scrub_ns: int = 24 * HOUR_NS
    scrub_rate: int = 32 * MIB  # Bytes in a second, at most; `scrub_ns` 0: nothing is read.
    chain_seed: str = ""
    """Seed of the user nkey with which heads of chains are signed; a secret."""
    domain: str = ""
    unique_tag: str = ""
    extension_hint: str = ""
    strict: bool = True
    limits: JetStreamLimits = field(default_factory=JetStreamLimits)


@dataclass(frozen=True, slots=True)
class RaftOptions:
    """Timing and bounds of replication; the timings count in ticks of one heartbeat's tenth."""

    heartbeat_ns: int = 100 * MILLISECOND_NS
    election_min_ns: int = 300 * MILLISECOND_NS
    election_max_ns: int = 600 * MILLISECOND_NS
    peer_down_min_ns: int = 50 * MILLISECOND_NS
    peer_down_max_ns: int = 200 * MILLISECOND_NS
    peer_stale_ns: int = 2 * SECOND_NS
    """A peer not heard for this long is reported as not current."""
    peer_offline_ns: int = 5 * SECOND_NS
    inflight_bytes_max: int = 8 * MIB
    inflight_messages_max: int = 256
    uncommitted_bytes_max: int = 64 * MIB
    hibernate_after_ns: int = SECOND_NS
    append_entries_max: int = 4096
    """Entries in one message to a follower."""
    entries_kept: int = 2_000
    """Entries that stay in memory for followers that are a little behind."""
    checkpoint_bytes: int = 16 * MIB
    """A group's applied state is made durable when its log has grown by this much, or ..."""
    checkpoint_entries: int = 50_000
    """... by so many entries, so that the log can be released."""
    log_segment_bytes: int = 16 * MIB
    """Size of one file of the log."""
    store_segment_bytes: int = 8 * MIB
    """A file of a stream's messages is closed before it grows beyond this; the same everywhere."""


@dataclass(frozen=True, slots=True)
class EdgeLimits:
    """Bounds of the asyncio edge: buffers, threads, backlogs and stall warnings."""

    read_bytes_max: int = 256 * KIB
    turn_bytes_high: int = 8 * MIB
    """When one turn has collected this much, each further read takes `read_bytes_min`."""
    read_bytes_min: int = 4 * KIB
    pending_bytes_high: int = 4 * MIB
    """The node is told when a connection's unsent bytes pass this."""
    pending_bytes_low: int = MIB
    accept_backlog: int = 1024
    verify_threads: int = 2
    loop_sync_ns_max: int = MILLISECOND_NS
    """While syncs take less, one that is alone is done between two turns (decision 21); 0: none."""
    stall_warn_ns: int = 500 * MILLISECOND_NS
    stall_warn_interval_ns: int = 10 * SECOND_NS
    shutdown_ns: int = 2 * SECOND_NS
    """How long unsent bytes may hold up the end of the process."""


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that the broker was told, defaults filled in."""

    server_name: str = ""
    """Empty: the server's id."""
    listen: Listen = field(default_factory=Listen)
    client_advertise: str = ""
    server_tags: tuple[str, ...] = ()
    server_metadata: tuple[tuple[str, str], ...] = ()
    log: LogOptions = field(default_factory=LogOptions)
    pid_file: str = ""
    ports_file_dir: str = ""
    monitoring: MonitorOptions = field(default_factory=MonitorOptions)
    client: ClientLimits = field(default_factory=ClientLimits)
    lame_duck_duration_ns: int = 2 * MINUTE_NS
    lame_duck_grace_ns: int = 10 * SECOND_NS
    auth: AuthOptions = field(default_factory=AuthOptions)
    operator: OperatorOptions = field(default_factory=OperatorOptions)
    no_auth_user: str = ""
    accounts: tuple[AccountOptions, ...] = ()
    system_account: str = ""
    """Empty: `$SYS`."""
    no_system_account: bool = False
    """See `has_system_account`."""
    mappings: tuple[MappingOptions, ...] = ()
    tls: TlsOptions | None = None
    allow_non_tls: bool = False
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    leafnodes: LeafNodeOptions = field(default_factory=LeafNodeOptions)
    gateway: GatewayOptions = field(default_factory=GatewayOptions)
    jetstream: JetStreamOptions = field(default_factory=JetStreamOptions)
    raft: RaftOptions = field(default_factory=RaftOptions)
    edge: EdgeLimits = field(default_factory=EdgeLimits)
    feature_flags: tuple[tuple[str, bool], ...] = ()
    connect_error_reports: int = 3600
    reconnect_error_reports: int = 1
    config_file: str = ""
    config_digest: str = ""
    warnings: tuple[str, ...] = ()
    """What the operator should know at start, one sentence each, e.g. options of no effect."""

    @property
    def clustered(self) -> bool:
        """Whether this server listens for routes."""
        return self.cluster.port != PORT_OFF

    @property
    def has_system_account(self) -> bool:
        """Whether there is one: JetStream has its own, as what servers say to each other of it is
        for no user."""
        return self.jetstream.enabled or not self.no_system_account

    @property
    def replicated(self) -> bool:
        """Whether JetStream is shared with other servers, of this cluster or of others."""
        return self.clustered or self.gateway.enabled

    @property
    def client_login_ns(self) -> int:
        """How long a client may take to log in."""
        return login_time_ns(self.auth.timeout_ns, self.tls)

    @property
    def route_login_ns(self) -> int:
        """The same for another server."""
        return login_time_ns(self.cluster.auth_timeout_ns, self.cluster.tls)

    @property
    def auth_required(self) -> bool:
        """Whether clients must authenticate.

        Nobody else has to when all that is configured are users of the system account: no other
        account, no `authorization` block.
        """
        if self.operator.enabled:
            return True
        if not (self.auth.required or self.all_users):
            return False
        system = self.system_account or SYSTEM_ACCOUNT
        alone = all(account.name == system for account in self.accounts)
        return self.auth.given or self.auth.required or bool(self.no_auth_user) or not alone

    @property
    def all_users(self) -> tuple[UserOptions, ...]:
        """Users of all accounts and of the `authorization` block."""
        return self.auth.users + tuple(user for a in self.accounts for user in a.users)
