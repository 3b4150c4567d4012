"""What a store of one stream knows, and the questions it answers from that.

`Contents` owns the counters, the set of deleted sequences and the subject index. Where records
lie is known to the kinds of store, through the hooks at the end; how contents change is in
`stream_store`.

Damaged sequences (`lost`) are neither live nor deleted: reads of them raise, reads that walk
over them stop in front of them, and only a removal takes them away.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.record import Columns, Record, Row
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.subject_index import SubjectIndex
from jsctl.broker.store.transfer import TransferBounds
from jsctl.broker.subject.matching import Filters

_SCAN_RECORDS_MAX = 256
"""Messages looked at one by one before a filter is answered from the subject index."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """A store at one moment. An empty store has `first_seq == last_seq + 1`."""

    messages: int
    bytes: int
    first_seq: int
    first_time_ns: int
    last_seq: int
    last_time_ns: int
    num_subjects: int
    num_deleted: int
    mark: int
    lost: tuple[tuple[int, int], ...] = ()
    """Ranges of sequences whose bytes are damaged."""


class Contents(ABC):
    """The messages of one stream, to be read."""

    def __init__(self) -> None:
        self._index = SubjectIndex()
        self._deleted = SeqSet()
        self._lost = SeqSet()
        self._messages = 0
        self._bytes = 0
        self._first = 1
        self._last = 0
        self._last_time = 0
        self._mark = 0
        self._digest = 0

    def state(self) -> StoreState:
        """Counters and bounds."""
        deleted = self._last + 1 - self._first - self._messages - len(self._lost)
        return StoreState(
            messages=self._messages,
            bytes=self._bytes,
            first_seq=self._first,
            first_time_ns=self._first_time(),
            last_seq=self._last,
            last_time_ns=self._last_time,
            num_subjects=len(self._index),
            num_deleted=deleted,
            mark=self._mark,
            lost=tuple(self._lost.ranges()),
        )

    @property
    def mark(self) -> int:
        """Position of the last change taken."""
        return self._mark

    @property
    def messages(self) -> int:
        """Live messages."""
        return self._messages

    @property
    def size_bytes(self) -> int:
        """Their size as the stream's limits count it."""
        return self._bytes

    @property
    def subject_count(self) -> int:
        """Subjects that have messages."""
        return len(self._index)

    @property
    def first_seq(self) -> int:
        """The first live sequence, or one above the last when empty."""
        return self._first

    @property
    def last_seq(self) -> int:
        """The last sequence ever given."""
        return self._last

    @property
    def last_time_ns(self) -> int:
        """Time of the last message ever stored."""
        return self._last_time

    def digest(self) -> int:
        """A 128-bit sum over all live records; equal stores have equal digests."""
        return self._digest

    def deleted(self) -> SeqSet:
        """Removed sequences between first and last; a copy."""
        return self._deleted.copy()

    def is_live(self, seq: int) -> bool:
        """Whether the sequence holds a message (possibly a damaged one)."""
        return self._first <= seq <= self._last and seq not in self._deleted

    def load(self, seq: int) -> Record | None:
        """One message; None if it was removed or never was. Raises Damaged."""
        if not self.is_live(seq):
            return None
        self._check_lost(seq)
        return Record._make(self._read((seq,), 0)[0])

    def load_range(self, from_seq: int, count: int, bytes_max: int = 0) -> list[Row]:
        """As `next_many` without a filter."""
        stop = self._stop(from_seq)
        found = self._read(self._live(from_seq, stop, count), bytes_max)
        if not found and stop < self._last:
            self._check_lost(stop + 1)
        return found

    def next(self, filters: Filters, from_seq: int) -> Record | None:
        """The first message at or after `from_seq` that passes. Raises Damaged."""
        found = self.next_many(filters, from_seq, 1)
        return Record._make(found[0]) if found else None

    def next_many(
        self, filters: Filters, from_seq: int, count: int, bytes_max: int = 0
    ) -> list[Row]:
        """Up to `count` messages at or after `from_seq` that pass, ascending.

        With `bytes_max` the list ends before it would pass that size, but holds at least one.
        It ends before a damaged sequence; raises Damaged when that is the first one met: the
        caller continues behind `last_seq` of the error if it may skip.
        """
        if filters.is_all:
            return self.load_range(from_seq, count, bytes_max)
        stop = self._stop(from_seq)
        found = self._filtered(filters, max(from_seq, self._first), stop, count, bytes_max)
        if not found and stop < self._last:
            self._check_lost(stop + 1)
        return found

    def _filtered(
        self, filters: Filters, start: int, stop: int, count: int, bytes_max: int
    ) -> list[Row]:
        found: list[Row] = []
        if start > stop:
            return found
        if not self._index.is_selective(filters):
            found, start = self._scan(filters, start, stop, count)
            if len(found) >= count or start > stop:
                return within(found[:count], bytes_max)
            count -= len(found)
        subjects = self._index.select(filters)
        if count == 1:
            first = self._index.next_seq(subjects, start)
            seqs = [] if first is None else [first]
        else:
            seqs = self._index.next_seqs(subjects, start, count)
        found.extend(self._read([seq for seq in seqs if seq <= stop], bytes_max))
        return within(found, bytes_max)

    def _scan(self, filters: Filters, start: int, stop: int, count: int) -> tuple[list[Row], int]:
        """What passes among the next messages, and where the look at them ended.

        A look at few of them, as most filters match often.
        """
        found: list[Row] = []
        looked, step = 0, 16
        match = filters.match
        while looked < _SCAN_RECORDS_MAX or (found and looked < 16 * count):
            seqs = self._live(start, stop, step)
            if not seqs:
                return found, stop + 1
            rows = self._read(seqs, 0)
            found.extend(row for row in rows if match(row[2]))
            if len(found) >= count:
                break
            looked += len(rows)
            start = rows[-1][0] + 1
            step = 64
        return found, start

    def last_for(self, subject: bytes) -> int | None:
        """Sequence of the newest message of a subject or pattern."""
        newest = self._index.last(subject)
        if newest is not None:
            return newest
        filters = Filters((subject,))
        if filters.only_literals:
            return None
        if filters.is_all:
            return self._deleted.previous_absent(self._last) if self._messages else None
        last = self._index.last
        return max((last(one) or 0 for one in self._index.select(filters)), default=None)

    def multi_last(self, filters: Filters, up_to_seq: int | None = None) -> list[int]:
        """The newest sequence, not above `up_to_seq`, of each subject that passes; ascending."""
        bound = self._last if up_to_seq is None else up_to_seq
        newest = (self._index.last_up_to(subject, bound) for subject in self._index.select(filters))
        return sorted(seq for seq in newest if seq is not None)

    def first_for(self, subject: bytes) -> int | None:
        """Sequence of the oldest message of a literal subject."""
        return self._index.first(subject)

    def count_for(self, subject: bytes) -> int:
        """Number of messages of a literal subject."""
        return self._index.count(subject)

    def oldest_for(self, subject: bytes, count: int) -> list[int]:
        """Up to `count` oldest sequences of a literal subject, ascending."""
        return self._index.next_seqs((subject,), 0, count)

    def seq_at_time(self, time_ns: int) -> int:
        """The first live sequence at or after a time; one above the last if there is none."""
        low, high = self._first, self._last + 1
        while low < high:
            middle = (low + high) // 2
            seq = self._deleted.next_absent(middle)
            if seq < high and self._time_near(seq) < time_ns:
                low = seq + 1
            else:
                high = middle
        return min(self._deleted.next_absent(low), self._last + 1)

    def num_pending(self, filters: Filters, from_seq: int, last_per_subject: bool = False) -> int:
        """Messages at or after `from_seq` that pass, or only each subject's newest of them."""
        if last_per_subject:
            return self._index.last_from(filters, from_seq)
        if not filters.is_all:
            return self._index.count_from(filters, from_seq)
        start = max(from_seq, self._first)
        if start > self._last:
            return 0
        gone = self._deleted.count_range(start, self._last)
        return self._last + 1 - start - gone - self._lost.count_range(start, self._last)

    def names(self, filters: Filters) -> list[bytes]:
        """The subjects that pass, in no order."""
        return self._index.select(filters)

    def subjects(self, filters: Filters) -> dict[bytes, int]:
        """Number of messages of each subject that passes."""
        return self._index.counts(filters)

    def bounds(self, from_seq: int) -> TransferBounds:
        """What the store is besides its records; `from_seq` is passed on."""
        return TransferBounds(
            from_seq,
            self._first,
            self._last,
            self._last_time,
            self._mark,
            self._digest,
            self._deleted.copy(),
        )

    def live_seqs(self, start: int, stop: int, count: int) -> list[int]:
        """Up to `count` sequences in [start, stop] that hold messages, ascending."""
        return self._live(start, min(stop, self._last), count)

    def _live(self, start: int, stop: int, count: int) -> list[int]:
        return self._deleted.absent(max(start, self._first), stop, count)

    def _stop(self, from_seq: int) -> int:
        """The last sequence that a walk may touch without meeting a damaged one."""
        if not self._lost:
            return self._last
        bad = self._lost.next_present(from_seq)
        return self._last if bad is None else bad - 1

    def _check_lost(self, seq: int) -> None:
        if seq in self._lost:
            first = self._lost.previous_absent(seq) + 1
            last = self._lost.next_absent(seq) - 1
            raise self._damage(first, last)

    def _damage(self, first: int, last: int) -> Damaged:
        reason = f"messages {first} to {last} are damaged"
        return Damaged(reason, path=self._where(first), first_seq=first, last_seq=last)

    def _first_time(self) -> int:
        return self._time_near(self._first) if self._messages else 0

    # Hooks of a kind of store

    def _sizes(self, found: Columns) -> int:
        return sum(found.lengths)

    def _where(self, seq: int) -> str:
        return "memory"

    @abstractmethod
    def _time_near(self, seq: int) -> int:
        """Time of a live sequence; of a neighbour if it is damaged."""

    @abstractmethod
    def _read(self, seqs: Sequence[int], bytes_max: int) -> list[Row]:
        """Verified records of live sequences; stops before damage unless it is the first."""

    @abstractmethod
    def read_raw(self, seqs: Sequence[int]) -> list[bytes]:
        """Verified bytes of records of live sequences. Raises Damaged."""


def within(rows: list[Row], bytes_max: int) -> list[Row]:
    """The first rows whose sizes stay within a bound; at least one. 0: no bound."""
    if not bytes_max:
        return rows
    total = 0
    for at, (_, _, subject, headers, payload) in enumerate(rows):
        total += record.message_bytes(len(subject), len(headers), len(payload))
        if total > bytes_max and at:
            return rows[:at]
    return rows
