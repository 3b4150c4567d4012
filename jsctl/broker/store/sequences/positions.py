"""The sequences of one subject that has several messages.

Few lie in an array, eight bytes each; many are packed. Removal at the front, by far the most
common, moves a head; removal inside only notes a hole, so that nothing is shifted for every
acknowledged message.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from jsctl.broker.store.sequences.packed import (
    BLOCK_SEQS,
    TAIL_SEQS_MAX,
    PackedSeqs,
    Steps,
    packed,
)

_HOLES_MIN = 64


class Positions:
    """Ascending sequences of one subject. Invariant: both ends are live, holes lie between."""

    __slots__ = ("head", "holes", "seqs")

    def __init__(self, seqs: Iterable[int]) -> None:
        self.seqs: array[int] | PackedSeqs = array("Q", seqs)
        self.head = 0
        self.holes: list[int] = []

    def count(self) -> int:
        """Live sequences."""
        return len(self.seqs) - self.head - len(self.holes)

    def extend(self, seqs: Sequence[int]) -> None:
        """Note sequences behind all others."""
        own = self.seqs
        own.extend(array("Q", seqs))
        if len(own) > TAIL_SEQS_MAX and isinstance(own, array):
            self.pack()

    def pack(self) -> None:
        """Have many in less room."""
        self.seqs = PackedSeqs(self.seqs)

    def _left(self, seq: int) -> int:
        """Where a sequence is, or would be; not before the head."""
        seqs = self.seqs
        if isinstance(seqs, PackedSeqs):
            return max(self.head, seqs.left(seq))
        return bisect_left(seqs, seq, self.head)

    def remove(self, seq: int) -> bool:
        """Forget one sequence; whether it was live. The caller drops an emptied object."""
        seqs, holes = self.seqs, self.holes
        if seqs[self.head] == seq:
            self._advance()
            return True
        if seqs[-1] == seq:
            seqs.pop()
            while holes and seqs and seqs[-1] == holes[-1]:
                seqs.pop()
                holes.pop()
            return True
        at = self._left(seq)
        if at >= len(seqs) or seqs[at] != seq:
            return False
        hole = bisect_left(holes, seq)
        if hole < len(holes) and holes[hole] == seq:
            return False
        holes.insert(hole, seq)
        if len(holes) > _HOLES_MIN + (len(seqs) - self.head) // 4:
            self._rebuild()
        return True

    def insert(self, seq: int) -> None:
        """Note a sequence anywhere: one that was gone, or was never there."""
        hole = bisect_left(self.holes, seq)
        if hole < len(self.holes) and self.holes[hole] == seq:
            del self.holes[hole]
            return
        if seq < self.seqs[self.head]:
            # What is gone below the head would stand behind it.
            self._drop_front()
        at = self._left(seq)
        assert at == len(self.seqs) or self.seqs[at] != seq, "a sequence is added once"
        self.seqs.insert(at, seq)

    def _drop_front(self) -> None:
        seqs = self.seqs
        if isinstance(seqs, PackedSeqs):
            seqs.drop(self.head)
        else:
            del seqs[: self.head]
        self.head = 0

    def _advance(self) -> None:
        seqs, holes = self.seqs, self.holes
        self.head += 1
        passed = 0
        # An emptied one has no holes left: the last sequence is live.
        while passed < len(holes) and seqs[self.head] == holes[passed]:
            self.head += 1
            passed += 1
        if passed:
            del holes[:passed]
        if isinstance(seqs, PackedSeqs):
            if self.head >= BLOCK_SEQS:
                self._drop_front()
        elif self.head > 1024 and self.head * 2 > len(seqs):
            self._drop_front()

    def below(self, bound: int) -> list[int]:
        """Live sequences below a bound, ascending."""
        seqs = self.seqs[self.head : self._left(bound)].tolist()
        holes = self.holes[: bisect_left(self.holes, bound)]
        if not holes:
            return seqs
        dead = set(holes)
        return [seq for seq in seqs if seq not in dead]

    def cut(self, bound: int) -> None:
        """Forget all below a bound. The caller drops an emptied object."""
        at = self._left(bound)
        if at > self.head:
            del self.holes[: bisect_left(self.holes, bound)]
            self.head = at - 1
            self._advance()

    def newest(self, count: int) -> list[int]:
        """Up to `count` live sequences from the end, at least one, ascending."""
        dead = set(self.holes)
        at = max(self.head, len(self.seqs) - count - len(dead))
        return [seq for seq in self.seqs[at:] if seq not in dead][-count:]

    def _rebuild(self) -> None:
        dead = set(self.holes)
        live = (seq for seq in islice(self.seqs, self.head, None) if seq not in dead)
        packs = isinstance(self.seqs, PackedSeqs)
        self.seqs = PackedSeqs(live) if packs else array("Q", live)
        self.head = 0
        self.holes = []

    def count_from(self, seq: int) -> int:
        """Live sequences at or after `seq`."""
        above = len(self.seqs) - self._left(seq)
        return above - (len(self.holes) - bisect_left(self.holes, seq))

    def at_or_after(self, seq: int) -> int | None:
        """The first live sequence at or after `seq`."""
        at = self._left(seq)
        while at < len(self.seqs):
            if not self._is_hole(self.seqs[at]):
                return self.seqs[at]
            at += 1
        return None

    def at_or_before(self, seq: int) -> int | None:
        """The last live sequence at or before `seq`."""
        at = self._left(seq + 1) - 1
        while at >= self.head:
            if not self._is_hole(self.seqs[at]):
                return self.seqs[at]
            at -= 1
        return None

    def _is_hole(self, seq: int) -> bool:
        at = bisect_left(self.holes, seq)
        return at < len(self.holes) and self.holes[at] == seq

    def some_from(self, seq: int, count: int) -> list[int]:
        """Up to `count` live sequences at or after `seq`."""
        at = self._left(seq)
        if not self.holes:
            return self.seqs[at : at + count].tolist()
        found: list[int] = []
        dead = set(self.holes)
        while len(found) < count and at < len(self.seqs):
            chunk = self.seqs[at : at + count + len(dead)]
            at += len(chunk)
            found.extend([s for s in chunk if s not in dead])
        return found[:count]

    def live(self) -> list[int]:
        """All live sequences."""
        dead = set(self.holes)
        rest = self.seqs[self.head :].tolist()
        return [s for s in rest if s not in dead] if dead else rest

    def blocks(self) -> Iterator[range | Steps]:
        """All live sequences, packed."""
        if self.holes:
            self._rebuild()
        seqs = self.seqs
        if isinstance(seqs, PackedSeqs):
            seqs.drop(self.head)
            self.head = 0
            return seqs.blocks()
        return iter((packed(seqs[self.head :]),))
