"""The clients of one server: their connection, in the bytes of the client protocol."""

from collections.abc import Callable
from typing import Protocol

from tests.simulation.violation import Violation

Publish = tuple[bytes, bytes, bytes, bytes]
"""(subject, reply, headers, payload)."""
CONNECT = (
    b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,'
    b'"echo":true,"protocol":1,"lang":"sim","version":"1"}\r\n'
)
ALL_INBOXES = b"1"
"""Subscription id."""


class Hub(Protocol):
    """Where what a server tells its clients goes."""

    slow: int
    """Clients that did not read, and were let go."""

    def arrived(self, number: int, message: Publish) -> None:
        """A message came to an inbox of the clients of server `number`; it has the inbox in the
        place of its subject."""


class Port:
    """Speaks for all clients of a server; inboxes are `_INBOX.<number>.<kind>.<extra>.<count>`."""

    def __init__(self, hub: Hub, number: int, send: Callable[[bytes], None]) -> None:
        self._hub = hub
        self._number = number
        self._send = send
        self._rest = b""
        self._sids = 1
        self._inboxes: dict[bytes, bytes] = {}
        """Subscription id -> inbox that it alone listens to."""

    def open(self) -> None:
        """Say who is there, and listen."""
        self._send(CONNECT + b"SUB _INBOX.%d.> %s\r\n" % (self._number, ALL_INBOXES))

    def publish(self, message: Publish) -> None:
        """PUB or HPUB."""
        subject, reply, headers, payload = message
        to = subject + b" " + reply if reply else subject
        if headers:
            sizes = b"%d %d" % (len(headers), len(headers) + len(payload))
            self._send(b"HPUB %s %s\r\n%s%s\r\n" % (to, sizes, headers, payload))
        else:
            self._send(b"PUB %s %d\r\n%s\r\n" % (to, len(payload), payload))

    def listen(self, inbox: bytes) -> None:
        """Subscribe to one inbox more, for what comes under the subjects of messages."""
        self._sids += 1
        sid = b"%d" % self._sids
        self._inboxes[sid] = inbox
        self._send(b"SUB %s %s\r\n" % (inbox, sid))

    def unlisten(self, inbox: bytes) -> None:
        """End that."""
        for sid, known in list(self._inboxes.items()):
            if known == inbox:
                del self._inboxes[sid]
                self._send(b"UNSUB %s\r\n" % sid)

    def take(self, data: bytes) -> None:
        """What the server sent."""
        data = self._rest + data
        while True:
            line, end, rest = data.partition(b"\r\n")
            if not end:
                break
            words = line.split(b" ")
            if words[0] not in (b"MSG", b"HMSG"):
                self._take_line(line)
                data = rest
                continue
            size = int(words[-1])
            if len(rest) < size + 2:
                break
            self._message(words, rest[:size])
            data = rest[size + 2 :]
        self._rest = data

    def _take_line(self, line: bytes) -> None:
        if line.startswith(b"-ERR"):
            raise Violation(f"the clients of n{self._number} are told {line.decode()}")
        if line == b"PING":
            self._send(b"PONG\r\n")

    def _message(self, words: list[bytes], body: bytes) -> None:
        sizes = 2 if words[0] == b"HMSG" else 1
        subject, sid, *reply = words[1:-sizes]
        head = int(words[-2]) if sizes == 2 else 0
        answer = reply[0] if reply else b""
        inbox = self._inboxes.get(sid, subject if sid == ALL_INBOXES else b"")
        self._hub.arrived(self._number, (inbox, answer, body[:head], body[head:]))
