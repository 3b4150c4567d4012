"""The words of leaf nodes: what the server is to them, and what is to be done and known.

Plain data. No socket is seen here: connections are the numbers of `turn.Accepted`.
"""

from dataclasses import field

from jsctl.broker.accounts.identity import NOT_VOUCHED, Vouched
from jsctl.broker.compression_options import Compression
from jsctl.broker.conf.units import advertised, host_text
from jsctl.broker.leafnode_options import LeafLogin
from jsctl.broker.options import COMPATIBLE_API_LEVEL, COMPATIBLE_VERSION, Options
from jsctl.broker.routing.setup import cluster_name
from jsctl.broker.sessions.listing import SubscriptionFacts
from jsctl.broker.turn import Dial, LogLine, Verify
from jsctl.dataclass import dataclass

SECOND_NS = 1_000_000_000
FIRST_PING_NS = SECOND_NS
CONFIRM_NS = 2 * SECOND_NS
"""How long a hub may take to answer CONNECT."""
HANDSHAKES_MAX = 512
"""LeafConnections that may be in handshake at a time; one more is closed."""
WAITING_BYTES_MAX = 64 * 1024
"""What a leaf node may send while its password is being checked."""
LOOP_DELAY_NS = 30 * SECOND_NS
SAME_CLUSTER_DELAY_NS = 30 * SECOND_NS
VIOLATION_DELAY_NS = 30 * SECOND_NS
VERSION_DELAY_NS = 5 * SECOND_NS
"""How long a hub that refused this server for such a reason is left alone."""
SYSTEM_DELAY_NS = 250_000_000
"""A server of a cluster waits so long before it hangs on a hub with its system account."""


@dataclass(frozen=True, slots=True)
class LeafSettings:
    """What leaf nodes and hubs are told of this server, and how leaf nodes log in."""

    server_id: str
    server_name: str
    cluster: str = ""
    """That of the server; of a server alone that hangs on a hub its own name."""
    host: str = ""
    port: int = 0
    """Where leaf nodes connect; 0: nowhere."""
    no_advertise: bool = False
    domain: str = ""
    jetstream: bool = False
    extends: bool = False
    """Without JetStream this server may be part of the hub's."""
    headers: bool = True
    max_payload: int = 1 << 20
    tls_required: bool = False
    tls_verify: bool = False
    login: LeafLogin = field(default_factory=LeafLogin)
    login_ns: int = 2 * SECOND_NS
    min_version: str = ""
    isolated: bool = False
    compression: Compression = Compression()
    reconnect_ns: int = SECOND_NS
    dial_timeout_ns: int = SECOND_NS
    pins: tuple[str, ...] = ()
    """Certificates that hubs have to show one of, where a remote names none."""
    version: str = COMPATIBLE_VERSION
    api_level: int = COMPATIBLE_API_LEVEL
    connect_reports: int = 3600
    reconnect_reports: int = 1
    """Of so many failures to connect one is an error in the log, besides the first."""

    @property
    def address(self) -> str:
        """Where leaf nodes connect, as they are told; empty if they cannot."""
        return host_text(self.host, self.port) if self.port else ""

    @staticmethod
    def of(
        options: Options, server_id: str, bound: tuple[str, int] | None, host: str
    ) -> "LeafSettings":
        """As it is configured. `bound` is where leaf nodes connect, `host` how they reach that."""
        block, jetstream = options.leafnodes, options.jetstream
        name = options.server_name or server_id
        place = ("", 0) if bound is None else (host or bound[0], bound[1])
        told = advertised(block.advertise, place[1]) if block.advertise else None
        hint = jetstream.extension_hint == "will_extend"
        return LeafSettings(
            server_id=server_id,
            server_name=name,
            cluster=cluster_name(options, server_id),
            host=(told or place)[0],
            port=(told or place)[1],
            no_advertise=block.no_advertise,
            domain=jetstream.domain,
            jetstream=jetstream.enabled,
            extends=bool(jetstream.domain) or hint,
            headers=not options.client.no_header_support,
            max_payload=options.client.payload_bytes_max,
            tls_required=block.tls is not None,
            tls_verify=block.tls is not None and block.tls.verify,
            login=block.login,
            login_ns=block.login_ns,
            min_version=block.min_version,
            isolated=block.isolated,
            compression=block.compression,
            reconnect_ns=block.reconnect_ns,
            dial_timeout_ns=block.dial_timeout_ns,
            pins=block.tls.pinned_certs if block.tls is not None else (),
            connect_reports=options.connect_error_reports,
            reconnect_reports=options.reconnect_error_reports,
        )


@dataclass(slots=True)
class LeafOutput:
    """What is to be done, in order within each list; writes come before closes."""

    writes: list[tuple[int, bytes]] = field(default_factory=list)
    closes: list[tuple[int, str]] = field(default_factory=list)
    pauses: list[int] = field(default_factory=list)
    resumes: list[int] = field(default_factory=list)
    dials: list[Dial] = field(default_factory=list)
    verifies: list[Verify] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LeafFacts:
    """A linked connection for reports (`/leafz`, `/connz`, events), or one that is gone
    (`stopped_ns` > 0). Times in ns."""

    conn: int
    leaf_id: int
    name: str
    """The other server's."""
    version: str
    spoke: bool
    """This side is the leaf node."""
    isolated: bool
    solicited: bool
    account: str
    user: str
    host: str
    port: int
    opened_ns: int
    last_ns: int
    rtt_ns: int
    pending_bytes: int
    in_msgs: int
    in_bytes: int
    out_msgs: int
    out_bytes: int
    subscription_count: int
    subscriptions: tuple[SubscriptionFacts, ...]
    """Where they are asked for; of a connection that is gone the first of them, as of clients."""
    compression: str
    stopped_ns: int = 0
    reason: str = ""
    account_tag: str = ""
    vouched: Vouched = NOT_VOUCHED


@dataclass(frozen=True, slots=True)
class LeafEvent:
    """A leaf node, or a hub, was linked or is gone."""

    facts: LeafFacts
    connected: bool
