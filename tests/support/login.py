"""One client that logs in by hand: what it says in CONNECT, and what the server makes of it."""

import base64
import contextlib
import json
import socket
import ssl
from typing import Any

import nkeys  # type: ignore[import-untyped] # has no types


class Seed:
    """An nkey of a user, made from one byte so that it is the same in every run."""

    def __init__(self, byte: int) -> None:
        seed = nkeys.encode_seed(bytes([byte]) * 32, nkeys.PREFIX_BYTE_USER)
        self.text: str = seed.decode()
        self._pair = nkeys.from_seed(bytearray(seed))
        self.public: str = self._pair.public_key.decode()

    def sign(self, challenge: str, *, standard: bool = False) -> str:
        """The signature in base64: of URLs without padding, or the standard form."""
        raw: bytes = self._pair.sign(challenge.encode())
        if standard:
            return base64.b64encode(raw).decode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class Caller:
    """A connection that has read INFO. Use it as a context manager."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._file = self._socket.makefile("rb")
        self.info: dict[str, Any] = json.loads(self._file.readline()[len("INFO ") :])

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def secure(self, context: ssl.SSLContext) -> bytes:
        """Shake hands, as after INFO; the server's certificate. Raises OSError when refused."""
        self._socket.settimeout(30)
        self._socket = context.wrap_socket(self._socket, server_hostname="localhost")
        self._file = self._socket.makefile("rb")
        shown = self._socket.getpeercert(binary_form=True)
        assert shown is not None
        return shown

    @property
    def challenge(self) -> str:
        """What an nkey has to sign; empty if the server asks for none."""
        return str(self.info.get("nonce", ""))

    def login(self, said: dict[str, object] | str) -> bool:
        """Say CONNECT, and whether a PING is answered; `refusal` has the error otherwise."""
        if isinstance(said, dict):
            said = json.dumps({"verbose": False, "pedantic": False, "headers": True, **said})
        self._socket.sendall(f"CONNECT {said}\r\nPING\r\n".encode())
        self.refusal = ""
        while True:
            line = self.line()
            if not line:
                return False
            if line.startswith("-ERR"):
                self.refusal = line.removeprefix("-ERR ").strip("'")
            if line == "PONG":
                return True

    def line(self) -> str:
        """The next line; empty when the server has hung up."""
        try:
            return self._file.readline().decode().rstrip()
        except ConnectionResetError:
            return ""

    def send(self, lines: bytes) -> None:
        """Say something; a server that has hung up does not hear it."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(lines)

    def ask(self, lines: bytes) -> list[str]:
        """What comes up to the answer of a PING behind some lines."""
        self._socket.sendall(lines + b"PING\r\n")
        heard: list[str] = []
        while (line := self.line()) != "PONG":
            assert line or len(heard) < 1000, heard
            heard.append(line)
        return heard

    def request(self, subject: str, payload: bytes = b"") -> tuple[str, bytes]:
        """(first line of an answer's headers, payload); the payload is empty without any."""
        return self._request(f"PUB {subject}", str(len(payload)), payload)

    def request_with(self, subject: str, headers: bytes, payload: bytes = b"") -> tuple[str, bytes]:
        """The same with headers."""
        sizes = f"{len(headers)} {len(headers) + len(payload)}"
        return self._request(f"HPUB {subject}", sizes, headers + payload)

    def _request(self, said: str, sizes: str, body: bytes) -> tuple[str, bytes]:
        inbox = f"_INBOX.{self._socket.getsockname()[1]}"
        lines = f"SUB {inbox} 77\r\nUNSUB 77 1\r\n{said} {inbox} {sizes}\r\n"
        self._socket.sendall(lines.encode() + body + b"\r\n")
        while True:
            words = self.line().split(" ")
            assert words != [""], "the server hung up"
            if words[0] in ("MSG", "HMSG"):
                break
        body = self._file.read(int(words[-1]) + 2)[:-2]
        size = int(words[-2]) if words[0] == "HMSG" else 0
        return body[:size].decode().partition("\r\n")[0], body[size:]
