"""Sequences that are delivered first: ascending, and used up from the front."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from jsctl.broker.store.sequences.shared import SharedSeqs


class Chosen(Sequence[int]):
    """An array whose front goes without moving the rest each time: there may be a million. It is
    never changed, as others may have the same one."""

    __slots__ = ("_head", "_seqs", "_shared")

    def __init__(self, seqs: Iterable[int] | SharedSeqs = ()) -> None:
        self._shared = seqs if isinstance(seqs, SharedSeqs) else SharedSeqs(array("Q", seqs))
        self._seqs = self._shared.seqs
        self._head = 0

    def __len__(self) -> int:
        return len(self._seqs) - self._head

    def __iter__(self) -> Iterator[int]:
        return islice(self._seqs, self._head, None)

    def __contains__(self, seq: object) -> bool:
        at = bisect_left(self._seqs, seq, self._head) if isinstance(seq, int) else len(self._seqs)
        return at < len(self._seqs) and self._seqs[at] == seq

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> list[int]: ...

    def __getitem__(self, place: int | slice) -> int | list[int]:
        if isinstance(place, int):
            return self._seqs[place + self._head if place >= 0 else place]
        start, stop, step = place.indices(len(self))
        assert step == 1, "read in order"
        return self._seqs[self._head + start : self._head + stop].tolist()

    def steps(self) -> tuple[int, bytes]:
        """What each of them, at least one, adds to the one before, as `SharedSeqs` has it."""
        return self._shared.steps(self._head)

    def are(self, first: int, count: int, steps: tuple[int, bytes]) -> bool:
        """Whether they were these when the first one was not used up yet."""
        return self._shared.are(first, count, steps)

    def copy(self) -> "Chosen":
        """An equal one of its own."""
        made = Chosen(self._shared)
        made._head = self._head
        return made

    def drop(self, up_to: int) -> None:
        """Those up to this one are used up."""
        self._head = bisect_right(self._seqs, up_to, self._head)
        if 2 * self._head >= len(self._seqs):
            self._shared = self._shared.behind(self._head)
            self._seqs = self._shared.seqs
            self._head = 0
