"""CRC-32 of large pieces in several places, without a pass over them for each place.

A record has a checksum, and so has the frame that it is in. A leader sends the same entries to all
followers, in frames that differ before and behind them. What a CRC becomes behind a piece is linear
in what it was before: from `crc32(piece, a)` follows `crc32(piece, b)`, as both differ by what
zeros of the piece's length make of `a ^ b`. To reckon that takes a few lookups for each bit of the
length, whatever the length.

What is derived is the checksum of the bytes as they were when they were passed over.
"""

from collections.abc import Iterable
from functools import cache
from zlib import crc32

from jsctl.broker.pieces import Piece

SHARED_BYTES = 16 * 1024
"""Shorter pieces are passed over again, which takes about as long as to derive."""
_ONES = 0xFFFF_FFFF

Tables = tuple[tuple[int, ...], ...]
"""For each byte of a CRC and each value of it: what becomes of it."""


class Checksums:
    """CRC-32 of frames that are made together; pieces are told apart by their identity."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[Piece, int, int]] = {}
        """Identity of a piece -> the piece, and the CRC before and behind it."""

    def of(self, pieces: Iterable[Piece]) -> int:
        """The CRC-32 of the pieces one behind the other."""
        crc = 0
        for piece in pieces:
            known = self._known.get(id(piece))
            if known is not None:
                _, before, after = known
                crc = after ^ behind_zeros(before ^ crc, len(piece))
                continue
            before, crc = crc, crc32(piece, crc)
            if len(piece) >= SHARED_BYTES:
                self._known[id(piece)] = (piece, before, crc)
        return crc


def behind(crc: int, checksum: int, length: int) -> int:
    """What `crc` becomes behind bytes with this checksum and length."""
    return checksum ^ behind_zeros(crc, length)


def behind_zeros(difference: int, count: int) -> int:
    """The difference that two CRCs have behind `count` equal bytes."""
    power = 0
    while count:
        if count & 1:
            difference = _pass(_tables(power), difference)
        count >>= 1
        power += 1
    return difference


def _pass(tables: Tables, crc: int) -> int:
    low, second, third, high = tables
    return low[crc & 255] ^ second[crc >> 8 & 255] ^ third[crc >> 16 & 255] ^ high[crc >> 24]


@cache
def _tables(power: int) -> Tables:
    """For 2^power bytes."""
    bits = [1 << bit for bit in range(32)]
    if power:
        half = _tables(power - 1)
        images = [_pass(half, _pass(half, bit)) for bit in bits]
    else:
        images = [crc32(b"\0", bit ^ _ONES) ^ _ONES for bit in bits]
    return tuple([_spread(images[first : first + 8]) for first in range(0, 32, 8)])


def _spread(images: list[int]) -> tuple[int, ...]:
    """For each value of a byte, given what becomes of each of its bits."""
    table = [0]
    for image in images:
        table += [image ^ one for one in table]
    return tuple(table)
