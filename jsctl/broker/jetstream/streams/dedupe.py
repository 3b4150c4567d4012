"""Which message ids were seen lately. Part of the replicated state of a stream.

Ids are learned when their message is applied, with the time that the leader gave to it, and
forgotten by the time of the log, never by a clock: all replicas hold the same map.
"""

import struct
from collections import deque
from collections.abc import Iterable
from itertools import repeat

from jsctl.broker.accel.choice import column_loops
from jsctl.broker.pieces import Piece

_ITEM = struct.Struct("<QqH")
_pack, _unpack = _ITEM.pack, _ITEM.unpack_from


_BLOCK_BYTES = 1 << 16


class Dedupe:
    """Message id -> sequence, for `window_ns` (0: nothing is remembered)."""

    __slots__ = ("_blocks", "_forgotten_ns", "_newest_ns", "_seqs", "_start", "window_ns")

    def __init__(self, window_ns: int) -> None:
        self.window_ns = window_ns
        self._seqs: dict[bytes, tuple[int, int]] = {}
        self._blocks: deque[bytes | bytearray] = deque()
        """Ids in the order of their times, as in a snapshot, so that one of millions of ids is
        neither computed nor, but for the last block, copied. An id that came again after its
        window may be there twice."""
        self._start = 0
        """Where the oldest id is in the first block."""
        self._newest_ns = 0
        self._forgotten_ns = 0
        """The time of the newest id that was forgotten. A snapshot has it as an id without bytes,
        which former versions read as one that nobody asks for."""

    def __len__(self) -> int:
        return len(self._seqs)

    def find(self, message_id: bytes, now_ns: int) -> int | None:
        """Sequence that was stored with this id within the window before `now_ns`."""
        found = self._seqs.get(message_id)
        if found is None or found[1] + self.window_ns <= now_ns:
            return None
        return found[0]

    def has_any(self, message_ids: Iterable[bytes]) -> bool:
        """Whether one of these is remembered, its window perhaps over."""
        return not self._seqs.keys().isdisjoint(message_ids)

    def add(self, message_id: bytes, seq: int, time_ns: int) -> None:
        """Remember an id; times must not go back."""
        if self.window_ns > 0:
            self._seqs[message_id] = (seq, time_ns)
            self._note(time_ns, _pack(seq, time_ns, len(message_id)) + message_id)

    def add_many(self, message_ids: list[bytes], first_seq: int, time_ns: int) -> None:
        """Remember the ids of messages that follow each other; empty ones have none."""
        seqs = range(first_seq, first_seq + len(message_ids))
        if not all(message_ids):
            for seq, name in zip(seqs, message_ids, strict=True):
                if name:
                    self.add(name, seq, time_ns)
        elif self.window_ns > 0 and message_ids:
            known = zip(seqs, repeat(time_ns), strict=False)
            self._seqs.update(zip(message_ids, known, strict=True))
            self._note(time_ns, column_loops().pack_ids(message_ids, first_seq, time_ns))

    def _note(self, time_ns: int, data: bytes) -> None:
        self._newest_ns = time_ns
        blocks = self._blocks
        if not blocks or len(blocks[-1]) >= _BLOCK_BYTES:
            if blocks:
                blocks[-1] = bytes(blocks[-1])
            blocks.append(bytearray())
        blocks[-1] += data

    def expire(self, log_time_ns: int) -> int:
        """Forget ids whose window is over; returns how many."""
        limit = log_time_ns - self.window_ns
        before = len(self._seqs)
        while self._blocks:
            block = self._blocks[0]
            if self._start == len(block):
                self._blocks.popleft()
                self._start = 0
                continue
            _, time_ns, length = _unpack(block, self._start)
            if time_ns > limit:
                break
            self._forgotten_ns = time_ns
            begin = self._start + _ITEM.size
            self._start = begin + length
            message_id = bytes(block[begin : self._start])
            found = self._seqs.get(message_id)
            if found is not None and found[1] == time_ns:
                del self._seqs[message_id]
        return before - len(self._seqs)

    def resize(self, window_ns: int) -> None:
        """A config change: ids already known are kept or forgotten by the new window."""
        self.window_ns = window_ns
        if window_ns <= 0:
            self._clear()

    def empty_at_ns(self) -> int | None:
        """When the last id will be out of its window; None if there is none."""
        return self._newest_ns + self.window_ns if self._blocks else None

    @property
    def over_ns(self) -> int:
        """When the window of the last id that was forgotten was over; 0 if none was. What is stored
        from now on must not be older, or that id would be there twice within its window: a leader
        whose clock is ahead may have forgotten it."""
        return self._forgotten_ns + self.window_ns if self._forgotten_ns else 0

    def snapshot(self) -> bytes:
        """All ids in the order of their times; the window is the config's."""
        return b"".join(self.pieces())

    def pieces(self) -> list[Piece]:
        """The same in pieces, which later changes leave as they are."""
        # Closed blocks are bytes already, which nothing copies.
        found: list[Piece] = list(map(bytes, self._blocks))
        if self._start:
            found[0] = memoryview(found[0])[self._start :]
        if self._forgotten_ns:
            found.insert(0, _pack(0, self._forgotten_ns, 0))
        return found

    def restore(self, data: bytes) -> None:
        """Replace all ids by those of a snapshot."""
        self._clear()
        at = 0
        while at < len(data):
            seq, time_ns, length = _unpack(data, at)
            at += _ITEM.size
            if length:
                self.add(data[at : at + length], seq, time_ns)
            else:
                self._forgotten_ns = time_ns
            at += length

    def _clear(self) -> None:
        self._seqs.clear()
        self._blocks.clear()
        self._start = self._forgotten_ns = 0
