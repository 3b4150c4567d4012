"""What a stream sees in its store: the questions, answered from the index and the records.

Damaged sequences (`lost`) are neither readable nor removed: reads of them raise, reads that walk
over them stop in front of them, and only a removal takes them away. How contents change is in
`stream_store`.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import islice

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.index import UNKNOWN, StoreIndex
from jsctl.broker.store.record import Record, Row
from jsctl.broker.store.records import Records
from jsctl.broker.store.segments.catalogue import encode_records
from jsctl.broker.store.segments.segment import RecordColumns
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.transfer import TransferBounds
from jsctl.broker.store.views.excerpt import Excerpt
from jsctl.broker.store.views.newest import NewestOfEach, newest_near
from jsctl.broker.store.views.view import StoreView
from jsctl.broker.subject.matching import Filters
from jsctl.broker.subject.validity import has_wildcard
from jsctl.dataclass import dataclass

_EXCERPT_RECORDS = 64
_LOST_MAX = 2048
"""Messages that one excerpt finds to be damaged, or a few more: there may be very many."""
_SCAN_RECORDS_MAX = 256
"""Messages looked at one by one before a filter is answered from the subject index."""


@dataclass(slots=True)
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
            lost=tuple(index.lost.seqs.ranges()) if index.lost.seqs else (),
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
    def is_damaged(self) -> bool:
        """Whether some messages are known to be damaged."""
        return bool(self._index.lost)

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

    def excess(self, subjects: Iterable[bytes], limit: int) -> list[tuple[bytes, int]]:
        """Those of literal subjects that have more than `limit` of them, at least one, and how
        many more."""
        return self._index.excess(subjects, limit)

    def crowded(self, limit: int) -> list[bytes]:
        """The subjects that have more than `limit` of them, at least one, in no order."""
        return self._index.crowded(limit)

    @property
    def subject_count(self) -> int:
        """Subjects that have messages."""
        return len(self._index.subjects)

    @property
    def subjects_searched(self) -> int:
        """How many were held against patterns so far; what that cost counts by the difference."""
        return self._index.subjects.searched

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

    @property
    def lost(self) -> SeqSet:
        """Sequences whose bytes are damaged, as far as that is known; not to be changed."""
        return self._index.lost.seqs

    @property
    def digest_is_whole(self) -> bool:
        """Whether the digest has all that is damaged in it, too."""
        lost = self._index.lost
        known = lost.facts.values()
        whole = len(known) == len(lost) and all(one.crc for one in known)
        return whole and self._records.totals_known

    def deleted(self) -> SeqSet:
        """Removed sequences between first and last; a copy."""
        return self._index.deleted.copy()

    def is_live(self, seq: int) -> bool:
        """Whether the sequence holds a message (possibly a damaged one)."""
        return self._index.is_live(seq)

    def live_of(self, seqs: Sequence[int]) -> list[int]:
        """Those of ascending sequences that hold a message (possibly a damaged one)."""
        return self._index.live_of(seqs)

    def load(self, seq: int) -> Record | None:
        """One message; None if it was removed or never was. Raises Damaged."""
        if not self.is_live(seq):
            return None
        self._check_lost(seq)
        return Record._make(self._read((seq,), 0)[0])

    def load_many(self, seqs: Sequence[int], bytes_max: int = 0) -> list[Row]:
        """Those of ascending sequences that hold messages; ends as `next_many` does."""
        live = self._index.live_of(seqs)
        if lost := self._index.lost.seqs:
            bad = next((place for place, seq in enumerate(live) if seq in lost), len(live))
            if not bad and live:
                self._check_lost(live[0])
            live = live[:bad]
        return self._read(live, bytes_max) if live else []

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
                return record.within(found[:count], bytes_max)
            count -= len(found)
        subjects = self._index.subjects.select(filters)
        if count == 1:
            first = self._index.subjects.next_seq(subjects, start)
            seqs = [] if first is None else [first]
        else:
            seqs = self._index.subjects.next_seqs(subjects, start, count)
        found.extend(self._read_behind(found, [seq for seq in seqs if seq <= stop], bytes_max))
        return record.within(found, bytes_max)

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
            rows = self._read_behind(found, seqs, 0)
            if not rows:
                return found, stop + 1
            found.extend(row for row in rows if match(row[2]))
            if len(found) >= count:
                break
            looked += len(rows)
            start = rows[-1][0] + 1
            step = 64
        return found, start

    def last_for(self, subject: bytes) -> int | None:
        """Sequence of the newest message of a subject or pattern, be it damaged."""
        index = self._index
        # A message may have a subject that reads as a pattern: it is found among those that match.
        if not index.lost and not has_wildcard(subject):
            newest = index.subjects.last(subject)
            if newest is not None:
                return newest
        filters = Filters((subject,))
        if filters.is_all:
            some = index.retained_messages
            return index.deleted.previous_absent(index.last) if some else None
        near = newest_near(index, self.subject_of, filters)
        if near is not None:
            return near
        found = self.multi_last(filters) if index.lost else index.subjects.lasts(filters)
        return max(found, default=None)

    def subject_of(self, seq: int) -> bytes | None:
        """Subject of a live message; None if it is damaged and nobody knows."""
        try:
            found = self.load(seq)
        except Damaged:
            known = self._index.lost.facts.get(seq)
            return None if known is None else known.subject or None
        return None if found is None else found.subject

    def expect_known(self, seq: int) -> None:
        """Raises Damaged if behind a sequence is a damaged message whose subject nobody knows."""
        lost = self._index.lost
        if lost:
            at = lost.seqs.next_present(seq + 1)
            while at is not None:
                known = lost.facts.get(at)
                if known is None or not known.subject:
                    self._check_lost(at)
                at = lost.seqs.next_present(at + 1)

    def multi_last(
        self, filters: Filters, up_to_seq: int | None = None, most: int | None = None
    ) -> list[int]:
        """The newest sequence, not above `up_to_seq`, of each subject that passes; ascending. Of
        `most` of them, where there are more."""
        index = self._index
        bound = index.last if up_to_seq is None else up_to_seq
        if bound >= index.last and not index.lost:
            return sorted(index.subjects.lasts(filters, most))
        newest = (index.last_up_to(name, bound) for name in index.retained_subjects(filters))
        return sorted(islice((seq for seq in newest if seq is not None), most))

    def newest_of_each(self, filters: Filters) -> NewestOfEach:
        """As `multi_last`, for a caller who goes on with it as often as it takes."""
        return NewestOfEach(self._index, filters)

    def first_for(self, subject: bytes) -> int | None:
        """Sequence of the oldest message of a literal subject."""
        return self._index.subjects.first(subject)

    def first_matching(self, filters: Filters) -> int | None:
        """Sequence of the oldest message that passes, or of a damaged one before it."""
        index = self._index
        found = index.subjects.next_seq(index.subjects.select(filters), index.first)
        damaged = index.lost.seqs.next_present(index.first) if index.lost else None
        return min((seq for seq in (found, damaged) if seq is not None), default=None)

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
        """Messages at or after `from_seq` that pass, or only each subject's newest of them.

        Damaged ones count: they are there.
        """
        index = self._index
        if from_seq > index.last:
            return 0
        if last_per_subject:
            return index.subjects.last_from(filters, from_seq)
        if not filters.is_all:
            count = index.subjects.count_from(filters, from_seq)
            return count + index.lost.subjects.count_from(filters, from_seq)
        return index.live_count(from_seq, index.last)

    def names(self, filters: Filters) -> list[bytes]:
        """The subjects that pass, in no order."""
        return self._index.subjects.select(filters)

    def subjects(self, filters: Filters) -> dict[bytes, int]:
        """Number of messages of each subject that passes."""
        return self._index.subjects.counts(filters)

    def bounds(self, from_seq: int) -> TransferBounds:
        """What the store is besides its records; `from_seq` is passed on."""
        return self._index.bounds(from_seq)

    def view(self) -> StoreView:
        """All that is here now, to be read while the store goes on; its caller closes it."""
        return StoreView(self._index, self._records)

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

    def _read_behind(self, found: list[Row], seqs: Sequence[int], bytes_max: int) -> list[Row]:
        """The same, but damage is an error only where nothing was found before it."""
        try:
            return self._read(seqs, bytes_max)
        except Damaged:
            if not found:
                raise
            return []

    def read_raw(self, seqs: Sequence[int]) -> list[bytes]:
        """Verified bytes of records of live sequences. Raises Damaged."""
        raws, bad = self._records.read_raw(seqs)
        if bad:
            self._lose(bad)
            self._check_lost(bad)
        return raws

    def lost_records(self, seqs: Sequence[int]) -> bytes:
        """What is known of damaged ones, ascending, to be told to another store."""
        facts = [self._index.lost.facts.get(seq, UNKNOWN) for seq in seqs]
        some = RecordColumns(
            array("Q", seqs),
            array("I", [one.crc for one in facts]),
            array("I", [one.size for one in facts]),
            array("q", [one.time_ns for one in facts]),
            [one.subject for one in facts],
        )
        return encode_records(some)

    def excerpt(self, first: int, last: int, bytes_max: int) -> Excerpt:
        """What is in a range, as far as `bytes_max` goes, but at least one message. Damage is no
        error here: it is told, and ends the excerpt where it is very much."""
        index = self._index
        found, before = Excerpt(0, SeqSet(), []), len(index.lost)
        last, at = min(last, index.last), first
        while at <= last and bytes_max > 0 and len(index.lost) - before < _LOST_MAX:
            seqs = index.live(at, last, _EXCERPT_RECORDS)
            known = [seq for seq in seqs if seq not in index.lost]
            seqs = seqs[: self._fitting(seqs, known, bytes_max)]
            known = [seq for seq in known if seq <= seqs[-1]] if seqs else []
            raws = self._sound(known)
            if raws:
                found.frames.append(record.frame_of_raw(raws))
                bytes_max -= len(found.frames[-1])
            found.lost.add_many([seq for seq in seqs if seq in index.lost])
            at = seqs[-1] + 1 if seqs else last + 1
        return found._replace(up_to=min(at - 1, last))

    def _sound(self, seqs: Sequence[int]) -> list[bytes]:
        """Verified bytes of live records; those that are damaged are lost."""
        found: list[bytes] = []
        while seqs:
            raws, bad = self._records.read_raw(seqs)
            found += raws
            if not bad:
                break
            self._lose(bad)
            seqs = seqs[len(raws) + 1 :]
        return found

    def first_of(self, seqs: Sequence[int], bytes_max: int) -> Sequence[int]:
        """The first ones of ascending live sequences whose messages have so many bytes together, at
        least one if there is one."""
        known = [seq for seq in seqs if seq not in self._index.lost]
        return seqs[: self._fitting(seqs, known, bytes_max)]

    def _fitting(self, seqs: Sequence[int], known: list[int], bytes_max: int) -> int:
        """How many of these sequences fit, at least one; those not known take no room."""
        sizes = dict(zip(known, self._records.sizes(known), strict=True))
        for count, seq in enumerate(seqs):
            bytes_max -= sizes.get(seq, 0)
            if bytes_max < 0 and count:
                return count
        return len(seqs)

    def _lose(self, seq: int) -> None:
        """A record turned out to be damaged: it does not count as a message any more."""
        if seq not in self._index.lost:
            (facts,) = self._records.facts((seq,))
            self._index.lose(seq, facts)
