"""The real nats-server in a process of its own, and a plain socket to ask it."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from sys import executable
from typing import Any

from tests.support.ports import free_port
from tests.support.waiting import wait_for

BINARY = Path(executable).parent / "nats-server"


class RealServer:
    """One connection to it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._file = self._socket.makefile("rb")
        self._file.readline()
        self._count = 0
        options = {"verbose": False, "headers": True, "no_responders": True, "lang": "test"}
        self._socket.sendall(f"CONNECT {json.dumps(options)}\r\nSUB _IN.> 1\r\n".encode())

    def request(
        self, subject: str, payload: bytes = b"", headers: bytes = b""
    ) -> list[tuple[bytes, bytes]]:
        """(headers, payload) of the answers that come before a ping's answer or in a moment."""
        self._count += 1
        inbox = f"_IN.{self._count}"
        if headers:
            sizes = f"{len(headers)} {len(headers) + len(payload)}"
            line = f"HPUB {subject} {inbox} {sizes}\r\n".encode() + headers
        else:
            line = f"PUB {subject} {inbox} {len(payload)}\r\n".encode()
        self._socket.sendall(line + payload + b"\r\n")
        return list(self._answers(inbox))

    def _answers(self, inbox: str) -> Iterator[tuple[bytes, bytes]]:
        """The first answer; for direct gets of many, all up to the end of the batch."""
        while True:
            words = self._file.readline().split()
            if not words:
                return
            if words[0] == b"PING":
                self._socket.sendall(b"PONG\r\n")
            if words[0] not in (b"MSG", b"HMSG"):
                continue
            size = int(words[-1])
            head = int(words[-2]) if words[0] == b"HMSG" else 0
            data = self._file.read(size + 2)[:-2]
            if words[1].decode() != inbox:
                continue
            yield data[:head], data[head:]
            if b"Nats-Num-Pending" not in data[:head] or b" 204 " in data[:head]:
                return

    def publish(
        self, subject: str, payload: bytes, headers: bytes, hear: str
    ) -> tuple[bytes, bytes]:
        """Publish, then wait for a message on a subject under `_IN.`; (headers, payload)."""
        sizes = f"{len(headers)} {len(headers) + len(payload)}"
        line = f"HPUB {subject} {sizes}\r\n".encode() + headers
        if not headers:
            line = f"PUB {subject} {len(payload)}\r\n".encode()
        self._socket.sendall(line + payload + b"\r\n")
        return next(self._answers(hear))

    def ask(self, subject: str, payload: bytes | dict[str, Any] = b"") -> Any:
        """The decoded answer of the JetStream API."""
        body = json.dumps(payload).encode() if isinstance(payload, dict) else payload
        (answer,) = self.request(f"$JS.API.{subject}", body)
        return json.loads(answer[1])

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@contextmanager
def real_server(directory: Path) -> Iterator[RealServer]:
    """A fresh server with JetStream."""
    port = free_port()
    log = directory / "log"
    command = [str(BINARY), "-js", "-sd", str(directory), "-p", str(port), "-l", str(log)]
    process = subprocess.Popen([*command, "-a", "127.0.0.1"])
    try:
        ready = "Server is ready"
        wait_for(lambda: log.exists() and ready in log.read_text(), "the real server runs")
        server = RealServer(port)
        yield server
        server.close()
    finally:
        process.terminate()
        process.wait(10)
