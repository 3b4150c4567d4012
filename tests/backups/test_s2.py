"""S2 streams: what is written is read back, S2's own language is understood, damage is told."""

import io
import os

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.backups.s2 import (
    BLOCK_BYTES_MAX,
    BrokenStream,
    blocks,
    crc32c,
    masked,
    plain_chunk,
)


def naive_crc32c(data: bytes) -> int:
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def chunk(block: bytes, data: bytes, kind: int = 0) -> bytes:
    checksum = masked(crc32c(data)).to_bytes(4, "little")
    return bytes((kind,)) + (len(block) + 4).to_bytes(3, "little") + checksum + block


def read(stream: bytes) -> bytes:
    return b"".join(blocks(io.BytesIO(stream)))


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 140_000])
def test_the_checksum_is_crc32c(size: int) -> None:
    data = os.urandom(size)
    assert crc32c(data) == naive_crc32c(data)
    assert crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=3000), st.integers(1, 5))
def test_what_is_compressed_is_read_back(data: bytes, times: int) -> None:
    assert read(bytes(cramjam.snappy.compress(data * times))) == data * times
    assert read(plain_chunk(data)) == data
    assert read(plain_chunk(data) + bytes(cramjam.snappy.compress(data))) == data * 2


S2_BLOCKS = [
    # four letters, a copy of them from four back, the same offset again by S2's repeat
    (b"\x0c\x0cabcd\x01\x04\x01\x00", b"abcd" * 3),
    # a repeat whose length has a byte of its own: 5 + 4 + 4
    (b"\x15\x0cabcd\x01\x04\x15\x00\x05", b"abcd" * 5 + b"a"),
    # one letter repeated: the copy overlaps itself
    (b"\x0a\x00a\x15\x01", b"a" * 10),
    # an offset in two bytes
    (b"\x08\x0cabcd\x0e\x04\x00", b"abcdabcd"),
]


@pytest.mark.parametrize(("block", "data"), S2_BLOCKS)
def test_repeated_offsets_are_understood(block: bytes, data: bytes) -> None:
    assert read(chunk(block, data)) == data


@pytest.mark.parametrize(
    "block",
    [
        b"\x0c",
        b"\x0c\x0cab",
        b"\x08\x01\x00abcd",
        b"\x08\x0cabcd\x01\x09",
        b"\x02\x0cabcd",
        b"\xff\xff\xff\xff\x7f",
        b"\x08\x0cabcd\x01",
    ],
)
def test_broken_blocks_are_told(block: bytes) -> None:
    with pytest.raises(BrokenStream):
        read(chunk(block, b""))


def test_too_large_a_block_is_not_opened() -> None:
    data = bytes(BLOCK_BYTES_MAX + 1)
    with pytest.raises(BrokenStream, match="too large"):
        read(chunk(bytes(cramjam.snappy.compress_raw(data)), data))


def test_every_changed_byte_is_noticed() -> None:
    stream = bytearray(cramjam.snappy.compress(b"hello hello hello world"))
    for at in range(10, len(stream)):
        damaged = bytearray(stream)
        damaged[at] ^= 0x40
        with pytest.raises(BrokenStream):
            read(bytes(damaged))


def test_what_may_be_skipped_is_skipped() -> None:
    index = b"\x99\x03\x00\x00xyz"
    padding = b"\xfe\x02\x00\x00zz"
    stream = bytes(cramjam.snappy.compress(b"data"))
    assert read(stream + index + padding) == b"data"
    with pytest.raises(BrokenStream, match="unknown kind 5"):
        read(stream + b"\x05\x00\x00\x00")
