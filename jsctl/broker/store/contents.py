"""What a stream sees in its store: the questions, answered from the index and the records.

Damaged sequences (`lost`) are neither readable nor removed: reads of them raise, reads that walk
over them stop in front of them, and only a removal takes them away. How contents change is in
`stream_store`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.record import Record, Row
from jsctl.broker.store.records import Records
from jsctl.broker.store.seqset import SeqSet
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


class Contents:
    """The messages of one stream, to be read."""

    def __init__(self, index: StoreIndex, records: Records) -> None:
        self._index = index
        self._records = records

    def state(self) -> StoreState:
        """Counters and bounds."""
        index = self._index
        deleted = index.last + 1 - index.first - index.retained_messages
        return StoreState(
            messages=index.messages,
            bytes=index.bytes,
            first_seq=index.first,
            first_time_ns=self._first_time(),
            last_seq=index.last,
            last_time_ns=index.last_time,
            num_subjects=len(index.subjects),
            num_deleted=deleted,
            mark=index.mark,
            lost=tuple(index.lost.seqs.ranges()),
        )

    @property
    def mark(self) -> int:
        """Position of the last change taken."""
        return self._index.mark

    @property
    def messages(self) -> int:
        """Messages that can be read."""
        return self._index.messages

    @property
    def size_bytes(self) -> int:
        """Their size as the stream's limits count it."""
        return self._index.bytes

    @property
    def retained_messages(self) -> int:
        """Messages that the stream's log has not removed: with those whose bytes are damaged."""
        return self._index.retained_messages

    @property
    def retained_bytes(self) -> int:
        """Their size. Limits look at this, so that damage does not change what they remove."""
        return self._index.retained_bytes

    def retained_for(self, subject: bytes) -> int:
        """How many of them a literal subject has."""
        return self._index.retained_for(subject)

    def retained_names(self, filters: Filters) -> list[bytes]:
        """Their subjects that pass, in no order."""
        return self._index.retained_subjects(filters)

    @property
    def subject_count(self) -> int:
        """Subjects that have messages."""
        return len(self._index.subjects)

    @property
    def first_seq(self) -> int:
        """The first live sequence, or one above the last when empty."""
        return self._index.first

    @property
    def last_seq(self) -> int:
        """The last sequence ever given."""
        return self._index.last

    @property
    def last_time_ns(self) -> int:
        """Time of the last message ever stored."""
        return self._index.last_time

    def digest(self) -> int:
        """A 128-bit sum over all live records; equal stores have equal digests."""
        return self._index.retained_digest

    def deleted(self) -> SeqSet:
        """Removed sequences between first and last; a copy."""
        return self._index.deleted.copy()

    def is_live(self, seq: int) -> bool:
        """Whether the sequence holds a message (possibly a damaged one)."""
        return self._index.is_live(seq)

    def load(self, seq: int) -> Record | None:
        """One message; None if it was removed or never was. Raises Damaged."""
        if not self.is_live(seq):
            return None
        self._check_lost(seq)
        return Record._make(self._read((seq,), 0)[0])

    def load_range(self, from_seq: int, count: int, bytes_max: int = 0) -> list[Row]:
        """As `next_many` without a filter."""
        stop = self._stop(from_seq)
        found = self._read(self._index.live(from_seq, stop, count), bytes_max)
        if not found and stop < self._index.last:
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
        found = self._filtered(filters, max(from_seq, self._index.first), stop, count, bytes_max)
        if not found and stop < self._index.last:
            self._check_lost(stop + 1)
        return found

    def _filtered(
        self, filters: Filters, start: int, stop: int, count: int, bytes_max: int
    ) -> list[Row]:
        found: list[Row] = []
        if start > stop:
            return found
        if not self._index.subjects.is_selective(filters):
            found, start = self._scan(filters, start, stop, count)
            if len(found) >= count or start > stop:
                return within(found[:count], bytes_max)
            count -= len(found)
        subjects = self._index.subjects.select(filters)
        if count == 1:
            first = self._index.subjects.next_seq(subjects, start)
            seqs = [] if first is None else [first]
        else:
            seqs = self._index.subjects.next_seqs(subjects, start, count)
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
            seqs = self._index.live(start, stop, step)
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
        newest = self._index.subjects.last(subject)
        if newest is not None:
            return newest
        filters = Filters((subject,))
        if filters.only_literals:
            return None
        if filters.is_all:
            index = self._index
            return index.deleted.previous_absent(index.last) if index.messages else None
        last = self._index.subjects.last
        return max((last(one) or 0 for one in self._index.subjects.select(filters)), default=None)

    def multi_last(self, filters: Filters, up_to_seq: int | None = None) -> list[int]:
        """The newest sequence, not above `up_to_seq`, of each subject that passes; ascending."""
        bound = self._index.last if up_to_seq is None else up_to_seq
        subjects = self._index.subjects
        newest = (subjects.last_up_to(subject, bound) for subject in subjects.select(filters))
        return sorted(seq for seq in newest if seq is not None)

    def first_for(self, subject: bytes) -> int | None:
        """Sequence of the oldest message of a literal subject."""
        return self._index.subjects.first(subject)

    def count_for(self, subject: bytes) -> int:
        """Number of messages of a literal subject."""
        return self._index.subjects.count(subject)

    def seq_at_time(self, time_ns: int) -> int:
        """The first live sequence at or after a time; one above the last if there is none."""
        low, high = self._index.first, self._index.last + 1
        while low < high:
            middle = (low + high) // 2
            seq = self._index.deleted.next_absent(middle)
            if seq < high and self._time_near(seq) < time_ns:
                low = seq + 1
            else:
                high = middle
        return min(self._index.deleted.next_absent(low), self._index.last + 1)

    def num_pending(self, filters: Filters, from_seq: int, last_per_subject: bool = False) -> int:
        """Messages at or after `from_seq` that pass, or only each subject's newest of them."""
        if last_per_subject:
            return self._index.subjects.last_from(filters, from_seq)
        if not filters.is_all:
            return self._index.subjects.count_from(filters, from_seq)
        start = max(from_seq, self._index.first)
        if start > self._index.last:
            return 0
        index = self._index
        lost = index.lost.seqs.count_range(start, index.last)
        return index.live_count(start, index.last) - lost

    def names(self, filters: Filters) -> list[bytes]:
        """The subjects that pass, in no order."""
        return self._index.subjects.select(filters)

    def subjects(self, filters: Filters) -> dict[bytes, int]:
        """Number of messages of each subject that passes."""
        return self._index.subjects.counts(filters)

    def bounds(self, from_seq: int) -> TransferBounds:
        """What the store is besides its records; `from_seq` is passed on."""
        return self._index.bounds(from_seq)

    def live_seqs(self, start: int, stop: int, count: int) -> list[int]:
        """Up to `count` sequences in [start, stop] that hold messages, ascending."""
        return self._index.live(start, min(stop, self._index.last), count)

    def _stop(self, from_seq: int) -> int:
        """The last sequence that a walk may touch without meeting a damaged one."""
        if not self._index.lost.seqs:
            return self._index.last
        bad = self._index.lost.seqs.next_present(from_seq)
        return self._index.last if bad is None else bad - 1

    def _check_lost(self, seq: int) -> None:
        if seq in self._index.lost.seqs:
            first = self._index.lost.seqs.previous_absent(seq) + 1
            last = self._index.lost.seqs.next_absent(seq) - 1
            raise self._damage(first, last)

    def _damage(self, first: int, last: int) -> Damaged:
        reason = f"messages {first} to {last} are damaged"
        return Damaged(reason, path=self._records.path_of(first), first_seq=first, last_seq=last)

    def _first_time(self) -> int:
        return self._time_near(self._index.first) if self._index.retained_messages else 0

    def _time_near(self, seq: int) -> int:
        """Time of a live sequence; of a neighbour if it is damaged."""
        index = self._index
        while seq <= index.last:
            known = index.lost.facts.get(seq)
            if known is not None and known.time_ns:
                return known.time_ns
            time_ns = None if seq in index.lost else self._records.time_of(seq)
            if time_ns is not None:
                return time_ns
            seq = index.deleted.next_absent(seq + 1)
        return index.last_time

    def _read(self, seqs: Sequence[int], bytes_max: int) -> list[Row]:
        """Verified records of live sequences; stops before damage unless it is the first."""
        rows, bad = self._records.read(seqs, bytes_max)
        if bad:
            self._lose(bad)
            if not rows:
                self._check_lost(bad)
        return rows

    def read_raw(self, seqs: Sequence[int]) -> list[bytes]:
        """Verified bytes of records of live sequences. Raises Damaged."""
        raws, bad = self._records.read_raw(seqs)
        if bad:
            self._lose(bad)
            self._check_lost(bad)
        return raws

    def _lose(self, seq: int) -> None:
        """A record turned out to be damaged: it does not count as a message any more."""
        if seq not in self._index.lost:
            (facts,) = self._records.facts((seq,))
            self._index.lose(seq, facts)


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
