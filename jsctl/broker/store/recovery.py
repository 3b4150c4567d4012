"""Opening the store of a file stream: what its files say.

The saved index is taken if it fits the segments, and what lies behind it is read; otherwise all
segments are read. What does not check below the durable position is damage: its sequences become
lost, everything else goes on being served. What a damaged segment held is known from its
catalogue; if that does not check either, from the bounds that the next segment begins with. What
does not check behind the durable position was written after the last checkpoint, and is cut off:
the caller's log brings it back.
"""

import re
from itertools import pairwise

from jsctl.broker.errors import Damaged, DiskError
from jsctl.broker.store.checkpoint import DURABLE_NAME, Durable, Witness, read_durable
from jsctl.broker.store.index import Facts, StoreIndex
from jsctl.broker.store.record import Columns, peek
from jsctl.broker.store.remover import MessageRemover
from jsctl.broker.store.saved_index import IndexAdoption
from jsctl.broker.store.segments.catalogue import Catalogue, decode_records
from jsctl.broker.store.segments.files import SegmentFiles
from jsctl.broker.store.segments.salvage import columns_of, readable
from jsctl.broker.store.segments.segment import (
    FRAME,
    RECORDS,
    REMOVE,
    SEAL,
    STATE,
    TRUNCATE,
    Envelope,
    RecordColumns,
    Segment,
    UnsoundBytes,
    belongs,
    segment_name,
    walk,
)
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.transfer import TransferBounds

_NAME = re.compile(r"(\d{10})\.(seg|cat)")
_CATALOGUES_REBUILT_MAX = 16
"""Catalogues that are missing are made anew from sound segments, so many at an opening."""


