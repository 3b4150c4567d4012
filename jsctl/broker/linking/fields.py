"""INFO and CONNECT between servers: JSON fields of the right types, and lines made of them."""

import json
import re
from collections.abc import Mapping

from jsctl.api.jsontext import parse_object
from jsctl.api.strict import DecodeError
from jsctl.broker.errors import ProtocolError
from jsctl.broker.turn import Jitter

SERVER_PROTO = 3
"""Level of the protocol between servers spoken here: accounts and message tracing."""
TRACING_FROM = 3
"""Peers of this level trace messages."""
UNAUTHORIZED = ("Authorization Violation", "Authentication Failure")
"""What a stranger is told, and why his connection ends."""
PING = b"PING\r\n"
PONG = b"PONG\r\n"
NONCE_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
NONCE_LENGTH = 15
BLANKS = frozenset(" \t\r\n")
"""What ends a word of the protocol, or its line."""
INFO_BYTES_MAX = 1 << 20
"""An INFO or CONNECT of a server; it tells of the whole cluster's URLs."""
_PORT = re.compile(r"[0-9]{1,5}").fullmatch
"""The interpreter converts no number of thousands of digits."""


class Fields:
    """A peer's INFO or CONNECT. Each way to read a field raises ProtocolError for another type;
    what is not there is empty."""

    def __init__(self, body: bytes, word: str) -> None:
        """Raises ProtocolError when it is no JSON object."""
        self._word = word
        try:
            self.raw = parse_object(body, bytes_max=INFO_BYTES_MAX)
        except DecodeError as error:
            raise ProtocolError(f"Parser Error: {word} is no JSON object") from error

    def text(self, key: str) -> str:
        """A string."""
        value = self.raw.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ProtocolError(f"Parser Error: field '{key}' is no string")
        return value

    def number(self, key: str) -> int:
        """A whole number."""
        value = self.raw.get(key)
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool):
            raise ProtocolError(f"Parser Error: field '{key}' is no number")
        return value

    def flag(self, key: str) -> bool:
        """A boolean."""
        value = self.raw.get(key)
        if value is not None and not isinstance(value, bool):
            raise ProtocolError(f"Parser Error: field '{key}' is no boolean")
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """An array of strings."""
        value = self.raw.get(key) or []
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ProtocolError(f"Parser Error: {self._word} field '{key}'")
        return tuple(value)


def is_word(name: str) -> bool:
    """Whether a peer's name may stand in lines that others are told."""
    return BLANKS.isdisjoint(name)


def line(word: str, fields: Mapping[str, object]) -> bytes:
    """An INFO or CONNECT of this server."""
    return f"{word} {json.dumps(fields, separators=(',', ':'))} \r\n".encode()


def new_nonce(jitter: Jitter) -> str:
    """What the other side has to sign to show that it holds the seed of an nkey; on routes nobody
    does, peers only expect one."""
    return "".join(NONCE_LETTERS[jitter(len(NONCE_LETTERS))] for _ in range(NONCE_LENGTH))


def error_line(text: str) -> bytes:
    """A `-ERR` line."""
    return f"-ERR '{text}'\r\n".encode(errors="replace")


def split_url(url: str) -> tuple[str, int] | None:
    """Host and port of `nats-route://host:port/` or `host:port`; None when it is something else."""
    rest = url.partition("://")[2] or url
    authority = rest.partition("/")[0].rpartition("@")[2]
    host, _, port = authority.rpartition(":")
    host = host.strip("[]")
    if not host or _PORT(port) is None or not 0 < int(port) < 65536:
        return None
    return host, int(port)
