"""Messages in segment files: where records lie, reading and writing them.

Opening a store is in `message_store`, what makes it durable in `checkpoint`. Nothing is synced
here: until a checkpoint, the caller's log is what brings messages back.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jsctl.broker.errors import DiskError
from jsctl.broker.ports import Disk, File
from jsctl.broker.store import record
from jsctl.broker.store.record import FRAME_HEADER_BYTES, Columns, Row
from jsctl.broker.store.segment import (
    FRAME,
    REMOVE,
    SEAL,
    STATE,
    TRUNCATE,
    Envelope,
    Segment,
    Table,
    UnsoundBytes,
    seal_offset,
    segment_name,
    walk,
)
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.stream_store import Facts, StreamStore

SEGMENT_BYTES = 8 << 20
_READ_BYTES = 64 * 1024
_OPEN_FILES_MAX = 8
_TABLES_MAX = 16
_UNBOUNDED = 1 << 62


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """`segment_bytes`: a segment is closed before the frame that would pass this size.

    It must be equal on all replicas of a stream, for their files to be equal.
    """

    segment_bytes: int = SEGMENT_BYTES


class SegmentedStore(StreamStore):
    """A stream's store in files; made by `MessageStore.open`."""

    def __init__(self, disk: Disk, directory: str, options: StoreOptions) -> None:
        super().__init__()
        self._disk = disk
        self._directory = directory
        self._options = options
        self._segments: list[Segment] = []
        self._firsts: list[int] = []
        self._doomed: list[int] = []
        self._unsynced: set[int] = set()
        self._open: list[Segment] = []
        self._tables: list[Segment] = []
        self._chunk: tuple[int, int, bytes] = (0, 0, b"")
        self._changes = 0
        self._made_number = 0

    @property
    def directory(self) -> str:
        """Where the files are."""
        return self._directory

    # Writing

    def _wrote(self, frame: bytes, mark: int, found: Columns) -> None:
        segment = self._segments[-1]
        full = segment.size + len(frame) > self._options.segment_bytes
        if segment.sealed or (segment.count and full):
            segment = self._roll()
        start = segment.write(FRAME, mark, frame)
        if not segment.count:
            self._firsts[-1] = found.seqs[0]
        segment.add(found, len(frame), start)
        self._unsynced.add(segment.number)
        self._changes += len(found.seqs)

    def _roll(self) -> Segment:
        """Close the newest segment and begin another."""
        segment = self._segments[-1]
        if not segment.sealed:
            segment.seal()
            self._unsynced.add(segment.number)
            self._tables.append(segment)
        return self._begin()

    def _begin(self) -> Segment:
        """Begin a segment. Raises DiskError, DiskFull, and leaves no file then."""
        segment = Segment(self._made_number + 1)
        path = f"{self._directory}/{segment_name(segment.number)}"
        segment.file = self._disk.open(path, create=True)
        try:
            segment.file.truncate(0)
            segment.write(STATE, self._mark, self.bounds(segment.number).encode())
        except DiskError:
            segment.file.close()
            self._disk.remove(path)
            raise
        self._made_number += 1
        self._adopt(segment)
        return segment

    def _adopt(self, segment: Segment) -> None:
        segment.first_seq = segment.first_seq or self._last + 1
        self._segments.append(segment)
        self._firsts.append(segment.first_seq)
        self._open.append(segment)
        self._unsynced.add(segment.number)

    def _note_removal(self, seqs: Sequence[int], mark: int, erase: bool) -> None:
        if erase:
            if self._segment_of(seqs[-1]) is self._segments[-1]:
                self._roll()
            for seq in seqs:
                self._segment_of(seq).erase = True
        gone = SeqSet()
        gone.add_many(seqs)
        self._note(REMOVE, mark, gone.encode())

    def _note_cut(self, first_seq: int, mark: int) -> None:
        self._note(TRUNCATE, mark, first_seq.to_bytes(8, "little"))

    def _removed(self, seqs: Sequence[int]) -> None:
        self._changes += len(seqs)

    def _truncated(self, first_seq: int, gone: Sequence[int]) -> None:
        self._changes += len(gone)
        while len(self._segments) > 1 and self._segments[0].last_seq < first_seq:
            self._doom(self._segments[0])

    def _reset_to(self, mark: int) -> None:
        newest = self._segments[-1]
        if not newest.sealed:
            newest.seal()
        mark, self._mark = self._mark, mark
        self._begin()
        self._mark = mark
        while len(self._segments) > 1:
            self._doom(self._segments[0])

    def _noted(self, mark: int) -> None:
        self._note(STATE, mark, self.bounds(self._segments[-1].number).encode())

    def _note(self, kind: int, mark: int, content: bytes) -> None:
        segment = self._segments[-1]
        full = segment.size > self._options.segment_bytes
        if segment.sealed or (segment.count and full):
            segment = self._roll()
        segment.write(kind, mark, content)
        self._unsynced.add(segment.number)

    def _doom(self, segment: Segment) -> None:
        """A segment nobody needs: its file goes with the next checkpoint, not before."""
        at = self._segments.index(segment)
        del self._segments[at], self._firsts[at]
        self._doomed.append(segment.number)
        self._changes += 1
        self._unsynced.discard(segment.number)
        self._close_file(segment)
        if segment in self._tables:
            self._tables.remove(segment)
        if self._chunk[0] == segment.number:
            self._chunk = (0, 0, b"")

    # Reading

    def _live_of(self, segment: Segment) -> int:
        if not segment.count:
            return 0
        first = max(segment.first_seq, self._first)
        if first > segment.last_seq:
            return 0
        return segment.last_seq + 1 - first - self._deleted.count_range(first, segment.last_seq)

    def _segment_of(self, seq: int) -> Segment:
        return self._segments[max(0, bisect_right(self._firsts, seq) - 1)]

    def _file(self, segment: Segment) -> File:
        if segment.file is None:
            segment.file = self._disk.open(f"{self._directory}/{segment_name(segment.number)}")
            self._open.append(segment)
            if len(self._open) > _OPEN_FILES_MAX:
                old = next(one for one in self._open if one.sealed or one is not segment)
                if old is not self._segments[-1]:
                    self._close_file(old)
        return segment.file

    def _close_file(self, segment: Segment) -> None:
        if segment.file is not None:
            segment.file.close()
            segment.file = None
        if segment in self._open:
            self._open.remove(segment)

    def _table(self, segment: Segment) -> Table:
        """The segment's table, from memory, from its seal, or by reading it all."""
        if segment.table is None:
            segment.table = self._load_table(segment)
            self._tables.append(segment)
        if len(self._tables) > _TABLES_MAX:
            old = self._tables.pop(0)
            if old is not segment and old.sealed:
                old.table = None
        return segment.table

    def _load_table(self, segment: Segment) -> Table:
        file = self._file(segment)
        start = seal_offset(segment.size, segment.count)
        if segment.sealed and start > 0:
            data = file.read(start, segment.size - start)
            seal = next(walk(data, 0, None), None)
            if isinstance(seal, Envelope) and seal.kind == SEAL:
                found = Table.decode(data[seal.start : seal.end])
                if found is not None:
                    return found
        data = file.read(0, segment.size)
        made = Table()
        for one in walk(data, 0, 0):
            add_to_table(made, data, one)
        return made

    def _bytes_at(self, segment: Segment, offset: int, length: int, ahead: bool) -> bytes:
        """A buffer that begins with a range of a segment."""
        want = max(length, min(_READ_BYTES, segment.size - offset)) if ahead else length
        data = self._file(segment).read(offset, want)
        if ahead:
            self._chunk = (segment.number, offset, data)
        return data

    def _place_of(self, seq: int, ahead: bool) -> tuple[bytes, int, int] | None:
        """`(buffer, start, length)` of a live record, unverified; None if it is not there."""
        segment = self._segment_of(seq)
        try:
            table = segment.table or self._table(segment)
            at = table.find(seq)
            if at < 0:
                return None
            length, offset = table.lengths[at], table.offsets[at]
            number, begin, data = self._chunk
            start = offset - begin
            if number == segment.number and start >= 0 and start + length <= len(data):
                return data, start, length
            return self._bytes_at(segment, offset, length, ahead), 0, length
        except DiskError:
            return None

    def _locate(self, seq: int, ahead: bool) -> tuple[bytes, int, int] | None:
        """`(buffer, start, length)` of a live record; None if it is damaged."""
        place = self._place_of(seq, ahead)
        if place is None:
            return None
        data, start, length = place
        if record.verify_record(data, start) != length or record.raw_seq_at(data, start) != seq:
            return None
        return place

    def _read(self, seqs: Sequence[int], bytes_max: int) -> list[Row]:
        found: list[Row] = []
        left = bytes_max or _UNBOUNDED
        ahead = _are_near(seqs)
        while len(found) < len(seqs):
            seq = seqs[len(found)]
            place = self._place_of(seq, ahead)
            row = None if place is None else record.read_record(*place, seq)
            if place is None or row is None:
                self._lose(seq)
                if not found:
                    self._check_lost(seq)
                break
            left -= place[2]
            if left < 0 and found:
                break
            found.append(row)
            if ahead and len(found) < len(seqs) and seqs[len(found)] == seq + 1:
                rows, size = self._read_run(seqs, len(found), left)
                left -= size
                found += rows
        return found

    def _read_run(self, seqs: Sequence[int], at: int, bytes_max: int) -> tuple[list[Row], int]:
        """What is sound of the sequences that follow each other from `at` on, in this chunk; and
        its length in bytes."""
        number, begin, data = self._chunk
        segment = self._segment_of(seqs[at])
        table = segment.table
        if segment.number != number or table is None:
            return [], 0
        first = table.find(seqs[at])
        if first < 0:
            return [], 0
        here = bisect_left(table.offsets, begin + len(data), first)
        most = min(len(seqs) - at, here - first)
        if not most:
            return [], 0
        count = min(_run_length(seqs, at, most), _run_length(table.seqs, first, most))
        stop = first + count
        starts = [offset - begin for offset in table.offsets[first:stop]]
        lengths = table.lengths[first:stop]
        places = zip(seqs[at : at + count], starts, lengths, strict=True)
        rows = record.read_records(data, places, bytes_max)
        return rows, sum(lengths[: len(rows)])

    def read_raw(self, seqs: Sequence[int]) -> list[bytes]:
        found: list[bytes] = []
        for seq in seqs:
            place = self._locate(seq, True)
            if place is None:
                self._lose(seq)
                self._check_lost(seq)
            else:
                data, start, length = place
                found.append(data[start : start + length])
        return found

    def _facts(self, seqs: Sequence[int]) -> Iterator[Facts]:
        ahead = _are_near(seqs)
        for seq in seqs:
            place = self._locate(seq, ahead)
            if place is None:
                yield self._facts_of_damaged(seq)
            else:
                yield record.raw_facts(place[0], place[1])

    def _facts_of_damaged(self, seq: int) -> Facts:
        """What table and index know of a record that cannot be read."""
        table = self._table(self._segment_of(seq))
        at = table.find(seq)
        crc, size = (table.crcs[at], table.sizes[at]) if at >= 0 else (0, 0)
        return crc, size, 0, self._subject_of(seq)

    def _tally(self, seqs: Sequence[int]) -> tuple[int, int]:
        size = crcs = done = 0
        while done < len(seqs):
            segment = self._segment_of(seqs[done])
            end = max(done + 1, bisect_right(seqs, segment.last_seq, done))
            some, more = self._table(segment).tally(seqs[done:end])
            size, crcs, done = size + some, crcs + more, end
        return size, crcs

    def _subject_of(self, seq: int) -> bytes:
        index = self._index
        return next((one for one in index if index.last_up_to(one, seq) == seq), b"")

    def _lose(self, seq: int) -> None:
        """A record turned out to be damaged: it does not count as a message any more."""
        if seq in self._lost:
            return
        crc, length, _, subject = self._facts_of_damaged(seq)
        self._index.remove(subject, seq)
        self._messages -= 1
        self._bytes -= length
        self._digest -= (crc << 64) + seq
        self._lost.add(seq)

    def _time_near(self, seq: int) -> int:
        while seq <= self._last:
            place = None if seq in self._lost else self._locate(seq, False)
            if place is not None:
                return record.raw_facts(place[0], place[1])[2]
            seq = self._deleted.next_absent(seq + 1)
        return self._last_time

    def _where(self, seq: int) -> str:
        return f"{self._directory}/{segment_name(self._segment_of(seq).number)}"


