"""Very many subjects in the order of their bytes: those that begin alike are found at once.

A pattern looks through all subjects of a stream, unless it begins with a token that few of them
begin with, as `orders.42.>` does. The order is made where somebody asks, a portion at a time, in
sorted runs that are merged as they grow; nothing is moved when a subject comes or goes.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

RUN_MIN = 256
"""So many subjects that came are sorted together; until then each look goes through them."""
RUN_MAX = 65_536
"""Longer runs are not made: sorting one takes a turn some 20 ms at most."""


class OrderedSubjects:
    """Of an index that says which of them are still there. `fresh` takes those that come."""

    __slots__ = ("_runs", "_unsorted", "fresh")

    def __init__(self, subjects: Iterable[bytes]) -> None:
        self._unsorted = list(subjects)
        self._runs: list[list[bytes]] = []
        self.fresh: list[bytes] = []

    def __len__(self) -> int:
        """How many it has, those that are gone and those that came twice included."""
        return len(self._unsorted) + len(self.fresh) + sum(map(len, self._runs))

    def beginning(self, starts: Sequence[bytes], most: int) -> list[bytes] | None:
        """All that begin with one of these, in no order, some twice, and some others; None if that
        would be more than `most`."""
        self._sort()
        found = [*self._unsorted, *self.fresh]
        if len(found) > most:
            return None
        for start in starts:
            end = _behind(start)
            for run in self._runs:
                low = bisect_left(run, start)
                found += run[low : bisect_left(run, end, low)]
                if len(found) > most:
                    return None
        return found

    def _sort(self) -> None:
        """Another portion."""
        runs = self._runs
        if self._unsorted:
            run = self._unsorted[-RUN_MAX:]
            del self._unsorted[-RUN_MAX:]
            run.sort()
            runs.insert(0, run)
        if len(self.fresh) < RUN_MIN:
            return
        run, self.fresh[:] = sorted(self.fresh), []
        while runs and len(runs[-1]) <= 2 * len(run) and len(runs[-1]) + len(run) <= RUN_MAX:
            run += runs.pop()
            run.sort()  # Of two runs that are sorted: that is a merge.
        runs.append(run)


def _behind(start: bytes) -> bytes:
    """The first bytes behind all that begin so; the last byte of a start is none of all ones."""
    return start[:-1] + bytes((start[-1] + 1,))
