"""Messages with a time to live of their own (`Nats-TTL`). Replicated state of a stream.

A message with a positive time to live is removed when it is over, one with `never` outlives
the stream's `max_age`. What was removed otherwise is forgotten lazily.
"""

import struct
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

_ITEM = struct.Struct("<Qq")
NEVER = -1
"""`Nats-TTL: never` as a number."""
LATEST_NS = (1 << 63) - 1
"""No time is later: clients may ask for more, and a snapshot has no room for it."""


class Ttls:
    """Sequence -> when it is over, in ns; `never` holds those that outlive `max_age`."""

    __slots__ = ("_heap", "_over", "never")

    def __init__(self) -> None:
        self._over: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []
        self.never: set[int] = set()

    def add(self, seq: int, time_ns: int, ttl_ns: int) -> None:
        """Learn a stored message; `ttl_ns` is NEVER or positive."""
        if ttl_ns == NEVER:
            self.never.add(seq)
            return
        over_ns = min(time_ns + ttl_ns, LATEST_NS)
        self._over[seq] = over_ns
        heappush(self._heap, (over_ns, seq))

    def forget(self, seqs: Sequence[int]) -> None:
        """These messages are gone."""
        if not self._over and not self.never:
            return
        for seq in seqs:
            self._over.pop(seq, None)
            self.never.discard(seq)

    def trim(self, first_seq: int) -> None:
        """Everything below is gone."""
        if self.never and min(self.never) < first_seq:
            self.never = {seq for seq in self.never if seq >= first_seq}

    def _clean(self) -> list[tuple[int, int]]:
        heap = self._heap
        while heap and self._over.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap

    def next_due_ns(self) -> int | None:
        """When the next message is over."""
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
        self.never = {seq for seq, at in items if at == NEVER}
        self._heap = [(at, seq) for seq, at in self._over.items()]
        heapify(self._heap)
