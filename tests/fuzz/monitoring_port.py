"""Bytes of a connection of the monitoring port, up to where a page would be made.

The connection is the real one, on a transport and a clock in memory. However its bytes are cut,
and however slowly the answers are taken, it asks for the same pages and sends the same answers;
and as long as a peer owes it something, a deadline runs.
"""

import asyncio
import json
import random
import re
from asyncio import events
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import TypeVarTuple
from urllib.parse import urlencode

from jsctl.api.codec import dumps, encode
from jsctl.broker.options import MonitorOptions
from jsctl.broker.server.http.http_connection import MonitorConnection
from jsctl.broker.server.http.monitor import Monitor
from jsctl.broker.system.monitoring import params as parameters
from jsctl.broker.system.monitoring.endpoints import SYS_ROUTES
from jsctl.broker.system.monitoring.http import JSON, TEXT, page_of
from jsctl.broker.system.monitoring.words import Refused
from jsctl.broker.turn import Answer, Query
from tests.fuzz.mutate import NUMBERS, TEXTS, cuts, mutated
from tests.fuzz.target import SIZE_MAX, Target

Ts = TypeVarTuple("Ts")
BASES = ("/", "/nats")
"""For inputs with an even and with an odd number of bytes: those of the corpus choose."""
STEPS_MAX = 10_000
_DATE = re.compile(rb"Date: [^\r]*\r\n")
_HEAD = re.compile(
    rb"HTTP/1\.1 ([1-5][0-9][0-9]) [A-Za-z -]+\r\n"
    rb"Content-Type: [a-z/]+(?:; charset=utf-8)?\r\n"
    rb"(?:Access-Control-Allow-Origin: \*\r\n)?"
    rb"(?:X-Content-Type-Options: nosniff\r\n)?"
    rb"Date: [A-Za-z0-9:, ]+\r\n"
    rb"Content-Length: ([0-9]+)\r\n"
    rb"(Connection: close\r\n)?\r\n"
)
_CALLED = re.compile(rb"([^(]+)\((.*)\)", re.DOTALL)
_ENDPOINTS = {path: endpoint for endpoint in SYS_ROUTES.values() for path in endpoint.paths}


