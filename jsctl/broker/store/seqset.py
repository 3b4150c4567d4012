"""A compact set of sequences: sorted, disjoint, non-adjacent ranges.

A million consecutive numbers cost 16 bytes, and the worst case is 16 bytes a member. The ranges
lie in blocks: what is added or removed somewhere moves a block, however many ranges there are, as
in a bucket whose keys are overwritten in any order. Adding behind the last range is constant time.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import eq, sub

from jsctl.broker.errors import Damaged
from jsctl.broker.store.sequences.ranges import Ranges, union

BLOCK_RANGES = 512
"""A block that has twice as many is cut."""
_HEADER = struct.Struct("<BBI")
_FORMAT = 1
_WIDTHS = (("B", 1), ("H", 2), ("I", 4), ("Q", 8))


class SeqSet:
    """Set of ints in [0, 2**64). `len()` is the number of members.

    Invariant: no block is empty, and ranges of neighbours do not touch either.
    """

    __slots__ = ("_block_ranges", "_blocks", "_count", "_firsts")

    def __init__(
        self, ranges: Iterable[tuple[int, int]] = (), *, block_ranges: int = BLOCK_RANGES
    ) -> None:
        self._block_ranges = block_ranges
        self._blocks: list[Ranges] = []
        self._firsts = array("Q")
        """The first member of each block."""
        self._count = 0
        for first, last in ranges:
            self.add_range(first, last)

    @staticmethod
    def union(some: Iterable["SeqSet"]) -> "SeqSet":
        """What is in any of these sets."""
        blocks = [block for one in some for block in one._blocks]
        return SeqSet()._of(union(blocks)) if blocks else SeqSet()

    def _of(self, joined: Ranges) -> "SeqSet":
        """Have these ranges, at least one, and nothing else."""
        self._count = joined.count
        self._put(0, len(self._blocks), joined)
        return self

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __contains__(self, seq: int) -> bool:
        block = self._blocks[bisect_right(self._firsts, seq) - 1] if self._count else None
        if block is None:
            return False
        at = bisect_right(block.starts, seq) - 1
        return at >= 0 and seq <= block.ends[at]

    def __iter__(self) -> Iterator[int]:
        for first, last in self.ranges():
            yield from range(first, last + 1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SeqSet):
            return NotImplemented
        return self._count == other._count and all(map(eq, self.ranges(), other.ranges()))

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"SeqSet({list(self.ranges())!r})"

    def copy(self) -> "SeqSet":
        """An independent set with the same members."""
        other = SeqSet(block_ranges=self._block_ranges)
        other._blocks = [block.copy() for block in self._blocks]
        other._firsts = self._firsts[:]
        other._count = self._count
        return other

    def ranges(self) -> Iterator[tuple[int, int]]:
        """`(first, last)` of each range, both included, ascending."""
        return chain.from_iterable(
            zip(block.starts, block.ends, strict=True) for block in self._blocks
        )

    @property
    def first(self) -> int:
        """Smallest member, or 0."""
        return self._firsts[0] if self._count else 0

    @property
    def last(self) -> int:
        """Greatest member, or 0."""
        return self._blocks[-1].ends[-1] if self._count else 0

    # Changes.

    def add(self, seq: int) -> bool:
        """Add one number; whether it was new."""
        if not self._count:
            return self.add_range(seq, seq) == 1
        number = max(0, bisect_right(self._firsts, seq) - 1)
        block = self._blocks[number]
        follows = number + 1 < len(self._firsts) and self._firsts[number + 1] == seq + 1
        if follows or len(block.starts) >= 2 * self._block_ranges:
            # What grows together with the next block, or is cut.
            return self.add_range(seq, seq) == 1
        if not block.add(seq):
            return False
        self._firsts[number] = block.starts[0]
        self._count += 1
        return True

    def add_range(self, first: int, last: int) -> int:
        """Add [first, last]; how many were new. An empty range (last < first) adds nothing."""
        if last < first:
            return 0
        low, high = self._touched(first - 1 if first else 0, last + 1)
        joined = self._joined(low, high)
        grown = joined.add_range(first, last)
        self._put(low, high, joined)
        self._count += grown
        return grown

    def add_many(self, seqs: Sequence[int]) -> None:
        """Add ascending numbers: one by one where they lie far from each other, else together."""
        if len(seqs) < 2:
            if seqs:
                self.add(seqs[0])
            return
        low, high = self._touched(seqs[0] - 1 if seqs[0] else 0, seqs[-1] + 1)
        if (high - low) * self._block_ranges > 4 * len(seqs) + 2 * self._block_ranges:
            self._add_scattered(seqs)
            return
        joined = self._joined(low, high)
        before = joined.count
        joined.add_many(seqs)
        self._put(low, high, joined)
        self._count += joined.count - before

    def _add_scattered(self, seqs: Sequence[int]) -> None:
        """Add ascending numbers one by one; as `add`, whose cases that are most frequent are in
        here once more: behind the begin of a block that has room, apart from the next one."""
        firsts, blocks, most = self._firsts, self._blocks, 2 * self._block_ranges
        for seq in seqs:
            number = bisect_right(firsts, seq)
            block = blocks[number - 1]
            starts, ends = block.starts, block.ends
            at = bisect_right(starts, seq)
            if not number or not at < len(starts) < most or ends[at - 1] >= seq:
                self.add(seq)
                continue
            joins_left, joins_right = ends[at - 1] == seq - 1, starts[at] == seq + 1
            if joins_left and joins_right:
                ends[at - 1] = ends.pop(at)
                del starts[at]
            elif joins_left:
                ends[at - 1] = seq
            elif joins_right:
                starts[at] = seq
            else:
                starts.insert(at, seq)
                ends.insert(at, seq)
            block.count += 1
            self._count += 1

    def remove(self, seq: int) -> bool:
        """Take one number out; whether it was there."""
        return self.remove_range(seq, seq) == 1

    def remove_range(self, first: int, last: int) -> int:
        """Take [first, last] out; how many were there."""
        if last < first or not self._count:
            return 0
        low, high = self._touched(first, last)
        joined = self._joined(low, high)
        removed = joined.remove_range(first, last)
        self._put(low, high, joined)
        self._count -= removed
        return removed

    def clear(self) -> None:
        """Take everything out."""
        self._blocks.clear()
        del self._firsts[:]
        self._count = 0

    def _touched(self, first: int, last: int) -> tuple[int, int]:
        """The blocks in which something of [first, last] may be, at least one if there is any."""
        low = max(0, bisect_right(self._firsts, first) - 1)
        return low, max(low + bool(self._blocks), bisect_right(self._firsts, last))

    def _joined(self, low: int, high: int) -> Ranges:
        """The ranges of some blocks, which are given up for it."""
        if high - low == 1:
            return self._blocks[low]
        starts, ends = array("Q"), array("Q")
        for block in self._blocks[low:high]:
            starts += block.starts
            ends += block.ends
        return Ranges(starts, ends)

    def _put(self, low: int, high: int, made: Ranges) -> None:
        """Have some ranges in the place of blocks."""
        most, size = self._block_ranges, len(made.starts)
        if size <= 2 * most:
            blocks = [made] if size else []
        else:
            blocks = [
                Ranges(made.starts[at : at + most], made.ends[at : at + most])
                for at in range(0, size, most)
            ]
        self._blocks[low:high] = blocks
        self._firsts[low:high] = array("Q", [block.starts[0] for block in blocks])

    # Questions.

    def next_absent(self, seq: int) -> int:
        """The smallest number at or after `seq` that is not a member."""
        number = bisect_right(self._firsts, seq) - 1
        if number >= 0:
            block = self._blocks[number]
            end = block.ends[bisect_right(block.starts, seq) - 1]
            if seq <= end:
                return end + 1
        return seq

    def previous_absent(self, seq: int) -> int:
        """The greatest number at or before `seq` that is not a member; -1 if none."""
        number = bisect_right(self._firsts, seq) - 1
        if number >= 0:
            block = self._blocks[number]
            at = bisect_right(block.starts, seq) - 1
            if seq <= block.ends[at]:
                return block.starts[at] - 1
        return seq

    def next_present(self, seq: int) -> int | None:
        """The smallest member at or after `seq`."""
        number = max(0, bisect_right(self._firsts, seq) - 1)
        for block in self._blocks[number : number + 2]:
            at = bisect_left(block.ends, seq)
            if at < len(block.ends):
                return max(seq, block.starts[at])
        return None

    def count_range(self, first: int, last: int) -> int:
        """How many members lie in [first, last]."""
        if last < first or not self._count:
            return 0
        low, high = self._touched(first, last)
        count = self._blocks[low].count_range(first, last)
        if high - low > 1:
            count += self._blocks[high - 1].count_range(first, last)
            count += sum(block.count for block in self._blocks[low + 1 : high - 1])
        return count

    def absent(self, first: int, last: int, count: int) -> list[int]:
        """Up to `count` numbers of [first, last] that are not members, ascending."""
        found: list[int] = []
        for start, end in self._from(first):
            if first > last or len(found) >= count:
                return found
            if first < start:
                found.extend(range(first, min(start, last + 1, first + count - len(found))))
            first = max(first, end + 1)
        found.extend(range(first, min(last + 1, first + count - len(found))))
        return found

    def absent_of(self, seqs: Sequence[int]) -> list[int]:
        """Those of ascending numbers that are not members."""
        found: list[int] = []
        at = 0
        while at < len(seqs):
            number = bisect_right(self._firsts, seqs[at])
            last = number == len(self._firsts)
            end = len(seqs) if last else bisect_left(seqs, self._firsts[number], at)
            some, at = seqs[at:end], end
            if not number:
                found += some
                continue
            block = self._blocks[number - 1]
            ends, places = block.ends, map(bisect_right, repeat(block.starts), some)
            found += [
                seq
                for seq, place in zip(some, places, strict=True)
                if not place or seq > ends[place - 1]
            ]
        return found

    def _from(self, seq: int) -> Iterator[tuple[int, int]]:
        """The ranges that end at or behind a number."""
        number = max(0, bisect_right(self._firsts, seq) - 1)
        for block in self._blocks[number : number + 1]:
            at = bisect_left(block.ends, seq)
            yield from zip(block.starts[at:], block.ends[at:], strict=True)
        for block in islice(self._blocks, number + 1, None):
            yield from zip(block.starts, block.ends, strict=True)

    # Bytes.

    def encode(self) -> bytes:
        """The set as bytes; equal sets have equal bytes."""
        if self._count == 1:
            return encode_one(self._firsts[0])
        starts, ends = array("Q"), array("Q")
        for block in self._blocks:
            starts += block.starts
            ends += block.ends
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
        if len(data) < _HEADER.size:
            raise Damaged("a sequence set is cut short", path="seqset")
        kind, width, count = _HEADER.unpack_from(data)
        code = next((c for c, w in _WIDTHS if w == width), "")
        if kind != _FORMAT or not code or len(data) != _HEADER.size + 2 * width * count:
            raise Damaged("a sequence set has a wrong header", path="seqset")
        middle = _HEADER.size + width * count
        gaps = struct.unpack_from(f"<{count}{code}", data, _HEADER.size)
        lengths = struct.unpack_from(f"<{count}{code}", data, middle)
        starts, ends = array("Q"), array("Q")
        end = 0
        for gap, length in zip(gaps, lengths, strict=True):
            if gap < 2 and starts:
                raise Damaged("ranges of a sequence set touch", path="seqset")
            start, end = end + gap, end + gap + length
            if end >= 1 << 64:
                raise Damaged("a sequence set passes 64 bits", path="seqset")
            starts.append(start)
            ends.append(end)
        return SeqSet()._of(Ranges(starts, ends)) if count else SeqSet()


def encode_one(seq: int) -> bytes:
    """What a set with one member encodes to."""
    code, width = _width(seq)
    return _HEADER.pack(_FORMAT, width, 1) + _packed(code, [seq, 0])


def _packed(code: str, values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}{code}", *values)


def _width(greatest: int) -> tuple[str, int]:
    for code, width in _WIDTHS:
        if greatest < 1 << (8 * width):
            return code, width
    raise AssertionError("sequences have 64 bits")
