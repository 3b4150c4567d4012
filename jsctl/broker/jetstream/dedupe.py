"""Which message ids were seen lately. Part of the replicated state of a stream.

Ids are learned when their message is applied, with the time that the leader gave to it, and
forgotten by the time of the log, never by a clock: all replicas hold the same map.
"""

import struct
from collections import deque

_ITEM = struct.Struct("<QqH")
_pack, _unpack = _ITEM.pack, _ITEM.unpack_from


class Dedupe:
    """Message id -> sequence, for `window_ns` (0: nothing is remembered)."""

    __slots__ = ("_order", "_seqs", "window_ns")

    def __init__(self, window_ns: int) -> None:
        self.window_ns = window_ns
        self._seqs: dict[bytes, tuple[int, int]] = {}
        self._order: deque[bytes] = deque()
        """Encoded as in a snapshot, so that one of millions of ids is made in no time."""

    def __len__(self) -> int:
        return len(self._seqs)

    def find(self, message_id: bytes, now_ns: int) -> int | None:
        """Sequence that was stored with this id within the window before `now_ns`."""
        found = self._seqs.get(message_id)
        if found is None or found[1] + self.window_ns <= now_ns:
            return None
        return found[0]

    def add(self, message_id: bytes, seq: int, time_ns: int) -> None:
        """Remember an id; times must not go back."""
        if self.window_ns <= 0:
            return
        self._seqs[message_id] = (seq, time_ns)
        self._order.append(_pack(seq, time_ns, len(message_id)) + message_id)

    def expire(self, log_time_ns: int) -> int:
        """Forget ids whose window is over; returns how many."""
        limit = log_time_ns - self.window_ns
        order = self._order
        before = len(self._seqs)
        while order:
            _, time_ns, _ = _unpack(order[0])
            if time_ns > limit:
                break
            message_id = order.popleft()[_ITEM.size :]
            found = self._seqs.get(message_id)
            if found is not None and found[1] == time_ns:
                del self._seqs[message_id]
        return before - len(self._seqs)

    def resize(self, window_ns: int) -> None:
        """A config change: ids already known are kept or forgotten by the new window."""
        self.window_ns = window_ns
        if window_ns <= 0:
            self._seqs.clear()
            self._order.clear()

    def empty_at_ns(self) -> int | None:
        """When the last id will be out of its window; None if there is none."""
        return _unpack(self._order[-1])[1] + self.window_ns if self._order else None

    def snapshot(self) -> bytes:
        """All ids in the order of their times; the window is the config's.

        An id that came again after its window may be there twice: the later one counts.
        """
        return b"".join(self._order)

    def restore(self, data: bytes) -> None:
        """Replace all ids by those of a snapshot."""
        self._seqs.clear()
        self._order.clear()
        at = 0
        while at < len(data):
            seq, time_ns, length = _ITEM.unpack_from(data, at)
            at += _ITEM.size
            self.add(data[at : at + length], seq, time_ns)
            at += length
