"""A compact set of sequences: sorted, disjoint, non-adjacent ranges.

Two arrays of 64-bit numbers hold it, so that a million consecutive numbers cost 16 bytes and the
worst case 16 bytes a member. Adding behind the last range is constant time.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, islice
from operator import sub

from jsctl.broker.errors import Damaged

_HEADER = struct.Struct("<BBI")
_FORMAT = 1
_WIDTHS = (("B", 1), ("H", 2), ("I", 4), ("Q", 8))


class SeqSet:
    """Set of ints in [0, 2**64). `len()` is the number of members."""

    __slots__ = ("_count", "_ends", "_starts")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._starts = array("Q")
        self._ends = array("Q")
        self._count = 0
        for first, last in ranges:
            self.add_range(first, last)

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, seq: int) -> bool:
        at = bisect_right(self._starts, seq) - 1
        return at >= 0 and seq <= self._ends[at]

    def __iter__(self) -> Iterator[int]:
        for first, last in zip(self._starts, self._ends, strict=True):
            yield from range(first, last + 1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SeqSet):
            return NotImplemented
        return self._starts == other._starts and self._ends == other._ends

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"SeqSet({list(self.ranges())!r})"

    def copy(self) -> "SeqSet":
        """An independent set with the same members."""
        other = SeqSet()
        other._starts = self._starts[:]
        other._ends = self._ends[:]
        other._count = self._count
        return other

    def ranges(self) -> Iterator[tuple[int, int]]:
        """`(first, last)` of each range, both included, ascending."""
        return zip(self._starts, self._ends, strict=True)

    @property
    def range_count(self) -> int:
        """Number of ranges, which is what memory and encoding depend on."""
        return len(self._starts)

    @property
    def first(self) -> int:
        """Smallest member, or 0."""
        return self._starts[0] if self._count else 0

    @property
    def last(self) -> int:
        """Greatest member, or 0."""
        return self._ends[-1] if self._count else 0

    def add(self, seq: int) -> bool:
        """Add one number; whether it was new."""
        ends = self._ends
        if not ends or seq > ends[-1]:
            if ends and seq == ends[-1] + 1:
                ends[-1] = seq
            else:
                self._starts.append(seq)
                ends.append(seq)
            self._count += 1
            return True
        return self._add_inside(seq)

    def _add_inside(self, seq: int) -> bool:
        starts, ends = self._starts, self._ends
        at = bisect_right(starts, seq) - 1
        if at >= 0 and seq <= ends[at]:
            return False
        self._count += 1
        joins_left = at >= 0 and ends[at] + 1 == seq
        joins_right = at + 1 < len(starts) and starts[at + 1] == seq + 1
        if joins_left and joins_right:
            ends[at] = ends[at + 1]
            del starts[at + 1], ends[at + 1]
        elif joins_left:
            ends[at] = seq
        elif joins_right:
            starts[at + 1] = seq
        else:
            starts.insert(at + 1, seq)
            ends.insert(at + 1, seq)
        return True

    def add_range(self, first: int, last: int) -> int:
        """Add [first, last]; how many were new. An empty range (last < first) adds nothing."""
        if last < first:
            return 0
        starts, ends = self._starts, self._ends
        low = bisect_left(ends, first - 1) if first else 0
        high = bisect_right(starts, last + 1)
        before = self._span(low, high)
        if low < high:
            first = min(first, starts[low])
            last = max(last, ends[high - 1])
        starts[low:high] = array("Q", (first,))
        ends[low:high] = array("Q", (last,))
        grown = last - first + 1 - before
        self._count += grown
        return grown

    def add_many(self, seqs: Sequence[int]) -> None:
        """Add ascending numbers: what lies between the first and the last is gone through once."""
        if not seqs:
            return
        starts, ends = self._starts, self._ends
        low = bisect_left(ends, seqs[0] - 1) if seqs[0] else 0
        high = bisect_right(starts, seqs[-1] + 1)
        # Sorted apart, the starts and ends of all ranges show the gaps of their union: behind the
        # n-th end there is one where the n-th start from there on is not next to it.
        made_starts, made_ends = _gaps_out(seqs, seqs)
        if low < high:
            made_starts = sorted([*starts[low:high], *made_starts])
            made_ends = sorted([*ends[low:high], *made_ends])
            made_starts, made_ends = _gaps_out(made_starts, made_ends)
        before = self._span(low, high)
        starts[low:high] = array("Q", made_starts)
        ends[low:high] = array("Q", made_ends)
        self._count += self._span(low, low + len(made_starts)) - before

    def _span(self, low: int, high: int) -> int:
        return sum(self._ends[low:high]) - sum(self._starts[low:high]) + high - low

    def remove(self, seq: int) -> bool:
        """Take one number out; whether it was there."""
        return self.remove_range(seq, seq) == 1

    def remove_range(self, first: int, last: int) -> int:
        """Take [first, last] out; how many were there."""
        starts, ends = self._starts, self._ends
        low = bisect_left(ends, first)
        high = bisect_right(starts, last)
        if low >= high or last < first:
            return 0
        before = self._span(low, high)
        rest_starts, rest_ends = array("Q"), array("Q")
        if starts[low] < first:
            rest_starts.append(starts[low])
            rest_ends.append(first - 1)
        if ends[high - 1] > last:
            rest_starts.append(last + 1)
            rest_ends.append(ends[high - 1])
        starts[low:high] = rest_starts
        ends[low:high] = rest_ends
        removed = before - self._span(low, low + len(rest_starts))
        self._count -= removed
        return removed

    def clear(self) -> None:
        """Take everything out."""
        del self._starts[:], self._ends[:]
        self._count = 0

    def next_absent(self, seq: int) -> int:
        """The smallest number at or after `seq` that is not a member."""
        at = bisect_right(self._starts, seq) - 1
        if at >= 0 and seq <= self._ends[at]:
            return self._ends[at] + 1
        return seq

    def previous_absent(self, seq: int) -> int:
        """The greatest number at or before `seq` that is not a member; -1 if none."""
        at = bisect_right(self._starts, seq) - 1
        if at >= 0 and seq <= self._ends[at]:
            return self._starts[at] - 1
        return seq

    def next_present(self, seq: int) -> int | None:
        """The smallest member at or after `seq`."""
        at = bisect_left(self._ends, seq)
        return max(seq, self._starts[at]) if at < len(self._ends) else None

    def count_range(self, first: int, last: int) -> int:
        """How many members lie in [first, last]."""
        low = bisect_left(self._ends, first)
        high = bisect_right(self._starts, last)
        if low >= high or last < first:
            return 0
        before = max(0, first - self._starts[low])
        behind = max(0, self._ends[high - 1] - last)
        return self._span(low, high) - before - behind

    def absent(self, first: int, last: int, count: int) -> list[int]:
        """Up to `count` numbers of [first, last] that are not members, ascending."""
        found: list[int] = []
        at = bisect_left(self._ends, first)
        while first <= last and len(found) < count:
            stop = self._starts[at] if at < len(self._starts) else last + 1
            if first < stop:
                found.extend(range(first, min(stop, last + 1, first + count - len(found))))
            if at >= len(self._starts):
                break
            first = max(first, self._ends[at] + 1)
            at += 1
        return found

    def encode(self) -> bytes:
        """The set as bytes; equal sets have equal bytes."""
        starts, ends = self._starts, self._ends
        gaps = list(map(sub, starts[1:], ends))
        gaps.insert(0, starts[0] if starts else 0)
        lengths = list(map(sub, ends, starts))
        code, width = _width(max(max(gaps), max(lengths, default=0)))
        header = _HEADER.pack(_FORMAT, width, len(starts))
        if not starts:
            return header
        return header + _packed(code, gaps) + _packed(code, lengths)

    @staticmethod
    def decode(data: bytes) -> "SeqSet":
        """Inverse of `encode`. Raises Damaged for anything that `encode` does not make."""
        made = SeqSet()
        if len(data) < _HEADER.size:
            raise Damaged("a sequence set is cut short", path="seqset")
        kind, width, count = _HEADER.unpack_from(data)
        code = next((c for c, w in _WIDTHS if w == width), "")
        if kind != _FORMAT or not code or len(data) != _HEADER.size + 2 * width * count:
            raise Damaged("a sequence set has a wrong header", path="seqset")
        middle = _HEADER.size + width * count
        gaps = struct.unpack_from(f"<{count}{code}", data, _HEADER.size)
        lengths = struct.unpack_from(f"<{count}{code}", data, middle)
        end = 0
        for gap, length in zip(gaps, lengths, strict=True):
            if gap < 2 and made._starts:
                raise Damaged("ranges of a sequence set touch", path="seqset")
            start, end = end + gap, end + gap + length
            if end >= 1 << 64:
                raise Damaged("a sequence set passes 64 bits", path="seqset")
            made._starts.append(start)
            made._ends.append(end)
        made._count = made._span(0, count)
        return made


def _gaps_out(starts: Sequence[int], ends: Sequence[int]) -> tuple[list[int], list[int]]:
    """The ranges of a union, from ascending starts and ascending ends of what it is made of."""
    gaps = list(map((1).__lt__, map(sub, islice(starts, 1, None), ends)))
    return (
        [starts[0], *compress(islice(starts, 1, None), gaps)],
        [*compress(ends, gaps), ends[-1]],
    )


def _packed(code: str, values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}{code}", *values)


def _width(greatest: int) -> tuple[str, int]:
    for code, width in _WIDTHS:
        if greatest < 1 << (8 * width):
            return code, width
    raise AssertionError("sequences have 64 bits")
