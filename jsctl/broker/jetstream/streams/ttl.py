"""Messages with a time to live of their own (`Nats-TTL`). Replicated state of a stream.

A message with a positive time to live is removed when it is over, one with `never` outlives
the stream's `max_age`. What was removed otherwise is forgotten lazily.
"""

import struct
from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

_ITEM = struct.Struct("<Qq")
NEVER = -1
"""`Nats-TTL: never` as a number."""
_LAST_NS = (1 << 63) - 1
"""The end of time, as a snapshot can write it; publishers may ask for more."""
_SPARE = 64
"""So many that are gone may be kept besides those that are not."""


class Ttls:
    """Sequence -> when it is over, in ns; `never` holds those that outlive `max_age`."""

    __slots__ = ("_heap", "_order", "_over", "never")

    def __init__(self) -> None:
        self._over: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        self.never: set[int] = set()
        self._order: deque[int] = deque()
        """Those of `never` as they came, which is by sequence, so that the lowest is at hand; some
        may be gone."""

    def add(self, seq: int, time_ns: int, ttl_ns: int) -> None:
        """Learn a stored message; `ttl_ns` is NEVER or positive."""
        if ttl_ns == NEVER:
            self.never.add(seq)
            self._order.append(seq)
            return
        over_ns = min(time_ns + ttl_ns, _LAST_NS)
        self._over[seq] = over_ns
        heappush(self._heap, (over_ns, seq))

    def forget(self, seqs: Sequence[int]) -> None:
        """These messages are gone."""
        if not self._over and not self.never:
            return
        for seq in seqs:
            self._over.pop(seq, None)
            self.never.discard(seq)
        if len(self._order) > 2 * len(self.never) + _SPARE:
            self._order = deque(sorted(self.never))

    def trim(self, first_seq: int) -> None:
        """Everything below is gone."""
        order = self._order
        while order and order[0] < first_seq:
            self.never.discard(order.popleft())

    def _clean(self) -> list[tuple[int, int]]:
        heap = self._heap
        while heap and self._over.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap

    def next_due_ns(self) -> int | None:
        """When the next message is over."""
        if not self._heap:
            return None
        heap = self._clean()
        return heap[0][0] if heap else None

    def due(self, now_ns: int, count_max: int) -> list[int]:
        """Messages that are over now, oldest end first; they stay known until `forget`."""
        over: list[tuple[int, int]] = []
        heap = self._clean()
        while heap and heap[0][0] <= now_ns and len(over) < count_max:
            over.append(heappop(heap))
            self._clean()
        for item in over:
            heappush(heap, item)
        return [seq for _, seq in over]

    def is_over(self, seq: int, now_ns: int) -> bool:
        """Whether the time of a message is over."""
        return self._over.get(seq, now_ns + 1) <= now_ns

    def snapshot(self) -> bytes:
        """All of it; ends of NEVER are written as such."""
        parts = [_ITEM.pack(seq, at) for seq, at in sorted(self._over.items())]
        parts += [_ITEM.pack(seq, NEVER) for seq in sorted(self.never)]
        return b"".join(parts)

    def restore(self, data: bytes) -> None:
        """Replace all by a snapshot's."""
        items = list(_ITEM.iter_unpack(data))
        self._over = {seq: at for seq, at in items if at != NEVER}
        self._order = deque([seq for seq, at in items if at == NEVER])
        self.never = set(self._order)
        self._heap = [(at, seq) for seq, at in self._over.items()]
        heapify(self._heap)
