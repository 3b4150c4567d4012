"""The words of gateways: what the server is to other clusters, what is to be done and known.

Plain data. No socket is seen here: connections are the numbers of `turn.Accepted`.
"""

from dataclasses import field

from jsctl.broker.conf.units import advertised, host_text
from jsctl.broker.gateway_options import GatewayOptions
from jsctl.broker.options import COMPATIBLE_VERSION, Options
from jsctl.broker.sessions.listing import SubscriptionFacts
from jsctl.broker.turn import Dial, LogLine
from jsctl.dataclass import dataclass

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000
PING_INTERVAL_MAX_NS = 15 * SECOND_NS
FIRST_PING_NS = SECOND_NS
"""The first one comes soon after the handshake: reports show the round trip."""
CONNECT_RETRY_NS = SECOND_NS
"""Pause before a cluster is dialed again."""
CONNECT_RETRY_FIRST_NS = 50 * MILLISECOND_NS
"""The same while a server starts: doubles up to `CONNECT_RETRY_NS` until it first connected."""
CONNECT_RETRY_MAX_NS = 30 * SECOND_NS
IMPLICIT_RETRIES = 5
"""How often a cluster that others told of is tried again, unless `connect_retries` says more."""
RECONNECT_JITTER_NS = 100 * MILLISECOND_NS
FIRST_INFO_NS = 2 * SECOND_NS
HANDSHAKES_MAX = 512
"""Connections that may be in handshake at a time; one more is closed."""
REMOTES_MAX = 1024
"""Clusters that others may tell of, and ..."""
URLS_MAX = 1024
"""... addresses of each."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What other clusters are told of this server, and how they are dialed."""

    server_id: str
    server_name: str
    host: str
    port: int
    """Where they connect, as they are told."""
    bound_port: int = 0
    block: GatewayOptions = field(default_factory=GatewayOptions)
    headers: bool = True
    jetstream: bool = False
    max_payload: int = 1 << 20
    version: str = COMPATIBLE_VERSION
    connect_reports: int = 3600
    reconnect_reports: int = 1
    """Of so many failures to connect one is an error in the log, besides the first."""

    @property
    def name(self) -> str:
        """That of this cluster."""
        return self.block.name

    @property
    def url(self) -> str:
        """Where other clusters connect."""
        return host_text(self.host, self.port)

    @staticmethod
    def of(
        options: Options, server_id: str, bound: tuple[str, int], host: str
    ) -> "GatewaySettings":
        """As it is configured. `bound` is where they connect, `host` how they reach that."""
        block = options.gateway
        told = advertised(block.advertise, bound[1]) if block.advertise else None
        place = told or (host or bound[0], bound[1])
        return GatewaySettings(
            server_id=server_id,
            server_name=options.server_name or server_id,
            host=place[0],
            port=place[1],
            bound_port=bound[1],
            block=block,
            jetstream=options.jetstream.enabled,
            headers=not options.client.no_header_support,
            max_payload=options.client.payload_bytes_max,
            connect_reports=options.connect_error_reports,
            reconnect_reports=options.reconnect_error_reports,
        )


@dataclass(slots=True)
class GatewayOutput:
    """What is to be done, in order within each list; writes come before closes."""

    writes: list[tuple[int, bytes]] = field(default_factory=list)
    closes: list[tuple[int, str]] = field(default_factory=list)
    pauses: list[int] = field(default_factory=list)
    resumes: list[int] = field(default_factory=list)
    dials: list[Dial] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClusterServer:
    """Another server of this cluster, as gateways have to know it."""

    name: str
    url: str
    """Where other clusters connect to it; empty if they cannot."""


@dataclass(frozen=True, slots=True)
class GatewayFacts:
    """A linked connection for reports. Times in ns."""

    conn: int
    gate_id: int
    gateway: str
    """The other cluster's name."""
    server_id: str
    server_name: str
    outbound: bool
    configured: bool
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
    accounts: tuple[str, ...]
    """Those whose interest is told on it."""
    subscription_count: int
    subscriptions: tuple[SubscriptionFacts, ...]
    """What the other cluster told of interest, where that is asked for."""
