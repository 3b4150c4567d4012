"""How the contents of a stream's store change, whatever keeps the bytes.

Every change carries a `mark`, the caller's position in its log. An append at or below the
store's mark does nothing, and so does a removal below it: replay is idempotent. Several removals
may share the mark of one append (retention follows the append that made it necessary).

Invariant: a change is noted with the records before the index takes it, so that one which raises
has changed nothing.
"""

import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record, transfer
from jsctl.broker.store.contents import Contents
from jsctl.broker.store.frame import Frame, frame_of
from jsctl.broker.store.index import Facts, StoreIndex, record_sum
from jsctl.broker.store.record import FRAME_HEADER_BYTES
from jsctl.broker.store.records import Records
from jsctl.broker.store.remover import MessageRemover
from jsctl.broker.store.scrub import FileCheck
from jsctl.broker.store.segments.catalogue import decode_records
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.subject.matching import Filters

_STEP_RECORDS = 256


class StoreJob(Protocol):
    """Work for the disk thread; afterwards the store's `done(job)` is called on the loop."""

    def run(self) -> None:
        """Do it. Raises DiskError."""


class Removed(NamedTuple):
    """Messages that went together."""

    seqs: Sequence[int]
    """Ascending."""
    subjects: Sequence[bytes] = ()
    """All that they had; none: it is not known which."""