PAGES = tuple(_ENDPOINTS.items())
METHODS = ("HEAD", "POST", "get", "PRI")
BEFORE = ("/nats", "/nats", "/nats", "//", "http://h:1", "http://[", "//[::1", "%2e/", "/%2fnats")
BEHIND = ("/", ";x", "#f", "%00", "%ff%fe", "%ed%a0%80", "\xff", "/..")
VERSIONS = ("HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "SPDY/3")
FIELDS = (
    "", "Connection: close\r\n", "Connection: keep-alive, x\r\n", "Host: y\r\n", "Host : x\r\n",
    "Content-Length: 0\r\n", "Content-Length: 3\r\n", " folded\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n",
)  # fmt: skip
WORDS = ("detail", "true", "F", "any", "closed", "ALL", "1", "0", "", "5", "a.>", "A")
CALLBACKS = ("f", "a.b", "f(", "f\r\nX: y", "é", "1f", ".", "f.", "</script>", "\ud800", "_" * 300)


class Clock(asyncio.BaseEventLoop):
    """Where timers are set; nobody waits for them."""

    def __init__(self) -> None:
        super().__init__()
        self.close()  # Nothing is ever run by it.
        self.timers: list[asyncio.TimerHandle] = []

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        assert delay > 0, "a deadline is in the future"
        timer = asyncio.TimerHandle(delay, callback, args, self, context)
        self.timers.append(timer)
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """What a handle tells its loop."""

    def running(self) -> int:
        """Number of timers that are not cancelled."""
        self.timers = [timer for timer in self.timers if not timer.cancelled()]
        return len(self.timers)


class Wire(asyncio.Transport):
    """Keeps what is written. A peer that takes its time has the connection pause meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.ended = False
        self.paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.ended, "nothing is written behind the end"
        self.sent += data

    def close(self) -> None:
        self.ended = True

    def abort(self) -> None:
        assert not self.ended, "what was sent before the end is not dropped"
        self.ended = True

    def is_closing(self) -> bool:
        return self.ended

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Exchange:
    """One connection: what it asked, and what it sent."""

    def __init__(self, clock: Clock, base: str) -> None:
        self.clock = clock
        self.base = base.rstrip("/")
        self.asked: list[Query] = []
        self.open: list[Query] = []
        self.monitor = Monitor(MonitorOptions(base_path=base), self._ask)
        self.wire = Wire()
        self.connection = MonitorConnection(self.monitor)
        self.connection.connection_made(self.wire)

    def _ask(self, query: Query) -> None:
        assert not self.open, "one request is open at a time"
        self.asked.append(query)
        self.open.append(query)

    def take(self, data: bytes, *, slowly: bool = False) -> None:
        """Some bytes come; all that is asked is answered, later if the peer takes its time."""
        if slowly and not self.wire.ended:
            self.connection.pause_writing()
        if not self.wire.ended:
            self.connection.data_received(data)
            self.check()
        if slowly:
            assert len(self.open) < 2, "a peer that does not read is asked for nothing more"
            if not self.wire.ended:
                self.connection.resume_writing()
        self.answer()

    def answer(self) -> None:
        """Answer what is asked, and what comes up by that."""
        for _ in range(STEPS_MAX):
            self.check()
            if not self.open:
                return
            query = self.open.pop()
            self.monitor.answer(answered(query, self.base))
        raise AssertionError("requests without end")

    def check(self) -> None:
        """Either the node owes an answer, or a deadline runs, or it is over."""
        running = self.clock.running()
        if self.open:
            assert self.wire.paused, "what comes next waits in the socket"
            assert not running, "the peer owes nothing"
        else:
            assert running == 1, f"{running} deadlines run"

    def finish(self, *, early: bool) -> bytes:
        """The peer ends its side, or is gone early; all that was sent."""
        if not early and not self.wire.ended:
            kept = self.connection.eof_received()
            assert kept == bool(self.open), "an answer that is under way is still sent"
            self.answer()
        self.connection.connection_lost(None)
        assert not self.clock.running(), "nothing is left of a connection"
        assert not self.monitor.open
        assert not self.monitor.waiting
        return bytes(self.wire.sent)


def asked_for(rng: random.Random) -> bytes:
    """A request for a page that is nearly one."""
    path, endpoint = rng.choice(PAGES)
    names = [param.name for param in endpoint.params]
    pairs = [
        (rng.choice(names) if names and rng.random() < 0.8 else rng.choice(TEXTS), _text(rng))
        for _ in range(int(rng.expovariate(0.5)))
    ]
    if rng.random() < 0.2:
        pairs.append(("callback", rng.choice(CALLBACKS)))
    target = _mostly(rng, "", BEFORE) + path + _mostly(rng, "", BEHIND)
    if pairs:
        target += "?" + urlencode(pairs, errors="surrogatepass")
    line = f"{_mostly(rng, 'GET', METHODS)} {target} {_mostly(rng, 'HTTP/1.1', VERSIONS)}\r\n"
    host = _mostly(rng, "Host: x\r\n", ("", "Host: x\r\nHost: x\r\n"))
    return f"{line}{host}{_mostly(rng, '', FIELDS)}\r\n".encode("latin-1")


def _mostly(rng: random.Random, usual: str, odd: Sequence[str]) -> str:
    return usual if rng.random() < 0.85 else rng.choice(odd)


def _text(rng: random.Random) -> str:
    roll = rng.random()
    if roll < 0.4:
        return str(rng.choice(NUMBERS))
    return rng.choice(TEXTS if roll < 0.7 else WORDS)


def answered(query: Query, base: str) -> Answer:
    """What the node makes of a request, with the options in place of the page."""
    for text in (query.path, *query.params, *query.params.values()):
        text.encode()
    endpoint = _ENDPOINTS.get(page_of(base, query.path))
    if endpoint is None:
        return Answer(query.token, 404, TEXT, b"404 page not found\n")
    try:
        fields = parameters.decode(endpoint.params, query.params)
    except Refused as error:
        return Answer(query.token, 400, TEXT, str(error).encode())
    for name, value in fields.items():
        given = isinstance(value, int) and not -(2**63) <= value < 2**64
        assert not given, f"{name}={value} is beyond 64 bits"
    options = encode(endpoint.options(**fields)) if fields else {}
    return Answer(query.token, 200, JSON, dumps(options))


class Http(Target):
    """See the module."""

    name = "http"
    words = (
        b"GET /varz HTTP/1.1\r\nHost: x\r\n\r\n", b"HEAD / HTTP/1.0\r\n\r\n", b"POST ", b"\x00",
        b"\r\n", b"\r\n\r\n", b"Host: x\r\n", b"Connection: close\r\n", b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n", b"?",
        b"Connection: keep-alive\r\n", b"callback=f", b"callback=a.b", b"callback=%0d%0aX:",
        b"%00", b"%ff", b"%ed%a0%80", b"+", b";", b"#", b"//", b"http://[", b"/nats",
        b"limit=", b"offset=", b"9" * 5000, b"-1", b"a=1&" * 120, b"X: " + b"y" * 3000 + b"\r\n",
        b"5\r\nhello\r\n0\r\n\r\n", b"state=any&auth=1", b"streams=true&consumers=1", b"%", b"&",
        b" HTTP/1.1", b"subs=detail",
    )  # fmt: skip

    def __init__(self) -> None:
        self.clock = Clock()

    def seeds(self) -> list[bytes]:
        host = b" HTTP/1.1\r\nHost: x\r\n"
        paths = [path.encode() for path in _ENDPOINTS]
        asked = [
            b"GET %b?%b=1%b\r\n" % (path.encode(), param.name.encode(), host)
            for path, endpoint in _ENDPOINTS.items()
            for param in endpoint.params
        ]
        return [
            *asked,
            b"".join(b"GET " + path + host + b"\r\n" for path in paths[:4]),
            b"HEAD /connz?limit=5&offset=1&state=closed" + host + b"\r\n",
            b"GET /nats/varz?callback=a.b%26&x=%C3%A9" + host + b"Connection: close\r\n\r\n",
            b"GET /jsz?acc=A%2BB&streams=1 HTTP/1.0\r\n\r\n",
            b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            b"GET /healthz" + host + b"Content-Length: 5\r\n\r\nhello",
            b"GET /" + host + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            b"POST /varz" + host + b"Content-Length: 5\r\n\r\nhello",
            b"GET http://u:p@h:1/varz;a?b#c" + host + b"Expect: 100-continue\r\n\r\n",
        ]

    def make(self, rng: random.Random, pool: list[bytes]) -> bytes:
        if rng.random() < 0.5:
            return super().make(rng, pool)
        some = b"".join(asked_for(rng) for _ in range(1 + int(rng.expovariate(0.7))))
        return mutated(rng, some, self.words, SIZE_MAX) if rng.random() < 0.3 else some[:SIZE_MAX]

    def run(self, data: bytes, rng: random.Random) -> None:
        base, early = BASES[len(data) % 2], rng.random() < 0.2
        self.clock.timers.clear()
        events._set_running_loop(self.clock)
        try:
            whole = self._exchanged([data] if data else [], base, early, None)
            # An empty piece does not come: it would be the end.
            cut = [piece for piece in cuts(rng, data) if piece]
            pieces = self._exchanged(cut, base, early, rng)
        finally:
            events._set_running_loop(None)
        assert whole == pieces, f"{whole!r} is not {pieces!r}"

    def _exchanged(
        self, chunks: list[bytes], base: str, early: bool, rng: random.Random | None
    ) -> tuple[list[object], bytes]:
        exchange = Exchange(self.clock, base)
        for chunk in chunks:
            exchange.take(chunk, slowly=rng is not None and rng.random() < 0.3)
        sent = exchange.finish(early=early)
        check_answers(sent)
        asked: list[object] = [(query.path, query.params) for query in exchange.asked]
        return asked, _DATE.sub(b"", sent)


def check_answers(sent: bytes) -> None:
    """What is sent is answers in a row, of which each is what its head says."""
    at, closed = 0, False
    while at < len(sent):
        assert not closed, "nothing follows an answer that closes"
        head = _HEAD.match(sent, at)
        assert head is not None, f"not an answer: {sent[at : at + 200]!r}"
        closed = bool(head[3])
        at = head.end()
        size = int(head[2])
        if sent.startswith(b"HTTP/1.1 ", at) or (at == len(sent) and size):
            continue  # To HEAD
        body = sent[at : at + size]
        assert len(body) == size, "the body is as long as its head says"
        at += size
        if b"application/json" in head[0]:
            json.loads(body)
        elif b"javascript" in head[0]:
            called = _CALLED.fullmatch(body)
            assert called is not None
            assert called[1].decode().replace(".", "_").isidentifier(), "a name calls"
            json.loads(called[2])
