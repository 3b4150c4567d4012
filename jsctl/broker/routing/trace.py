"""What is recorded of a message that is traced (NATS ADR-41): plain data, no decisions of routing.

A header asks for it: `Nats-Trace-Dest` names the subject that the events go to; or `traceparent`
does, where the account has a destination. Whoever routes the message notes here what happens to
it; the node puts the events into words once they are complete.
"""

import re
from dataclasses import field

from jsctl.broker.interest.outbound import Outbound
from jsctl.broker.interest.targets import Namespace, Subscription
from jsctl.dataclass import dataclass

DEST = b"Nats-Trace-Dest"
HOP = b"Nats-Trace-Hop"
ORIGIN = "Nats-Trace-Origin-Account"
ONLY = "Nats-Trace-Only"
DISABLED = b"trace disabled"
"""In place of a destination: no server is to trace the message any more. No valid subject."""
TRACEPARENT = re.compile(rb"\r\ntraceparent[ \t]*:", re.IGNORECASE)
_LINE = re.compile(rb"\r\n([^:\r\n]+):[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)")
_SAMPLED = re.compile(r"[^-]*-[^-]*-[^-]*-([0-7][0-9A-Fa-f])")

NO_ECHO = "Not delivered because of no echo"
PUB_DENIED = "Not delivered because publish denied for this subject"
SUB_DENIED = "Not delivered because subscription denies this subject"
SUB_EXCEEDED = "Not delivered because auto-unsubscribe exceeded"
CLIENT_CLOSED = "Not delivered because client is closed"
ONLY_NO_SUPPORT = "Not delivered because remote does not support message tracing"
NO_SUPPORT = (
    "Message delivered but remote does not support message tracing so no trace event generated "
    "from there"
)


@dataclass(slots=True)
class Event:
    """One thing that happened; `fields` are those of its type, empty ones are left out."""

    type: str
    at_ns: int
    fields: dict[str, str | int | bool]


@dataclass(slots=True)
class Trace:
    """One message on its way through this server."""

    account: Namespace
    dest: bytes
    only: bool
    """The message itself is not delivered, only told about."""
    hop: str
    header: dict[str, list[str]]
    size: int
    now_ns: int
    events: list[Event] = field(default_factory=list)
    hops: int = 0
    stream: Event | None = None
    """What a stream made of it; `waiting` until the stream has judged."""
    waiting: bool = False

    @property
    def accepts(self) -> str:
        """The encodings that the receiver of the events understands."""
        return self.header.get("Accept-Encoding", [""])[0].lower()

    def note(self, type_: str, **fields: str | int | bool) -> Event:
        """Something happened."""
        event = Event(type_, self.now_ns, fields)
        self.events.append(event)
        return event

    def failed(self, text: str) -> None:
        """The message was refused where it came in."""
        self.events[0].fields["error"] = text

    def reached_stream(self, name: str) -> None:
        """A stream captured it and will say what comes of it."""
        self.stream = self.note("js", stream=name)
        self.waiting = True

    def judged(self, now_ns: int, subject: str, error: str = "", *, unwanted: bool = False) -> None:
        """What the stream does with it, or would do."""
        self.waiting = False
        if self.stream is not None:
            self.stream.at_ns = now_ns
            told: dict[str, str | bool] = {
                "subject": subject,
                "nointerest": unwanted,
                "error": error,
            }
            self.stream.fields.update({key: value for key, value in told.items() if value})

    def next_hop(self) -> str:
        """The number of one more server that gets it."""
        self.hops += 1
        return f"{self.hop}.{self.hops}" if self.hop else str(self.hops)

    def to_client(
        self, sub: Subscription, pattern: bytes, client: Outbound, error: str = ""
    ) -> None:
        """A client got it, or did not for a reason; `pattern` is what it listens to."""
        other = sub.account.name if sub.account is not self.account else ""
        event = self.note("eg", kind=client.kind.number, cid=client.number)
        told: dict[str, str] = {
            "name": client.name,
            "acc": other,
            "sub": pattern.decode(errors="replace"),
            "queue": sub.queue.decode(errors="replace"),
            "error": error,
        }
        event.fields.update({key: value for key, value in told.items() if value})

    def to_server(self, link: Outbound, hop: str, error: str = "", account: str = "") -> None:
        """Another server got it, or did not for a reason; in another account if that is named."""
        event = self.note("eg", kind=link.kind.number, cid=link.number)
        told = {"name": link.name, "acc": account, "hop": hop, "error": error}
        event.fields.update({key: value for key, value in told.items() if value})


def read_headers(headers: bytes) -> dict[str, list[str]]:
    """All headers with a value, their names as they were written."""
    found: dict[str, list[str]] = {}
    for line in _LINE.finditer(headers):
        if line[2]:
            found.setdefault(_text(line[1]), []).append(_text(line[2]))
    return found


def is_sampled(header: dict[str, list[str]]) -> bool:
    """Whether a W3C trace context asks for the message to be recorded."""
    for name, values in header.items():
        if name.lower() == "traceparent":
            for value in values:
                flags = _SAMPLED.fullmatch(value)
                if flags is not None and int(flags[1], 16) & 1:
                    return True
    return False


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