class StreamStore(Contents):
    """The messages of one stream."""

    def __init__(self, index: StoreIndex, records: Records) -> None:
        super().__init__(index, records)
        self._remover = MessageRemover(index, records)
        self._importing: transfer.StoreImporter | None = None
        self._removed: list[Removed] | None = None
        self.damage: list[str] = []
        """What did not check at the opening."""
        self.forgets_removals = False
        """What was removed may be there again: the only bytes that told of it are damaged."""
        self.restorations_max = 0
        """Files that a checkpoint puts messages back into, as the log waits for it on the disk; 0:
        all at once, as only the log may have what is not written then."""
        self.has_more_to_restore = False
        """The last checkpoint left some of them to the next one."""
        self.has_more_to_erase = False
        """It left bytes that are to go, and the log may tell of them no more."""
        self.erasing = False
        """No checkpoint has begun since bytes are to go, or none that could let them."""

    def note_removals(self) -> None:
        """From now on, until they are taken."""
        self._removed = []

    def take_removals(self) -> list[Removed]:
        """What went since they are noted, as far as it is known: who wants to rely on it compares
        with how many messages there are."""
        found, self._removed = self._removed, None
        return found or []

    def _note(self, seqs: Sequence[int], subjects: Sequence[bytes] = ()) -> None:
        if self._removed is not None and seqs:
            self._removed.append(Removed(seqs, subjects))

    def append(self, frame: Frame, mark: int) -> None:
        """Take a frame. Records that the store has already (after an import) are left out.

        One append a mark. The frame is trusted: it was checked when it arrived.
        """
        index = self._index
        if mark <= index.mark:
            return
        if frame.last_seq > index.last:
            self._take(frame, mark)
        index.mark = mark

    def _take(self, frame: Frame, mark: int) -> None:
        index, records = self._index, self._records
        if frame.first_seq <= index.last:
            frame = frame_of([row for row in frame.records if row.seq > index.last])
        found = frame.columns
        records.write(frame, mark)
        index.count_in(found, records.count_bytes(found))

    def remove(self, seqs: Sequence[int], mark: int, erase: bool = False) -> int:
        """Remove messages; how many there were. `erase` has their bytes go as well, also of those
        that are removed already: a crash may have come between."""
        if erase:
            self._records.erase(seqs)
            self.erasing = True
        if mark < self._index.mark:
            return 0
        live = sorted({seq for seq in seqs if self.is_live(seq)})
        if live:
            self._records.note_removal(live, mark)
            subjects = self._remover.drop(live)
            self._records.removed(live)
            self._index.settle()
            self._note(live, subjects)
        self._index.mark = mark
        return len(live)

    def may_erase(self) -> bool:
        """Whether a checkpoint is worth it, for the sake of what is to be erased."""
        return True

    def truncate_front(self, first_seq: int, mark: int) -> int:
        """Remove everything below `first_seq`; how many messages. Last sequence is kept."""
        index = self._index
        if mark < index.mark:
            return 0
        first_seq = min(first_seq, index.last + 1)
        count = 0
        if first_seq > index.first:
            count = index.retained_messages
            self._records.note_cut(first_seq, mark)
            gone, subjects = self._remover.cut(first_seq)
            count -= index.retained_messages
            self._records.truncated(first_seq, gone)
            index.settle()
            self._note(gone, subjects)
        index.mark = mark
        return count

    def purge(self, filters: Filters | None, up_to_seq: int | None, keep: int, mark: int) -> int:
        """Remove messages that pass; how many. Below `up_to_seq` only, if given (exclusive).

        `keep` spares the newest that many of those which pass.
        """
        index = self._index
        if mark < index.mark:
            return 0
        bound = index.last + 1 if up_to_seq is None else up_to_seq
        if filters is None or filters.is_all:
            return self.truncate_front(min(bound, self._keep_from(keep)), mark)
        return len(self._cut_subjects(index.purged(filters, bound, keep), mark))

    def remove_oldest(self, counts: Iterable[tuple[bytes, int]], mark: int) -> list[int]:
        """Remove that many messages, at least one, of each literal subject; their sequences."""
        if mark < self._index.mark:
            return []
        return self._cut_subjects(self._index.behind_oldest(counts), mark)

    def keep_last(self, subjects: Iterable[bytes], mark: int) -> list[int]:
        """Remove all messages of literal subjects but the last of each; their sequences."""
        index = self._index
        if mark < index.mark:
            return []
        if index.lost:
            return self._cut_subjects(index.behind_oldest(index.excess(subjects, 1)), mark)
        last, seqs = index.subjects.replaced(subjects)
        if seqs:
            self._records.note_removal(seqs, mark)
            index.subjects.set_last(last)
            self._count_out(seqs)
            self._gone(seqs, last)
        index.mark = mark
        return seqs

    def _cut_subjects(self, bounds: list[tuple[bytes, int]], mark: int) -> list[int]:
        """Remove all messages of subjects below each one's bound: their records are not read."""
        index, records = self._index, self._records
        known = seqs = index.subjects.below(bounds)
        lost = index.lost.subjects.below(bounds) if index.lost else []
        if lost:
            seqs = sorted([*known, *lost])
        if seqs:
            records.note_removal(seqs, mark)
            index.subjects.cut(bounds)
            if known:
                self._count_out(known)
            index.drop_lost(lost)
            self._gone(seqs, (subject for subject, _ in bounds))
        index.mark = mark
        return seqs

    def _count_out(self, seqs: Sequence[int]) -> None:
        """Readable messages, at least one, of which no subject knows any more."""
        index = self._index
        size, crcs = self._records.tally(seqs)
        index.count_out(size, crcs, seqs)
        index.deleted.add_many(seqs)

    def _gone(self, seqs: Sequence[int], subjects: Iterable[bytes]) -> None:
        """The index has forgotten messages, which had these subjects."""
        self._records.removed(seqs)
        self._index.settle()
        if self._removed is not None:
            self._note(seqs, list(subjects))

    def _keep_from(self, keep: int) -> int:
        """The sequence from which on `keep` messages remain."""
        index = self._index
        low, high = index.first, index.last + 1
        while low < high and keep:
            middle = (low + high) // 2
            if index.live_count(middle, index.last) > keep:
                low = middle + 1
            else:
                high = middle
        return high

    def keep_newest(self, messages_max: int, bytes_max: int, mark: int) -> int:
        """Remove what passes these limits, from the front; how many messages. 0: no limit.

        What is damaged counts as what it was: all replicas remove the same.
        """
        count = 0
        if 0 < messages_max < self.retained_messages:
            count = self.truncate_front(self._keep_from(messages_max), mark)
        if 0 < bytes_max < self.retained_bytes:
            count += self.truncate_front(self._first_within(bytes_max), mark)
        return count

    def _first_within(self, bytes_max: int) -> int:
        """From which sequence on the messages fit into `bytes_max`."""
        index = self._index
        over = index.retained_bytes - bytes_max
        start = index.first
        while seqs := index.live(start, index.last, _STEP_RECORDS):
            for seq, size in zip(seqs, self._sizes(seqs), strict=True):
                start = seq + 1
                over -= size
                if over <= 0:
                    return start
        return start

    def _sizes(self, seqs: list[int]) -> list[int]:
        """What each of these live sequences counts in `retained_bytes`."""
        lost = self._index.lost
        if not lost.seqs.count_range(seqs[0], seqs[-1]):
            return self._records.sizes(seqs)
        known = [seq for seq in seqs if seq not in lost]
        sizes = dict(zip(known, self._records.sizes(known), strict=True))
        sizes.update((seq, facts.size) for seq, facts in lost.facts.items())
        return [sizes.get(seq, 0) for seq in seqs]

    def restore(self, first_seq: int, last_seq: int, frames: Iterable[bytes]) -> int:
        """Make a range what a replica without damage says it is; how many records came back.

        `frames` have all live messages of the range, and only those. Damaged ones are put back,
        and can be read at once; a segment in which nothing is damaged any more is written anew
        with the next checkpoint, and until that is done a crash brings the damage back. What
        lives here and is not among them is removed. Raises Damaged, and has changed nothing then,
        when a frame does not check or has another message than was stored here.
        """
        index = self._index
        assert first_seq <= last_seq <= index.last, "a range of what was stored is restored"
        given = self._given(first_seq, last_seq, frames)
        lost = [seq for seq in given if seq in index.lost]
        self._records.restore({seq: given[seq] for seq in lost})
        for seq, facts in zip(lost, list(self._records.facts(lost)), strict=True):
            index.put_back(seq, facts)
        live = index.live(first_seq, last_seq, last_seq + 1 - first_seq)
        self.remove([seq for seq in live if seq not in given], index.mark)
        return len(lost)

    def _given(self, first_seq: int, last_seq: int, frames: Iterable[bytes]) -> dict[int, bytes]:
        """Encoded records by sequence, of those that live here. Raises Damaged."""
        index = self._index
        found: dict[int, bytes] = {}
        for frame in frames:
            if not record.frame_is_sound(frame):
                raise Damaged("a frame's checksum does not hold", path="frame")
            starts = record.offsets(frame, FRAME_HEADER_BYTES, len(frame))
            for start, end in pairwise([*starts, len(frame)]):
                found[record.raw_seq_at(frame, start)] = frame[start:end]
        if any(not first_seq <= seq <= last_seq for seq in found):
            raise Damaged("a record is not of the range", path="frame")
        live = {seq: raw for seq, raw in found.items() if index.is_live(seq)}
        for seq, raw in live.items():
            if seq in index.lost:
                known = index.lost.facts.get(seq)
                crc = known.crc if known is not None and known.crc else record.raw_facts(raw)[0]
            else:
                crc = self._records.tally((seq,))[1]
            if record.verify_record(raw) != len(raw) or crc != record.raw_facts(raw)[0]:
                raise Damaged(f"message {seq} is another one than was here", path="frame")
        return live

    def set_first(self, seq: int, mark: int) -> None:
        """Make an empty store whose next message has sequence `seq` (not below the last)."""
        index = self._index
        if mark < index.mark:
            return
        assert seq > index.last, "sequences never go back"
        index.empty(seq)
        index.last = seq - 1
        index.mark = mark
        self._records.reset()

    def recount(self) -> None:
        """Make totals sums again, where a segment that cannot be read could not tell what its
        messages count, nor could its catalogue: they are damaged, and count when they are back."""

    @property
    def unread(self) -> SeqSet:
        """Those of the lost ones that the disk did not give: their bytes may be sound."""
        return SeqSet()

    def look_again(self, count_max: int, failures_max: int) -> int:
        """Read once more some of what the disk did not give, until it fails so often: a disk may
        come to itself. How many messages are back."""
        return 0

    def check_totals(self) -> None:
        """Assert that the totals are the sums of what is there, as far as that can be known. Reads
        tables, not records."""
        index = self._index
        index.check()
        size = crcs = count = seq_sum = 0
        start = index.first
        while seqs := index.live(start, index.last, _STEP_RECORDS):
            known = [seq for seq in seqs if seq not in index.lost]
            more = self._records.tally(known) if known else (0, 0)
            size, crcs = size + more[0], crcs + more[1]
            count, seq_sum = count + len(known), seq_sum + sum(known)
            start = seqs[-1] + 1
        if not self._records.totals_known:
            return
        assert (count, size) == (index.messages, index.bytes), "totals are sums of the segments"
        assert record_sum(crcs, seq_sum) == index.digest, "so is the digest"

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
        index = self._index
        if 1 < bounds.from_seq <= index.last + 1:
            return
        index.empty(index.last + 1)
        index.first, index.last = 1, 0
        self._records.reset()

    def import_frame(self, frame: bytes) -> None:
        """Take rows of an export; called by the importer."""
        rows = Frame(frame)
        if rows.last_seq > self._index.last:
            self._take(rows, self._index.mark)

    def import_lost(self, records: bytes) -> None:
        """Take what is known of messages that are damaged where the export comes from: they are
        damaged here, too, until they are put back. Raises Damaged; called by the importer."""
        index = self._index
        try:
            some = decode_records(records)
            rows = zip(*some, strict=True)
            facts = {row[0]: Facts(*row[1:]) for row in rows}
        except (IndexError, ValueError, struct.error) as error:
            raise Damaged(f"lost records do not decode: {error}", path="chunk") from error
        ascending = all(before < seq for before, seq in pairwise((index.last, *some.seqs)))
        if not some.seqs or not ascending:
            raise Damaged("sequences of lost records go back", path="chunk")
        self._records.note_lost(some, index.mark)
        for seq, known in facts.items():
            index.count_lost(seq, known)

    def import_end(self, bounds: transfer.TransferBounds) -> None:
        """Take the bounds that the export ended with; called by the importer."""
        index = self._index
        gone = index.live(index.first, bounds.first - 1, index.last)
        for first, last in bounds.deleted.ranges():
            gone.extend(index.live(first, min(last, index.last), last - first + 1))
        if gone:
            self._remover.drop(gone)
        if bounds.last > index.last:
            index.deleted.add_range(index.last + 1, bounds.last)
            index.last = bounds.last
        index.last_time = bounds.last_time
        index.settle()
        index.mark = bounds.mark
        self._records.note_state(bounds.mark)

    def message_bytes(self, subject: int, headers: int, payload: int) -> int:
        """What a message with parts of these lengths adds to `size_bytes`."""
        return self._records.message_bytes(subject, headers, payload)

    # Durability

    def find_room(self) -> bool:
        """Write what the disk had no room for; whether all is written. Raises DiskError."""
        return True

    @abstractmethod
    def checkpoint(self) -> StoreJob | None:
        """Work after which a restart finds everything up to the present mark without the caller's
        log; None if it does already."""

    @abstractmethod
    def done(self, job: StoreJob) -> None:
        """The job has been run without an error."""

    def resting(self) -> list[FileCheck]:
        """Checks of all files that the store has on its disk."""
        return []

    def suspect(self, check: FileCheck) -> tuple[int, int] | None:
        """A check found damage: the next checkpoint writes anew what it can.

        Returned is the range of sequences that may be concerned, which is empty for some files;
        None if the file was given up, or written anew, since the check began.
        """
        return None

    def take_suspects(self) -> list[tuple[int, int]]:
        """Ranges in which a checkpoint came upon damage: as `suspect` returns them."""
        return []

    @abstractmethod
    def close(self) -> None:
        """Release files; nothing is synced."""

    @abstractmethod
    def delete(self) -> None:
        """Remove everything for good; the store is not used any more."""
