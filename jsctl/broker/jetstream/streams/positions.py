"""Up to where a stream has taken each of its sources: part of its replicated state.

count u32 | per source: key length u16, key, sequence u64, identity length u16, identity
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

_COUNT = struct.Struct("<I")
_TEXT = struct.Struct("<H")
_SEQ = struct.Struct("<Q")


class SourcePosition(NamedTuple):
    """The last sequence that was taken, and of which stream of that name: one that is deleted and
    made again has another identity. Empty where the origin does not tell."""

    seq: int
    identity: str


def encode_positions(positions: Mapping[str, SourcePosition]) -> bytes:
    """Positions by the index names of their sources."""
    parts = [_COUNT.pack(len(positions))]
    for key, (seq, identity) in positions.items():
        name, told = key.encode(), identity.encode()
        parts += (_TEXT.pack(len(name)), name, _SEQ.pack(seq), _TEXT.pack(len(told)), told)
    return b"".join(parts)


def decode_positions(data: bytes, at: int = 0) -> tuple[dict[str, SourcePosition], int]:
    """Inverse of `encode_positions`, and where in the buffer they end."""
    (count,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    found: dict[str, SourcePosition] = {}
    for _ in range(count):
        key, at = _text(data, at)
        (seq,) = _SEQ.unpack_from(data, at)
        identity, at = _text(data, at + _SEQ.size)
        found[key] = SourcePosition(seq, identity)
    return found, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = _TEXT.unpack_from(data, at)
    at += _TEXT.size
    return data[at : at + size].decode(), at + size
