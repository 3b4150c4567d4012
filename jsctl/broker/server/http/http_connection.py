"""One HTTP connection of the monitoring port. h11 reads and words the protocol; this decides what
is served, how long a peer is waited for, and how much of its input is looked at.

One request is open at a time, and nothing is read meanwhile: requests sent behind it wait in the
socket, and answers keep their order. A peer that does not take its answers gets no more of them,
and nothing more of it is read.
"""

import asyncio
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

import h11

from jsctl.broker.server.connection import let_go
from jsctl.broker.server.http.monitor import Monitor

NANOSECONDS = 1_000_000_000
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
JAVASCRIPT = "application/javascript"
READABLE = ("Access-Control-Allow-Origin", "*")
"""For dashboards that are web pages from elsewhere, as with nats-server."""
CLOSE = ("Connection", "close")
PARAMETERS_MAX = 100


class MonitorConnection(asyncio.Protocol):
    """What asyncio tells of one connection, and what is told it; see the module."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._http = h11.Connection(
            h11.SERVER, max_incomplete_event_size=monitor.options.request_bytes_max
        )
        self._transport: asyncio.Transport | None = None
        self._request: h11.Request | None = None
        self._asked = False
        """The node has been asked, and answers."""
        self._stuck = False
        """The peer does not take what was sent."""
        self._callback = ""
        self._timer: asyncio.TimerHandle | None = None

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept, or refuse when too many are open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._monitor.open) >= self._monitor.options.connections_max:
            transport.abort()
            return
        self._monitor.open.add(self)
        self._wait(self._monitor.options.header_ns)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; an answer that is under way finds nobody."""
        self._monitor.open.discard(self)
        let_go(self._transport)
        self._transport = None
        self._wait(None)

    def data_received(self, data: bytes) -> None:
        """Some of a request, or of those behind it."""
        if self._http.our_state is h11.IDLE and not self._http.trailing_data[0]:
            self._wait(self._monitor.options.header_ns)
        self._http.receive_data(data)
        self._next()

    def eof_received(self) -> bool:
        """The peer asks nothing more; an answer that is under way is still sent."""
        self._http.receive_data(b"")
        self._next()
        over_tls = self._transport is not None and self._transport.get_extra_info("ssl_object")
        return self._asked and not over_tls

    def pause_writing(self) -> None:
        """The peer does not read."""
        self._stuck = True
        if self._transport is not None:
            self._transport.pause_reading()
        self._wait(self._monitor.options.idle_ns)

    def resume_writing(self) -> None:
        """It reads again."""
        self._stuck = False
        self._go_on()

    # What the monitor calls.

    def end(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def respond(self, status: int, content_type: str, body: bytes, *, keep: bool = True) -> None:
        """Answer the open request, then go on with the next unless it is not to `keep`."""
        transport, request = self._transport, self._request
        self._asked, self._request = False, None
        if transport is None:
            return
        headers = [("Content-Type", content_type)]
        if content_type == JSON:
            headers.append(READABLE)
            if self._callback:
                body = self._callback.encode() + b"(" + body + b")"
                headers[0] = ("Content-Type", JAVASCRIPT)
        if content_type == TEXT:
            headers.append(("X-Content-Type-Options", "nosniff"))
        headers.append(("Date", f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S GMT}"))
        headers.append(("Content-Length", str(len(body))))
        if not keep:
            headers.append(CLOSE)
        self._send(h11.Response(status_code=status, headers=headers, reason=reason(status)))
        if request is None or request.method != b"HEAD":
            self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())
        if not keep or self._http.our_state is not h11.DONE:
            transport.close()
            self._wait(self._monitor.options.idle_ns)
            return
        self._http.start_next_cycle()
        self._go_on()

    def _go_on(self) -> None:
        """Take the next request; if there is none yet, give the peer time for it."""
        if self._stuck or self._asked or self._transport is None:
            return
        self._transport.resume_reading()
        self._wait(self._monitor.options.idle_ns)
        self._next()
        # What is left is less than a request now, and cheap to look at.
        if self._transport is not None and not self._asked and self._http.trailing_data[0]:
            self._wait(self._monitor.options.header_ns)

    def _send(self, event: "h11.Response | h11.Data | h11.EndOfMessage") -> None:
        data = self._http.send(event)
        if data and self._transport is not None:
            self._transport.write(data)

    def _wait(self, wait_ns: int | None) -> None:
        """Give the peer so long for whatever is due from it; None: nothing is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait_ns is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(wait_ns / NANOSECONDS, self.end)

    # Requests.

    def _next(self) -> None:
        """Take the next request, if it is whole and none is open."""
        while self._transport is not None and not (self._asked or self._stuck):
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(HTTPStatus(error.error_status_hint))
                return
            if isinstance(event, h11.Request):
                self._request = event
                if event.method not in (b"GET", b"HEAD"):
                    self._refuse(HTTPStatus.METHOD_NOT_ALLOWED)
                    return
            elif isinstance(event, h11.EndOfMessage):
                self._asked = True
                self._transport.pause_reading()
                self._wait(None)
                self._route()
                return
            elif isinstance(event, h11.Data):
                self._refuse(HTTPStatus.BAD_REQUEST)
                return
            else:
                if isinstance(event, h11.ConnectionClosed):
                    self._transport.close()
                return

    def _route(self) -> None:
        assert self._request is not None
        target = self._request.target.decode("latin-1")
        if target.startswith("//"):
            # Only in a whole URL a host follows: whoever puts a base with a slash before /healthz
            # would be shown the first page, and take the server for sound.
            target = "/" + target.lstrip("/")
        try:
            parts = urlsplit(target)
            pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=PARAMETERS_MAX)
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        params: dict[str, str] = {}
        for name, value in pairs:
            params.setdefault(name, value)
        callback = params.get("callback", "")
        self._callback = callback if callback.replace(".", "_").isidentifier() else ""
        self._monitor.query(self, unquote(parts.path) or "/", params)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer what cannot be understood, and close: the next bytes may be anything."""
        self._callback = ""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            text = f"{status.value} {status.phrase}".encode()
            self.respond(status, TEXT, text, keep=False)
        else:
            self.end()


def reason(status: int) -> str:
    """The phrase of a status code."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
