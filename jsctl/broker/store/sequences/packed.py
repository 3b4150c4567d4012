"""Ascending sequences of a subject that has many: packed, except at both ends.

They lie in blocks of some hundred: as the steps from one to the next, one to eight bytes each, or
as nothing but a range where all steps are alike, as in a stream with one subject. The ends, where
sequences come and go, are plain. Used as an array: by index, by slice, and in `bisect`.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from operator import sub
from typing import overload

from jsctl.dataclass import dataclass

BLOCK_SEQS = 512
TAIL_SEQS_MAX = 2 * BLOCK_SEQS
CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Width of a step in bytes -> type of the array."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Sequences that follow each other irregularly: the first, and what each adds."""

    first: int
    steps: "array[int]"

    def __len__(self) -> int:
        return len(self.steps) + 1

    def unpacked(self) -> "array[int]":
        """The sequences."""
        return array("Q", accumulate(self.steps, initial=self.first))


Plain = range | array  # type: ignore[type-arg]  # of ints, which an alias cannot say before 3.12
Block = Plain | Steps


def packed(seqs: Sequence[int]) -> range | Steps:
    """A block of ascending sequences, at least one."""
    steps = list(map(sub, seqs[1:], seqs))
    most = max(steps, default=1)
    if most == min(steps, default=1):
        return range(seqs[0], seqs[-1] + 1, most)
    return Steps(
        seqs[0], array(next(code for width, code in CODES.items() if most < 1 << 8 * width), steps)
    )


def _plain(block: Block) -> Plain:
    return block.unpacked() if isinstance(block, Steps) else block


def _first(block: Block) -> int:
    return block.first if isinstance(block, Steps) else int(block[0])


