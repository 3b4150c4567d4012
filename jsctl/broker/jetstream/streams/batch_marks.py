"""How far a stream has come with each fast batch: part of its replicated state.

Who leads next, after a change of leader or a restart, goes on with a batch from there.

count u32 | per batch: id length u8, id, kind u8 (0 over, 1 no gaps, 2 gaps are taken)
            unless it is over: sequence u64, stored u64, time i64, flow u16, reply length u16, reply
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

_COUNT = struct.Struct("<I")
_MARK = struct.Struct("<QQqHH")
_OVER, _NO_GAPS, _GAPS = range(3)


class BatchMark(NamedTuple):
    """The last message of a batch that is stored."""

    seq: int
    """Its place in the batch."""
    stored: int
    """Its sequence in the stream."""
    time_ns: int
    flow: int
    """Its publisher wants to hear of each so many messages, or more often."""
    gap_ok: bool
    reply: bytes
    """Where the publisher is told of it."""


Marks = Mapping[bytes, BatchMark | None]
"""By the ids of batches; None: there is no such batch any more."""


def encode_marks(marks: Marks) -> bytes:
    """Marks by the ids of their batches, which have up to 255 bytes."""
    parts = [_COUNT.pack(len(marks))]
    for name, mark in marks.items():
        parts += (bytes((len(name),)), name)
        if mark is None:
            parts.append(bytes((_OVER,)))
            continue
        parts.append(bytes((_GAPS if mark.gap_ok else _NO_GAPS,)))
        parts.append(_MARK.pack(mark.seq, mark.stored, mark.time_ns, mark.flow, len(mark.reply)))
        parts.append(mark.reply)
    return b"".join(parts)


def decode_marks(data: bytes, at: int = 0) -> tuple[dict[bytes, BatchMark | None], int]:
    """Inverse of `encode_marks`, and where in the buffer they end."""
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    found: dict[bytes, BatchMark | None] = {}
    for _ in range(count):
        size = data[at]
        name, kind = data[at + 1 : at + 1 + size], data[at + 1 + size]
        at += 2 + size
        if kind == _OVER:
            found[name] = None
            continue
        seq, stored, time_ns, flow, length = _MARK.unpack_from(data, at)
        at += _MARK.size
        reply = data[at : at + length]
        found[name] = BatchMark(seq, stored, time_ns, flow, kind == _GAPS, reply)
        at += length
    return found, at
