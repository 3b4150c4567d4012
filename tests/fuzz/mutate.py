"""Inputs out of chance: bytes and JSON documents that are changed where it hurts.

Everything comes from the generator that is handed in: the same seed makes the same input.
"""

import json
import random
import re
from collections.abc import Sequence

NUMBERS = (
    -(2**63) - 1, -(2**63), -(2**31), -1, 0, 1, 2, 127, 255, 256, 65535, 65536, 2**31 - 1, 2**31,
    2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**19, 10**30,
)  # fmt: skip
EDGES = (b"\x00", b"\xff", b"\x7f", b"\x80", b"\n", b"\r", b"\r\n", b" ", b"\t", b".", b"*", b">")
TEXTS = (
    "", " ", ".", "*", ">", "a.*", "a.>", "a..b",
    "\x00", "\ud800", "\udfff\ud800", "é", "\U0001f600",
    "$JS.API.>", "$SYS.>", "_INBOX.>", "a b", "a\tb", "\\", "/", "../..",
    "{{wildcard(1)}}", "$1",
    "-1", "1e400", "0x10", "nan", "true", "null", "1s", "9" * 30, "A" * 300, "a." * 300 + "b",
    "*." * 300 + ">", "2026-11-22T10:00:00Z", "2026-13-45T99:99:99Z", "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59.999999999+99:99", "explicit", "limits", "file", "S", "C", "s.a",
)  # fmt: skip
SHARES = (1.0, 0.3, 0.1)
LITERALS = ("NaN", "Infinity", "-Infinity", "1e999", "-0", "1.5", "00", "9" * 5000, "tru", "'x'")
DEPTH_MAX = 3000
_VALUE = re.compile(rb'(?<=:) *(?:"[^"\\]*"|-?[0-9.]+|true|false|null)')


def mutated(rng: random.Random, data: bytes, words: Sequence[bytes], size_max: int = 4096) -> bytes:
    """A few changes to `data`; `words` are pieces that mean something there."""
    out = bytearray(data)
    for _ in range(1 + int(rng.expovariate(0.5))):
        _change(rng, out, words)
    return bytes(out[:size_max])


def _change(rng: random.Random, out: bytearray, words: Sequence[bytes]) -> None:
    size = len(out)
    at = int(rng.random() * (size + 1))
    end = min(size, at + 1 + int(rng.expovariate(0.2)))
    choice = int(rng.random() * 9)
    if choice == 0 and at < size:
        out[at] ^= 1 << int(rng.random() * 8)
    elif choice == 1:
        del out[at:end]
    elif choice == 2:
        out[at:at] = out[at:end] * (1 + int(rng.expovariate(0.3)))
    elif choice == 3:
        out[at:at] = EDGES[int(rng.random() * len(EDGES))]
    elif choice == 4 and words:
        out[at:at] = words[int(rng.random() * len(words))]
    elif choice == 5:
        out[at:end] = str(NUMBERS[int(rng.random() * len(NUMBERS))]).encode()
    elif choice == 6:
        out[at:end] = rng.randbytes(end - at)
    elif choice == 7:
        width = (1, 2, 4, 8)[int(rng.random() * 4)]
        number = NUMBERS[int(rng.random() * len(NUMBERS))] % (1 << 8 * width)
        out[at : at + width] = number.to_bytes(width, "little")
    else:
        other = int(rng.random() * (size + 1))
        out[at:at] = out[other : other + 1 + int(rng.expovariate(0.05))]


def cuts(rng: random.Random, data: bytes) -> list[bytes]:
    """The same bytes in pieces, cut anywhere."""
    if not data:
        return [data]
    if len(data) < 200 and rng.random() < 0.2:
        return [data[at : at + 1] for at in range(len(data))]
    places = sorted({int(rng.random() * len(data)) for _ in range(1 + int(rng.expovariate(0.4)))})
    starts = [0, *places]
    return [data[a:b] for a, b in zip(starts, [*places, len(data)], strict=True)]


def value(rng: random.Random, depth: int = 0) -> object:
    """Any JSON value, mostly a wrong or extreme one."""
    choice = int(rng.random() * 10)
    if choice < 3:
        return rng.choice(NUMBERS)
    if choice < 6:
        return rng.choice(TEXTS)
    if choice < 8 or depth > 3:
        return rng.choice((None, True, False, 1.5, -0.0, 1e308))
    if choice == 8:
        return [value(rng, depth + 1) for _ in range(int(rng.random() * 4))]
    return {rng.choice(TEXTS): value(rng, depth + 1) for _ in range(int(rng.random() * 4))}


def document(rng: random.Random, known: dict[str, object]) -> bytes:
    """A JSON body like `known` with some of it wrong, now and then no JSON at all."""
    made = dict(known)
    # One wrong field of thirty is enough to be refused: some documents have fewer.
    share = rng.choice(SHARES)
    for key in list(made):
        roll = rng.random() / share
        if roll < 0.15:
            made[key] = value(rng)
        elif roll < 0.2:
            del made[key]
        elif roll < 0.35:
            made[key] = inside(rng, made[key])
    if rng.random() < 0.1:
        made[rng.choice(TEXTS)] = value(rng)
    return json.dumps(made).encode()


def inside(rng: random.Random, known: object) -> object:
    """A wrong value of the right kind: in an object or a list, something is wrong."""
    if isinstance(known, dict):
        return json.loads(document(rng, known))
    if isinstance(known, list):
        items = [inside(rng, item) if rng.random() < 0.7 else item for item in known]
        return items * 2 if rng.random() < 0.2 else items
    if isinstance(known, str):
        return rng.choice(TEXTS)
    return rng.choice(NUMBERS) if isinstance(known, int) else known


def broken(rng: random.Random, body: bytes) -> bytes:
    """A body made wrong as JSON: depth, length, literals, raw bytes."""
    choice = int(rng.random() * 6)
    if choice == 0:
        depth = rng.choice((50, 500, 998, 1500, DEPTH_MAX))
        return rng.choice((b"[" * depth, b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1"))
    if choice == 1:
        return _with_literal(rng, body)
    if choice == 2:
        return body.replace(b'"', b'"\\ud800', 1)
    if choice == 3:
        return body[: int(rng.random() * len(body))]
    if choice == 4:
        return body.replace(b"}", b',"%s":%s}' % (b"k" * 50, b"[]"), 1)
    return mutated(rng, body, (b'"', b"{", b"}", b"[", b"]", b":", b",", b"null", b"\\u0000"))


def _with_literal(rng: random.Random, body: bytes) -> bytes:
    """A value becomes what is no JSON, or nearly none."""
    places = [found.span() for found in _VALUE.finditer(body)]
    if not places:
        return rng.choice(LITERALS).encode()
    start, end = rng.choice(places)
    return body[:start] + rng.choice(LITERALS).encode() + body[end:]
