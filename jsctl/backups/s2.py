"""S2 streams: blocks with checksums, compressed as Snappy or in S2's larger language.

Blocks that are plain Snappy are opened by a library; those that repeat offsets, which Snappy does
not know, here. What is written is plain Snappy, which every reader of S2 takes.

Checksums are CRC-32C. The library computes those of its own parts and shows them in what it
writes; they are put together as the parts are (the operators are those of zlib's `crc32_combine`).
"""

from collections.abc import Generator, Iterator
from functools import cache
from io import SEEK_END
from typing import BinaryIO

import cramjam

from jsctl.errors import JsctlError

IDENTIFIERS = (b"S2sTwO", b"sNaPpY")
IDENTIFIER, COMPRESSED, PLAIN, PADDING, SKIPPABLE = 0xFF, 0x00, 0x01, 0xFE, 0x80
BLOCK_BYTES_MAX = 4 * 1024 * 1024
"""What S2 allows."""
BODY_BYTES_MAX = 4 + 32 + BLOCK_BYTES_MAX + BLOCK_BYTES_MAX // 6
"""The longest that a block can come to be by compressing it."""
HEAD_BYTES = 4
OPERATIONS_PER_STEP = 2048
NO_STREAM = "the archive is no S2 stream"
TOO_LARGE = "a block of the archive is too large"
DAMAGED = "a block of the archive is damaged"
OTHER_LENGTH = "a block of the archive has another length than it says"
PART_BYTES = 64 * 1024
"""The library's own blocks."""
BUFFER_BYTES = 1 << 20
"""So much waits before a block is written."""
_IDENTIFIER_CHUNK = b"\xff\x06\x00\x00S2sTwO"
_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_WORD = 0xFFFFFFFF


class BrokenStream(JsctlError):
    """Bytes that are no S2 stream, or not any more."""


def blocks(file: BinaryIO) -> Iterator[bytes]:
    """What a stream holds, block by block. Raises BrokenStream."""
    while head := file.read(HEAD_BYTES):
        if len(head) < HEAD_BYTES:
            raise BrokenStream("the archive is cut off within a block's head")
        kind, length = head[0], int.from_bytes(head[1:], "little")
        body = file.read(length)
        if len(body) < length:
            raise BrokenStream("the archive is cut off within a block")
        if _has_data(kind, body):
            yield _checked(kind, body)


def last_block(file: BinaryIO) -> bytes:
    """What the last block of a stream holds; all others are passed over. Raises BrokenStream for a
    stream that is cut off, or has none."""
    size, at, place = file.seek(0, SEEK_END), 0, -1
    while at < size:
        file.seek(at)
        head = file.read(HEAD_BYTES)
        if head[0] in (COMPRESSED, PLAIN):
            place = at
        at += HEAD_BYTES + int.from_bytes(head[1:], "little")
    if at > size or place < 0:
        raise BrokenStream("the archive is cut off within a block")
    file.seek(place)
    return next(blocks(file))


def _has_data(kind: int, body: bytes) -> bool:
    if kind == IDENTIFIER:
        if body not in IDENTIFIERS:
            raise BrokenStream(NO_STREAM)
    elif kind in (COMPRESSED, PLAIN):
        return True
    elif kind != PADDING and kind < SKIPPABLE:
        raise BrokenStream(f"a block of the archive is of the unknown kind {kind}")
    return False


