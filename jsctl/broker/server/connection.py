"""One connection of a client or a route: bytes in, bytes out, watermarks, an orderly end.

All connections share one read buffer: it is filled and emptied at once, so each chunk is copied
exactly once. Nothing here knows the protocol, except that a server speaks first, with INFO.

A plain connection is read where the loop looks at the sockets (`looks`, decision 60), and written
to for a whole turn at once (decision 90): asyncio's way makes a round of the loop and four calls of
each chunk. Whatever is not plain goes that way, through `get_buffer`, `buffer_updated` and `write`:
TLS, ends, what the system does not take, and all input in a loop with another selector.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import field

from jsctl.broker.accel import sockets
from jsctl.broker.accel.choice import socket_loops
from jsctl.broker.accel.contract import Send
from jsctl.broker.options import EdgeLimits
from jsctl.broker.server.turns import Turns
from jsctl.broker.turn import WRITE_DEADLINE, Accepted, ConnKind, Dial
from jsctl.broker.write_options import WriteLimit
from jsctl.dataclass import dataclass

NANOSECONDS = 1_000_000_000
MAPPED_IPV4 = "::ffff:"

CLIENT_CLOSED = "Client Closed"
READ_ERROR = "Read Error"
TLS_FAILED = "TLS Handshake Failure"
NEXT_ADDRESS_S = 0.25
"""So long after an address of a host is dialed the next one is, too: some may be silent."""
EARLY_BYTES_MAX = 1 << 20
"""What may arrive before the node knows of a connection; an INFO has room in it."""


@dataclass(slots=True)
class Connections:
    """The open connections and what they share."""

    turns: Turns
    limits: EdgeLimits
    write_limits: Mapping[ConnKind, WriteLimit]
    plain: dict[int, int] = field(default_factory=dict)
    """Those that are read by looks, by file descriptor: none of them is closed yet."""
    told: dict[int, Callable[[], None]] = field(default_factory=dict)
    """What is done when a file descriptor can be read that is no connection's."""
    direct: dict[int, int] = field(default_factory=dict)
    """The descriptors of those whose output goes straight to the system: they are plain, and their
    transport has nothing unsent."""
    by_id: dict[int, "Connection"] = field(default_factory=dict)
    buffer: memoryview = field(default_factory=lambda: memoryview(b""))
    small: memoryview = field(default_factory=lambda: memoryview(b""))
    """The beginning of `buffer`: what may be read once a turn is full."""
    last_id: int = 0
    _send: Send = sockets.send

    def __post_init__(self) -> None:
        self.buffer = memoryview(bytearray(self.limits.read_bytes_max))
        self.small = self.buffer[: self.limits.read_bytes_min]
        if (loops := socket_loops()) is not None:
            self._send = loops.send

    def buffer_now(self) -> memoryview:
        """The buffer that all connections share, less of it when the turn has enough."""
        full = self.turns.bytes_in >= self.limits.turn_bytes_high
        return self.small if full else self.buffer

    def write(self, writes: list[tuple[int, bytes]]) -> None:
        """Send what a turn has for (connection, bytes); who is gone gets nothing."""
        by_id = self.by_id
        for conn, data, sent in self._send(writes, self.direct):
            if (connection := by_id.get(conn)) is not None:
                connection.write(data, sent)

    def new_id(self) -> int:
        """Ids count up from 1 and are never used again."""
        self.last_id += 1
        return self.last_id


_OWN_METHOD = "_read_ready_cb"


def let_go(transport: asyncio.BaseTransport | None) -> None:
    """A connection is lost: asyncio's transport of a socket keeps a method of its own, by which it
    holds itself, and would stay until the collector finds it."""
    if hasattr(transport, _OWN_METHOD):
        setattr(transport, _OWN_METHOD, None)


