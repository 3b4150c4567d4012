"""What clients and the server say to each other, as lines of the operator's log (`trace`).

Reads the same bytes as the sessions with a parser of its own, so that publishing costs nothing
where nobody reads along. Lines have nats-server's words: operators search for them.
"""

import re
from collections.abc import Iterable, Iterator

from jsctl.broker.options import LogOptions, Options
from jsctl.broker.protocol.client import ClientParser
from jsctl.broker.protocol.ops import (
    Bad,
    ClientOp,
    Connect,
    Info,
    Ok,
    PeerError,
    Ping,
    Pong,
    Publish,
    Subscribe,
    Unsubscribe,
)
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.routing.setup import limits
from jsctl.broker.sessions.labels import address, label, printable, quoted
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.turn import LogLevel, LogLine, TurnOutputs
from jsctl.dataclass import dataclass

CREATED = "Client connection created"
REDACTED = r"\1[REDACTED]"
_SECRETS = re.compile(r'("(?:pass|auth_token)"\s*:\s*")(?:[^"\\]|\\.)*')
_UNNAMED = ("<<- [CONNECT", CREATED)
_WITH_PAYLOAD = (b"MSG ", b"HMSG ")


@dataclass(slots=True)
class _Watched:
    session: ClientSession
    parser: ClientParser


class ProtocolLog:
    """Watches connections from their beginning on; `take` gives the lines of a turn."""

    def __init__(self, options: LogOptions, limits: RoutingLimits) -> None:
        self._options = options
        self._limits = limits
        self._watched: dict[int, _Watched] = {}
        self._heard: list[tuple[ClientSession, LogLevel, str]] = []

    def take(self) -> list[LogLine]:
        """The lines of a turn that has been carried out.

        What follows a CONNECT has the name that it gave, which counts once the password has been
        checked: so long the client waits, and so do its lines.
        """
        heard, self._heard = self._heard, []
        lines = []
        for session, level, text in heard:
            if session.waiting and not session.closing:
                self._heard.append((session, level, text))
            else:
                who = address(session) if text.startswith(_UNNAMED) else label(session)
                lines.append(LogLine(level, f"{who} - {text}"))
        return lines

    def accepted(self, session: ClientSession) -> None:
        """A client connected."""
        parser = ClientParser(self._limits.control_line_bytes_max, self._limits.payload_bytes_max)
        self._watched[session.conn] = _Watched(session, parser)
        self._debug(session, CREATED)

    def join(self, sessions: Iterable[ClientSession]) -> None:
        """Follow clients that are here already, from their next line on."""
        limits = self._limits
        for session in sessions:
            parser = ClientParser(limits.control_line_bytes_max, limits.payload_bytes_max)
            parser.feed(session.intake.held())
            self._watched[session.conn] = _Watched(session, parser)

    def received(self, conn: int, chunk: bytes) -> None:
        """A client said something, and has not been heard yet."""
        watched = self._watched.get(conn)
        if watched is None or not self.traces or watched.session.closing:
            return
        for op in watched.parser.feed(chunk):
            for text in self._said(op):
                self._trace(watched.session, f"<<- {text}")

    def ended(self, outputs: TurnOutputs) -> None:
        """A turn has been carried out: its lines go with what it put out."""
        self.sent(outputs.writes)
        for conn, reason in outputs.closes:
            self.gone(conn, reason)
        outputs.logs += self.take()

    def sent(self, writes: list[tuple[int, bytes]]) -> None:
        """What clients are told in this turn."""
        for conn, data in writes if self.traces else ():
            watched = self._watched.get(conn)
            if watched is not None:
                for text in self._told(data):
                    self._trace(watched.session, f"->> {text}")

    def gone(self, conn: int, reason: str) -> None:
        """A connection ended, or is about to."""
        watched = self._watched.pop(conn, None)
        if watched is not None:
            self._debug(watched.session, f"Client connection closed: {reason}")

    @property
    def traces(self) -> bool:
        """Whether operations are wanted, not only what becomes of connections."""
        return self._options.trace or self._options.trace_verbose

    def _said(self, op: ClientOp) -> Iterator[str]:
        if isinstance(op, Publish):
            size = len(op.payload) + len(op.headers or b"")
            words = [op.subject, op.reply, b"%d" % size]
            if op.headers is not None:
                words.insert(2, b"%d" % len(op.headers))
            yield _line(b"PUB" if op.headers is None else b"HPUB", *words)
            yield from self._payload(op.headers or b"", op.payload)
        elif isinstance(op, Subscribe):
            yield _line(b"SUB", op.subject, op.queue, op.sid)
        elif isinstance(op, Unsubscribe):
            yield _line(b"UNSUB", op.sid, b"%d" % op.maximum if op.maximum else b"")
        elif isinstance(op, Connect | Info):
            word = "CONNECT" if isinstance(op, Connect) else "INFO"
            yield f"[{word} {_SECRETS.sub(REDACTED, printable(op.body))}]"
        elif isinstance(op, PeerError):
            yield _line(b"-ERR", op.text)
        elif isinstance(op, Bad):
            return
        else:
            yield _BARE[type(op)]

    def _told(self, data: bytes) -> Iterator[str]:
        position = 0
        while (end := data.find(b"\r\n", position)) >= 0:
            line = data[position:end]
            position = end + 2
            if not line.startswith(b"INFO "):
                yield _line(line)
            if line.startswith(_WITH_PAYLOAD):
                words = line.split()
                size = int(words[-1])
                head = int(words[-2]) if line.startswith(b"HMSG ") else 0
                body = data[position : position + size]
                yield from self._payload(body[:head], body[head:])
                position += size + 2

    def _payload(self, headers: bytes, payload: bytes) -> Iterator[str]:
        shown, size_max = headers + payload, self._options.traced_bytes_max
        if self._options.trace_headers:
            shown = headers.removesuffix(b"\r\n")
        if not shown:
            return
        cut = 0 < size_max < len(shown)
        text = quoted(shown[:size_max] if cut else shown)
        yield f'MSG_PAYLOAD: ["{text}{"..." if cut else ""}"]'

    def _debug(self, session: ClientSession, text: str) -> None:
        self._heard.append((session, LogLevel.DEBUG, text))

    def _trace(self, session: ClientSession, text: str) -> None:
        self._heard.append((session, LogLevel.TRACE, text))


_BARE = {Ping: "[PING]", Pong: "[PONG]", Ok: "[+OK]"}


def _line(*words: bytes) -> str:
    return f"[{printable(b' '.join([word for word in words if word]))}]"


def protocol_log(options: Options) -> ProtocolLog | None:
    """Who reads along where the operator wants to; None costs nothing."""
    log = options.log
    wanted = log.debug or log.trace or log.trace_verbose
    return ProtocolLog(log, limits(options)) if wanted else None
