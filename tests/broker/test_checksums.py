"""CRC-32 of frames that share pieces, against zlib."""

import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.checksums import SHARED_BYTES, Checksums, behind_zeros

U32 = st.integers(0, 2**32 - 1)
POOL = [bytes([seed]) * size for seed, size in enumerate((0, 1, 9, SHARED_BYTES - 1))]
POOL += [
    (b"%d" % seed * (SHARED_BYTES + more))[: SHARED_BYTES + more]
    for seed, more in enumerate((0, 1, 77, SHARED_BYTES, 100_001), 10)
]


@given(U32, U32, st.binary(max_size=300))
def test_differences_behind_equal_bytes(one: int, other: int, data: bytes) -> None:
    found = behind_zeros(one ^ other, len(data))
    assert zlib.crc32(data, one) ^ zlib.crc32(data, other) == found


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(POOL) | st.binary(max_size=40), max_size=8), max_size=6))
def test_checksums_are_those_of_the_joined_bytes(frames: list[list[bytes]]) -> None:
    checksums = Checksums()
    for pieces in frames:
        assert checksums.of(pieces) == zlib.crc32(b"".join(pieces))


def test_pieces_that_were_let_go_are_not_taken_for_others() -> None:
    checksums = Checksums()
    for seed in range(50):
        piece = bytes([seed]) * SHARED_BYTES
        assert checksums.of([b"head", piece]) == zlib.crc32(b"head" + piece)


def test_a_shared_piece_that_changed_is_told_by_its_checksum() -> None:
    """As a derived checksum is that of the bytes as they were."""
    piece = bytearray(b"x" * SHARED_BYTES)
    checksums = Checksums()
    view = memoryview(piece)
    checksums.of([b"to one", view])
    piece[5] ^= 1
    assert checksums.of([b"to another", view]) != zlib.crc32(b"to another" + piece)
