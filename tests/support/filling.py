"""Fills streams fast and for sure: publishes with acknowledgements, on one plain socket."""

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.wire import Address, Wire
from jsctl.testing import HOST, Broker

WINDOW = 2_000
INBOX = "_INBOX.filling"
LIMITS = {
    "retention": "limits",
    "storage": "file",
    "discard": "old",
    "num_replicas": 1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
}

Row = tuple[str, Mapping[str, str | list[str]], bytes]
"""Subject, headers, payload."""


class Filler:
    """One connection that makes streams and publishes."""

    def __init__(self, broker: Broker | Address, timeout_s: float = 30.0) -> None:
        at = broker if isinstance(broker, Address) else Address(HOST, broker.port)
        self.wire = Wire(at, timeout_s)
        self._rest = b""

    def close(self) -> None:
        """Hang up."""
        self.wire.close()

    def __enter__(self) -> "Filler":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def api(self, name: str, body: object | None = None) -> dict[str, Any]:
        """A JetStream request; RuntimeError for an error answer."""
        return self.wire.api(name, body)

    def stream(self, name: str, *subjects: str, **config: object) -> None:
        """A new stream; by default everything below its name in lower case."""
        chosen = list(subjects) or [f"{name.lower()}.>"]
        self.api(f"STREAM.CREATE.{name}", {**LIMITS, "name": name, "subjects": chosen, **config})

    def state(self, name: str) -> dict[str, Any]:
        """What a stream holds."""
        found: dict[str, Any] = self.api(f"STREAM.INFO.{name}")["state"]
        return found

    def publish(self, rows: Iterable[Row]) -> int:
        """Publish in order; how many, all of them acknowledged. RuntimeError for a refusal."""
        self.wire.send(f"SUB {INBOX} 7\r\n".encode())
        self.wire.flush()
        self._rest = b""
        sent = acked = 0
        lines: list[bytes] = []
        for row in rows:
            lines.append(encoded(row))
            if len(lines) == WINDOW:
                sent += self._send(lines)
                acked = self._acked(sent - WINDOW, acked)
        sent += self._send(lines)
        self._acked(sent, acked)
        self.wire.send(b"UNSUB 7\r\n")
        self.wire.flush()
        return sent

    def _send(self, lines: list[bytes]) -> int:
        self.wire.send(b"".join(lines))
        count = len(lines)
        lines.clear()
        return count

    def _acked(self, wanted: int, acked: int) -> int:
        """Read acknowledgements until there are so many; what is split stays for the next time."""
        while acked < wanted:
            data = self._rest + self.wire.receive()
            end = data.rfind(b"}\r\n") + 3
            if b'"error"' in data:
                raise RuntimeError(data.decode(errors="replace")[:300])
            acked += data.count(b'"seq":', 0, end) if end > 2 else 0
            self._rest = data[max(end, 0) :] if end > 2 else data
        return acked


def encoded(row: Row) -> bytes:
    """PUB or HPUB with a reply subject."""
    subject, headers, payload = row
    if not headers:
        return b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), INBOX.encode(), len(payload), payload)
    lines = [
        f"{key}: {value}\r\n"
        for key, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    block = ("NATS/1.0\r\n" + "".join(lines) + "\r\n").encode()
    sizes = b"%d %d" % (len(block), len(block) + len(payload))
    return b"HPUB %s %s %s\r\n%s%s\r\n" % (subject.encode(), INBOX.encode(), sizes, block, payload)


def plain(
    count: int, subject: str, size: int = 200, first: int = 0, subjects: int = 100
) -> Iterable[Row]:
    """Numbered payloads on `subjects` subjects below one."""
    filler = b"x" * max(size - 10, 0)
    for number in range(first, first + count):
        yield f"{subject}.{number % subjects}", {}, b"%010d" % number + filler