class PackedSeqs:
    """See the module. Invariant: the first block is plain, and the tail is not empty unless all
    is."""

    __slots__ = ("_blocks", "_ends", "_firsts", "_tail")

    def __init__(self, seqs: Iterable[int] = ()) -> None:
        self._blocks: list[Block] = []
        self._firsts = array("Q")
        self._ends = array("Q")
        """How many there are up to the end of each block."""
        self._tail = array("Q")
        self.extend(seqs)

    @staticmethod
    def of_blocks(blocks: Iterable[range | Steps]) -> "PackedSeqs":
        """Made of what `blocks` gave."""
        made = PackedSeqs()
        for block in blocks:
            made._add_block(block)
        made._refill()
        return made

    # At the end.

    def append(self, seq: int) -> None:
        """Add one behind all others."""
        self._tail.append(seq)
        if len(self._tail) > TAIL_SEQS_MAX:
            self._pack()

    def extend(self, seqs: Iterable[int]) -> None:
        """Add some behind all others."""
        for seq in seqs:
            self.append(seq)

    def _pack(self) -> None:
        self._add_block(packed(self._tail[:BLOCK_SEQS]))
        del self._tail[:BLOCK_SEQS]

    def _add_block(self, block: range | Steps) -> None:
        """Add a block behind all others, before the tail has anything that is ahead of it."""
        last = self._blocks[-1] if self._blocks else None
        if isinstance(last, range) and isinstance(block, range) and _continues(last, block):
            self._blocks[-1] = range(last[0], block[-1] + 1, last.step)
            self._ends[-1] += len(block)
            return
        self._firsts.append(_first(block))
        self._ends.append(len(block) + (self._ends[-1] if self._blocks else 0))
        self._blocks.append(block if self._blocks else _plain(block))

    def pop(self) -> int:
        """Take the last one off."""
        seq = self._tail.pop()
        if not self._tail:
            self._refill()
        return seq

    def _refill(self) -> None:
        """Have something in the tail again, if there is anything."""
        if not self._blocks:
            return
        last = _plain(self._blocks.pop())
        del self._firsts[-1], self._ends[-1]
        kept = max(0, len(last) - BLOCK_SEQS) if isinstance(last, range) else 0
        self._tail = array("Q", last[kept:])
        if isinstance(last, range) and kept:
            self._add_block(last[:kept])

    # Elsewhere.

    def drop(self, count: int) -> None:
        """Forget the first so many."""
        whole = bisect_right(self._ends, count)
        passed = self._ends[whole - 1] if whole else 0
        rest = count - passed
        blocks = self._blocks[whole:]
        if not blocks:
            del self._tail[:rest]
        elif isinstance(blocks[0], range):
            blocks[0] = blocks[0][rest:]
        else:
            # Two of them, so that what goes next need not be unpacked for each that goes.
            front = array("Q", _plain(blocks[0])[rest:])
            second = blocks[1] if len(blocks) > 1 else None
            if isinstance(second, Steps):
                front += second.unpacked()
                del blocks[1]
            blocks[0] = front
        self._set_blocks(blocks)

    def insert(self, at: int, seq: int) -> None:
        """Add one where `left` says."""
        number = bisect_right(self._ends, at)
        if number == len(self._blocks):
            self._tail.insert(at - (self._ends[-1] if self._blocks else 0), seq)
            return
        within = at - (self._ends[number - 1] if number else 0)
        old = self._blocks[number]
        made: list[Block]
        if isinstance(old, range):
            made = [old[:within], range(seq, seq + 1), old[within:]]
        else:
            seqs = array("Q", _plain(old))
            seqs.insert(within, seq)
            made = [packed(seqs) if number else seqs]
        self._set_blocks([*self._blocks[:number], *made, *self._blocks[number + 1 :]])

    def _set_blocks(self, blocks: Sequence[Block]) -> None:
        self._blocks = [block for block in blocks if len(block)]
        if self._blocks:
            self._blocks[0] = _plain(self._blocks[0])
        self._firsts = array("Q", map(_first, self._blocks))
        self._ends = array("Q", accumulate(map(len, self._blocks)))

    # Reading.

    def __len__(self) -> int:
        return (self._ends[-1] if self._blocks else 0) + len(self._tail)

    def __iter__(self) -> Iterator[int]:
        return chain(chain.from_iterable(map(_plain, self._blocks)), self._tail)

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> "array[int]": ...
    def __getitem__(self, at: int | slice) -> "int | array[int]":
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            assert step == 1, "slices are whole"
            return self._between(start, stop)
        if at < 0:
            at += len(self)
        number = bisect_right(self._ends, at)
        if number:
            at -= self._ends[number - 1]
        if number == len(self._blocks):
            return self._tail[at]
        return int(_plain(self._blocks[number])[at])

    def _between(self, start: int, stop: int) -> "array[int]":
        found = array("Q")
        number = bisect_right(self._ends, start)
        begin = self._ends[number - 1] if number else 0
        while begin < stop and number < len(self._blocks):
            block = _plain(self._blocks[number])
            found.extend(array("Q", block[max(0, start - begin) : stop - begin]))
            begin, number = self._ends[number], number + 1
        if begin < stop:
            found += self._tail[max(0, start - begin) : stop - begin]
        return found

    def left(self, seq: int) -> int:
        """Where a sequence is, or would be: as `bisect_left`."""
        if not self._blocks or seq >= self._tail[0]:
            return len(self) - len(self._tail) + bisect_left(self._tail, seq)
        number = max(0, bisect_right(self._firsts, seq) - 1)
        begin = self._ends[number - 1] if number else 0
        return begin + bisect_left(_plain(self._blocks[number]), seq)

    def blocks(self) -> Iterator[range | Steps]:
        """All of them, to be kept."""
        for block in (*self._blocks, self._tail):
            if isinstance(block, range | Steps):
                yield block
            else:
                starts = range(0, len(block), BLOCK_SEQS)
                yield from (packed(block[at : at + BLOCK_SEQS]) for at in starts)


def _continues(last: range, block: range) -> bool:
    """Whether two blocks are one; a step of a block of one sequence says nothing."""
    return last.step == block.step and block[0] == last[-1] + last.step
