"""An API request as it is carried between servers and named in assignments."""

from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AskerClaims:
    """What the JWT of a user says of it, and which key has signed that."""

    issuer: str
    name: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientInfo:
    """Who asked; shown in assignments and advisories."""

    account: str
    user: str = ""
    server: str = ""
    cluster: str = ""
    conn: int = 0
    host: str = ""
    name: str = ""
    lang: str = ""
    version: str = ""
    start_ns: int = 0
    claims: AskerClaims | None = None
    """In operator mode, where all servers are of a version that knows this."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One message on `$JS.API.>`; `entry` is the peer id of the server it came in on.

    The reply is published there, in `account`, so that it takes the way the request came.
    """

    account: str
    subject: bytes
    reply: bytes
    headers: bytes
    payload: bytes
    client: ClientInfo
    entry: str
    system: bool = False
    """The request came from the system account."""

    @property
    def is_foreign(self) -> bool:
        """Whether it came by a route: the asker is a client of a server that is no broker."""
        return not self.client.conn
