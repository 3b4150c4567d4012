"""Very many subjects in the order of their bytes: those that a pattern passes are found at once.

A pattern looks through all subjects of a stream, unless it has tokens that few of them have in
those places: in front, as `orders.42.>`, or behind others, as `*.42.>` and `orders.*.42`. There is
an order for each number of tokens that are left out in front. It is made where somebody asks, a
portion at a time, in sorted runs that are merged as they grow; nothing is moved when a subject
comes or goes.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

RUN_MIN = 256
"""So many subjects that came are sorted together; until then each look goes through them."""
RUN_MAX = 65_536
"""Longer runs are not made: sorting one takes a turn some 20 ms at most, 40 behind other tokens."""
ORDERS_MAX = 4
"""Each takes eight bytes a subject."""
_LOOK_UP = 8
"""To look for one pattern takes as long as to hold so many subjects against all of them."""
_LEFT_OUT_MAX = 16
"""Tokens further behind are not looked for."""

Piece = tuple[int, bytes, bytes]
"""How many tokens are left out in front, and between what lies what is behind them."""


def pieces(pattern: bytes) -> list[Piece]:
    """What all subjects have in common that a pattern matches, in the order in which it is tried:
    what they begin with, and what follows its wildcards, the last of them first."""
    found: list[Piece] = []
    literal: list[bytes] = []
    tokens = pattern.split(b".", _LEFT_OUT_MAX)
    for place, token in enumerate([*tokens[:_LEFT_OUT_MAX], b">"]):
        if token not in (b"*", b">"):
            literal.append(token)
        elif literal:
            start = b".".join(literal)
            # Others follow a dot, which the slash comes behind.
            ends = (start, start + b"\0") if place == len(tokens) else (start + b".", start + b"/")
            found.append((place - len(literal), *ends))
            literal = []
    front = [one for one in found if not one[0]]
    return [*front, *reversed(found[len(front) :])]


class OrderedSubjects:
    """Of an index that says which of them are still there. `fresh` takes those that come."""

    __slots__ = ("_all", "_may_sort", "_orders", "fresh")

    def __init__(self, subjects: Iterable[bytes]) -> None:
        """`subjects` may be gone through at any time, and has all that were in `fresh`."""
        self._all = subjects
        self._orders: dict[int, _Order] = {}
        self._may_sort = False
        """A look sorts one portion at most."""
        self.fresh: list[bytes] = []

    def __len__(self) -> int:
        """How many an order has, those that are gone and those that came twice included."""
        return len(self.fresh) + max(map(len, self._orders.values()), default=0)

    def passing(self, patterns: Sequence[bytes], most: int) -> list[bytes] | None:
        """All that pass one of these, in no order, some twice, and some others; None if that would
        be more than `most`."""
        if len(self.fresh) >= RUN_MIN:
            self._file()
        if _LOOK_UP * len(patterns) > most:
            return None
        self._may_sort = True
        found = self.fresh[:]
        for pattern in patterns:
            if len(found) > most or not self._find(pieces(pattern), most, found):
                return None
        return found

    def _find(self, possible: Sequence[Piece], most: int, found: list[bytes]) -> bool:
        """Add what has one of these pieces; False: all of them are too many."""
        for left_out, start, end in possible:
            order = self._order(left_out)
            some = None if order is None else order.between(start, end, most - len(found))
            if some is not None:
                found += some
                return True
        return False

    def _order(self, left_out: int) -> "_Order | None":
        """One that is sorted as far as it may be now."""
        order = self._orders.get(left_out)
        if order is None:
            if not self._may_sort or len(self._orders) == ORDERS_MAX:
                return None
            order = self._orders[left_out] = _Order(left_out, self._all)
        if order.unsorted and self._may_sort:
            order.sort()
            self._may_sort = False
        order.merge()
        return order

    def _file(self) -> None:
        """What came goes into each order; one that nobody looks at any more is given up."""
        for left_out, order in list(self._orders.items()):
            order.add(self.fresh)
            if order.is_idle:
                del self._orders[left_out]
        self.fresh.clear()


class _Order:
    """By what is behind so many tokens."""

    __slots__ = ("_fresh", "_key", "_runs", "unsorted")

    def __init__(self, left_out: int, subjects: Iterable[bytes]) -> None:
        self._key = _behind_tokens(left_out) if left_out else None
        self.unsorted = list(subjects)
        self._runs: list[list[bytes]] = []
        self._fresh: list[bytes] = []

    def __len__(self) -> int:
        return len(self.unsorted) + len(self._fresh) + sum(map(len, self._runs))

    def add(self, subjects: Sequence[bytes]) -> None:
        """These came."""
        self._fresh += subjects

    @property
    def is_idle(self) -> bool:
        """Whether so many came since somebody looked that it is to be made anew."""
        return len(self._fresh) > RUN_MAX

    def between(self, start: bytes, end: bytes, most: int) -> list[bytes] | None:
        """All in which the rest behind the tokens lies in [start, end), and all that are not
        sorted; None if that would be more than `most`."""
        if len(self.unsorted) > most:
            return None
        found, key = self.unsorted[:], self._key
        for run in self._runs:
            low = bisect_left(run, start, key=key)
            high = bisect_left(run, end, low, key=key)
            if len(found) + high - low > most:
                return None
            found += run[low:high]
        return found

    def sort(self) -> None:
        """Another portion of what was there when it was begun."""
        run = self.unsorted[-RUN_MAX:]
        del self.unsorted[-RUN_MAX:]
        run.sort(key=self._key)
        self._runs.insert(0, run)

    def merge(self) -> None:
        """Take in what came."""
        if not self._fresh:
            return
        runs, key = self._runs, self._key
        run, self._fresh = sorted(self._fresh, key=key), []
        while runs and len(runs[-1]) <= 2 * len(run) and len(runs[-1]) + len(run) <= RUN_MAX:
            run += runs.pop()
            run.sort(key=key)  # Of two runs that are sorted: that is a merge.
        runs.append(run)


def _behind_tokens(left_out: int) -> Callable[[bytes], bytes]:
    """What is behind so many tokens; nothing where there are no more."""

    def behind(subject: bytes) -> bytes:
        parts = subject.split(b".", left_out)
        return parts[left_out] if len(parts) > left_out else b""

    return behind
