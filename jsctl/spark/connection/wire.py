"""One blocking connection to a server: bytes in, protocol lines apart, nothing kept per message.

Readers and writers of Spark run in worker processes of their own and want throughput, not an
event loop. `data[at:]` is what came and was not taken; hot loops of other modules match their own
expressions there and call `fill` when a message is not complete.
"""

import json
import random
import re
import secrets
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass

from jsctl.errors import JsctlError, NotAllowed, Unreachable
from jsctl.settings import Settings
from jsctl.spark.connection.login import Address, address, connect_fields, tls_context, wants_tls

RECV_BYTES = 1 << 20
GLANCE_S = 0.001
_OPERATION = re.compile(
    rb"(H?MSG) (\S+) (\S+) (?:(\S+) )?(?:(\d+) )?(\d+)\r\n"
    rb"|(PING)\r\n|PONG\r\n|\+OK\r\n|-ERR ([^\r\n]*)\r\n|INFO [^\r\n]*\r\n"
)
_STATUS = re.compile(rb"NATS/1\.0 (\d{3})([^\r\n]*)")
_REFUSED = ("authorization", "authentication", "expired", "revoked")


@dataclass(frozen=True, slots=True)
class Message:
    """One delivery; `headers` is the block as it came, empty without headers."""

    subject: bytes
    sid: bytes
    reply: bytes
    headers: bytes
    payload: bytes

    @property
    def status(self) -> int:
        """The status in the first line of the headers, 0 for an ordinary message."""
        found = _STATUS.match(self.headers)
        return int(found[1]) if found else 0

    @property
    def description(self) -> str:
        """The text behind the status."""
        found = _STATUS.match(self.headers)
        return found[2].decode(errors="replace").strip() if found else ""


class Closed(Unreachable):
    """The connection broke; another one may do."""


