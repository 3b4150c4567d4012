"""Entries of an archive in bytes: the numbers that each begins with, and messages.

Reading and writing many messages at once has a compiled twin, see `accel` of the broker.
"""

from collections.abc import Callable, Iterable
from functools import cache, lru_cache

from jsctl.backups.s2 import BrokenStream

VARINT_BYTES_MAX = 10
LENGTHS_KEPT = 4096
"""Lengths whose bytes are kept; messages of a stream have few."""
_WHOLE_BYTES_MIN = 64
"""More than the numbers of an entry take."""
_MORE_OF_EIGHT = int.from_bytes(b"\x80" * 8, "little")
_MORE_OF_ALL = _MORE_OF_EIGHT << 8 | 0x80
"""The bits that say that a number goes on, of nine bytes."""
_LOW_BITS = 14
_LOW = 1 << _LOW_BITS
_LOW_MASK = _LOW - 1
_TWO_LOW = _LOW << _LOW_BITS
INVALID = "archive: invalid archive stream"
Row = tuple[int, int, bytes, bytes, bytes]
"""A message: sequence, time in ns, subject, headers, payload."""
ReadMessages = Callable[[bytes, int, int, int, int], tuple[list[Row], int]]
"""`(data, begin, last sequence, longest headers and payload, how many)` -> those messages in a row
that `message_at` finds, and where they end."""
BODY_BYTES_MAX = 1 << 30
"""Of headers and payload of a message."""


def varint_at(data: bytes, at: int) -> tuple[int, int] | None:
    """A number of at most 64 bits and where it ends; None if it is not all there. Raises
    BrokenStream."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1  # Most are lengths, which are short.
    if at + 1 < len(data) and data[at + 1] < 0x80:
        return data[at] & 0x7F | data[at + 1] << 7, at + 2
    value = 0
    for count, byte in enumerate(data[at : at + VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80:
            if value >> 64:
                break
            return value, at + count + 1
    else:
        if len(data) - at < VARINT_BYTES_MAX:
            return None
    raise BrokenStream(INVALID)


def message_at(
    data: bytes, begin: int, last_seq: int, body_bytes_max: int
) -> tuple[Row, int] | None:
    """The message that begins there, and where it ends: if it is all there, of the form that nearly
    all have, and in order behind one with another sequence; else None."""
    if len(data) - begin < _WHOLE_BYTES_MIN or data[begin] >= 0x80:
        return None
    time_ns = _time_of(data[begin + 1 : begin + 10])
    if time_ns is None:
        return None
    numbers, at = [], begin + 10
    for _ in range(3):
        found = varint_at(data, at)
        if found is None:
            return None
        numbers.append(found[0])
        at = found[1]
    sequence, headers, payload = numbers
    body = at + data[begin]
    behind, end = body + headers, body + headers + payload
    if end > len(data) or sequence <= last_seq or end - body > body_bytes_max:
        return None
    return (sequence, time_ns, data[at:body], data[body:behind], data[behind:end]), end


def read_messages(
    data: bytes, begin: int, last_seq: int, body_bytes_max: int, most: int
) -> tuple[list[Row], int]:
    """So many messages at the most that lie one behind the other as `message_at` finds them, and
    where they end. What is wrong behind them is found by who reads on. Raises ValueError for a
    place that is not in the bytes."""
    if not (0 <= begin <= len(data) and 0 <= body_bytes_max <= BODY_BYTES_MAX):
        raise ValueError("no such range")
    rows: list[Row] = []
    while len(rows) < most:
        try:
            found = message_at(data, begin, last_seq, body_bytes_max)
        except BrokenStream:
            break
        if found is None:
            break
        row, begin = found
        rows.append(row)
        last_seq = row[0]
    return rows, begin


@lru_cache(maxsize=1)
def _time_of(nine: bytes) -> int | None:
    """A time of nine bytes, as those of this century have: seven bits of each. None for another
    number. Many messages have the same."""
    word = int.from_bytes(nine, "little")
    if word & _MORE_OF_ALL != _MORE_OF_EIGHT:
        return None
    return signed(
        word & 0x7F
        | word >> 1 & 0x7F << 7
        | word >> 2 & 0x7F << 14
        | word >> 3 & 0x7F << 21
        | word >> 4 & 0x7F << 28
        | word >> 5 & 0x7F << 35
        | word >> 6 & 0x7F << 42
        | word >> 7 & 0x7F << 49
        | word >> 8 & 0x7F << 56
    )


def signed(zigzag: int) -> int:
    """A number that may be below 0."""
    return zigzag >> 1 ^ -(zigzag & 1)


def entry_bytes(
    name: str | bytes, time_ns: int, sequence: int, headers: bytes, payload: bytes
) -> bytes:
    """An entry as it is written."""
    encoded = name.encode() if isinstance(name, str) else name
    numbers = (len(encoded), time_ns << 1 ^ time_ns >> 63, sequence, len(headers), len(payload))
    return b"".join((*map(_varint, numbers), encoded, headers, payload))


def entries_bytes(rows: Iterable[Row]) -> bytes:
    """Entries of messages in a row, as `entry_bytes` writes each: `(sequence, time in ns, subject,
    headers, payload)`. What the numbers of neighbours share in front is written once for all."""
    low, parts = _low_parts(), list[bytes]()
    known_time = known_seq = -1
    time_end = seq_end = b""
    for sequence, time_ns, subject, headers, payload in rows:
        zigzag = time_ns << 1 ^ time_ns >> 63
        if zigzag < _TWO_LOW:
            parts.append(entry_bytes(subject, time_ns, sequence, headers, payload))
            continue
        if zigzag >> 2 * _LOW_BITS != known_time:
            known_time = zigzag >> 2 * _LOW_BITS
            time_end = _varint(known_time)
        if sequence >> _LOW_BITS != known_seq:
            known_seq = sequence >> _LOW_BITS
            seq_end = _varint(known_seq)
        few = sequence < _LOW
        parts += (
            _length(len(subject)),
            low[zigzag & _LOW_MASK],
            low[zigzag >> _LOW_BITS & _LOW_MASK],
            time_end,
            _length(sequence) if few else low[sequence & _LOW_MASK],
            b"" if few else seq_end,
            _length(len(headers)),
            _length(len(payload)),
            subject,
            headers,
            payload,
        )
    return b"".join(parts)


@cache
def _low_parts() -> list[bytes]:
    """The first two bytes of a number that has more, by its last bits."""
    return [bytes((one & 0x7F | 0x80, one >> 7 | 0x80)) for one in range(_LOW)]


@lru_cache(maxsize=LENGTHS_KEPT)
def _length(value: int) -> bytes:
    return _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