def _are_near(seqs: Sequence[int]) -> bool:
    """Whether reading ahead pays for these ascending sequences."""
    return len(seqs) > 1 and seqs[-1] - seqs[0] < 8 * len(seqs)


def _run_length(seqs: Sequence[int], at: int, most: int) -> int:
    """How many of at most so many ascending sequences from `at` on follow each other."""
    first = seqs[at]
    if seqs[at + most - 1] - first == most - 1:
        return most
    return bisect_right(range(most), 0, key=lambda n: seqs[at + n] - first - n)


def add_to_table(table: Table, data: bytes, one: Envelope | UnsoundBytes) -> None:
    """Note what a walk met, if it is a frame, or what is sound in a damaged one."""
    for found, end in columns_of(data, one):
        table.add(found, end, 0)


def columns_of(data: bytes, one: Envelope | UnsoundBytes) -> list[tuple[Columns, int]]:
    """The sound records that a walk met, as columns with the offset behind each."""
    if isinstance(one, Envelope):
        if one.kind != FRAME:
            return []
        return [(record.columns(data, one.start + FRAME_HEADER_BYTES, one.end), one.end)]
    if one.frame is None:
        return []
    _, first, last, _ = record.peek(data, one.start)
    starts = record.salvage(data, one.start + FRAME_HEADER_BYTES, one.end, first, last)
    ends = [at + record.raw_length(data, at) for at in starts]
    return [(record.columns(data, a, b), b) for a, b in zip(starts, ends, strict=True)]
