"""Which messages of a stream are schedules, and when each is due: replicated state of a stream.

All of it comes from the stream's log. The last message of a subject is its schedule, if it is one;
what is stored on the subject later ends it, unless a schedule made it. Messages that are gone are
forgotten when they go, as far as that costs little, and else when somebody comes upon them.

    scan u64, count u32 | sequences u64 ... | due i64 ... | lengths u32 ... | subjects
"""

import struct
from collections import deque
from collections.abc import Callable, Collection, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

_HEAD = struct.Struct("<QI")
FORGET = 0
REMOVE = -1
"""Instead of a time at which a schedule is due: it is over; its message goes, too."""
_SPARE = 64
"""So much that is out of date may be kept besides what is not."""


class ScheduledMessage(NamedTuple):
    """One schedule; when it is due in ns."""

    seq: int
    subject: bytes
    due_ns: int


class Schedules:
    """See the module. `scan`: schedules were stored before this stream had them, or elsewhere, and
    its messages are to be looked at from here on; 0: all are known."""

    __slots__ = ("_by_seq", "_by_subject", "_heap", "_order", "_sorted", "scan")

    def __init__(self, scan: int = 0) -> None:
        self.scan = scan
        self._by_seq: dict[int, tuple[int, bytes]] = {}
        """(due, subject)"""
        self._by_subject: dict[bytes, int] = {}
        self._heap: list[tuple[int, int]] = []
        self._order: deque[int] = deque()
        """Sequences as they came, for the oldest to be found."""
        self._sorted = True
        """A scan finds what came before others that are known."""

    def __len__(self) -> int:
        return len(self._by_seq)

    # The log

    def set(self, seq: int, subject: bytes, due_ns: int) -> None:
        """A schedule was stored, in place of what the subject had."""
        self.drop(subject)
        self._by_subject[subject] = seq
        self._by_seq[seq] = due_ns, subject
        heappush(self._heap, (due_ns, seq))
        self._sorted = self._sorted and (not self._order or self._order[-1] < seq)
        self._order.append(seq)
        self._tidy()

    def found(self, data: bytes, last_for: Callable[[bytes], int | None]) -> None:
        """A scan found these, written as a snapshot, and goes on where that says."""
        some = Schedules()
        some.restore(data, 0)
        self.scan = some.scan
        for seq, (due_ns, subject) in some._by_seq.items():
            if seq not in self._by_seq and last_for(subject) == seq:
                self.set(seq, subject, due_ns)

    def move(self, seq: int, due_ns: int) -> None:
        """A schedule that is known is due then, or is over."""
        found = self._by_seq.get(seq)
        if found is None:
            return
        if due_ns <= FORGET:
            self.forget((seq,))
            return
        self._by_seq[seq] = due_ns, found[1]
        heappush(self._heap, (due_ns, seq))
        self._tidy()

    def drop(self, subject: bytes) -> None:
        """A subject has no schedule any more."""
        seq = self._by_subject.pop(subject, None)
        if seq is not None:
            del self._by_seq[seq]

    def overwritten(self, subjects: Collection[bytes]) -> None:
        """Messages that are no schedules were stored on these."""
        if self._by_subject and not self._by_subject.keys().isdisjoint(subjects):
            for subject in subjects:
                self.drop(subject)

    def forget(self, seqs: Collection[int]) -> None:
        """These messages are gone."""
        for seq in seqs:
            found = self._by_seq.pop(seq, None)
            if found is not None:
                del self._by_subject[found[1]]

    def trim(self, first_seq: int) -> None:
        """Everything below is gone."""
        if not self._sorted:
            self._order, self._sorted = deque(sorted(self._by_seq)), True
        order = self._order
        while order and order[0] < first_seq:
            self.forget((order.popleft(),))

    def sweep(self, subject: bytes, is_live: Callable[[int], bool]) -> None:
        """Messages of a subject, or of all that a pattern matches, may be gone."""
        seq = self._by_subject.get(subject)
        if seq is not None:
            self.forget(() if is_live(seq) else (seq,))
        elif not subject or b"*" in subject or b">" in subject:
            self.forget([seq for seq in self._by_seq if not is_live(seq)])

    def _tidy(self) -> None:
        kept = 2 * len(self._by_seq) + _SPARE
        if len(self._heap) > kept:
            self._heap = [(due_ns, seq) for seq, (due_ns, _) in self._by_seq.items()]
            heapify(self._heap)
        if len(self._order) > kept:
            self._order, self._sorted = deque(sorted(self._by_seq)), True

    # Questions

    def at(self, subject: bytes) -> int:
        """The sequence of a subject's schedule; 0 if it has none."""
        return self._by_subject.get(subject, 0)

    def next_due_ns(self) -> int | None:
        """When the next one is due."""
        heap = self._clean()
        return heap[0][0] if heap else None

    def _clean(self) -> list[tuple[int, int]]:
        heap = self._heap
        while heap and self._by_seq.get(heap[0][1], (None,))[0] != heap[0][0]:
            heappop(heap)
        return heap

    def due(self, now_ns: int, count_max: int) -> list[ScheduledMessage]:
        """Those that are due by now, the first one first; they stay due."""
        over: dict[int, int] = {}
        heap = self._clean()
        while heap and heap[0][0] <= now_ns and len(over) < count_max:
            due_ns, seq = heappop(heap)
            over[seq] = due_ns
            self._clean()
        for seq, due_ns in over.items():
            heappush(heap, (due_ns, seq))
        return [ScheduledMessage(seq, self._by_seq[seq][1], due_ns) for seq, due_ns in over.items()]

    def page(self, after: int, count: int) -> Iterator[ScheduledMessage]:
        """Some of them behind a sequence, in order."""
        seqs = sorted([seq for seq in self._by_seq if seq > after])[:count]
        for seq in seqs:
            due_ns, subject = self._by_seq[seq]
            yield ScheduledMessage(seq, subject, due_ns)

    # Snapshots

    def snapshot(self) -> bytes:
        """All of it."""
        rows = dict(sorted(self._by_seq.items()))
        count = len(rows)
        subjects = [subject for _, subject in rows.values()]
        parts = (
            _HEAD.pack(self.scan, count),
            struct.pack(f"<{count}Q", *rows),
            struct.pack(f"<{count}q", *[due_ns for due_ns, _ in rows.values()]),
            struct.pack(f"<{count}I", *map(len, subjects)),
        )
        return b"".join((*parts, *subjects))

    def restore(self, data: bytes, at: int) -> int:
        """Replace all by a snapshot's; where in the buffer that ends."""
        self.scan, count = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        seqs = struct.unpack_from(f"<{count}Q", data, at)
        dues = struct.unpack_from(f"<{count}q", data, at + 8 * count)
        lengths = struct.unpack_from(f"<{count}I", data, at + 16 * count)
        at += 20 * count
        self._by_seq, self._by_subject = {}, {}
        for seq, due_ns, length in zip(seqs, dues, lengths, strict=True):
            subject = data[at : at + length]
            at += length
            self._by_seq[seq] = due_ns, subject
            self._by_subject[subject] = seq
        self._order, self._sorted = deque(seqs), True
        self._heap = [(due_ns, seq) for seq, (due_ns, _) in self._by_seq.items()]
        heapify(self._heap)
        return at
