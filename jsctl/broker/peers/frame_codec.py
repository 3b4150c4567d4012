"""Fields of peer frames <-> bytes. Little endian, every length checked.

    text, small bytes   u16 length + bytes (text is UTF-8)
    large bytes         u32 length + bytes
    list                u32 count + items
    numbers             u8, u64, i64

`FrameReader` raises ProtocolError for whatever does not fit, and never anything else.
"""

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from jsctl.broker.errors import ProtocolError
from jsctl.broker.pieces import Piece, total

T = TypeVar("T")

_U8 = struct.Struct("<B")
_U16 = struct.Struct("<H")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_I64 = struct.Struct("<q")
LISTED_MAX = 1 << 20
"""Items of one list; more is no list of ours."""


class FrameWriter:
    """Collects fields as `parts`, to be joined or written one behind the other."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[Piece] = []

    def u8(self, value: int) -> None:
        """A small number or an enum's value."""
        self.parts.append(_U8.pack(value))

    def flag(self, value: bool) -> None:
        """A truth value."""
        self.parts.append(b"\x01" if value else b"\x00")

    def u64(self, value: int) -> None:
        """An unsigned number."""
        self.parts.append(_U64.pack(value))

    def i64(self, value: int) -> None:
        """A signed number."""
        self.parts.append(_I64.pack(value))

    def small(self, value: bytes) -> None:
        """Up to 64 KiB: subjects, group keys."""
        self.parts.append(_U16.pack(len(value)))
        self.parts.append(value)

    def text(self, value: str) -> None:
        """Up to 64 KiB of UTF-8."""
        self.small(value.encode())

    def large(self, value: bytes) -> None:
        """Payloads."""
        self.parts.append(_U32.pack(len(value)))
        self.parts.append(value)

    def each(self, values: Sequence[T], write: Callable[[T], None]) -> None:
        """A list."""
        assert len(values) <= LISTED_MAX
        self.parts.append(_U32.pack(len(values)))
        for value in values:
            write(value)

    def pieces(self, value: Sequence[Piece]) -> None:
        """As `large`, for a payload in pieces."""
        self.parts.append(_U32.pack(total(value)))
        self.parts += value


class FrameReader:
    """Reads fields in the order in which they were written."""

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: bytes, start: int, end: int) -> None:
        assert 0 <= start <= end <= len(data)
        self._data = data
        self._at = start
        self._end = end

    @property
    def left(self) -> bool:
        """Whether there is more to read."""
        return self._at < self._end

    def u8(self) -> int:
        """A small number."""
        return self._take(1)[0]

    def flag(self) -> bool:
        """A truth value."""
        value = self.u8()
        if value > 1:
            raise ProtocolError("peer frame: a flag is neither 0 nor 1")
        return value == 1

    def u64(self) -> int:
        """An unsigned number."""
        value: int = _U64.unpack(self._take(8))[0]
        return value

    def i64(self) -> int:
        """A signed number."""
        value: int = _I64.unpack(self._take(8))[0]
        return value

    def small(self) -> bytes:
        """Short bytes."""
        length: int = _U16.unpack(self._take(2))[0]
        return self._take(length)

    def text(self) -> str:
        """Short text."""
        try:
            return self.small().decode()
        except UnicodeDecodeError as error:
            raise ProtocolError("peer frame: text is no UTF-8") from error

    def large(self) -> bytes:
        """A payload."""
        length: int = _U32.unpack(self._take(4))[0]
        return self._take(length)

    def view(self) -> memoryview:
        """A payload where it is."""
        length: int = _U32.unpack(self._take(4))[0]
        start = self._skip(length)
        return memoryview(self._data)[start : start + length]

    def each(self, read: Callable[[], T]) -> list[T]:
        """A list."""
        count: int = _U32.unpack(self._take(4))[0]
        if count > min(LISTED_MAX, self._end - self._at):
            raise ProtocolError("peer frame: a list is longer than its bytes")
        return [read() for _ in range(count)]

    def finish(self) -> None:
        """Nothing may be left."""
        if self._at != self._end:
            raise ProtocolError("peer frame: bytes left over")

    def _take(self, length: int) -> bytes:
        start = self._skip(length)
        return self._data[start : start + length]

    def _skip(self, length: int) -> int:
        start, end = self._at, self._at + length
        if end > self._end:
            raise ProtocolError("peer frame: cut short")
        self._at = end
        return start


def write_ranges(out: FrameWriter, ranges: Sequence[tuple[int, int]]) -> None:
    """(first, last) of each."""
    out.each([bound for one in ranges for bound in one], out.u64)


def read_ranges(data: FrameReader) -> list[tuple[int, int]]:
    """Inverse."""
    bounds = data.each(data.u64)
    found = list(zip(bounds[::2], bounds[1::2], strict=False))
    ascending = all(low < high for low, high in zip(bounds[1::2], bounds[2::2], strict=False))
    if len(bounds) % 2 or not ascending or any(first > last for first, last in found):
        raise ProtocolError("peer frame: ranges do not ascend")
    return found