class BlockDecoder:
    """Bytes of a stream in, as they come; what its blocks hold out, a little work at a time.

    Holds no more than one block beside what it was fed last, whatever lengths a stream names.
    """

    def __init__(self) -> None:
        self._raw = bytearray()
        self._skip = 0
        """Bytes of a block without data that are still to come."""
        self._begun = False
        self._opening: Generator[None, None, bytes] | None = None

    def feed(self, data: bytes) -> None:
        """Take the bytes that follow."""
        self._raw += data

    def step(self) -> bytes | None:
        """What the next block holds; nothing while more work is needed for that. None: more bytes
        are needed first. Raises BrokenStream."""
        if self._opening is not None:
            try:
                next(self._opening)
            except StopIteration as ended:
                self._opening = None
                found: bytes = ended.value
                return found
            return b""
        while (body := self._next_block()) is not None:
            kind, content = body
            if _has_data(kind, content):
                self._opening = _checking(kind, content)
                return b""
            self._begun = True
        return None

    def finish(self) -> None:
        """Nothing follows. Raises BrokenStream within a block."""
        if self._raw or self._skip or not self._begun:
            raise BrokenStream("the archive is cut off within a block" if self._raw else NO_STREAM)

    def _next_block(self) -> tuple[int, bytes] | None:
        raw = self._raw
        if self._skip:
            skipped = min(self._skip, len(raw))
            del raw[:skipped]
            self._skip -= skipped
        if len(raw) < HEAD_BYTES:
            return None
        kind, length = raw[0], int.from_bytes(raw[1:HEAD_BYTES], "little")
        if not self._begun and kind != IDENTIFIER:
            raise BrokenStream(NO_STREAM)
        if kind == PADDING or SKIPPABLE <= kind < PADDING:
            del raw[:HEAD_BYTES]
            self._skip = length
            return PADDING, b""
        if length > BODY_BYTES_MAX:
            raise BrokenStream(TOO_LARGE)
        if len(raw) < HEAD_BYTES + length:
            return None
        body = bytes(raw[HEAD_BYTES : HEAD_BYTES + length])
        del raw[: HEAD_BYTES + length]
        return kind, body


def _checked(kind: int, body: bytes) -> bytes:
    return _whole(_checking(kind, body))


def _whole(steps: Generator[None, None, bytes]) -> bytes:
    """The result of work that may be done in steps."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            found: bytes = ended.value
            return found


def _checking(kind: int, body: bytes) -> Generator[None, None, bytes]:
    """The data of a block, in steps. Raises BrokenStream."""
    if len(body) < 4:
        raise BrokenStream("a block of the archive has no checksum")
    data = body[4:] if kind == PLAIN else (yield from _opening(body[4:]))
    if len(data) > BLOCK_BYTES_MAX:
        raise BrokenStream(TOO_LARGE)
    if masked(crc32c(data)) != int.from_bytes(body[:4], "little"):
        raise BrokenStream("a block of the archive is damaged: its checksum is another one")
    return data


class Packed:
    """Bytes on their way into a file, compressed block by block."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._compressor = cramjam.snappy.Compressor()
        self._pending = 0

    def write(self, data: bytes) -> None:
        """More of it; a block leaves when it is full."""
        self._pending += self._compressor.compress(data)
        if self._pending >= BUFFER_BYTES:
            self._out.write(bytes(self._compressor.flush()))
            self._pending = 0

    def end(self) -> None:
        """What is left."""
        self._out.write(bytes(self._compressor.finish()))


def plain_chunk(data: bytes) -> bytes:
    """A stream of one block that is not compressed, so that its length follows from the data's."""
    checksum = masked(crc32c(data)).to_bytes(4, "little")
    length = (len(data) + 4).to_bytes(3, "little")
    return _IDENTIFIER_CHUNK + bytes((PLAIN,)) + length + checksum + data


def compressed(data: bytes) -> bytes:
    """Data as a stream of its own. Streams may follow each other: readers take them as one."""
    return bytes(cramjam.snappy.compress(data))


def _opening(block: bytes) -> Generator[None, None, bytes]:
    size, start = _varint(block)
    if size > BLOCK_BYTES_MAX:
        raise BrokenStream(TOO_LARGE)
    try:
        found = bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError:
        found = yield from _opening_s2(block, start, size)
    if len(found) != size:
        raise BrokenStream(OTHER_LENGTH)
    return found


def _varint(data: bytes) -> tuple[int, int]:
    value = 0
    for at, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << 7 * at
        if not byte & 0x80:
            return value, at + 1
    raise BrokenStream("a block of the archive has no length")


