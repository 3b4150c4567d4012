"""The `gateway` block: the door of this cluster to others, and the clusters that it leads to."""

from jsctl.broker.tls_options import SECOND_NS, TlsOptions, login_time_ns
from jsctl.broker.write_options import WriteTimeout
from jsctl.dataclass import dataclass

PORT_OFF = 0


@dataclass(frozen=True, slots=True)
class GatewayUrl:
    """Where a server of another cluster listens, with the credentials written into the URL."""

    host: str
    port: int
    user: str = ""
    password: str = ""
    secured: bool = False
    """It begins with `tls://`: the way there is meant to be."""


@dataclass(frozen=True, slots=True)
class RemoteGateway:
    """Another cluster, by its name."""

    name: str = ""
    urls: tuple[GatewayUrl, ...] = ()
    tls: TlsOptions | None = None
    """None: that of the block."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """The whole block. With a name and a port this server is part of a super-cluster."""

    name: str = ""
    """That of the cluster."""
    host: str = "0.0.0.0"
    port: int = PORT_OFF
    advertise: str = ""
    user: str = ""
    password: str = ""
    """What servers of other clusters log in with, and this one there."""
    auth_timeout_ns: int = 0  # See `login_time_ns`.
    tls: TlsOptions | None = None
    connect_retries: int = 0
    """For clusters that others told of; those that are configured are tried for ever."""
    connect_backoff: bool = False
    remotes: tuple[RemoteGateway, ...] = ()
    """As configured, perhaps with this cluster among them."""
    reject_unknown: bool = False
    """Only clusters that are configured may connect."""
    write_deadline_ns: int = 0
    """0: that of clients."""
    write_timeout: WriteTimeout = WriteTimeout.DEFAULT
    dial_timeout_ns: int = SECOND_NS

    @property
    def enabled(self) -> bool:
        """Whether this server is part of a super-cluster."""
        return self.port != PORT_OFF and bool(self.name)

    @property
    def others(self) -> tuple[RemoteGateway, ...]:
        """The configured clusters but this one; the last of those with the same name counts."""
        return tuple({one.name: one for one in self.remotes if one.name != self.name}.values())

    @property
    def login_ns(self) -> int:
        """How long a server of another cluster may take to log in."""
        return login_time_ns(self.auth_timeout_ns, self.tls)
