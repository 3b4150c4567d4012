"""What users send: sizes, subjects, headers and ids that change with every message.

Drawn from a seed, so that both servers get the same bytes. Payloads are lowercase letters: no
line of the protocol is among them.
"""

import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice

from benchmarks.wire import SEND_BYTES

SEED = 7
SUBJECTS = 1_000
SIZE_MIN, SIZE_MAX = 50, 500
LETTERS = string.ascii_lowercase.encode()
NAMES = (b"Trace-Id", b"Content-Type", b"Tenant", b"Nats-Expected-Stream-Of-Caller")
POOL = 20_000
"""Different messages; longer runs repeat them."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `headers` is the whole block, empty when there is none."""

    subject: bytes
    headers: bytes
    payload: bytes

    def published(self, reply: bytes = b"") -> bytes:
        """As a client sends it."""
        return self._framed(b"PUB", b"HPUB", b" " + reply if reply else b"")

    def delivered(self, sid: bytes) -> bytes:
        """As a subscriber gets it."""
        return self._framed(b"MSG", b"HMSG", b" " + sid)

    def _framed(self, plain: bytes, with_headers: bytes, rest: bytes) -> bytes:
        head, size = len(self.headers), len(self.headers) + len(self.payload)
        if head:
            line = b"%s %s%s %d %d" % (with_headers, self.subject, rest, head, size)
        else:
            line = b"%s %s%s %d" % (plain, self.subject, rest, size)
        return b"%s\r\n%s%s\r\n" % (line, self.headers, self.payload)


def mixed(prefix: str, count: int, *, headers: bool = False, ids: str = "") -> list[Message]:
    """`count` messages below `prefix`; with `ids`, each has a message id of its own."""
    chance = random.Random(f"{SEED} {prefix} {headers}")
    letters = bytes(chance.choices(LETTERS, k=1 << 16))
    subjects = [f"{prefix}.{n % 10}.{n}".encode() for n in range(SUBJECTS)]
    made = []
    for number in range(count):
        lines = []
        if ids:
            lines.append(b"Nats-Msg-Id: %s-%d" % (ids.encode(), number))
        if headers:
            some = chance.sample(NAMES, chance.randint(1, len(NAMES)))
            lines += [b"%s: %s" % (name, _cut(chance, letters, 4, 40)) for name in some]
        block = b"NATS/1.0\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" if lines else b""
        payload = _cut(chance, letters, SIZE_MIN, SIZE_MAX)
        made.append(Message(chance.choice(subjects), block, payload))
    return made


def _cut(chance: random.Random, letters: bytes, smallest: int, largest: int) -> bytes:
    size = chance.randint(smallest, largest)
    at = chance.randrange(len(letters) - size)
    return letters[at : at + size]


def repeated(pool: list[Message], count: int) -> Iterator[Message]:
    """`count` messages, the pool again and again."""
    return islice(cycle(pool), count)


def buffers(messages: Iterator[Message]) -> Iterator[bytes]:
    """What a client sends, in buffers of about SEND_BYTES."""
    some, size = [], 0
    for message in messages:
        data = message.published()
        some.append(data)
        size += len(data)
        if size >= SEND_BYTES:
            yield b"".join(some)
            some, size = [], 0
    if some:
        yield b"".join(some)
