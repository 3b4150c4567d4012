"""How the contents of a stream's store change, whatever keeps the bytes.

Every change carries a `mark`, the caller's position in its log. An append at or below the
store's mark does nothing, and so does a removal below it: replay is idempotent. Several removals
may share the mark of one append (retention follows the append that made it necessary).
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from jsctl.broker.store import record, transfer
from jsctl.broker.store.contents import Contents
from jsctl.broker.store.record import FRAME_HEADER_BYTES, Columns
from jsctl.broker.subject.matching import Filters

_SUBJECTS_PER_READ = 16
"""So many subjects are looked at in the time in which one record is read."""

Facts = tuple[int, int, int, bytes]
"""crc, message bytes, time, subject of one record."""


class StoreJob(Protocol):
    """Work for the disk thread; afterwards the store's `done(job)` is called on the loop."""

    def run(self) -> None:
        """Do it. Raises DiskError."""


class StreamStore(Contents):
    """The messages of one stream."""

    _importing: transfer.StoreImporter | None = None

    def append(self, frame: bytes, mark: int) -> None:
        """Take a frame. Records that the store has already (after an import) are left out.

        One append a mark. The frame is trusted: it was checked when it arrived.
        """
        if mark <= self._mark:
            return
        if record.last_seq(frame) <= self._last:
            self._mark = mark
            return
        if record.first_seq(frame) <= self._last:
            frame = self._without_known(frame)
        found = record.columns(frame, FRAME_HEADER_BYTES, len(frame))
        self._wrote(frame, mark, found)
        self._count_in(found)
        self._mark = mark

    def _without_known(self, frame: bytes) -> bytes:
        rows = record.decode_records(frame, FRAME_HEADER_BYTES, len(frame))
        return record.encode_frame([row for row in rows if row.seq > self._last])

    def _count_in(self, found: Columns) -> None:
        seqs = found.seqs
        first, last = seqs[0], seqs[-1]
        if self._first > self._last:
            self._first = first
        elif first > self._last + 1:
            self._deleted.add_range(self._last + 1, first - 1)
        if last - first + 1 != len(seqs):
            for before, behind in pairwise(seqs):
                self._deleted.add_range(before + 1, behind - 1)
        self._index.add_many(seqs, found.subjects)
        self._last = last
        self._last_time = found.times[-1]
        self._messages += len(seqs)
        self._bytes += self._sizes(found)
        self._digest += record_sum(sum(found.crcs), sum(seqs))

    def remove(self, seqs: Sequence[int], mark: int, erase: bool = False) -> int:
        """Remove messages; how many there were. `erase` overwrites their bytes as well."""
        if mark < self._mark:
            return 0
        live = sorted({seq for seq in seqs if self.is_live(seq)})
        if live:
            self._note_removal(live, mark, erase)
            self._drop(live)
            self._removed(live)
            self._settle()
        self._mark = mark
        return len(live)

    def truncate_front(self, first_seq: int, mark: int) -> int:
        """Remove everything below `first_seq`; how many messages. Last sequence is kept."""
        if mark < self._mark:
            return 0
        first_seq = min(first_seq, self._last + 1)
        count = 0
        if first_seq > self._first:
            count = self._messages + len(self._lost)
            self._note_cut(first_seq, mark)
            gone = self._cut(first_seq)
            count -= self._messages + len(self._lost)
            self._truncated(first_seq, gone)
            self._settle()
        self._mark = mark
        return count

    def _cut(self, first_seq: int) -> list[int]:
        """Take everything below out of the counters; what was live, [] for all at once."""
        if first_seq > self._last:
            self._index.clear()
            self._deleted.clear()
            self._lost.clear()
            self._messages = self._bytes = self._digest = 0
            self._first = first_seq
            return []
        gone = self._live(self._first, first_seq - 1, first_seq - self._first)
        if len(gone) * _SUBJECTS_PER_READ > len(self._index):
            self._drop_front(gone, first_seq)
        else:
            self._drop(gone)
        self._first = first_seq
        return gone

    def _drop_front(self, seqs: list[int], first_seq: int) -> None:
        """As `_drop` for all that is live below a sequence, by a look at all subjects."""
        known = seqs
        if self._lost:
            known = [seq for seq in seqs if seq not in self._lost]
            self._lost.remove_range(0, first_seq - 1)
        left = self._live(first_seq, self._last, self._messages)
        if len(left) < len(known) and not self._lost:
            size, crcs = self._tally(left) if left else (0, 0)
            self._bytes, self._digest = size, record_sum(crcs, sum(left))
            self._messages = len(left)
        elif known:
            self._count_out(*self._tally(known), known)
        self._index.cut([(subject, first_seq) for subject in self._index])
        self._deleted.add_many(seqs)

    def _count_out(self, size: int, crcs: int, seqs: Sequence[int]) -> None:
        self._bytes -= size
        self._digest -= record_sum(crcs, sum(seqs))
        self._messages -= len(seqs)

    def purge(self, filters: Filters | None, up_to_seq: int | None, keep: int, mark: int) -> int:
        """Remove messages that pass; how many. Below `up_to_seq` only, if given (exclusive).

        `keep` spares the newest that many of those which pass.
        """
        if mark < self._mark:
            return 0
        if filters is None or filters.is_all:
            bound = self._last + 1 if up_to_seq is None else up_to_seq
            return self.truncate_front(min(bound, self._keep_from(keep)), mark)
        subjects = self._index.select(filters)
        bound = self._last + 1 if up_to_seq is None else up_to_seq
        if keep:
            bound = min(bound, self._index.newest_from(subjects, keep))
        return len(self._cut_subjects([(subject, bound) for subject in subjects], mark))

    def remove_oldest(self, counts: Iterable[tuple[bytes, int]], mark: int) -> list[int]:
        """Remove that many messages, at least one, of each literal subject; their sequences."""
        if mark < self._mark:
            return []
        oldest = self._index.next_seqs
        bounds = [(one, oldest((one,), 0, count)[-1] + 1) for one, count in counts]
        return self._cut_subjects(bounds, mark)

    def _cut_subjects(self, bounds: list[tuple[bytes, int]], mark: int) -> list[int]:
        """Remove all messages of subjects below each one's bound: their records are not read."""
        seqs = self._index.below(bounds)
        if seqs:
            size, crcs = self._tally(seqs)
            self._note_removal(seqs, mark, False)
            self._count_out(size, crcs, seqs)
            self._index.cut(bounds)
            self._deleted.add_many(seqs)
            self._removed(seqs)
            self._settle()
        self._mark = mark
        return seqs

    def _keep_from(self, keep: int) -> int:
        """The sequence from which on `keep` messages remain."""
        low, high = self._first, self._last + 1
        while low < high and keep:
            middle = (low + high) // 2
            live = self._last + 1 - middle - self._deleted.count_range(middle, self._last)
            if live > keep:
                low = middle + 1
            else:
                high = middle
        return high

    def set_first(self, seq: int, mark: int) -> None:
        """Make an empty store whose next message has sequence `seq` (not below the last)."""
        if mark < self._mark:
            return
        assert seq > self._last, "sequences never go back"
        self._cut(self._last + 1)
        self._first, self._last = seq, seq - 1
        self._reset_to(mark)
        self._mark = mark

    # A whole store as bytes

    def export_chunks(self, from_seq: int = 0) -> Iterator[bytes]:
        """The store from a sequence on, for a replica that has everything below it.

        The store may change between two chunks: what is removed meanwhile is left out.
        """
        return transfer.export(self, from_seq)

    def import_chunk(self, chunk: bytes) -> bool:
        """Take the next chunk of an export; True with the last. Raises Damaged.

        The first one empties the store, unless the store reaches up to the export. The mark
        stays where it was until the last chunk.
        """
        if self._importing is None:
            self._importing = transfer.StoreImporter(self)
        done = self._importing.feed(chunk)
        if done:
            self._importing = None
        return done

    def import_start(self, bounds: transfer.TransferBounds) -> None:
        """Make ready for the rows of an export; called by the importer."""
        if 1 < bounds.from_seq <= self._last + 1:
            return
        self._cut(self._last + 1)
        self._first, self._last = 1, 0
        self._reset_to(self._mark)

    def import_frame(self, frame: bytes) -> None:
        """Take rows of an export; called by the importer."""
        if record.last_seq(frame) <= self._last:
            return
        if record.first_seq(frame) <= self._last:
            frame = self._without_known(frame)
        found = record.columns(frame, FRAME_HEADER_BYTES, len(frame))
        self._wrote(frame, self._mark, found)
        self._count_in(found)

    def import_end(self, bounds: transfer.TransferBounds) -> None:
        """Take the bounds that the export ended with; called by the importer."""
        gone = self._live(self._first, bounds.first - 1, self._last)
        for first, last in bounds.deleted.ranges():
            gone.extend(self._live(first, min(last, self._last), last - first + 1))
        if gone:
            self._drop(gone)
        if bounds.last > self._last:
            self._deleted.add_range(self._last + 1, bounds.last)
            self._last = bounds.last
        self._last_time = bounds.last_time
        self._settle()
        self._mark = bounds.mark
        self._noted(bounds.mark)

    def _drop(self, seqs: Sequence[int]) -> None:
        """Take live sequences out of index and counters, and into the deleted set."""
        known = seqs
        if self._lost:
            known = [seq for seq in seqs if seq not in self._lost]
            for seq in seqs:
                self._lost.remove(seq)
        for seq, (crc, size, _, subject) in zip(known, self._facts(known), strict=True):
            self._index.remove(subject, seq)
            self._bytes -= size
            self._digest -= record_sum(crc, seq)
        self._messages -= len(known)
        self._deleted.add_many(seqs)

    def _settle(self) -> None:
        """Move first over what is gone, and forget what lies below it."""
        first = min(self._deleted.next_absent(self._first), self._last + 1)
        self._first = first
        if self._deleted and self._deleted.first < first:
            self._deleted.remove_range(0, first - 1)

    def live_sizes(self, seqs: Sequence[int]) -> list[int]:
        """What each of these live sequences counts in `size_bytes`; 0 for a damaged one."""
        known = [seq for seq in seqs if seq not in self._lost]
        sizes = dict(zip(known, (facts[1] for facts in self._facts(known)), strict=True))
        return [sizes.get(seq, 0) for seq in seqs]

    # Hooks of a kind of store

    def message_bytes(self, subject: int, headers: int, payload: int) -> int:
        """What a message with parts of these lengths adds to `size_bytes`."""
        return record.message_bytes(subject, headers, payload)

    @abstractmethod
    def _facts(self, seqs: Sequence[int]) -> Iterable[Facts]:
        """What the counters need to forget live sequences; never raises Damaged."""

    @abstractmethod
    def _tally(self, seqs: Sequence[int]) -> tuple[int, int]:
        """Sums of the sizes and of the checksums of live undamaged sequences, at least one."""

    @abstractmethod
    def _wrote(self, frame: bytes, mark: int, found: Columns) -> None:
        """Keep a frame; counters are still those before it."""

    def _note_removal(self, seqs: Sequence[int], mark: int, erase: bool) -> None:
        """Remember that live sequences go; raises before anything has changed."""

    def _note_cut(self, first_seq: int, mark: int) -> None:
        """Remember that all below a sequence goes; raises before anything has changed."""

    @abstractmethod
    def _removed(self, seqs: Sequence[int]) -> None:
        """Sequences are gone from the counters: forget their bytes."""

    @abstractmethod
    def _truncated(self, first_seq: int, gone: Sequence[int]) -> None:
        """Forget all bytes below a sequence; `gone` were live unless nothing is left."""

    @abstractmethod
    def _reset_to(self, mark: int) -> None:
        """Forget all bytes and remember the bounds, which are set already."""

    @abstractmethod
    def _noted(self, mark: int) -> None:
        """Remember bounds, deleted set and mark as they are now."""

    # Durability

    @abstractmethod
    def durable_mark(self) -> int:
        """Up to here a restart finds everything without the caller's log."""

    @abstractmethod
    def checkpoint(self) -> StoreJob | None:
        """Work after which `durable_mark` has grown to the present mark."""

    @abstractmethod
    def done(self, job: StoreJob) -> None:
        """The job has been run without an error."""

    @abstractmethod
    def close(self) -> None:
        """Release files; nothing is synced."""

    @abstractmethod
    def delete(self) -> None:
        """Remove everything for good; the store is not used any more."""


def record_sum(crcs: int, seqs: int) -> int:
    """What records add to a digest, given the sums of their checksums and sequences."""
    return (crcs << 64) + seqs
