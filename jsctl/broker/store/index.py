"""What a store knows of a stream without a look at its bytes.

`StoreIndex` has the bounds, the removed sequences, the subjects and the totals. Messages whose
bytes are damaged are kept apart in `LostRecords`, with all that is known of them: what can be read
is `messages`, `bytes` and `subjects`; what there would be without damage is `retained_*`, and only
that decides what limits remove, so that a damaged replica removes what the others remove.

It knows nothing of files, records' bytes or the caller's log.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from jsctl.broker.store.record import Columns
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.subject_index import SubjectIndex
from jsctl.broker.store.transfer import TransferBounds
from jsctl.broker.subject.matching import Filters


class Facts(NamedTuple):
    """What counters and index need to know of one record. All empty: nothing is known."""

    crc: int
    size: int
    time_ns: int
    subject: bytes


UNKNOWN = Facts(0, 0, 0, b"")
"""Of a record of which no copy of its facts is left."""


class LostRecords:
    """Live sequences whose bytes are damaged, and what is known of each."""

    __slots__ = ("bytes", "digest", "facts", "seqs", "subjects")

    def __init__(self) -> None:
        self.seqs = SeqSet()
        self.facts: dict[int, Facts] = {}
        self.subjects = SubjectIndex()
        self.bytes = 0
        self.digest = 0

    def __len__(self) -> int:
        return len(self.seqs)

    def __contains__(self, seq: int) -> bool:
        return seq in self.seqs

    def add(self, seq: int, facts: Facts) -> None:
        """Note a damaged record."""
        assert seq not in self.seqs, "a record is lost once"
        self.seqs.add(seq)
        self.digest += record_sum(facts.crc, seq)
        if facts != UNKNOWN:
            self.facts[seq] = facts
            self.bytes += facts.size
            self.subjects.insert(facts.subject, seq)

    def add_unknown(self, first: int, last: int) -> None:
        """Note a range of which nothing is known but that it was there."""
        assert not self.seqs.count_range(first, last), "a record is lost once"
        self.seqs.add_range(first, last)
        self.digest += (first + last) * (last + 1 - first) // 2

    def remove(self, seq: int) -> Facts:
        """Forget one, as it is removed or back again; what was known of it."""
        assert seq in self.seqs, "only what is lost can be taken from it"
        self.seqs.remove(seq)
        facts = self.facts.pop(seq, UNKNOWN)
        self.digest -= record_sum(facts.crc, seq)
        if facts is not UNKNOWN:
            self.bytes -= facts.size
            self.subjects.remove(facts.subject, seq)
        return facts

    def clear(self) -> None:
        """Forget all."""
        self.seqs.clear()
        self.facts.clear()
        self.subjects.clear()
        self.bytes = self.digest = 0


class StoreIndex:
    """Bounds, removed and lost sequences, subjects and totals of one stream."""

    __slots__ = (
        "bytes",
        "deleted",
        "digest",
        "first",
        "last",
        "last_time",
        "lost",
        "mark",
        "messages",
        "subjects",
    )

    def __init__(self) -> None:
        self.subjects = SubjectIndex()
        self.deleted = SeqSet()
        self.lost = LostRecords()
        self.messages = 0
        self.bytes = 0
        self.first = 1
        self.last = 0
        self.last_time = 0
        self.mark = 0
        self.digest = 0

    # What there would be without damage.

    @property
    def retained_messages(self) -> int:
        """Messages that can be read, and damaged ones."""
        return self.messages + len(self.lost)

    @property
    def retained_bytes(self) -> int:
        """Their size."""
        return self.bytes + self.lost.bytes

    @property
    def retained_digest(self) -> int:
        """The digest that the store would have without damage, as far as it is known."""
        return self.digest + self.lost.digest

    def retained_for(self, subject: bytes) -> int:
        """Messages of a subject."""
        count = self.subjects.count(subject)
        return count + self.lost.subjects.count(subject) if self.lost else count

    def oldest(self, subject: bytes, count: int) -> list[int]:
        """Up to `count` oldest sequences of a subject, damaged ones too, ascending."""
        found = self.subjects.next_seqs((subject,), 0, count)
        if self.lost:
            found += self.lost.subjects.next_seqs((subject,), 0, count)
            found.sort()
        return found[:count]

    def excess(self, subjects: Iterable[bytes], limit: int) -> list[tuple[bytes, int]]:
        """Those of literal subjects that have more than `limit` messages, damaged ones too, at
        least one, and how many more."""
        if not self.lost:
            return self.subjects.excess(subjects, limit)
        counts = [(subject, self.retained_for(subject) - limit) for subject in subjects]
        return [one for one in counts if one[1] > 0]

    def behind_oldest(self, counts: Iterable[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
        """With each subject that has messages the bound below which so many of them lie."""
        if not self.lost:
            return self.subjects.behind_oldest(counts)
        oldest = [(subject, self.oldest(subject, count)) for subject, count in counts]
        return [(subject, seqs[-1] + 1) for subject, seqs in oldest if seqs]

    def retained_subjects(self, filters: Filters) -> list[bytes]:
        """The subjects that pass, those of damaged messages too."""
        found = self.subjects.select(filters)
        if self.lost:
            found = list({*found, *self.lost.subjects.select(filters)})
        return found

    def retained_candidates(self, filters: Filters) -> list[bytes]:
        """Subjects among which are all that pass, those of damaged messages too: as few as can be
        found without a look at all of them."""
        found = self.subjects.candidates(filters)
        if self.lost:
            found = list({*found, *self.lost.subjects.candidates(filters)})
        return found

    def newest_of(self, subjects: Sequence[bytes], up_to: int) -> list[int]:
        """The newest sequence, not above `up_to`, of each of these that has one, be it damaged; in
        no order."""
        if not self.lost:
            return self.subjects.newest_of(subjects, up_to)
        found = [self.last_up_to(subject, up_to) for subject in subjects]
        return [seq for seq in found if seq is not None]

    def last_up_to(self, subject: bytes, seq: int) -> int | None:
        """The newest sequence of a subject that is not above `seq`, be it damaged."""
        newest = self.subjects.last_up_to(subject, seq)
        if not self.lost:
            return newest
        lost = self.lost.subjects.last_up_to(subject, seq)
        return max((one for one in (newest, lost) if one is not None), default=None)

    def purged(self, filters: Filters, bound: int, keep: int) -> list[tuple[bytes, int]]:
        """Subjects that pass, those of damaged messages too, and all that have messages to go: such
        below `bound`, or below where the newest `keep` of all that pass begin, if that is lower.
        Each with that bound."""
        if not self.lost:
            return self.subjects.purged(filters, bound, keep)
        names = self.retained_subjects(filters)
        if keep:
            found = [seq for one in names for seq in self.subjects.live(one)]
            found += [seq for one in names for seq in self.lost.subjects.live(one)]
            bound = min(bound, min(sorted(found)[-keep:], default=0))
        return [(name, bound) for name in names]

    def crowded(self, limit: int) -> list[bytes]:
        """The subjects that have more than `limit` messages, damaged ones too, at least one."""
        if not self.lost:
            return self.subjects.crowded(limit)
        names = {*self.subjects, *self.lost.subjects}
        return [name for name in names if self.retained_for(name) > limit]

    # Questions about sequences.

    def is_live(self, seq: int) -> bool:
        """Whether the sequence holds a message (possibly a damaged one)."""
        return self.first <= seq <= self.last and seq not in self.deleted

    def live_of(self, seqs: Sequence[int]) -> list[int]:
        """Those of ascending sequences that are live."""
        low, high = bisect_left(seqs, self.first), bisect_right(seqs, self.last)
        return self.deleted.absent_of(seqs[low:high])

    def live(self, start: int, stop: int, count: int) -> list[int]:
        """Up to `count` live sequences in [start, stop], ascending."""
        return self.deleted.absent(max(start, self.first), stop, count)

    def all_live(self, start: int, stop: int) -> Sequence[int]:
        """All live sequences in [start, stop], ascending: where none is missing, they cost
        nothing."""
        start, stop = max(start, self.first), min(stop, self.last)
        if not self.deleted.count_range(start, stop):
            return range(start, stop + 1)
        return self.deleted.absent(start, stop, stop + 1 - start)

    def live_count(self, first: int, last: int) -> int:
        """How many sequences of [first, last] are live."""
        first, last = max(first, self.first), min(last, self.last)
        return last + 1 - first - self.deleted.count_range(first, last) if first <= last else 0

    def bounds(self, from_seq: int) -> TransferBounds:
        """What the store is besides its records; `from_seq` is passed on."""
        return TransferBounds(
            from_seq,
            self.first,
            self.last,
            self.last_time,
            self.mark,
            self.retained_digest,
            self.deleted.copy(),
        )

    # Changes.

    def count_in(self, found: Columns, size: int) -> None:
        """Take new records, of this size together, behind the last one."""
        seqs = found.seqs
        first, last = seqs[0], seqs[-1]
        assert first > self.last, "sequences never go back"
        if self.first > self.last:
            self.first = first
        elif first > self.last + 1:
            self.deleted.add_range(self.last + 1, first - 1)
        if last - first + 1 != len(seqs):
            for before, behind in pairwise(seqs):
                self.deleted.add_range(before + 1, behind - 1)
        self.subjects.add_many(seqs, found.subjects)
        self.last = last
        self.last_time = found.times[-1]
        self.messages += len(seqs)
        self.bytes += size
        self.digest += record_sum(sum(found.crcs), sum(seqs))

    def count_out(self, size: int, crcs: int, seqs: Sequence[int]) -> None:
        """Take readable records out of the totals, by the sums of their sizes and checksums."""
        self.bytes -= size
        self.digest -= record_sum(crcs, seq_sum(seqs))
        self.messages -= len(seqs)
        assert self.messages >= 0, "no more goes than there was"

    def drop(self, seqs: Sequence[int], facts: Iterable[Facts]) -> list[bytes]:
        """Remove readable records, whose facts are given; their subjects, each once."""
        subjects: dict[bytes, None] = {}
        for seq, (crc, size, _, subject) in zip(seqs, facts, strict=True):
            self.subjects.remove(subject, seq)
            self.bytes -= size
            self.digest -= record_sum(crc, seq)
            subjects[subject] = None
        self.messages -= len(seqs)
        self.deleted.add_many(seqs)
        return list(subjects)

    def drop_lost(self, seqs: Sequence[int]) -> None:
        """Remove damaged records."""
        for seq in seqs:
            self.lost.remove(seq)
        self.deleted.add_many(seqs)

    def lose(self, seq: int, facts: Facts) -> None:
        """A readable record turned out to be damaged."""
        assert self.is_live(seq), "what is removed cannot be lost"
        self.subjects.remove(facts.subject, seq)
        self.messages -= 1
        self.bytes -= facts.size
        self.digest -= record_sum(facts.crc, seq)
        self.lost.add(seq, facts)

    def count_lost(self, seq: int, facts: Facts) -> None:
        """Take a record behind the last one that is damaged already."""
        assert seq > self.last, "sequences never go back"
        if self.first > self.last:
            self.first = seq
        elif seq > self.last + 1:
            self.deleted.add_range(self.last + 1, seq - 1)
        self.last = seq
        self.last_time = facts.time_ns or self.last_time
        self.lost.add(seq, facts)

    def put_back(self, seq: int, facts: Facts) -> None:
        """A damaged record is there again."""
        self.lost.remove(seq)
        self.subjects.insert(facts.subject, seq)
        if seq == self.last:
            self.last_time = facts.time_ns  # Which was perhaps all that told it
        self.messages += 1
        self.bytes += facts.size
        self.digest += record_sum(facts.crc, seq)

    def empty(self, first: int) -> None:
        """Remove everything; the next message is `first` or above."""
        assert first > self.last, "the store is emptied up to its last sequence"
        self.subjects.clear()
        self.deleted.clear()
        self.lost.clear()
        self.messages = self.bytes = self.digest = 0
        self.first = first

    def settle(self) -> None:
        """Move first over what is gone, and forget what lies below it."""
        first = min(self.deleted.next_absent(self.first), self.last + 1)
        self.first = first
        if self.deleted and self.deleted.first < first:
            self.deleted.remove_range(0, first - 1)

    def check(self) -> None:
        """Assert what holds between any two changes: totals fit bounds and subjects."""
        live = self.live_count(self.first, self.last)
        assert live == self.retained_messages, "each live sequence is readable or lost"
        counts = map(self.subjects.count, self.subjects)
        assert sum(counts) == self.messages, "subjects have all readable messages"
        assert self.first > self.last or self.is_live(self.first), "the first one is live"
        assert all(map(self.is_live, self.lost.seqs)), "what is lost is live"
        known = self.lost.facts.values()
        assert sum(one.size for one in known) == self.lost.bytes, "lost bytes are their sum"


def seq_sum(seqs: Sequence[int]) -> int:
    """The sum of these."""
    if isinstance(seqs, range) and seqs:
        return (seqs[0] + seqs[-1]) * len(seqs) // 2
    return sum(seqs)


def record_sum(crcs: int, seqs: int) -> int:
    """What records add to a digest, given the sums of their checksums and sequences."""
    return (crcs << 64) + seqs
