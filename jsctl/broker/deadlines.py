"""Due times by key: one heap for everything that waits, instead of a timer for each.

A moved or cancelled deadline leaves a stale entry behind, which is skipped when it comes up, and
cleared out when stale entries outnumber the others.
"""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
_STALE_MIN = 64


def earliest(first_ns: int | None, *more_ns: int | None) -> int | None:
    """The first of some times, where None is never."""
    for at in more_ns:
        if at is not None and (first_ns is None or at < first_ns):
            first_ns = at
    return first_ns


NEVER_NS = 1 << 63
"""Behind all deadlines."""


class Deadlines(Generic[Key]):
    """At most one due time for each key. `len()` is the number of keys that wait."""

    __slots__ = ("_due", "_heap", "_order")

    def __init__(self) -> None:
        self._due: dict[Key, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._order = 0

    def __len__(self) -> int:
        return len(self._due)

    def __contains__(self, key: Key) -> bool:
        return key in self._due

    def get(self, key: Key) -> int | None:
        """When a key is due."""
        found = self._due.get(key)
        return None if found is None else found[0]

    def set(self, key: Key, due_ns: int) -> None:
        """Let a key be due at a time, instead of any earlier setting."""
        known = self._due.get(key)
        if known is not None and known[0] == due_ns:
            return
        self._order += 1
        self._due[key] = (due_ns, self._order)
        heappush(self._heap, (due_ns, self._order, key))
        if known is not None:
            self._tidy()

    def cancel(self, key: Key) -> bool:
        """Forget a key; whether it waited."""
        if self._due.pop(key, None) is None:
            return False
        self._tidy()
        return True

    def due(self, now_ns: int, limit: int | None = None) -> list[Key]:
        """Take the keys whose time has come, earliest first; equal times in order of setting."""
        heap, waiting = self._heap, self._due
        found: list[Key] = []
        while heap and heap[0][0] <= now_ns and (limit is None or len(found) < limit):
            due_ns, order, key = heappop(heap)
            if waiting.get(key) == (due_ns, order):
                del waiting[key]
                found.append(key)
        return found

    def next(self) -> int | None:
        """The earliest time at which a key is due."""
        heap, waiting = self._heap, self._due
        while heap:
            due_ns, order, key = heap[0]
            if waiting.get(key) == (due_ns, order):
                return due_ns
            heappop(heap)
        return None

    def clear(self) -> None:
        """Forget everything."""
        self._due.clear()
        self._heap.clear()

    def _tidy(self) -> None:
        if len(self._heap) > _STALE_MIN + 2 * len(self._due):
            self._heap = [(due, order, key) for key, (due, order) in self._due.items()]
            heapify(self._heap)