class Connection(asyncio.BufferedProtocol):
    """A socket as the node knows it: a number.

    What arrives before `announce`, or while a handshake runs, is kept.
    """

    __slots__ = (
        "_below",
        "_closing",
        "_early",
        "_end",
        "_fd",
        "_first_sign",
        "_held_writes",
        "_kept",
        "_limits",
        "_lost",
        "_paused",
        "_shared",
        "_spoke",
        "_timer",
        "_to_send",
        "_written",
        "announced",
        "credentials",
        "dial",
        "first_line",
        "id",
        "kind",
        "transport",
    )

    def __init__(
        self,
        shared: Connections,
        kind: ConnKind,
        dial: Dial | None = None,
        *,
        first_line: asyncio.Future[bytes] | None = None,
        credentials: str = "",
    ) -> None:
        self.id = shared.new_id()
        self.kind = kind
        self.dial = dial
        self.transport: asyncio.Transport | None = None
        self.announced = False
        self.first_line = first_line
        """Resolved by the first line that comes before the node knows of the connection."""
        self.credentials = credentials
        """See `turn.Accepted`."""
        self._held_writes: list[bytes] | None = None
        """Not None while a handshake runs: what the node wrote meanwhile."""
        self._spoke: asyncio.Future[None] | None = None
        """Resolved by the node's first write, for handshakes that follow INFO."""
        self._first_sign: asyncio.Future[None] | None = None
        """Resolved when something can be read, for a look at the first byte."""
        self._shared = shared
        self._limits = shared.limits
        self._early: list[bytes] = []
        self._fd = -1
        """Under which it is among the plain ones."""
        self._end: asyncio.Future[None] | None = None
        self._below: asyncio.Transport | None = None
        """The socket's transport, where `transport` is a TLS layer over it."""
        self._closing = False
        self._kept = False
        self._lost = False
        self._paused = False
        self._written = 0
        """Through the transport."""
        self._to_send = 0
        """What has to be gone at the next write deadline, counted from the first byte."""
        self._timer: asyncio.TimerHandle | None = None

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A socket is there; the node hears of it by `announce`."""
        assert isinstance(transport, asyncio.Transport)
        self.attach(transport)
        self._shared.by_id[self.id] = self

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where asyncio puts what it reads."""
        return self._shared.buffer_now()

    def buffer_updated(self, nbytes: int) -> None:
        """A chunk has arrived."""
        if self._closing:
            return
        chunk = bytes(self._shared.buffer[:nbytes])
        if self.announced and self._held_writes is None:
            turns = self._shared.turns
            turns.inputs.chunks.append((self.id, chunk))
            turns.bytes_in += nbytes
            turns.wake()
            return
        self._early.append(chunk)
        if sum(map(len, self._early)) > EARLY_BYTES_MAX:
            self.abort(TLS_FAILED)
            return
        if self.first_line is not None and b"\n" in chunk and not self.first_line.done():
            self.first_line.set_result(b"".join(self._early).partition(b"\n")[0])

    def eof_received(self) -> None:
        """The peer sends no more: the transport closes itself."""

    def connection_lost(self, exc: BaseException | None) -> None:
        """The socket is gone."""
        self.lost(CLIENT_CLOSED if exc is None else READ_ERROR)
        let_go(self._below or self.transport)
        self.transport = self._below = None  # A TLS layer holds this connection.

    def pause_writing(self) -> None:
        """Unsent bytes passed the high mark."""
        self._paused = True
        self._report_pending()
        if self._timer is None:
            self._watch_writes()

    def resume_writing(self) -> None:
        """Unsent bytes fell below the low mark."""
        self._paused = False
        self._report_pending()
        if self._kept:
            self._resolve_end()
        if self._timer is not None and not self._closing:
            self._timer.cancel()
            self._timer = None
            self._to_send = 0

    # What the edge calls.

    def attach(self, transport: asyncio.Transport) -> None:
        """Use this transport from now on: the socket's, then perhaps a TLS layer over it."""
        self._below, self.transport = self.transport, transport
        transport.set_write_buffer_limits(
            self._limits.pending_bytes_high, self._limits.pending_bytes_low
        )
        made = transport.get_extra_info("socket")
        if made is not None and made.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio does this only for sockets whose protocol number is set, which those of
            # a listener bound by hand are not; without it answers wait 40 ms for an ACK.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def announce(self, *, tls: bool) -> None:
        """Tell the node of the connection and hand over what arrived before."""
        if self._lost or self.transport is None:
            return
        self.announced = True
        remote = _address(self.transport.get_extra_info("peername"))
        local = _address(self.transport.get_extra_info("sockname"))
        turns = self._shared.turns
        token = self.dial.token if self.dial else 0
        said, self.credentials = self.credentials, ""
        made = Accepted(
            self.id, self.kind, *remote, *local, tls=tls, dial_token=token, credentials=said
        )
        turns.inputs.accepted.append(made)
        self._hand_over()

    def _hand_over(self) -> None:
        turns = self._shared.turns
        turns.inputs.chunks += [(self.id, chunk) for chunk in self._early]
        self._early = []
        turns.wake()

    def early(self) -> bytes:
        """What has arrived, and is still to be handed over."""
        return b"".join(self._early)

    def announce_plain(self) -> None:
        """The same, of a connection that has no TLS, now or later."""
        self.announce(tls=False)
        if self.announced and self.transport is not None and not self._lost:
            self._fd = self.transport.get_extra_info("socket").fileno()
            self._shared.plain[self._fd] = self.id
            self._straighten(self.transport)

    def _straighten(self, transport: asyncio.Transport) -> None:
        """Have what is written next go straight to the system. If the transport has kept some of
        what it was given, all queues up there until that is gone."""
        if self._fd >= 0 and not transport.get_write_buffer_size():
            self._shared.direct[self.id] = self._fd

    def write(self, data: bytes, sent: int = 0) -> None:
        """Send, or keep until the handshake is over. The system has `sent` bytes of it already."""
        if self._closing or self._lost or self.transport is None:
            return
        if self._held_writes is not None:
            self._held_writes.append(data)
            return
        self._written += len(data) - sent
        self.transport.write(memoryview(data)[sent:] if sent else data)
        self._straighten(self.transport)
        if self._spoke is not None and not self._spoke.done():
            self.hold_writes()
            self._spoke.set_result(None)
        if self._paused:
            self._report_pending()

    def hold_writes(self) -> None:
        """A handshake begins: what the node writes is kept until `release_writes`."""
        self._held_writes = []

    async def spoken(self, *, tls: bool) -> None:
        """Tell the node, and wait for its first word, which is sent; what it writes behind that is
        kept until `release_writes`. Or until the socket is closed."""
        if self._lost:
            return
        self._spoke = asyncio.get_running_loop().create_future()
        self.announce(tls=tls)
        await self._spoke

    def sign(self) -> asyncio.Future[None]:
        """To be resolved when something can be read; done when the socket is closed."""
        self._first_sign = asyncio.get_running_loop().create_future()
        return self._first_sign

    def release_writes(self) -> None:
        """Send what was written during the handshake, and hand over what came with the end of it:
        who the other side is had to be looked at before."""
        held, self._held_writes = self._held_writes, None
        if held:
            self.write(b"".join(held))
        if self._early and self.announced and not self._lost:
            self._hand_over()

    def close(self) -> None:
        """Read no more; end once everything written has been sent, or at the write deadline.

        Where there is TLS the peer is told, and its own goodbye is not waited for: asyncio would
        do so for half a minute, with everybody who was refused and does not answer.
        """
        if self._closing or self._lost or self.transport is None:
            return
        if self._held_writes is not None:
            self.abort(TLS_FAILED)
            return
        self._closing = True
        self._shared.direct.pop(self.id, None)
        if self.transport.is_closing():
            return  # The peer was quicker; `connection_lost` is on its way.
        self.transport.close()
        if self._below is not None:
            self._to_send = 0  # Counted anew: what is below TLS has to be gone as well.
            self._below.close()  # Behind all that TLS gives it while it sends the rest.
        if self._unsent() and self._timer is None:
            self._watch_writes()

    def _unsent(self) -> int:
        """Bytes that are still to be sent."""
        layers = (self.transport, self._below if self._closing else None)
        return sum(layer.get_write_buffer_size() for layer in layers if layer is not None)

    def abort(self, reason: str) -> None:
        """End at once; unsent bytes are dropped."""
        if self.transport is not None:
            self.transport.abort()
        self.lost(reason)

    def lost(self, reason: str) -> None:
        """Tell the node, once, if it knows the connection."""
        if self._lost:
            return
        self._lost = True
        self._shared.by_id.pop(self.id, None)
        # Invariant: before the socket is closed, as another one may have its number then.
        self._shared.plain.pop(self._fd, None)
        self._shared.direct.pop(self.id, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for waiter in (self._spoke, self._first_sign, self._end):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
        if self.first_line is not None and not self.first_line.done():
            self.first_line.set_result(b"")
        if self.announced:
            self._shared.turns.inputs.closed.append((self.id, reason))
            self._shared.turns.wake()

    def pause_reading(self) -> None:
        """Take no more from the socket, so that the peer has to wait."""
        if self.transport is not None and not self._lost:
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self.transport is not None and not self._lost and not self._closing:
            self.transport.resume_reading()

    def finish(self) -> None:
        """Read no more and send what is written, but leave the socket open for the peer.

        Only TLS is closed: its peers are told of the end, and the system would not do that.
        """
        if self._closing or self._lost or self.transport is None:
            return
        if self._held_writes is not None or self.transport.get_extra_info("sslcontext"):
            self.close()
            return
        self._closing = self._kept = True
        self._shared.direct.pop(self.id, None)
        self.transport.pause_reading()
        self.transport.set_write_buffer_limits(high=0)

    async def finished(self) -> None:
        """Wait until the system has all that was written, or the socket is closed."""
        sent = self.transport is None or not self.transport.get_write_buffer_size()
        if not (self._lost or (self._kept and sent)):
            self._end = asyncio.get_running_loop().create_future()
            await self._end

    def _resolve_end(self) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    @property
    def gone(self) -> bool:
        """Whether the socket is closed."""
        return self._lost

    def _report_pending(self) -> None:
        if self.announced and not self._lost and self.transport is not None:
            size = self.transport.get_write_buffer_size()
            self._shared.turns.inputs.pending.append((self.id, size))
            self._shared.turns.wake()

    def _watch_writes(self) -> None:
        """End the connection if too little is sent for a whole write deadline."""
        if self._lost or self.transport is None:
            return
        sent = max(self._written - self._unsent(), 0)
        if sent < self._to_send:
            self.abort(WRITE_DEADLINE)
            return
        limit = self._shared.write_limits[self.kind]
        self._to_send = self._written if limit.whole else sent + 1
        delay = limit.deadline_ns / NANOSECONDS
        self._timer = asyncio.get_running_loop().call_later(delay, self._watch_writes)


def _address(name: object) -> tuple[str, int]:
    """(host, port) of a socket name; IPv4 addresses as such where IPv6 carries them."""
    if isinstance(name, tuple) and len(name) >= 2:
        return (str(name[0]).removeprefix(MAPPED_IPV4), int(name[1]))
    return ("", 0)
