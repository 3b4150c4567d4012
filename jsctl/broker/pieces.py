"""Bytes in pieces: what is written, hashed or sent as a whole need not be one string before.

To join large parts costs a copy, and fresh memory for it; to pass on many small ones costs a call
for each. So small neighbours are joined, and large parts stay as they are.
"""

from collections.abc import Iterable, Sequence

Piece = bytes | memoryview
LARGE_BYTES = 4096
"""From this size on a call for a part is cheaper than a copy of it."""


def gathered(parts: Sequence[Piece]) -> list[Piece]:
    """The same bytes in as few pieces as need no copy of a large part; at least one piece."""
    if not parts or max(map(len, parts)) < LARGE_BYTES:
        return [b"".join(parts)]
    pieces: list[Piece] = []
    small: list[Piece] = []
    for part in parts:
        if len(part) < LARGE_BYTES:
            small.append(part)
            continue
        if small:
            pieces.append(b"".join(small))
            small = []
        pieces.append(part)
    if small:
        pieces.append(b"".join(small))
    return pieces


def total(pieces: Iterable[Piece]) -> int:
    """How many bytes they are together."""
    return sum(map(len, pieces))
