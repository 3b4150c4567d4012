"""The words between the edge (sockets, clock, disk thread) and `Node`, which has none of them.

One turn takes everything that arrived since the last one and answers with everything that is
to be done. The edge performs the outputs in this order: disk, writes, closes, dials, the rest.
All objects are plain data, owned by the receiver from the moment they are handed over.
"""

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import Enum, IntEnum
from typing import Protocol, runtime_checkable

from jsctl.broker.ports import Syncer
from jsctl.broker.tls_options import TlsOptions
from jsctl.dataclass import dataclass

WRITE_DEADLINE = "Slow Consumer (Write Deadline)"
"""Why the edge ends a connection that too little can be written to."""


class ConnKind(IntEnum):
    """What kind of peer a connection was accepted for, or dialed to."""

    CLIENT = 1
    ROUTE = 2
    LEAF = 3
    GATEWAY = 4


class Command(Enum):
    """What an operator asked the process to do, by signal or request."""

    SHUTDOWN = "shutdown"
    LAME_DUCK = "lame duck"
    RELOAD = "reload"


ONLY_OWN = "no other address"
"""Why a dial failed whose host has none but those of this server."""


@dataclass(slots=True)
class Dial:
    """A connection to another server that the node wants to have; `token` comes back with the
    result, and is one of those of its kind."""

    token: int
    host: str
    port: int
    kind: ConnKind = ConnKind.ROUTE
    own: tuple[str, ...] = ()
    """Addresses of the host that are this server's: another one is wanted."""


@dataclass(slots=True)
class LinkDial(Dial):
    """A connection to a hub, or to another cluster: it is ready once the other side has said INFO,
    and was secured after that if either side wants it, or before where `tls` says so."""

    tls: TlsOptions | None = None
    tls_name: str = ""
    """Whose certificate is to be shown."""
    first_info_ns: int = 1_000_000_000
    timeout_ns: int = 1_000_000_000
    credentials: str = ""
    """A file to be read: its content comes with the connection."""


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """What the certificate of a peer says of it, which an authority has signed."""

    emails: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    subject: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Parts of (type, value), types as OpenSSL writes them out."""


@dataclass(slots=True)
class Accepted:
    """A new connection: accepted from a listener, or the outcome of `dial`."""

    conn: int
    kind: ConnKind
    remote_host: str
    remote_port: int
    local_host: str = ""
    local_port: int = 0
    tls: bool = False
    dial_token: int = 0
    """0 for an accepted connection."""
    credentials: str = ""
    """The content of the file that a `LinkDial` names."""
    certificate: PeerCertificate | None = None
    """Of a client, where users are looked up by it."""


@dataclass(slots=True)
class Query:
    """A request on the monitoring port, e.g. path `/jsz`, params `{"streams": "1"}`."""

    token: int
    path: str
    params: dict[str, str]


@dataclass(slots=True)
class Answer:
    """The reply to a `Query`."""

    token: int
    status: int
    content_type: str
    body: bytes


@dataclass(slots=True)
class Verify:
    """A password check too slow for a turn (bcrypt). The edge runs it in a thread."""

    token: int
    """The connection's number; there is no answer if that is gone."""
    password: bytes
    hashed: bytes


class LogLevel(Enum):
    """Levels of the operator's log, with the tags that NATS operators know."""

    FATAL = "FTL"
    ERROR = "ERR"
    WARNING = "WRN"
    INFO = "INF"
    DEBUG = "DBG"
    TRACE = "TRC"


@dataclass(slots=True)
class LogLine:
    """A fact worth a line in the log; the edge stamps and prints it."""

    level: LogLevel
    text: str


