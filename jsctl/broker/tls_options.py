"""How connections of a listener, or to one, are secured: a `tls` block, with its defaults."""

from enum import Enum

from jsctl.dataclass import dataclass

MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000 * MILLISECOND_NS


class HandshakeFirst(Enum):
    """Whether a TLS client starts its handshake before it has seen INFO."""

    NEVER = "never"
    ALWAYS = "always"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """A `tls` block. Paths are relative to the working directory."""

    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    verify: bool = False
    map_users: bool = False
    """Clients are those whom their certificates name."""
    insecure: bool = False
    timeout_ns: int = 2 * SECOND_NS
    min_version: str = "1.2"
    ciphers: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    pinned_certs: tuple[str, ...] = ()
    """Lower case hex SHA-256 of the public key (SPKI) of accepted peers; empty accepts all."""
    handshake_first: HandshakeFirst = HandshakeFirst.NEVER
    handshake_first_wait_ns: int = 50 * MILLISECOND_NS
    """With AUTO: how long to wait for the client's first byte before INFO is sent."""


def login_time_ns(given_ns: int, tls: TlsOptions | None) -> int:
    """How long a login may take: what is given, else a second beyond a handshake, or two."""
    return given_ns or (2 * SECOND_NS if tls is None else tls.timeout_ns + SECOND_NS)