class Recovery:
    """Reads a store from its files into an empty index and empty `SegmentFiles`, once."""

    def __init__(
        self,
        files: SegmentFiles,
        index: StoreIndex,
        remover: MessageRemover,
        witness: Witness | None = None,
    ) -> None:
        """`witness`: that there was a checkpoint is known from elsewhere."""
        self.durable: Durable | None = None
        """How far the files are synced; None before the first checkpoint."""
        self.damage: list[str] = []
        """What did not check."""
        self.forgets_removals = False
        """See `StreamStore`. A segment that follows tells of all that was removed before it."""
        self._files = files
        self._disk = files.disk
        self._directory = files.directory
        self._index = index
        self._remover = remover
        self._witness = witness
        self._gap = False
        self._fresh = True
        self._notes: dict[int, list[str]] = {}
        self._present: set[int] = set()
        self._end_is_known = False
        self._rebuilt = 0

    def run(self) -> None:
        """Read everything, and leave a segment to be written to. Raises DiskError."""
        files = self._files
        names = self._disk.list(self._directory)
        if not names and self._witness is None:
            files.begin()  # A new one.
            return
        self.durable, sure = read_durable(self._disk, self._directory)
        if not sure:
            self.damage.append(f"{self._directory}: no copy of the durable position checks")
        elif self.durable is None and self._witness is not None:
            # Else a store that lost it would be taken for one that was never made durable.
            sure = False
            self.damage.append(f"{self._directory}/{DURABLE_NAME} is missing")
        numbers = self._numbers(names)
        files.made_number = max(numbers, default=0)
        saved = IndexAdoption(files, self._index, self.durable, self._present, self._contents)
        position = saved.adopt(numbers)
        self._fresh = not position
        if saved.doubt:
            self.damage.append(saved.doubt)
        whole = True
        for number in [n for n in numbers if n >= position]:
            whole = whole and self._follows(number, sure)
            if whole:
                whole = self._replay_file(number, sure)
            else:
                self._disk.remove(files.path(number))
                self._disk.remove(files.catalogue_path(number))
        self._drop_cut_segment()
        self._check_end()
        self._index.settle()
        self._drop_dead()
        durable = self.durable or Durable(0, 0, 0, 0, 0, 0, 0)
        known = self.durable is not None or self._witness is None
        files.distrust(self._present, durable.segment, durable.offset, is_known=known)
        last = files.segments[-1] if files.segments else None
        if last is None or last.sealed or self._gap:
            files.begin()
        else:
            files.file(last)

    def _numbers(self, names: list[str]) -> list[int]:
        """Segments of which there is a file or, promised, a catalogue; ascending."""
        known: set[int] = set()
        for name in names:
            match = _NAME.fullmatch(name)
            if match is not None and match[2] == "seg":
                self._present.add(int(match[1]))
            elif match is not None:
                known.add(int(match[1]))
            elif name.endswith(".new"):
                self._disk.remove(f"{self._directory}/{name}")
        promised = self.durable.segment if self.durable else 0
        return sorted(self._present | {number for number in known if number <= promised})

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
            self._check_end_by_witness()
            return
        # A change that had nothing to change leaves no bytes, but it had its mark.
        index.mark, mark = max(index.mark, durable.mark), index.mark
        newest = self._newest() or Segment(0)
        known = self._end_is_known
        if not known and (newest.number, newest.size) < (durable.segment, durable.offset):
            self.damage.append(f"{self._directory}: the end is missing, from mark {mark} on")
            self._gap = self.forgets_removals = True
        if self._fresh:
            index.first, index.last = durable.first, durable.first - 1
        if durable.last > index.last:
            self._lose_up_to(durable.last)
        if durable.last == index.last:
            index.last_time = durable.last_time  # Of a message that is perhaps damaged
        if durable.first > index.first:
            self._remover.cut(durable.first)

    def _check_end_by_witness(self) -> None:
        """The same where no position is left; what was written since is unknown."""
        witness, index = self._witness, self._index
        if witness is None:
            return
        if self._fresh:
            index.first, index.last = witness.first, witness.first - 1
        if witness.last > index.last:
            self.damage.append(f"{self._directory}: the end is missing, up to {witness.last}")
            self._gap = self.forgets_removals = True
            self._lose_up_to(witness.last)
        if witness.first > index.first:
            self._remover.cut(witness.first)

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
            return readable(file, size)
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
        data = self._contents(number) if number in self._present else b""
        walked = list(walk(data, start, previous))
        begin = walked[0] if walked and not start else None
        if isinstance(begin, Envelope) and not belongs(data, begin, self._files.home(number)):
            walked = [UnsoundBytes(0, len(data), None)]
        catalogue = None if start else self._needed_catalogue(number, walked, len(data))
        if catalogue is not None:
            return self._replay_catalogue(segment, data, walked, catalogue)
        whole = self._replay_walked(segment, data, walked, sure)
        segment.size = len(data) if whole else self._cut_file(segment)
        self._files.firsts[-1] = segment.first_seq
        self._settle_catalogue(segment)
        if segment.sealed:
            segment.table = None
        return whole

    def _replay_walked(
        self, segment: Segment, data: bytes, walked: list[Envelope | UnsoundBytes], sure: bool
    ) -> bool:
        """Take what a walk met up to what does not check and was not promised; whether all."""
        number, durable = segment.number, self.durable
        promised = durable.offset if durable and durable.segment == number else 0
        for one in walked:
            if isinstance(one, UnsoundBytes) and not self._is_promised(number, one.start, sure):
                return False
            if promised and one.start > promised:
                self._continue_catalogue(segment)
                promised = 0
            self._replay(segment, data, one)
        if promised:
            self._continue_catalogue(segment)
        return True

    # Catalogues

    def _continue_catalogue(self, segment: Segment) -> None:
        """What was read so far is in the catalogue already, if that is sound."""
        size = 0
        if self.durable is not None and self.durable.segment == segment.number:
            size = self.durable.catalogue
        found = self._files.read_catalogue(segment.number, size)
        if found is not None and segment.table is not None:
            segment.catalogue.written(len(segment.table.seqs), found.size, found.crc)

    def _settle_catalogue(self, segment: Segment) -> None:
        """Whether the next checkpoint has to write a catalogue of what was read."""
        number, tail = segment.number, segment.catalogue
        if number in self._notes:
            tail.unusable = True
        promised = self.durable is not None and number < self.durable.segment
        if not segment.sealed or segment.table is None or tail.unusable or not promised:
            return
        found = self._files.read_catalogue(number, None)
        self._rebuilt += found is None
        if found is not None or self._rebuilt > _CATALOGUES_REBUILT_MAX:
            tail.written(len(segment.table.seqs), 0, 0)

    def _needed_catalogue(
        self, number: int, walked: list[Envelope | UnsoundBytes], size: int
    ) -> Catalogue | None:
        """The catalogue of a segment in which something that was promised does not check."""
        durable = self.durable
        if durable is None or number > durable.segment:
            return None
        last = walked[-1] if walked else None
        sound = isinstance(last, Envelope) and last.kind == SEAL
        promised, known = size, None
        if number == durable.segment:
            # One that was rewritten since is closed, and may be shorter.
            promised, known = durable.offset, durable.catalogue
            sound = sound or size >= promised
        damaged = [one for one in walked if isinstance(one, UnsoundBytes) and one.start < promised]
        if sound and not damaged:
            return None
        return self._files.read_catalogue(number, known)

    def _replay_catalogue(
        self,
        segment: Segment,
        data: bytes,
        walked: list[Envelope | UnsoundBytes],
        catalogue: Catalogue,
    ) -> bool:
        """Take what a catalogue says; its segment only has to say where records lie."""
        index, durable = self._index, self.durable
        assert durable is not None, "a catalogue is of use up to the durable position"
        places = _places(data, walked)
        before = len(index.lost)
        for one in catalogue.envelopes:
            content = catalogue.content(one)
            if one.kind == RECORDS:
                self._take_catalogued(segment, decode_records(content), places)
            else:
                self._replay_note(segment, one.kind, content)
            index.mark = max(index.mark, one.mark)
            segment.mark = one.mark
        count = max(0, len(index.lost) - before)
        name = segment_name(segment.number)
        self._notes.setdefault(segment.number, []).append(f"{name}: {count} messages are damaged")
        segment.catalogue.written(0, catalogue.size, catalogue.crc)
        if catalogue.envelopes[-1].kind != SEAL:
            segment.catalogue.unwritten.append((SEAL, segment.mark, b""))
        # Nothing is written behind damage.
        segment.sealed, segment.size = True, len(data)
        self._files.firsts[-1] = segment.first_seq
        self._fresh = self._gap = False
        if segment.number < durable.segment:
            return True
        self._end_is_known = True
        if len(data) > durable.offset:
            segment.size = durable.offset
            self._cut_file(segment)
        return False

    def _take_catalogued(
        self, segment: Segment, some: RecordColumns, places: dict[int, tuple[int, int, int]]
    ) -> None:
        seqs = list(some.seqs)
        index, table = self._index, segment.table
        assert table is not None, "a segment that is read has its table"
        if seqs[0] <= index.last:
            raise Damaged("sequences go back", path=self._files.catalogue_path(segment.number))
        found = Columns(
            [], list(some.crcs), list(some.sizes), seqs, list(some.times), some.subjects
        )
        index.count_in(found, sum(some.sizes))
        if not segment.count:
            segment.first_seq = seqs[0]
        segment.count += len(seqs)
        segment.last_seq, segment.last_time = seqs[-1], some.times[-1]
        rows = zip(some.crcs, some.sizes, some.times, some.subjects, strict=True)
        for seq, facts in zip(seqs, map(Facts._make, rows), strict=True):
            offset, length, crc = places.get(seq, (0, 0, -1))
            if crc == facts.crc:
                table.put(seq, offset, length, crc, facts.size)
            else:
                index.lose(seq, facts)

    def _take_lost(self, segment: Segment, some: RecordColumns) -> None:
        """Take records whose bytes the store never got."""
        index = self._index
        if some.seqs[0] <= index.last:
            raise Damaged("sequences go back", path=self._files.path(segment.number))
        self._fresh = self._gap = False
        rows = zip(some.crcs, some.sizes, some.times, some.subjects, strict=True)
        for seq, facts in zip(some.seqs, map(Facts._make, rows), strict=True):
            index.count_lost(seq, facts)
        segment.add_lost(some)

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
            if one.kind == FRAME:
                for found, end in columns_of(data, one):
                    self._take(segment, found, end)
            else:
                content = data[one.start : one.end]
                self._replay_note(segment, one.kind, content)
                if one.kind != RECORDS:
                    segment.note(one.kind, one.mark, content)
            self._index.mark = max(self._index.mark, one.mark)
            segment.mark, segment.last_crc = one.mark, one.crc
        segment.size = one.end

    def _replay_note(self, segment: Segment, kind: int, content: bytes) -> None:
        """Take what is not a frame."""
        if kind == STATE:
            self._replay_state(TransferBounds.decode(content))
        elif kind == REMOVE:
            for first, last in SeqSet.decode(content).ranges():
                self._forget(first, last)
            self._index.settle()
        elif kind == TRUNCATE:
            bound = int.from_bytes(content, "little")
            if bound > self._index.first:
                self._remover.cut(bound)
                self._index.settle()
        elif kind == SEAL:
            segment.sealed = True
        elif kind == RECORDS:
            self._take_lost(segment, decode_records(content))

    def _replay_bad(self, segment: Segment, data: bytes, one: UnsoundBytes) -> None:
        where = f"{segment_name(segment.number)}: bytes {one.start} to {one.end} are damaged"
        self._notes.setdefault(segment.number, []).append(where)
        self._gap = True
        if one.frame is None:
            self.forgets_removals = True
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
        self._gap = self.forgets_removals = False
        index.settle()

    def _forget(self, first: int, last: int) -> None:
        seqs = self._index.live(first, min(last, self._index.last), last - first + 1)
        if seqs:
            self._remover.drop(seqs)


def _places(data: bytes, walked: list[Envelope | UnsoundBytes]) -> dict[int, tuple[int, int, int]]:
    """`(offset, length, crc)` of each sound record of a segment."""
    found: dict[int, tuple[int, int, int]] = {}
    for one in walked:
        for some, end in columns_of(data, one):
            ends = [*some.offsets[1:], end]
            rows = zip(some.seqs, some.offsets, ends, some.crcs, strict=True)
            found.update((seq, (at, stop - at, crc)) for seq, at, stop, crc in rows)
    return found
