"""What a parsed line is: one tuple per operation, for clients and routes.

Subjects, replies, headers and payloads are bytes of the connection's input; `headers` is None
for a message that was sent without a header block (`PUB`), which is not the same as an empty one.
"""

from typing import NamedTuple


class Publish(NamedTuple):
    """PUB and HPUB."""

    subject: bytes
    reply: bytes
    headers: bytes | None
    payload: bytes


class Subscribe(NamedTuple):
    """SUB."""

    subject: bytes
    queue: bytes
    sid: bytes


class Unsubscribe(NamedTuple):
    """UNSUB; `maximum` 0 means at once."""

    sid: bytes
    maximum: int


class Connect(NamedTuple):
    """CONNECT with its JSON text, not yet decoded."""

    body: bytes


class Info(NamedTuple):
    """INFO with its JSON text."""

    body: bytes


class Ping(NamedTuple):
    """PING."""


class Pong(NamedTuple):
    """PONG."""


class Ok(NamedTuple):
    """+OK."""


class PeerError(NamedTuple):
    """-ERR with its text, quotes included."""

    text: bytes


class Bad(NamedTuple):
    """The input cannot be understood: close with `reason`, after an -ERR if `text` is set."""

    reason: str
    text: bytes


class Interest(NamedTuple):
    """RS+ and LS+. `weight` 0 with a queue never happens; `origin` is a leaf's cluster."""

    account: bytes
    subject: bytes
    queue: bytes
    weight: int
    origin: bytes


class NoInterest(NamedTuple):
    """RS- and LS-."""

    account: bytes
    subject: bytes
    queue: bytes
    origin: bytes


class Routed(NamedTuple):
    """RMSG, HMSG and LMSG: a message for plain subscriptions and for the queue groups named."""

    account: bytes
    subject: bytes
    reply: bytes
    queues: tuple[bytes, ...]
    headers: bytes | None
    payload: bytes
    origin: bytes


ClientOp = Publish | Subscribe | Unsubscribe | Connect | Info | Ping | Pong | Ok | PeerError | Bad
RouteOp = Interest | NoInterest | Routed | Connect | Info | Ping | Pong | Ok | PeerError | Bad

UNKNOWN = Bad("Parse Error", b"Unknown Protocol Operation")
LINE_TOO_LONG = Bad("Maximum Control Line Exceeded", b"maximum control line exceeded")
PAYLOAD_TOO_LARGE = Bad("Maximum Message Payload Exceeded", b"Maximum Payload Violation")
VIOLATION = Bad("Protocol Violation", b"")
