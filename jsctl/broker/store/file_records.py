"""The records of a file stream: reading them from its segments, and noting what becomes of them.

Reads verify each record by its own checksum, whatever the tables say. Consecutive records are
read from one buffer, column by column.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile

from jsctl.broker.errors import DiskError
from jsctl.broker.store import record
from jsctl.broker.store.frame import Frame
from jsctl.broker.store.index import Facts, StoreIndex
from jsctl.broker.store.record import Columns, Row
from jsctl.broker.store.segments.files import SegmentFiles
from jsctl.broker.store.segments.open_files import waits_for_room
from jsctl.broker.store.segments.segment import REMOVE, TRUNCATE, RecordColumns, Segment
from jsctl.broker.store.seqset import SeqSet, encode_one
from jsctl.broker.store.views.places import FileRun, Held, RecordPlace

_READ_BYTES = 64 * 1024
_UNBOUNDED = 1 << 62


class FileRecords:
    """Implements `Records` on segment files."""

    def __init__(self, files: SegmentFiles, index: StoreIndex) -> None:
        self._files = files
        self._index = index
        self._chunk: tuple[Segment | None, int, bytes] = (None, 0, b"")
        self.restored: dict[int, bytes] = {}
        """Records that were damaged, until their segments are written anew."""
        self.unread = SeqSet()
        """What the disk did not give: its bytes may be sound."""

    # Sizes.

    def message_bytes(self, subject: int, headers: int, payload: int) -> int:
        """What a message counts is what its record takes."""
        return record.message_bytes(subject, headers, payload)

    def count_bytes(self, found: Columns) -> int:
        """What the records of a frame count."""
        return sum(found.lengths)

    # Views.

    def hold(self) -> None:
        """Segments stay as they are, but for what is added."""
        self._files.views += 1

    def release(self) -> None:
        """With the last view, the next checkpoint tidies up."""
        self._files.views -= 1

    def places(self, seqs: Sequence[int]) -> list[RecordPlace]:
        """In closed segments, which anybody may read. Of others the bytes are read here."""
        found: list[RecordPlace] = []
        files, at = self._files, 0
        while at < len(seqs):
            segment = files.of(seqs[at])
            table = files.table(segment)
            first = -1 if seqs[at] in self.restored else table.find(seqs[at])
            some = seqs[at : bisect_right(seqs, segment.last_seq, at) if first >= 0 else at + 1]
            if self.restored and first >= 0:
                some = list(takewhile(lambda seq: seq not in self.restored, some))
            if first < 0 or not segment.sealed or waits_for_room(segment):
                found.append(Held(some, self.read_raw(some)[0]))
                at += len(some)
                continue
            offsets, lengths = table.spans(some, first)
            path, count = files.path(segment.number), len(offsets)
            found.append(FileRun(files.disk, path, some[:count], list(offsets), list(lengths)))
            at += count
        return found

    # Changes.

    def write(self, frame: Frame, mark: int) -> None:
        """Append a frame."""
        self._files.write_frame(frame, mark)

    def note_lost(self, some: RecordColumns, mark: int) -> None:
        """Append what is known of them, so that a restart finds the same."""
        self._files.write_lost(some, mark)

    def erase(self, seqs: Sequence[int]) -> None:
        """Have their segments, which are closed then, written anew."""
        files = self._files
        for seq in seqs:
            segment = files.of(seq)
            if segment.first_seq <= seq <= segment.last_seq:
                if segment is files.segments[-1]:
                    files.roll()
                segment.erase = True

    def note_removal(self, seqs: Sequence[int], mark: int) -> None:
        """Append what is removed."""
        files = self._files
        if len(seqs) == 1:
            files.note(REMOVE, mark, encode_one(seqs[0]))
            return
        gone = SeqSet()
        gone.add_many(seqs)
        files.note(REMOVE, mark, gone.encode())

    def note_cut(self, first_seq: int, mark: int) -> None:
        """Append from where on there is something."""
        self._files.note(TRUNCATE, mark, first_seq.to_bytes(8, "little"))

    def note_state(self, mark: int) -> None:
        """Append the bounds."""
        self._files.note_state(mark)

    def removed(self, seqs: Sequence[int]) -> None:
        """Their bytes stay until their segment is mostly dead."""
        if self.restored:
            for seq in seqs:
                self.restored.pop(seq, None)
        if self.unread:
            for seq in seqs:
                self.unread.remove(seq)
        self._files.changes += len(seqs)

    def truncated(self, first_seq: int, gone: Sequence[int]) -> None:
        """Give up segments that lie below."""
        files = self._files
        self.restored = {seq: raw for seq, raw in self.restored.items() if seq >= first_seq}
        if self.unread:
            self.unread.remove_range(0, first_seq - 1)
        files.changes += len(gone)
        if files.views:
            return
        while len(files.segments) > 1 and files.segments[0].last_seq < first_seq:
            files.doom(files.segments[0])

    def reset(self) -> None:
        """Give up all segments."""
        self.restored.clear()
        self.unread.clear()
        self._files.begin_anew()

    def restore(self, raws: dict[int, bytes]) -> None:
        """Keep records in memory until a checkpoint writes their segments anew."""
        files = self._files
        if raws and files.of(max(raws)) is files.segments[-1]:
            # An open segment is not rewritten.
            files.roll()
        self.restored.update(raws)
        for seq in raws:
            self.unread.remove(seq)

    def forget_chunk(self) -> None:
        """Read from the disk what is read next."""
        self._chunk = (None, 0, b"")

    # Reading.

    def _bytes_at(self, segment: Segment, offset: int, length: int, ahead: bool) -> bytes:
        """A buffer that begins with a range of a segment."""
        want = max(length, min(_READ_BYTES, segment.size - offset)) if ahead else length
        file = self._files.file(segment)
        try:
            data = file.read(offset, want)
        except DiskError:
            if want == length:
                raise
            # What cannot be read may lie ahead, in records that nobody asked for.
            data = file.read(offset, length)
        if ahead:
            self._chunk = (segment, offset, data)
        return data

    def _place_of(self, seq: int, ahead: bool) -> tuple[bytes, int, int] | None:
        """`(buffer, start, length)` of a live record, unverified; None if it is not there."""
        if self.restored and (raw := self.restored.get(seq)) is not None:
            return raw, 0, len(raw)
        segment = self._files.of(seq)
        try:
            if segment.table is None and not ahead:
                single = self._single(segment, seq)
                if single is not None:
                    return single, 0, len(single)
            table = segment.table or self._files.table(segment)
            at = table.find(seq)
            if at < 0 or not table.offsets[at]:
                if self._files.is_partial(segment):
                    self.unread.add(seq)
                return None
            length, offset = table.lengths[at], table.offsets[at]
            known, begin, data = self._chunk
            start = offset - begin
            if known is segment and start >= 0 and start + length <= len(data):
                return data, start, length
            return self._bytes_at(segment, offset, length, ahead), 0, length
        except DiskError:
            self.unread.add(seq)
            return None

    def _single(self, segment: Segment, seq: int) -> bytes | None:
        """A record of a closed segment whose table is not in memory, and is not needed either; not
        verified, but its head is that of this record."""
        try:
            place = self._files.place(segment, seq)
            data = b"" if place is None else self._bytes_at(segment, *place, ahead=False)
        except DiskError:
            return None  # What cannot be read may lie behind it.
        length = record.raw_length(data, 0)
        if not record.RECORD_OVERHEAD <= length <= len(data) or record.raw_seq_at(data, 0) != seq:
            return None
        return data[:length]

    def _locate(self, seq: int, ahead: bool) -> tuple[bytes, int, int] | None:
        """`(buffer, start, length)` of a live record; None if it is damaged."""
        place = self._place_of(seq, ahead)
        if place is None:
            return None
        data, start, length = place
        if record.verify_record(data, start) != length or record.raw_seq_at(data, start) != seq:
            return None
        return place

    def read(self, seqs: Sequence[int], bytes_max: int) -> tuple[list[Row], int]:
        """Verified records, and the first that is damaged (0: none)."""
        found: list[Row] = []
        left = bytes_max or _UNBOUNDED
        ahead = _are_near(seqs)
        while len(found) < len(seqs):
            seq = seqs[len(found)]
            place = self._place_of(seq, ahead)
            row = None if place is None else record.read_record(*place, seq)
            if place is None or row is None:
                return found, seq
            left -= place[2]
            if left < 0 and found:
                break
            found.append(row)
            if ahead and len(found) < len(seqs):
                rows, size = self._read_run(seqs, len(found), left)
                left -= size
                found += rows
        return found, 0

    def _read_run(self, seqs: Sequence[int], at: int, bytes_max: int) -> tuple[list[Row], int]:
        """What is sound of the sequences from `at` on that lie in this chunk; and its length in
        bytes."""
        known, begin, data = self._chunk
        segment = self._files.of(seqs[at])
        table = segment.table
        if segment is not known or table is None:
            return [], 0
        first = table.find(seqs[at])
        # Behind a record that was put back, the chunk may be one from further on.
        if first < 0 or table.offsets[first] < begin:
            return [], 0
        here = bisect_left(table.offsets, begin + len(data), first)
        if here == first:
            return [], 0
        stop = bisect_right(seqs, table.seqs[here - 1], at)
        some = seqs[at:stop]
        offsets, lengths = table.spans(some, first)
        # Of which the segment knows nothing is met again by whoever reads it alone.
        rows = record.read_records(data, begin, some, offsets, lengths, bytes_max)
        return rows, sum(lengths[: len(rows)])

    def read_raw(self, seqs: Sequence[int]) -> tuple[list[bytes], int]:
        """Verified bytes of records, and the first that is damaged (0: none)."""
        found: list[bytes] = []
        for seq in seqs:
            place = self._locate(seq, True)
            if place is None:
                return found, seq
            data, start, length = place
            found.append(data[start : start + length])
        return found, 0

    def facts(self, seqs: Sequence[int]) -> Iterator[Facts]:
        """What the counters need to forget live records; of damaged ones what tables know."""
        ahead = _are_near(seqs)
        for seq in seqs:
            place = self._locate(seq, ahead)
            if place is None:
                yield self._facts_of_damaged(seq)
            else:
                yield Facts(*record.raw_facts(place[0], place[1]))

    def _facts_of_damaged(self, seq: int) -> Facts:
        """What table, catalogue and index know of a record that cannot be read."""
        segment = self._files.of(seq)
        table = self._files.table(segment)
        at = table.find(seq)
        known = self._files.catalogued(segment).get(seq)
        if known is not None and (at < 0 or known.crc == table.crcs[at]):
            return known
        crc, size = (table.crcs[at], table.sizes[at]) if at >= 0 else (0, 0)
        return Facts(crc, size, 0, self._subject_of(seq))

    def _subject_of(self, seq: int) -> bytes:
        subjects = self._index.subjects
        return next((one for one in subjects if subjects.last_up_to(one, seq) == seq), b"")

    def tally(self, seqs: Sequence[int]) -> tuple[int, int]:
        """Sums of sizes and checksums, from tables."""
        size = crcs = done = 0
        if self.restored:
            known = [record.raw_facts(self.restored[n]) for n in seqs if n in self.restored]
            crcs, size = sum(one[0] for one in known), sum(one[1] for one in known)
            seqs = [seq for seq in seqs if seq not in self.restored]
        while done < len(seqs):
            segment = self._files.of(seqs[done])
            end = max(done + 1, bisect_right(seqs, segment.last_seq, done))
            some, more = self._files.table(segment).tally(seqs[done:end])
            size, crcs, done = size + some, crcs + more, end
        return size, crcs

    @property
    def totals_known(self) -> bool:
        """Whether tables had all that was asked for."""
        return not self._files.guessed

    def sizes(self, seqs: Sequence[int]) -> list[int]:
        """What each record counts, from tables."""
        if self.restored:
            return [self.tally((seq,))[0] for seq in seqs]
        found: list[int] = []
        while len(found) < len(seqs):
            done = len(found)
            segment = self._files.of(seqs[done])
            end = max(done + 1, bisect_right(seqs, segment.last_seq, done))
            table = self._files.table(segment)
            places = map(table.find, seqs[done:end])
            found += [table.sizes[at] if at >= 0 else 0 for at in places]
        return found

    def time_of(self, seq: int) -> int | None:
        """Time of a record; None if it is damaged."""
        place = self._locate(seq, False)
        return None if place is None else record.raw_facts(place[0], place[1])[2]

    def path_of(self, seq: int) -> str:
        """The file of the segment that has it."""
        return self._files.path(self._files.of(seq).number)


def _are_near(seqs: Sequence[int]) -> bool:
    """Whether reading ahead pays for these ascending sequences."""
    return len(seqs) > 1 and seqs[-1] - seqs[0] < 8 * len(seqs)
