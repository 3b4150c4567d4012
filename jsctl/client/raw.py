"""The protocol without the library in between, for those who count messages by the million.

A `RawConnection` takes a connection over that the library has made: login, TLS and proxies are
its business, bytes are ours. Nothing reconnects here; what ends ends.
"""

import asyncio
import os
import socket
from contextlib import suppress
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING, NamedTuple, cast

from jsctl.client.refusals import sentence_of
from jsctl.errors import JsctlError, NotAllowed, Unreachable

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

READ_BYTES = 256 * 1024
ANSWER_BYTES = 16 * 1024
LOOK_S = 0.2
"""So long a connection that is alone keeps the loop waiting, for silence or for answers: then it
lets it see whether somebody wants it to end."""
LINE_MAX = 64 * 1024
"""No line of a server is longer."""
STATUS = b"NATS/1.0 "
PING, PONG = b"PING\r\n", b"PONG\r\n"


class Frame(NamedTuple):
    """A delivered message; `header` is its block as it came, empty without one."""

    subject: bytes
    reply: bytes
    header: bytes
    payload: bytes

    @property
    def status(self) -> bytes:
        """`503`, `408`, ... of a message that is none; empty for others."""
        return self.header[9:12] if self.header.startswith(STATUS) else b""


def header_block(headers: dict[str, str]) -> bytes:
    """Headers as they are sent; empty without any."""
    if not headers:
        return b""
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode()