def _opening_s2(block: bytes, at: int, size: int) -> Generator[None, None, bytes]:
    out, offset, left = bytearray(), 0, OPERATIONS_PER_STEP
    while at < len(block):
        left -= 1
        if not left:
            yield
            left = OPERATIONS_PER_STEP
        if block[at] & 3 == 0:
            length, at = _literal(block, at)
            if at + length > len(block):
                raise BrokenStream(DAMAGED)
            out += block[at : at + length]
            at += length
        else:
            length, offset, at = _copy(block, at, offset)
            if len(out) + length > size:
                raise BrokenStream(OTHER_LENGTH)
            _repeat(out, offset, length)
        if len(out) > size:
            raise BrokenStream(OTHER_LENGTH)
    return bytes(out)


def _literal(block: bytes, at: int) -> tuple[int, int]:
    """How many bytes stand for themselves, and where."""
    length = block[at] >> 2
    if length < 60:
        return length + 1, at + 1
    count = length - 59
    return int.from_bytes(block[at + 1 : at + 1 + count], "little") + 1, at + 1 + count


def _copy(block: bytes, at: int, last: int) -> tuple[int, int, int]:
    """How many bytes are repeated from how far back, and what follows."""
    tag = block[at]
    if tag & 3 == 1:
        if at + 2 > len(block):
            raise BrokenStream(DAMAGED)
        length, offset = tag >> 2 & 7, (tag & 0xE0) << 3 | block[at + 1]
        if offset:
            return length + 4, offset, at + 2
        count, base = {5: (1, 4), 6: (2, 1 << 8), 7: (3, 1 << 16)}.get(length, (0, length))
        more = int.from_bytes(block[at + 2 : at + 2 + count], "little")
        return more + base + 4, last, at + 2 + count
    count = 2 if tag & 3 == 2 else 4
    offset = int.from_bytes(block[at + 1 : at + 1 + count], "little")
    return (tag >> 2) + 1, offset, at + 1 + count


def _repeat(out: bytearray, offset: int, length: int) -> None:
    if not 0 < offset <= len(out):
        raise BrokenStream(DAMAGED)
    start = len(out) - offset
    if length <= offset:
        out += out[start : start + length]
        return
    pattern = bytes(out[start:])
    out += (pattern * (length // offset + 1))[:length]


def masked(checksum: int) -> int:
    """As it stands in a stream."""
    return ((checksum >> 15 | checksum << 17) + _MASK_DELTA) & _WORD


def crc32c(data: bytes) -> int:
    """The CRC-32C of some bytes."""
    found, frames, at, left = 0, memoryview(bytes(cramjam.snappy.compress(data))), 10, len(data)
    while left > 0:
        length = int.from_bytes(frames[at + 1 : at + 4], "little")
        stored = int.from_bytes(frames[at + 4 : at + 8], "little")
        turned = (stored - _MASK_DELTA) & _WORD
        part = (turned >> 17 | turned << 15) & _WORD
        size = min(left, PART_BYTES)
        found = part if left == len(data) else _combined(found, part, size)
        at, left = at + 4 + length, left - size
    return found


def _combined(first: int, second: int, second_bytes: int) -> int:
    """The checksum of two parts in a row."""
    return _applied(_shift(second_bytes), first) ^ second


@cache
def _shift(count: int) -> tuple[int, ...]:
    """The operator that appends so many zero bytes, as 32 columns of bits."""
    operator = (_POLYNOMIAL, *(1 << bit for bit in range(31)))  # one zero bit
    for _ in range(3):
        operator = _squared(operator)
    found = tuple(1 << bit for bit in range(32))
    while count:
        if count & 1:
            found = tuple(_applied(operator, column) for column in found)
        operator = _squared(operator)
        count >>= 1
    return found


def _squared(operator: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(_applied(operator, column) for column in operator)


def _applied(operator: tuple[int, ...], value: int) -> int:
    found = 0
    for column in operator:
        if value & 1:
            found ^= column
        value >>= 1
    return found
