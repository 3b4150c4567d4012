"""Opening the store of a file stream: what its files say.

The saved index is taken if it fits the segments, and what lies behind it is read; otherwise all
segments are read. What does not check below the durable position is damage: its sequences become
lost, everything else goes on being served. What does not check behind it was written after the
last checkpoint, and is cut off: the caller's log brings it back.

`Recovery` fills an empty index and empty `SegmentFiles`; it is of no use afterwards.
"""

import re
from itertools import pairwise

from jsctl.broker.errors import Damaged, DiskError
from jsctl.broker.store.checkpoint import (
    INDEX_NAME,
    Durable,
    SavedIndex,
    decode_index,
    read_durable,
)
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.record import Columns, peek
from jsctl.broker.store.remover import Remover
from jsctl.broker.store.segment import (
    HEAD_BYTES,
    REMOVE,
    SEAL,
    STATE,
    TRUNCATE,
    Envelope,
    Segment,
    UnsoundBytes,
    seal_offset,
    segment_name,
    walk,
)
from jsctl.broker.store.segment_files import SegmentFiles, columns_of
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.transfer import TransferBounds

_NAME = re.compile(r"(\d{10})\.seg")
_READ_STEP = 4096


class Recovery:
    """Reads a store from its files."""

    def __init__(self, files: SegmentFiles, index: StoreIndex, remover: Remover) -> None:
        self.durable: Durable | None = None
        """How far the files are synced; None before the first checkpoint."""
        self.damage: list[str] = []
        """What did not check."""
        self._files = files
        self._disk = files.disk
        self._directory = files.directory
        self._index = index
        self._remover = remover
        self._gap = False
        self._fresh = True
        self._notes: dict[int, list[str]] = {}

    def run(self) -> None:
        """Read everything, and leave a segment to be written to. Raises DiskError."""
        files = self._files
        self.durable, sure = read_durable(self._disk, self._directory)
        if not sure:
            self.damage.append(f"{self._directory}: no copy of the durable position checks")
        numbers = self._numbers()
        files.made_number = max(numbers, default=0)
        position = self._adopt_index(numbers)
        whole = True
        for number in [n for n in numbers if n >= position]:
            whole = whole and self._follows(number, sure)
            if whole:
                whole = self._replay_file(number, sure)
            else:
                self._disk.remove(files.path(number))
        self._drop_cut_segment()
        self._check_end()
        self._index.settle()
        self._drop_dead()
        # What was read may still be in the page cache only.
        synced = self.durable.segment if self.durable else 0
        files.unsynced.update(one.number for one in files.segments if one.number >= synced)
        last = files.segments[-1] if files.segments else None
        if last is None or last.sealed or self._gap:
            files.begin()
        else:
            files.file(last)

    def _numbers(self) -> list[int]:
        found = []
        for name in self._disk.list(self._directory):
            match = _NAME.fullmatch(name)
            if match is not None:
                found.append(int(match[1]))
            elif name.endswith(".new"):
                self._disk.remove(f"{self._directory}/{name}")
        return found

    def _newest(self) -> Segment | None:
        return self._files.segments[-1] if self._files.segments else None

    def _drop_cut_segment(self) -> None:
        """A segment of which nothing is left begins anew, with its bounds in front."""
        files = self._files
        newest = self._newest()
        if newest is not None and not newest.size:
            del files.segments[-1], files.firsts[-1]
            self._disk.remove(files.path(newest.number))
            newest = self._newest()
        promised = self.durable.segment if self.durable else 0
        files.made_number = max(promised, newest.number if newest else 0)

    def _check_end(self) -> None:
        """What was durable and is not there any more is damage, even at the very end."""
        durable, index = self.durable, self._index
        if durable is None:
            return
        # A change that had nothing to change leaves no bytes, but it had its mark.
        index.mark, mark = max(index.mark, durable.mark), index.mark
        newest = self._newest() or Segment(0)
        if (newest.number, newest.size) < (durable.segment, durable.offset):
            self.damage.append(f"{self._directory}: the end is missing, from mark {mark} on")
            self._gap = True
        if self._fresh:
            index.first, index.last = durable.first, durable.first - 1
        if durable.last > index.last:
            self._lose_up_to(durable.last)
            index.last_time = durable.last_time
        if durable.first > index.first:
            self._remover.cut(durable.first)

    def _lose_up_to(self, last: int) -> None:
        """Sequences behind the last one should be there and are not."""
        self._index.lost.add_unknown(self._index.last + 1, last)
        self._index.last = last

    def _drop_dead(self) -> None:
        """Give up segments without live messages; what does not check in them is no loss."""
        files, lost = self._files, self._index.lost
        for segment, behind in list(pairwise(files.segments)):
            count = lost.seqs.count_range(segment.first_seq, behind.first_seq - 1)
            if not count and not files.live_of(segment):
                files.doom(segment)
                self._notes.pop(segment.number, None)
        for notes in self._notes.values():
            self.damage.extend(notes)
        if lost and not self.damage:
            self.damage.append(f"{self._directory}: {len(lost)} messages are missing")

    def _is_promised(self, number: int, offset: int, sure: bool) -> bool:
        if self.durable is None:
            return not sure
        return (number, offset) < (self.durable.segment, self.durable.offset)

    def _follows(self, number: int, sure: bool) -> bool:
        """Whether a segment may be taken: behind what was promised nothing may be missing."""
        known = self._newest()
        if known is None:
            return self.durable is not None or not sure or number == 1
        complete = known.number == number or (known.sealed and known.number + 1 == number)
        return complete or self._is_promised(known.number, known.size, sure)

    def _contents(self, number: int) -> bytes:
        file = self._disk.open(self._files.path(number))
        try:
            size = file.size()
            try:
                return file.read(0, size)
            except DiskError as error:
                self.damage.append(str(error))
            parts = []
            for start in range(0, size, _READ_STEP):
                try:
                    parts.append(file.read(start, _READ_STEP))
                except DiskError:
                    parts.append(b"\xff" * min(_READ_STEP, size - start))
            return b"".join(parts)
        finally:
            file.close()

    def _replay_file(self, number: int, sure: bool) -> bool:
        """Take what a segment says; False if its rest, and all behind it, is to be dropped."""
        known = self._newest()
        start, previous = 0, 0
        if known is not None and known.number == number:
            segment, start, previous = known, known.size, known.last_crc
        else:
            segment = Segment(number)
            self._gap = self._gap or (known is not None and not known.sealed)
            self._gap = self._gap or (known is not None and known.number + 1 != number)
            segment.first_seq = self._index.last + 1
            self._files.add(segment)
        data = self._contents(number)
        whole = True
        for one in walk(data, start, previous):
            if isinstance(one, UnsoundBytes) and not self._is_promised(number, one.start, sure):
                whole = False
                break
            self._replay(segment, data, one)
        segment.size = len(data) if whole else self._cut_file(segment)
        self._files.firsts[-1] = segment.first_seq
        if segment.sealed:
            segment.table = None
        return whole

    def _cut_file(self, segment: Segment) -> int:
        """Remove a tail that was never promised."""
        file = self._disk.open(self._files.path(segment.number))
        file.truncate(segment.size)
        file.close()
        self._files.unsynced.add(segment.number)
        return segment.size

    def _replay(self, segment: Segment, data: bytes, one: Envelope | UnsoundBytes) -> None:
        if isinstance(one, UnsoundBytes):
            self._replay_bad(segment, data, one)
        else:
            self._replay_envelope(segment, data, one)
            self._index.mark = max(self._index.mark, one.mark)
            segment.mark, segment.last_crc = one.mark, one.crc
        segment.size = one.end

    def _replay_envelope(self, segment: Segment, data: bytes, one: Envelope) -> None:
        content = data[one.start : one.end]
        if one.kind == STATE:
            self._replay_state(TransferBounds.decode(content))
        elif one.kind == REMOVE:
            for first, last in SeqSet.decode(content).ranges():
                self._forget(first, last)
            self._index.settle()
        elif one.kind == TRUNCATE:
            bound = int.from_bytes(content, "little")
            if bound > self._index.first:
                self._remover.cut(bound)
                self._index.settle()
        elif one.kind == SEAL:
            segment.sealed = True
        else:
            for found, end in columns_of(data, one):
                self._take(segment, found, end)

    def _replay_bad(self, segment: Segment, data: bytes, one: UnsoundBytes) -> None:
        where = f"{segment_name(segment.number)}: bytes {one.start} to {one.end} are damaged"
        self._notes.setdefault(segment.number, []).append(where)
        self._gap = True
        if one.frame is None:
            return
        segment.last_crc = one.frame.crc
        _, _, last, _ = peek(data, one.start)
        for found, end in columns_of(data, one):
            self._take(segment, found, end)
            self._gap = True
        if last > self._index.last:
            self._lose_up_to(last)
        self._index.mark = max(self._index.mark, one.frame.mark)
        self._gap = False

    def _take(self, segment: Segment, found: Columns, end: int) -> None:
        first, index = found.seqs[0], self._index
        if first <= index.last:
            path = self._files.path(self._files.of(first).number)
            raise Damaged("sequences go back", path=path)
        self._fresh = False
        if self._gap and first > index.last + 1:
            self._lose_up_to(first - 1)
        self._gap = False
        segment.add(found, end, 0)
        index.count_in(found, sum(found.lengths))

    def _replay_state(self, bounds: TransferBounds) -> None:
        """Bounds say what was there before: what should be and is not is lost."""
        index = self._index
        if bounds.last < index.last:
            # The store was emptied for an import: what lies before is of no more use.
            for segment in self._files.segments[:-1]:
                self._files.doom(segment)
                self._notes.pop(segment.number, None)
            known = self.durable
            if known is not None and known.segment < self._files.segments[-1].number:
                self.durable = Durable(known.generation, 0, 0, 0, 0, 0, 0)
        if self._fresh or bounds.last < index.last:
            index.empty(index.last + 1)
            index.first, index.last = bounds.first, bounds.first - 1
            self._fresh = False
            index.mark = bounds.mark
        if bounds.last > index.last:
            self._lose_up_to(bounds.last)
        if bounds.first > index.first:
            self._remover.cut(bounds.first)
            index.first = bounds.first
        if bounds.deleted != index.deleted:
            for first, last in bounds.deleted.ranges():
                self._forget(first, last)
        index.last_time = bounds.last_time
        self._gap = False
        index.settle()

    def _forget(self, first: int, last: int) -> None:
        seqs = self._index.live(first, min(last, self._index.last), last - first + 1)
        if seqs:
            self._remover.drop(seqs)

    # The saved index

    def _adopt_index(self, numbers: list[int]) -> int:
        """Start from the saved index; the segment to read on from, 0 if it is of no use."""
        path = f"{self._directory}/{INDEX_NAME}"
        if not numbers or not self._disk.exists(path):
            return 0
        try:
            file = self._disk.open(path)
            saved = decode_index(file.read(0, file.size()))
            file.close()
        except (Damaged, DiskError) as error:
            self.damage.append(f"{error}; the segments were read instead")
            return 0
        try:
            segments = [self._fitting(row, set(numbers)) for row in saved.segments]
            self._read_open_segment(segments[-1])
        except (Damaged, DiskError):
            # Segments go and are rewritten after an index was saved: no reason for alarm.
            return 0
        for one in segments:
            self._files.add(one)
        self._fill(saved)
        known = {one.number for one in segments}
        newest = segments[-1].number
        self._files.doomed = [n for n in numbers if n < newest and n not in known]
        return newest

    def _fitting(
        self, row: tuple[int, int, int, int, int, int, int, bool], numbers: set[int]
    ) -> Segment:
        made = Segment(row[0])
        made.size, made.last_crc, made.first_seq, made.last_seq = row[1:5]
        made.last_time, made.count = row[5], row[6]
        made.sealed = bool(row[7])
        path = self._files.path(made.number)
        if made.number not in numbers:
            raise Damaged("a segment of the index is missing", path=path)
        file = self._disk.open(path)
        size = file.size()
        start = seal_offset(made.size, made.count)
        head = file.read(start, HEAD_BYTES) if made.sealed and start > 0 else b""
        file.close()
        if size < made.size or (made.sealed and size != made.size):
            raise Damaged("a segment has another size than in the index", path=path)
        if made.sealed and head[-4:] != made.last_crc.to_bytes(4, "little"):
            raise Damaged("a segment has another end than in the index", path=path)
        made.table = None
        return made

    def _read_open_segment(self, segment: Segment) -> None:
        """Check the newest segment of the index, whose end it says, and make its table."""
        data = self._contents(segment.number)[: segment.size]
        made = Segment(segment.number)
        crc = 0
        for one in walk(data, 0, 0):
            if isinstance(one, UnsoundBytes):
                raise Damaged("the newest segment is damaged", path=segment_name(segment.number))
            crc = one.crc
            for found, end in columns_of(data, one):
                made.add(found, end, 0)
        if crc != segment.last_crc or made.count != segment.count:
            raise Damaged("the newest segment has changed", path=segment_name(segment.number))
        segment.table = made.table

    def _fill(self, saved: SavedIndex) -> None:
        index = self._index
        bounds = TransferBounds.decode(saved.state[8:])
        index.bytes = int.from_bytes(saved.state[:8], "little")
        index.first, index.last, index.last_time = bounds.first, bounds.last, bounds.last_time
        index.mark, index.digest, index.deleted = bounds.mark, bounds.digest, bounds.deleted
        for subject, seqs in saved.subjects:
            index.messages += len(seqs)
            index.subjects.put(subject, seqs)
        self._fresh = False
