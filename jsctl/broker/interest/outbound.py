"""The sending side of connections, whatever their kind."""

from abc import abstractmethod
from typing import TypeAlias

from jsctl.broker.interest.kinds import BROKER, PeerKind
from jsctl.broker.pieces import Piece
from jsctl.dataclass import dataclass

TARGETS_SHIFT = 5
"""A unit of `Effort` for each 32 clients that get a message, and members of a plan."""
SINK_TARGETS = 4
"""What captures a message, or leads it to another account, counts as so many clients."""


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """Who a client is, for those whom its requests reach."""

    client_id: int
    account: str
    user: str
    host: str
    name: str
    lang: str
    version: str
    started_ns: int
    rtt_ns: int
    issuer: str
    """The account that vouches for a user known by nkey; empty for other users."""
    server: str
    cluster: str
    kind: str = "Client"
    token: str = ""
    """The JWT of a user, and what that says of it."""
    name_tag: str = ""
    tags: tuple[str, ...] = ()


class Outbound:
    """The sending side of a connection: what this turn has for it, and what the edge still has.

    `conn` is the edge's number of the connection. `congested` tells that the producers of
    further messages are to be noted in `producers`, and paused. `name` is what the other side
    calls itself, `headers` whether it takes header blocks. `cluster` is the one of leaf nodes that
    what it says comes from, empty for all others.
    """

    __slots__ = (
        "closing",
        "cluster",
        "congested",
        "conn",
        "headers",
        "kernel_pending",
        "kind",
        "name",
        "out",
        "out_bytes",
        "out_messages",
        "payload_bytes_out",
        "producers",
        "touched",
    )

    def __init__(self, conn: int, kind: PeerKind) -> None:
        self.conn = conn
        self.kind = kind
        self.name = ""
        self.cluster = b""
        self.headers = False
        self.out: list[Piece] = []
        self.out_bytes = 0
        self.out_messages = 0
        self.payload_bytes_out = 0
        self.kernel_pending = 0
        self.congested = False
        self.closing = ""
        self.touched = False
        self.producers: set[int] = set()

    @property
    @abstractmethod
    def number(self) -> int:
        """By which monitoring knows the connection."""

    def facts(self) -> ClientFacts | None:
        """Who it is, of a client."""
        return None

    def cluster_in(self, account: object) -> bytes:
        """`cluster`, of a message in an account."""
        return self.cluster

    def admits(self, subject: bytes) -> bool:
        """Whether it may have something published on a subject; it is told if it may not."""
        return True


Origin: TypeAlias = Outbound | None
"""Where a message comes from; None: the broker itself."""


def kind_of(origin: Origin) -> PeerKind:
    """The kind of whoever a message comes from."""
    return BROKER if origin is None else origin.kind
