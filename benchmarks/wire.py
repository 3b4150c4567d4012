"""A load generator on plain sockets, so that the client costs as little as possible.

Messages are built once and sent in large buffers; answers are counted, not parsed. All calls
block; one object is one connection.
"""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

CONNECT = (
    b'CONNECT {"verbose":false,"pedantic":false,"lang":"bench","version":"1",'
    b'"protocol":1,"headers":true,"no_responders":true,"echo":true%s}\r\nPING\r\n'
)
RECV_BYTES = 1 << 16
"""With a megabyte the system maps and unmaps it for each call: 12 us of the client, for a reply."""
SEND_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and whom to log in as.

    `pids`: the processes whose CPU counts, that of all servers of its cluster.
    """

    host: str
    port: int
    user: str = ""
    password: str = ""
    pids: tuple[int, ...] = ()


class Wire:
    """One client connection."""

    def __init__(self, address: Address, timeout_s: float = 60.0) -> None:
        self.socket = socket.create_connection((address.host, address.port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        self._requests = 0
        login = ""
        if address.user:
            login = f',"user":"{address.user}","pass":"{address.password}"'
        self.send(CONNECT % login.encode())
        self.wait_for(b"PONG\r\n")

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """Whatever is there; ConnectionError at the end."""
        if self._rest:
            data, self._rest = self._rest, b""
            return data
        data = self.socket.recv(RECV_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        return data

    def wait_for(self, text: bytes) -> bytes:
        """Read until `text` was seen; what came before it (and it) is returned."""
        data = b""
        while True:
            at = data.find(text)
            if at >= 0:
                end = at + len(text)
                self._rest = data[end:] + self._rest
                return data[:end]
            data += self.receive()

    def give_back(self, data: bytes) -> None:
        """What was received too much; it comes first with the next call."""
        self._rest = data + self._rest

    def flush(self) -> None:
        """Everything sent so far was taken by the server."""
        self.send(b"PING\r\n")
        self.wait_for(b"PONG\r\n")

    def count(self, text: bytes, wanted: int, counted: int = 0) -> int:
        """Read until `text` was seen `wanted` times in all; the new total.

        The beginning of one more is kept for the next call.
        """
        tail = b""
        keep = len(text) - 1
        while counted < wanted:
            data = tail + self.receive()
            counted += data.count(text)
            tail = data[-keep:] if keep else b""
        self._rest = tail
        return counted

    def read_bytes(self, wanted: int) -> None:
        """Read `wanted` bytes and forget them."""
        while wanted > 0:
            wanted -= len(self.receive())

    def request(self, subject: str, payload: bytes) -> bytes:
        """One request; the reply's payload. It has an inbox of its own: replies may come late."""
        self._requests += 1
        inbox, sid = f"_INBOX.bench.{self._requests}", b"r%d" % self._requests
        self.send(
            b"SUB %s %s\r\nPUB %s %s %d\r\n%s\r\n"
            % (inbox.encode(), sid, subject.encode(), inbox.encode(), len(payload), payload)
        )
        self.wait_for(b"MSG %s " % inbox.encode())
        line = self.wait_for(b"\r\n")
        sizes = line.split()
        need = int(sizes[-1]) + 2
        body = b""
        while len(body) < need:
            body += self.receive()
        self._rest = body[need:] + self._rest
        self.send(b"UNSUB %s\r\n" % sid)
        self.flush()
        return body[: need - 2]

    def api(self, name: str, body: object | None = None) -> dict[str, object]:
        """A JetStream API request; RuntimeError with the server's text on an error answer."""
        payload = b"" if body is None else json.dumps(body).encode()
        answer = json.loads(self.request(f"$JS.API.{name}", payload))
        if not isinstance(answer, dict):
            raise RuntimeError(f"{name}: unexpected answer {answer!r}")
        if "error" in answer:
            raise RuntimeError(f"{name}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the connection."""
        self.socket.close()


def chunks(message: bytes, count: int) -> Iterator[bytes]:
    """`count` copies of a message in buffers of about SEND_BYTES."""
    per = max(1, SEND_BYTES // len(message))
    buffer = message * per
    whole, rest = divmod(count, per)
    for _ in range(whole):
        yield buffer
    if rest:
        yield message * rest


def now() -> float:
    """Seconds on a clock that only goes forward."""
    return time.perf_counter()
