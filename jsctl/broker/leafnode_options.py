"""The `leafnodes` block: who may hang on this server, and the hubs that it hangs on itself."""

from dataclasses import field

from jsctl.broker.compression_options import Compression
from jsctl.broker.tls_options import SECOND_NS, TlsOptions, login_time_ns
from jsctl.broker.write_options import WriteTimeout
from jsctl.dataclass import dataclass

LEAFNODE_PORT = 7422
"""Of a remote whose URL names none."""
PORT_OFF = 0
GLOBAL_ACCOUNT = "$G"


@dataclass(frozen=True, slots=True)
class LeafUrl:
    """Where a hub listens, with the credentials written into the URL.

    A user without a password is a token.
    """

    host: str
    port: int = LEAFNODE_PORT
    user: str = ""
    password: str = ""
    scheme: str = "nats-leaf"
    """As it was written; it changes nothing."""

    @property
    def text(self) -> str:
        """As logs and pages show it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        who = f"{self.user}:[REDACTED]@" if self.password else f"{self.user}@" if self.user else ""
        return f"{self.scheme}://{who}{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class LeafUser:
    """One user of the block: who logs in as it is in its account (empty: the global one)."""

    name: str = ""
    password: str = ""
    """Plain text or bcrypt."""
    account: str = ""


@dataclass(frozen=True, slots=True)
class LeafLogin:
    """The `authorization` of the block. Without a user, an nkey and users the server's own users
    count."""

    user: str = ""
    password: str = ""
    nkey: str = ""
    """The public one."""
    account: str = ""
    users: tuple[LeafUser, ...] = ()
    timeout_ns: int = 0  # See `login_time_ns`.


@dataclass(frozen=True, slots=True)
class LeafRemote:
    """A hub that this server hangs on with one of its accounts."""

    urls: tuple[LeafUrl, ...] = ()
    """Empty when all of them are of websockets, which are not dialed."""
    account: str = ""
    """Of this server; empty: the global one."""
    credentials: str = ""
    """A file with a JWT and a seed, read before each login."""
    nkey: str = ""
    """A seed."""
    tls: TlsOptions | None = None
    hub: bool = False
    """This server is the hub, although it dials."""
    deny_imports: tuple[str, ...] = ()
    deny_exports: tuple[str, ...] = ()
    no_randomize: bool = False
    isolated: bool = False
    """Interest of other leaf nodes is not told to this hub."""
    request_isolation: bool = False
    """The hub is asked not to tell interest of its other leaf nodes."""
    first_info_ns: int = SECOND_NS
    """How long the hub may take to say its first INFO."""
    dial_timeout_ns: int = 0
    """0: that of the block."""
    disabled: bool = False
    compression: Compression = Compression()
    ignore_discovered: bool = False
    """Hubs that the hub tells of are not dialed."""

    @property
    def identity(self) -> tuple[object, ...]:
        """What makes it another remote, wherever it stands in the list."""
        account = self.account or GLOBAL_ACCOUNT
        return tuple(sorted(self.urls, key=repr)), account, self.credentials or self.nkey

    @property
    def text(self) -> str:
        """As logs name it, without secrets."""
        urls = " ".join(f'"{url.text}"' for url in self.urls)
        more = f', credentials="{self.credentials}"' if self.credentials else ""
        more = ', nkey="[REDACTED]"' if self.nkey else more
        return f'urls=[{urls}], account="{self.account or GLOBAL_ACCOUNT}"{more}'


@dataclass(frozen=True, slots=True)
class LeafNodeOptions:
    """The whole block."""

    compression: Compression = Compression()
    host: str = "0.0.0.0"
    port: int = PORT_OFF
    advertise: str = ""
    no_advertise: bool = False
    login: LeafLogin = field(default_factory=LeafLogin)
    tls: TlsOptions | None = None
    remotes: tuple[LeafRemote, ...] = ()
    reconnect_ns: int = SECOND_NS
    dial_timeout_ns: int = SECOND_NS
    min_version: str = ""
    isolated: bool = False
    write_deadline_ns: int = 0
    """0: that of clients."""
    write_timeout: WriteTimeout = WriteTimeout.DEFAULT

    @property
    def listens(self) -> bool:
        """Whether leaf nodes may connect here."""
        return self.port != PORT_OFF

    @property
    def enabled(self) -> bool:
        """Whether there is anything to do for leaf nodes."""
        return self.listens or bool(self.remotes)

    @property
    def login_ns(self) -> int:
        """How long a leaf node may take to log in."""
        return login_time_ns(self.login.timeout_ns, self.tls)