class Wire:
    """A connection that is logged in. One thread uses it."""

    def __init__(self, settings: Settings, at: Address) -> None:
        """Raises Closed when the server cannot be reached, NotAllowed, UsageError."""
        self.settings = settings
        self.address = at
        self.data = b""
        self.at = 0
        self.info: dict[str, object] = {}
        try:
            self._socket = socket.create_connection((at.host, at.port), settings.timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise Closed(f"cannot connect to {at.text}: {error}") from error
        try:
            self._handshake()
        except BaseException:
            self.close()
            raise
        self._sids = 0
        self.inbox = f"{settings.connection.inbox_prefix or '_INBOX'}.{secrets.token_hex(11)}"
        self._requests = 0
        self._reply_sid = self.subscribe(f"{self.inbox}.*")

    @property
    def where(self) -> str:
        """The server, for messages."""
        return self.address.text

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """All of it. Raises Closed."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Closed(f"{self.where}: {error}") from error

    def subscribe(self, subject: str) -> bytes:
        """The subscription's id."""
        self._sids += 1
        self.send(f"SUB {subject} {self._sids}\r\n".encode())
        return str(self._sids).encode()

    def fill(self, wanted: int, deadline: float | None = None) -> None:
        """Read until `wanted` bytes wait behind `at`. Raises Closed, TimeoutError.

        `deadline` is on the monotonic clock; without one, the settings' timeout counts anew
        with every chunk.
        """
        parts = [self.data[self.at :]]
        have = len(parts[0])
        try:
            while have < wanted:
                self._socket.settimeout(_left(deadline, self.settings.timeout))
                part = self._socket.recv(RECV_BYTES)
                if not part:
                    raise Closed(f"{self.where} closed the connection")
                parts.append(part)
                have += len(part)
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(f"{self.where}: {error}") from error
        finally:
            self.data, self.at = b"".join(parts), 0

    def receive(self, deadline: float | None = None) -> Message:
        """The next message; answers pings on the way. Raises Closed, TimeoutError, JsctlError."""
        while True:
            found = _OPERATION.match(self.data, self.at)
            if found is None:
                if b"\r\n" in self.data[self.at : self.at + 4096 + 1024]:
                    line = self.data[self.at :].split(b"\r\n", 1)[0]
                    raise Closed(f"{self.where} speaks no NATS: {line[:60]!r}")
                self.fill(len(self.data) - self.at + 1, deadline)
                continue
            if found[1] is None:
                self._heed(found)
                continue
            size = int(found[6])
            if found.end() + size + 2 > len(self.data):
                self.fill(found.end() - self.at + size + 2, deadline)
                continue
            return self._message(found)

    def answer_pings(self) -> None:
        """For who only sends: take all that is here, so that the server sees a live connection."""
        with suppress(TimeoutError):
            while True:
                self.receive(time.monotonic() + GLANCE_S)

    def control(self) -> bool:
        """Take one complete line that is no message, such as a ping; whether there was one."""
        found = _OPERATION.match(self.data, self.at)
        if found is None or found[1] is not None:
            return False
        self._heed(found)
        return True

    def _heed(self, found: "re.Match[bytes]") -> None:
        self.at = found.end()
        if found[7] is not None:
            self.send(b"PONG\r\n")
        elif found[8] is not None:
            self._refused(found[8].decode(errors="replace").strip("' "))

    def request(self, subject: str, payload: bytes = b"", *, headers: bytes = b"") -> Message:
        """One request and its answer; other messages are dropped.

        Raises Unreachable when nobody answers, Closed when the connection breaks.
        """
        self._requests += 1
        inbox = f"{self.inbox}.{self._requests}"
        self.send(publication(subject, inbox, headers, payload))
        deadline = time.monotonic() + self.settings.timeout
        while True:
            try:
                answer = self.receive(deadline)
            except TimeoutError:
                raise Unreachable(f"no answer to {subject} from {self.where} in time") from None
            if answer.subject == inbox.encode():
                if answer.status == 503:
                    raise Unreachable(f"nobody answers {subject} at {self.where}")
                return answer

    def _message(self, found: "re.Match[bytes]") -> Message:
        kind, subject, sid, reply, head, size = found.groups()[:6]
        if kind == b"HMSG" and head is None:
            head, reply = reply, None
        start, stop = found.end(), found.end() + int(size)
        split = start + int(head or 0)
        self.at = stop + 2
        return Message(subject, sid, reply or b"", self.data[start:split], self.data[split:stop])

    def _refused(self, text: str) -> None:
        """-ERR: most of them end the connection."""
        lower = text.lower()
        if any(word in lower for word in _REFUSED):
            raise NotAllowed(
                f"{self.where} refuses the credentials: {text}",
                hints=("see the options user, password, token, creds and nkey",),
            )
        if "permissions violation" in lower:
            raise NotAllowed(f"{self.where}: {text}")
        raise Closed(f"{self.where}: {text}")

    def _handshake(self) -> None:
        context = self.settings.connection
        if context.tls_first:
            self._secure()
        self._socket.settimeout(self.settings.timeout)
        try:
            self.info = self._greeting()
            if not context.tls_first and (
                wants_tls(context, self.address) or self.info.get("tls_required")
            ):
                self._secure()
            nonce = str(self.info.get("nonce", ""))
            fields = json.dumps(connect_fields(self.settings, self.address, nonce))
            self.send(b"CONNECT " + fields.encode() + b"\r\nPING\r\n")
            self._wait_pong()
        except TimeoutError:
            raise Closed(f"{self.where} does not answer in time") from None
        except OSError as error:
            raise Closed(f"{self.where}: {error}") from error

    def _greeting(self) -> dict[str, object]:
        while b"\r\n" not in self.data:
            self.fill(len(self.data) + 1)
        line, self.data = self.data.split(b"\r\n", 1)
        if not line.startswith(b"INFO {"):
            raise Closed(f"{self.where} is no NATS server")
        found = json.loads(line[5:])
        return found if isinstance(found, dict) else {}

    def _secure(self) -> None:
        made = tls_context(self.settings.connection)
        name = self.address.tls_name or self.address.host
        try:
            self._socket = made.wrap_socket(self._socket, server_hostname=name)
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
            raise Closed(f"{self.where} ended the TLS handshake") from error
        except ssl.SSLError as error:
            raise JsctlError(
                f"{self.where}: TLS fails: {error.reason or error}",
                hints=("see the options tlsca, tlscert and tlskey",),
            ) from error
        except OSError as error:
            raise Closed(f"{self.where}: TLS fails: {error}") from error

    def _wait_pong(self) -> None:
        """Read up to the answer of the first ping; nothing is subscribed yet."""
        deadline = time.monotonic() + self.settings.timeout
        while True:
            found = _OPERATION.match(self.data, self.at)
            if found is None:
                self.fill(len(self.data) - self.at + 1, deadline)
                continue
            self.at = found.end()
            if found[8] is not None:
                self._refused(found[8].decode(errors="replace").strip("' "))
            if found[0] == b"PONG\r\n":
                return


def publication(subject: str, reply: str, headers: bytes, payload: bytes) -> bytes:
    """PUB, or HPUB with a header block."""
    if not headers:
        return b"PUB %s %s %d\r\n%s\r\n" % (
            subject.encode(),
            reply.encode(),
            len(payload),
            payload,
        )
    sizes = b"%d %d" % (len(headers), len(headers) + len(payload))
    return b"HPUB %s %s %s\r\n%s%s\r\n" % (
        subject.encode(),
        reply.encode(),
        sizes,
        headers,
        payload,
    )


def open_wire(settings: Settings, known: tuple[Address, ...] = ()) -> Wire:
    """A connection to any of the servers, in random order; `known` are more addresses.

    Raises Unreachable that lists all failures, NotAllowed, UsageError.
    """
    given = list(map(address, settings.urls))
    servers = list({(at.host, at.port): at for at in [*known, *given]}.values())
    random.shuffle(servers)
    problems: list[str] = []
    for at in servers:
        try:
            return Wire(settings, at)
        except Closed as error:
            problems.append(str(error))
    raise Unreachable("; ".join(sorted(problems)), hints=("is the server up? see option servers",))


def _left(deadline: float | None, timeout: float) -> float:
    if deadline is None:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
