"""HTTP/1.1 GET server of the monitoring port: requests become `Query`s, `Answer`s responses.

It knows no path: the node answers. One request of a connection is open at a time; those sent
behind it wait in the buffer, so answers keep their order.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

from jsctl.broker.options import MonitorOptions
from jsctl.broker.turn import Answer, Query

NANOSECONDS = 1_000_000_000
HEAD_END = b"\r\n\r\n"
TEXT = "text/plain; charset=utf-8"
JAVASCRIPT = "application/javascript"


@dataclass(slots=True)
class Monitor:
    """The open requests of all monitoring connections."""

    options: MonitorOptions
    ask: Callable[[Query], None]
    waiting: dict[int, "MonitorConnection"] = field(default_factory=dict)
    open: set["MonitorConnection"] = field(default_factory=set)
    last_token: int = 0

    def protocol(self) -> "MonitorConnection":
        """A new connection's protocol."""
        return MonitorConnection(self)

    def query(self, connection: "MonitorConnection", path: str, params: dict[str, str]) -> None:
        """Hand a request to the node."""
        self.last_token += 1
        self.waiting[self.last_token] = connection
        self.ask(Query(self.last_token, path, params))

    def answer(self, answer: Answer) -> None:
        """Send a response, if its connection is still there."""
        connection = self.waiting.pop(answer.token, None)
        if connection is not None:
            connection.respond(answer.status, answer.content_type, answer.body)

    def close(self) -> None:
        """End all connections."""
        for connection in list(self.open):
            connection.end()


class MonitorConnection(asyncio.Protocol):
    """One HTTP connection."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._busy = False
        self._keep = True
        self._head_only = False
        self._callback = ""
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept, or refuse when too many are open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._monitor.open) >= self._monitor.options.connections_max:
            transport.abort()
            return
        self._monitor.open.add(self)
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; an answer that is under way finds nobody."""
        self._monitor.open.discard(self)
        self._transport = None
        if self._idle is not None:
            self._idle.cancel()

    def data_received(self, data: bytes) -> None:
        """Collect until a request is whole."""
        self._buffer += data
        self._next()

    def end(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def respond(self, status: int, content_type: str, body: bytes) -> None:
        """Send a response to the open request, then go on with the next."""
        if self._transport is None:
            return
        if self._callback and content_type.startswith("application/json"):
            body = self._callback.encode() + b"(" + body + b")"
            content_type = JAVASCRIPT
        head = [
            f"HTTP/1.1 {status} {reason(status)}",
            f"Content-Type: {content_type}",
            f"Date: {datetime.now(UTC):%a, %d %b %Y %H:%M:%S GMT}",
            f"Content-Length: {len(body)}",
        ]
        if content_type == TEXT:
            head.insert(2, "X-Content-Type-Options: nosniff")
        if not self._keep:
            head.append("Connection: close")
        text = "\r\n".join(head).encode("latin-1", "replace") + HEAD_END
        self._transport.write(text if self._head_only else text + body)
        self._busy = False
        if not self._keep:
            self._transport.close()
            return
        self._rest()
        self._next()

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        delay = self._monitor.options.idle_ns / NANOSECONDS
        self._idle = asyncio.get_running_loop().call_later(delay, self.end)

    def _next(self) -> None:
        """Take the next request off the buffer, if it is whole and none is open."""
        limit = self._monitor.options.request_bytes_max
        if self._busy:
            if len(self._buffer) > limit:
                self.end()
            return
        end = self._buffer.find(HEAD_END)
        if end < 0:
            if len(self._buffer) > limit:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        head = bytes(self._buffer[:end])
        del self._buffer[: end + len(HEAD_END)]
        self._busy = True
        self._request(head.decode("latin-1").split("\r\n"))

    def _request(self, lines: list[str]) -> None:
        method, _, rest = lines[0].partition(" ")
        target, _, version = rest.partition(" ")
        if not version.startswith("HTTP/1.") or not target:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        headers = headers_of(lines[1:])
        wish = headers.get("connection", "").lower()
        self._keep = "close" not in wish if version == "HTTP/1.1" else "keep-alive" in wish
        self._head_only = method == "HEAD"
        if method not in ("GET", "HEAD"):
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED)
        elif headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            self._refuse(HTTPStatus.BAD_REQUEST)
        else:
            self._route(target)

    def _route(self, target: str) -> None:
        try:
            parts = urlsplit(target)
            pairs = parse_qsl(parts.query, keep_blank_values=True)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        base = self._monitor.options.base_path.rstrip("/")
        path = unquote(parts.path)
        if base and path != base and not path.startswith(base + "/"):
            self._callback = ""
            self.respond(HTTPStatus.NOT_FOUND, TEXT, b"404 page not found\n")
            return
        params: dict[str, str] = {}
        for name, value in pairs:
            params.setdefault(name, value)
        callback = params.get("callback", "")
        self._callback = callback if callback.replace(".", "_").isidentifier() else ""
        self._monitor.query(self, path.removeprefix(base) or "/", params)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer what cannot be understood, and close: the next bytes may be anything."""
        self._keep = False
        self._callback = ""
        self.respond(status, TEXT, f"{status.value} {status.phrase}".encode())


def headers_of(lines: list[str]) -> dict[str, str]:
    """Headers by lower case name; the last of a name counts."""
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def reason(status: int) -> str:
    """The phrase of a status code."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
