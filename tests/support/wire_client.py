"""A client that shows what a server sends byte by byte: one blocking socket, no library."""

import json
import socket
from collections import deque
from collections.abc import Callable, Mapping
from urllib.parse import urlparse

Received = tuple[bytes, bytes, bytes, bytes, bytes]
"""(subscription id, subject, reply, headers, payload)."""
OPTIONS = {"verbose": False, "headers": True, "no_responders": True}
Login = Callable[[str], Mapping[str, object]]
"""The server's challenge -> what CONNECT says of who the client is."""


class WireClient:
    """Speaks the text protocol; `messages` holds what came and was not taken."""

    def __init__(self, url: str, login: Login | None = None) -> None:
        """`login` gives what CONNECT says of who it is, in the place of what the URL has."""
        at = urlparse(url)
        assert at.hostname is not None
        self._socket = socket.create_connection((at.hostname, at.port or 4222), 5)
        self._buffer = b""
        self._asked = 0
        self.messages: deque[Received] = deque()
        said: Mapping[str, object] = {}
        if login is not None:
            said = login(self._challenge())
        elif at.username:
            said = {"user": at.username, "pass": at.password}
        self.send(b"CONNECT %s\r\n" % json.dumps({**OPTIONS, **said}).encode())
        self.flush()

    def _challenge(self) -> str:
        """What INFO, which comes first, gives to sign."""
        while b"\r\n" not in self._buffer:
            self._fill(5.0)
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return str(json.loads(line.removeprefix(b"INFO ")).get("nonce", ""))

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Protocol lines as they are."""
        self._socket.sendall(data)

    def publish(
        self, subject: bytes, payload: bytes, reply: bytes = b"", headers: bytes = b""
    ) -> None:
        """PUB, or HPUB with a block of headers."""
        if headers:
            sizes = b"%d %d" % (len(headers), len(headers) + len(payload))
            self.send(b"HPUB %s %s %s\r\n%s%s\r\n" % (subject, reply, sizes, headers, payload))
            return
        self.send(b"PUB %s %s %d\r\n%s\r\n" % (subject, reply, len(payload), payload))

    def request(
        self, subject: bytes, payload: bytes, deadline_s: float = 30.0, headers: bytes = b""
    ) -> bytes:
        """The answer; empty if none comes."""
        found = self.answer(subject, payload, deadline_s, headers)
        return b"" if found is None else found[4]

    def answer(
        self, subject: bytes, payload: bytes, deadline_s: float = 30.0, headers: bytes = b""
    ) -> Received | None:
        """The same as a whole message.

        Every request has a subscription id of its own: nats-server may take the id of one that is
        just ending for that one, and drop it with it.
        """
        self._asked += 1
        sid = b"ask%d" % self._asked
        inbox = b"_INBOX.%d.%d" % (self._socket.getsockname()[1], self._asked)
        self.send(b"SUB %s %s\r\nUNSUB %s 1\r\n" % (inbox, sid, sid))
        self.publish(subject, payload, inbox, headers)
        kept = len(self.messages)
        while self.await_messages(kept + 1, deadline_s):
            if self.messages[-1][0] == sid:
                return self.messages.pop()
            kept += 1
        return None

    def rest(self, deadline_s: float = 30.0) -> bytes:
        """What the server says until it hangs up."""
        self._socket.settimeout(deadline_s)
        heard, self._buffer = self._buffer, b""
        while data := self._socket.recv(1 << 16):
            heard += data
        return heard

    def flush(self) -> None:
        """Return once the server has read everything sent so far."""
        self.send(b"PING\r\n")
        while self._read_one(5.0) != b"PONG":
            pass

    def await_messages(self, count: int, deadline_s: float) -> bool:
        """Read until `count` messages wait; False if the deadline passed."""
        while len(self.messages) < count:
            try:
                self._read_one(deadline_s)
            except TimeoutError:
                return False
        return True

    def _fill(self, timeout_s: float) -> None:
        self._socket.settimeout(timeout_s)
        data = self._socket.recv(1 << 16)
        assert data, "the server hung up"
        self._buffer += data

    def _read_one(self, timeout_s: float) -> bytes:
        while b"\r\n" not in self._buffer:
            self._fill(timeout_s)
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        name, *words = line.split(b" ")
        if name == b"PING":
            self.send(b"PONG\r\n")
        if name in (b"MSG", b"HMSG"):
            self._message(name, words, timeout_s)
        return name

    def _message(self, name: bytes, words: list[bytes], timeout_s: float) -> None:
        sizes = 2 if name == b"HMSG" else 1
        subject, sid, *reply = words[:-sizes]
        size = int(words[-1])
        head = int(words[-2]) if sizes == 2 else 0
        while len(self._buffer) < size + 2:
            self._fill(timeout_s)
        body, self._buffer = self._buffer[:size], self._buffer[size + 2 :]
        answer = reply[0] if reply else b""
        self.messages.append((sid, subject, answer, body[:head], body[head:]))
