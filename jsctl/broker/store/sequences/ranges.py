"""Sorted, disjoint, non-adjacent ranges of numbers in two arrays: one block of a `SeqSet`.

Sixteen bytes a range. Adding behind the last one is constant time; anything else moves what lies
behind it, so a block is kept short by whoever has many of them.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, compress, islice
from operator import sub


class Ranges:
    """Ranges, both ends included."""

    __slots__ = ("count", "ends", "starts")

    def __init__(self, starts: "array[int] | None" = None, ends: "array[int] | None" = None):
        self.starts = array("Q") if starts is None else starts
        self.ends = array("Q") if ends is None else ends
        self.count = self._span(0, len(self.starts))
        """Members."""

    def copy(self) -> "Ranges":
        """An independent one."""
        other = Ranges()
        other.starts, other.ends, other.count = self.starts[:], self.ends[:], self.count
        return other

    def _span(self, low: int, high: int) -> int:
        return sum(self.ends[low:high]) - sum(self.starts[low:high]) + high - low

    def add(self, seq: int) -> bool:
        """Add one number; whether it was new."""
        starts, ends = self.starts, self.ends
        at = bisect_right(starts, seq) - 1
        if at >= 0 and seq <= ends[at]:
            return False
        self.count += 1
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
        """Add [first, last], which is not empty; how many were new."""
        starts, ends = self.starts, self.ends
        low = bisect_left(ends, first - 1) if first else 0
        high = bisect_right(starts, last + 1)
        before = self._span(low, high)
        if low < high:
            first = min(first, starts[low])
            last = max(last, ends[high - 1])
        starts[low:high] = array("Q", (first,))
        ends[low:high] = array("Q", (last,))
        grown = last - first + 1 - before
        self.count += grown
        return grown

    def add_many(self, seqs: Sequence[int]) -> None:
        """Add ascending numbers: what lies between the first and the last is gone through once."""
        starts, ends = self.starts, self.ends
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
        self.count += self._span(low, low + len(made_starts)) - before

    def remove_range(self, first: int, last: int) -> int:
        """Take [first, last] out; how many were there."""
        starts, ends = self.starts, self.ends
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
        self.count -= removed
        return removed

    def count_range(self, first: int, last: int) -> int:
        """How many members lie in [first, last]."""
        low = bisect_left(self.ends, first)
        high = bisect_right(self.starts, last)
        if low >= high or last < first:
            return 0
        before = max(0, first - self.starts[low])
        behind = max(0, self.ends[high - 1] - last)
        return self._span(low, high) - before - behind


def union(some: Iterable[Ranges]) -> Ranges:
    """What is in any of these, of which one has something."""
    several = list(some)
    starts = sorted(chain.from_iterable(one.starts for one in several))
    ends = sorted(chain.from_iterable(one.ends for one in several))
    starts, ends = _gaps_out(starts, ends)
    return Ranges(array("Q", starts), array("Q", ends))


def _gaps_out(starts: Sequence[int], ends: Sequence[int]) -> tuple[list[int], list[int]]:
    """The ranges of a union, from ascending starts and ascending ends of what it is made of."""
    gaps = list(map((1).__lt__, map(sub, islice(starts, 1, None), ends)))
    return (
        [starts[0], *compress(islice(starts, 1, None), gaps)],
        [*compress(ends, gaps), ends[-1]],
    )