class RawConnection:
    """Reads and writes frames. Errors of the server leave `read` as JsctlError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._rest = b""
        self._pongs = 0
        self._next_sid = 1_000_000  # those of the library are below
        self._socket: socket.socket | None = None
        self._looked = 0.0
        self.alone = False
        """Whether nobody else needs the loop while this connection waits."""
        self.payload_max = 0
        """So many bytes a message may have with its headers, 0 where that is not known."""

    @classmethod
    async def take_over(cls, client: "NatsClient") -> "RawConnection":
        """The bytes of a connected client, which is not to be used any more."""
        payload_max = client.max_payload
        connection = cls(*await client.give_up_protocol())
        connection.payload_max = payload_max
        return connection

    async def wait_at_the_socket(self) -> None:
        """From now on `read` waits for the system and not for the loop, which costs as much as the
        rest of a round trip. Nothing changes for a connection that is not alone, or has TLS."""
        transport = cast(asyncio.Transport, self._writer.transport)
        own = self._writer.get_extra_info("socket")
        if not self.alone or self._socket or own is None or transport.get_extra_info("ssl_object"):
            return
        await self.flush()  # Whatever the loop has read is looked at: nothing is left there.
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        self._socket = socket.socket(fileno=os.dup(own.fileno()))
        self._socket.settimeout(LOOK_S)

    def write(self, data: bytes) -> None:
        """Sends frames; `drain` waits until few are left to be sent."""
        self._writer.write(data)

    async def drain(self) -> None:
        """Until the buffer has room again."""
        await self._writer.drain()

    def subscribe(self, subject: str, queue: str = "", *, most: int = 0) -> int:
        """Listens; all subscriptions share `read`. `most` messages are sent, 0 for all.

        What is returned ends it: see `unsubscribe`.
        """
        self._next_sid += 1
        group = f"{queue} " if queue else ""
        self.write(f"SUB {subject} {group}{self._next_sid}\r\n".encode())
        if most:
            self.write(f"UNSUB {self._next_sid} {most}\r\n".encode())
        return self._next_sid

    def unsubscribe(self, sid: int) -> None:
        """Listens no more; what is on its way comes."""
        self.write(f"UNSUB {sid}\r\n".encode())

    async def flush(self) -> list[Frame]:
        """Until the server has taken everything; what came meanwhile is returned."""
        self.write(PING)
        await self.drain()
        found: list[Frame] = []
        before = self._pongs
        while self._pongs == before:
            found += await self.read()
        return found

    async def read(self) -> list[Frame]:
        """The next messages, perhaps none. Raises Unreachable at the end of the connection."""
        return self.parse(await self._more())

    async def _more(self) -> bytes:
        if self._socket is None:
            data = await self._reader.read(READ_BYTES)
        else:
            data = await self._waited(self._socket)
        if not data:
            raise Unreachable("nats: connection closed")
        return data

    async def _waited(self, own: socket.socket) -> bytes:
        if (now := monotonic()) > self._looked + LOOK_S:
            self._looked = now
            await asyncio.sleep(0)
        while True:
            with suppress(TimeoutError):
                return own.recv(ANSWER_BYTES)
            await asyncio.sleep(0)  # Deadlines and Ctrl-C come by the loop.

    def close(self) -> None:
        """Ends the connection, whatever state it is in."""
        if self._socket is not None:
            self._socket.close()
        with suppress(OSError, RuntimeError):
            self._writer.transport.abort()

    def parse(self, data: bytes) -> list[Frame]:
        """The whole frames of what came; the rest waits for more."""
        data = self._rest + data if self._rest else data
        found: list[Frame] = []
        at, end = 0, len(data)
        while (eol := data.find(b"\r\n", at)) >= 0:
            line, body = data[at:eol], eol + 2
            op = line[:4]
            if op in (b"MSG ", b"HMSG"):
                words = line.split(b" ")
                size = int(words[-1])
                if body + size + 2 > end:
                    break
                head = int(words[-2]) if op == b"HMSG" else 0
                named = len(words) - (5 if head else 4)
                reply = words[3] if named else b""
                split = body + head
                found.append(Frame(words[1], reply, data[body:split], data[split : body + size]))
                at = body + size + 2
                continue
            self.control(line)
            at = body
        self._rest = data[at:]
        if len(self._rest) > LINE_MAX and b"\r\n" not in self._rest[:LINE_MAX]:
            raise JsctlError("the server sends a line without an end")
        return found

    def control(self, line: bytes) -> None:
        """A line that is no message. Raises what the server complains of."""
        if line == b"PING":
            self.write(PONG)
        elif line == b"PONG":
            self._pongs += 1
        elif line.startswith(b"-ERR"):
            said = sentence_of(line[4:].strip(b" '").decode("utf-8", "replace"))
            raise (NotAllowed if "ermission" in said else JsctlError)(said)

    async def count(self, wanted: int) -> "Counted":
        """Counts messages until so many have come, without looking at most of them.

        Frames that begin as the last one did are as long: they need no parsing.
        """
        counter = Counted()
        while counter.messages < wanted:
            data = await self._more()
            if not counter.messages:
                counter.start()
            self._rest = counter.add(self._rest + data if self._rest else data, self)
        return counter


class Counted:
    """Messages and their payloads, and when the first one came."""

    def __init__(self) -> None:
        self.messages = self.bytes = 0
        self.started_ns = 0
        self._head = b""
        self._length = self._payload = 0

    def start(self) -> None:
        """The first bytes are here."""
        self.started_ns = perf_counter_ns()

    def add(self, data: bytes, connection: RawConnection) -> bytes:
        """Counts whole frames; the rest is returned."""
        at, end = 0, len(data)
        while at < end:
            run, head, length = 0, self._head, self._length
            if head:
                while data.startswith(head, at) and at + length <= end:
                    at += length
                    run += 1
            self.messages += run
            self.bytes += run * self._payload
            eol = data.find(b"\r\n", at)
            if eol < 0:
                break
            line = data[at : eol + 2]
            if line[:4] not in (b"MSG ", b"HMSG"):
                connection.control(line[:-2])
                at = eol + 2
                continue
            words = line.split()
            size = int(words[-1])
            if eol + 2 + size + 2 > end:
                break
            header = int(words[-2]) if line[:1] == b"H" else 0
            self._head, self._payload = line, size - header
            self._length = len(line) + size + 2
        return data[at:]


async def closed(connection: RawConnection) -> None:
    """Ends a connection, whatever state it is in."""
    connection.close()
