"""What the routing needs to be told at start: limits, and who this server is."""

from jsctl.broker.protocol.writer import Json
from jsctl.dataclass import dataclass

SECOND_NS = 1_000_000_000
LINE_BYTES_MAX = 60_000
"""No line of clients and leaf nodes may be longer, whatever is configured: subjects and replies
have their place in records and frames, with what servers put before them."""


@dataclass(frozen=True, slots=True)
class RoutingLimits:
    """Limits and times of client connections; the defaults are the real server's.

    0 in `subscriptions_max` and `subscription_tokens_max` means unlimited.
    """

    payload_bytes_max: int = 1 << 20
    control_line_bytes_max: int = 4096
    pending_bytes_max: int = 64 << 20
    """A client with more than this unsent is closed as a slow consumer."""
    pending_bytes_high: int = 48 << 20
    """Reading of its producers pauses above this."""
    connections_max: int = 65536
    subscriptions_max: int = 0
    subscription_tokens_max: int = 0
    ping_interval_ns: int = 120 * SECOND_NS
    pings_unanswered_max: int = 2
    first_ping_ns: int = 2 * SECOND_NS
    """The first ping comes after this or the interval, whichever is less, plus up to 20 %."""
    auth_timeout_ns: int = 2 * SECOND_NS
    unfinished_bytes_max: int = 256 << 20
    """What all clients together may have begun to send; see `unfinished`."""
    turn_units_max: int = 4096
    """Work of clients that one turn does; see `effort`."""
    share_units_min: int = 64
    """What each of them may have of it, however many there are."""
    waiting_bytes_max: int = 1 << 20
    """Input kept from a client while its password is being checked; more closes it."""


@dataclass(slots=True)
class ServerIdentity:
    """What INFO says of this server. Changed by gossip, lame duck, and a changed configuration."""

    server_id: str
    server_name: str
    version: str = "2.15.1"
    product_version: str = ""
    host: str = "0.0.0.0"
    """With the port: where clients are told to connect."""
    port: int = 4222
    cluster: str = ""
    domain: str = ""
    jetstream: bool = False
    headers: bool = True
    auth_required: bool = False
    tls_required: bool = False
    tls_verify: bool = False
    tls_available: bool = False
    lame_duck: bool = False
    connect_urls: tuple[str, ...] = ()
    api_level: int = 5

    def renew(self, wanted: "ServerIdentity") -> None:
        """Say what a changed configuration says."""
        assert wanted.server_id == self.server_id, "a server keeps its id while it runs"
        self.host, self.port = wanted.host, wanted.port
        self.cluster = wanted.cluster
        self.auth_required = wanted.auth_required
        self.tls_required = wanted.tls_required
        self.tls_verify = wanted.tls_verify
        self.tls_available = wanted.tls_available

    def leave(self) -> None:
        """The server says good-bye to its clients."""
        self.lame_duck = True

    def fields(
        self, *, payload_bytes_max: int, client_id: int, client_ip: str, auth_required: bool
    ) -> dict[str, Json]:
        """The INFO object for one client; falsy optional keys are left out."""
        always: dict[str, Json] = {
            "server_id": self.server_id,
            "server_name": self.server_name,
            "version": self.version,
            "proto": 1,
            "go": "none",
            "host": self.host,
            "port": self.port,
            "headers": self.headers,
            "max_payload": payload_bytes_max,
            "client_id": client_id,
            "client_ip": client_ip,
            "api_lvl": self.api_level,
        }
        optional: dict[str, Json] = {
            "auth_required": auth_required,
            "tls_required": self.tls_required,
            "tls_verify": self.tls_verify,
            "tls_available": self.tls_available,
            "jetstream": self.jetstream,
            "cluster": self.cluster,
            "domain": self.domain,
            "connect_urls": list(self.connect_urls),
            "ldm": self.lame_duck,
            "jsctl_version": self.product_version,
        }
        return always | {key: value for key, value in optional.items() if value}
