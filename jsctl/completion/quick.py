"""One request, one answer, over a plain socket: for what has to be there before the key is up.

The client library takes longer to load than a person waits for a completion. Everything here is
bounded: a deadline for all of it, and a largest answer. Nothing is printed or asked.
"""

import json
import os
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from jsctl.client.addresses import checked_url
from jsctl.errors import JsctlError, Unreachable
from jsctl.settings import Settings

if TYPE_CHECKING:
    from urllib.parse import SplitResult

DEFAULT_PORT = 4222
LINE_BYTES_MAX = 1024 * 1024
ANSWER_BYTES_MAX = 8 * 1024 * 1024
CHUNK_BYTES = 65536


class QuickClient:
    """A connection of its own to the first server that lets it in; `seconds` for everything."""

    def __init__(self, settings: Settings, seconds: float) -> None:
        self._settings = settings
        self._deadline = time.monotonic() + seconds
        self._buffer = b""
        self._socket = self._connected()

    def __enter__(self) -> "QuickClient":
        return self

    def __exit__(self, *_exc: object) -> None:
        self._socket.close()

    def request(self, subject: str, payload: bytes = b"") -> bytes:
        """The first answer's body. Raises Unreachable."""
        inbox = f"{self._settings.connection.inbox_prefix or '_INBOX'}.{os.urandom(11).hex()}"
        self._send(
            f"SUB {inbox} 1\r\nPUB {subject} {inbox} {len(payload)}\r\n".encode()
            + payload
            + b"\r\n"
        )
        while True:
            words = self._line().split()
            if words[:1] == [b"PING"]:
                self._send(b"PONG\r\n")
            elif words[:1] == [b"-ERR"]:
                raise Unreachable(b" ".join(words[1:]).decode("utf-8", "replace"))
            elif words[:1] == [b"MSG"]:
                return self._exactly(int(words[-1]))
            elif words[:1] == [b"HMSG"]:
                whole = self._exactly(int(words[-1]))
                head = whole[: int(words[-2])]
                if head.startswith(b"NATS/1.0 503"):
                    raise Unreachable("nobody answers")
                return whole[len(head) :]

    def _connected(self) -> socket.socket:
        problem: Exception = Unreachable("no server was named")
        for url in self._settings.urls:
            try:
                return self._enter(urlsplit(checked_url(url)))
            except (OSError, ValueError, JsctlError) as error:
                problem = error
        raise Unreachable(str(problem))

    def _enter(self, url: "SplitResult") -> socket.socket:
        from jsctl.client.login import login_of

        if url.scheme in ("ws", "wss") or self._settings.connection.socks_proxy:
            raise Unreachable("not over this way")
        login = login_of(self._settings.connection)
        address = url.hostname or "", url.port or DEFAULT_PORT
        self._buffer = b""
        self._socket = socket.create_connection(address, timeout=self._left())
        greeting = json.loads(self._line().partition(b" ")[2])
        if greeting.get("tls_required") or url.scheme == "tls" or self._settings.connection.ca:
            self._secure(address[0])
        fields = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "lang": "python",
            "version": "0",
            "name": "jsctl completion",
            "protocol": 1,
            **login(str(greeting.get("nonce", "")), url),  # type: ignore[arg-type] # same parts
        }
        self._send(b"CONNECT " + json.dumps(fields).encode() + b"\r\nPING\r\n")
        while True:
            line = self._line()
            if line.startswith(b"PONG"):
                return self._socket
            if line.startswith(b"-ERR"):
                raise Unreachable(line[5:].decode("utf-8", "replace"))

    def _secure(self, host: str) -> None:
        from jsctl.client.login import tls_of

        context = tls_of(self._settings.connection, [f"tls://{host}"])
        assert context is not None, "asked for by the scheme"
        self._socket = context.wrap_socket(self._socket, server_hostname=host)

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Unreachable("too late")
        return left

    def _send(self, data: bytes) -> None:
        self._socket.settimeout(self._left())
        self._socket.sendall(data)

    def _more(self) -> None:
        self._socket.settimeout(self._left())
        try:
            chunk = self._socket.recv(CHUNK_BYTES)
        except OSError as error:
            raise Unreachable(str(error)) from None
        if not chunk:
            raise Unreachable("the server closed the connection")
        self._buffer += chunk

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            if len(self._buffer) > LINE_BYTES_MAX:
                raise Unreachable("the server's line has no end")
            self._more()
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def _exactly(self, count: int) -> bytes:
        if count > ANSWER_BYTES_MAX:
            raise Unreachable("the answer is too large")
        while len(self._buffer) < count + 2:
            self._more()
        found, self._buffer = self._buffer[:count], self._buffer[count + 2 :]
        return found