@dataclass(slots=True)
class Fault:
    """A bug that one operation met and that was kept to it; the edge logs it with its traceback."""

    place: str
    error: Exception


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What the operating system says of the process; measured by the edge now and then."""

    memory_bytes: int = 0
    cpu_percent: float = 0
    """Since the last measurement; 100 is one core."""
    cores: int = 1
    runtime: str = ""
    """What runs the broker, e.g. `python3.11.9`."""


class DiskBatch(Protocol):
    """Writes and syncs for the disk thread; `run` touches nothing that the loop touches.

    Tickets below zero are those of jobs. The log's batches run in their order, and jobs in
    theirs; while the disk is full, the one kind does not wait for the other.
    """

    ticket: int

    @property
    def brief(self) -> "BriefBatch | None":
        """The batch, if it is one small write with one sync: it takes about as long as a sync."""

    def run(self) -> None:
        """Perform the batch; it is durable once this returned.

        Raises DiskError. After DiskFull it is run again, when there may be room.
        """


@runtime_checkable
class RoomMaker(Protocol):
    """A job that makes room, or needs none: while the disk is full it need not wait for all that is
    before it."""

    def may_overtake(self, others: Sequence[DiskBatch]) -> bool:
        """Whether none of these has to do with what goes, or is read."""


class BriefBatch(DiskBatch, Protocol):
    """One that may be run in three steps, which together are its `run`."""

    def begin(self, syncer: Syncer | None) -> None:
        """It is written, and on its way to the disk where somebody syncs beside. Raises what `run`
        raises, and may be run again after DiskFull."""

    def promise(self) -> None:
        """It is durable once this returned. Raises what `run` raises."""

    def finish(self) -> None:
        """What nobody waits for, before any other batch of the log runs. Raises what `run`
        raises; there need not be room."""


@dataclass(frozen=True, slots=True)
class ClaimsChange:
    """An account is to be what a JWT says from now on, and to stay so; without one it is to go."""

    ticket: int
    account: str
    token: str


@dataclass(slots=True)
class TurnInputs:
    """Everything that happened since the last turn."""

    accepted: list[Accepted] = field(default_factory=list)
    secured: list[tuple[int, PeerCertificate]] = field(default_factory=list)
    """(connection, what its peer showed), before all else that comes of it."""
    chunks: list[tuple[int, bytes]] = field(default_factory=list)
    """(connection, bytes), in order of arrival."""
    closed: list[tuple[int, str]] = field(default_factory=list)
    """(connection, reason); nothing of it follows."""
    pending: list[tuple[int, int]] = field(default_factory=list)
    """(connection, bytes not yet taken by the kernel), when it crosses a watermark."""
    dial_failed: list[tuple[Dial, str]] = field(default_factory=list)
    synced: list[int] = field(default_factory=list)
    """Tickets of disk batches that are now durable, in order."""
    disk_failed: list[tuple[int, str]] = field(default_factory=list)
    """(ticket, reason) of batches that failed: what they promised never became durable."""
    verified: list[tuple[int, bool]] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Bugs that the edge met with single connections, and has logged."""
    reloaded: list[str] = field(default_factory=list)
    """Ends of reloads that the node asked for: why one was refused, or "" for one taken."""
    claimed: list[tuple[int, str]] = field(default_factory=list)
    """(ticket, what went wrong) of changes of accounts that were carried out, or refused."""
    process: ProcessFacts | None = None
    """A new measurement, about once a second."""
    steady_ns: int = 0
    """The time of the turn by a clock that nobody sets; 0: not known."""

    @property
    def rare(self) -> bool:
        """Whether there is something else than input of connections and finished disk batches."""
        return bool(
            self.accepted
            or self.closed
            or self.dial_failed
            or self.disk_failed
            or self.verified
            or self.secured
            or self.queries
            or self.commands
            or self.reloaded
            or self.claimed
        )


@dataclass(slots=True)
class TurnOutputs:
    """Everything the edge is to do after a turn."""

    disk: list[DiskBatch] = field(default_factory=list)
    """Run in order, on the one disk thread or, one that is alone, straight after the turn; each is
    answered in `synced` or `disk_failed`."""
    writes: list[tuple[int, bytes]] = field(default_factory=list)
    closes: list[tuple[int, str]] = field(default_factory=list)
    """Close after what was written to the connection has been sent."""
    pauses: list[int] = field(default_factory=list)
    """Stop reading from these connections."""
    resumes: list[int] = field(default_factory=list)
    dials: list[Dial] = field(default_factory=list)
    verifies: list[Verify] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    logs: list[LogLine] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    relieved: bool = False
    """Much of what was held for clients was let go of: the system may have the memory again."""
    reload: bool = False
    """Somebody asks for the configuration to be read again, and waits for `reloaded`."""
    claims: list[ClaimsChange] = field(default_factory=list)
    """In their order; each is answered in `claimed`."""
    stop_accepting: bool = False
    exit: str | None = None
    """Set once: everything is flushed and closed, the process may end for this reason."""
    exit_status: int = 0
    """Of the process then: 0 where that was wanted."""


Jitter = Callable[[int], int]
"""`jitter(n)` is a number in [0, n). The only way chance enters the node."""
