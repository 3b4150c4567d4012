"""The segment files of a stream's store: which there are, writing to them, their tables.

Which records are live is known to the index; it is asked for bounds and counts only. Nothing is
synced here: until a checkpoint, the caller's log is what brings messages back.
"""

from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field

from jsctl.broker.errors import DiskError
from jsctl.broker.ports import Disk, File
from jsctl.broker.store.frame import Frame
from jsctl.broker.store.index import Facts, StoreIndex
from jsctl.broker.store.segments.catalogue import (
    Catalogue,
    CatalogueWrite,
    catalogue_name,
    encode_records,
    read_catalogue,
)
from jsctl.broker.store.segments.late_file import LateFile
from jsctl.broker.store.segments.open_files import OpenFiles, waits_for_room
from jsctl.broker.store.segments.patient_file import PatientFile
from jsctl.broker.store.segments.salvage import columns_of, readable
from jsctl.broker.store.segments.segment import (
    FRAME,
    RECORDS,
    SEAL,
    STATE,
    Envelope,
    RecordColumns,
    Segment,
    Table,
    home_of,
    seal_offset,
    segment_name,
    walk,
)
from jsctl.dataclass import dataclass

SEGMENT_BYTES = 8 << 20
_OPEN_FILES_MAX = 32
_COPIED_BYTES = 1 << 20
_TABLES_MAX = 64
"""Between two checkpoints; those that nobody asked for meanwhile are let go of."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """`segment_bytes`: a segment is closed before the frame that would pass this size.

    It must be equal on all replicas of a stream, for their files to be equal.
    """

    segment_bytes: int = SEGMENT_BYTES
    open_files: OpenFiles = field(default_factory=OpenFiles, compare=False)
    """Shared by all stores of a server."""


class SegmentFiles:
    """The segments of one store, oldest first; the newest one is written to."""

    def __init__(
        self, disk: Disk, directory: str, options: StoreOptions, index: StoreIndex
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.options = options
        self.segments: list[Segment] = []
        self.firsts: list[int] = []
        """The first sequence of each."""
        self.doomed: list[int] = []
        """Numbers of those whose files go with the next checkpoint."""
        self.unsynced: set[int] = set()
        """Numbers of those that the next checkpoint has to sync."""
        self.changes = 0
        """Records that came or went since the index was saved."""
        self.made_number = 0
        self.views = 0
        """As long as there are some, no segment is given up or written anew."""
        self.guessed: set[int] = set()
        """Numbers of those which could not tell what some message counts, nor could a catalogue:
        totals are not sums any more."""
        self._index = index
        self._late: LateFile | None = None
        """The first segment's, until something is written behind its bounds."""
        self._open: list[Segment] = []
        self._pinned: set[int] = set()
        """Numbers of those whose files stay open."""
        self._tables: list[Segment] = []
        """Closed ones whose table is in memory."""
        self._asked: set[int] = set()
        """Numbers of those whose table was asked for since the last checkpoint."""
        self._partial: set[int] = set()
        """Numbers of those whose table was made while the disk did not read all of them: it is
        made once more behind the next checkpoint, as the disk may have come to itself."""
        self._catalogued: tuple[Segment | None, dict[int, Facts]] = (None, {})

    def path(self, number: int) -> str:
        """Where a segment lies."""
        return f"{self.directory}/{segment_name(number)}"

    # Writing.

    def write_frame(self, frame: Frame, mark: int) -> None:
        """Append a frame. Raises DiskError, DiskFull, and has changed nothing then."""
        if self._late is not None:
            self.appear()
        segment = self.segments[-1]
        full = segment.size + len(frame) > self.options.segment_bytes
        if segment.sealed or (segment.count and full):
            segment = self.roll()
        self.file(segment)
        start = segment.write(FRAME, mark, frame.view)
        if not segment.count:
            self.firsts[-1] = frame.first_seq
        segment.add(frame.columns, len(frame.buffer), start - frame.start)
        self.unsynced.add(segment.number)
        self.changes += frame.count

    def write_lost(self, some: RecordColumns, mark: int) -> None:
        """Append what is known of records whose bytes are not here. Raises DiskError, DiskFull."""
        segment = self._writable()
        segment.write(RECORDS, mark, encode_records(some))
        if not segment.count:
            self.firsts[-1] = some.seqs[0]
        segment.add_lost(some)
        self.unsynced.add(segment.number)
        self.changes += len(some.seqs)

    def note(self, kind: int, mark: int, content: bytes) -> None:
        """Append what does not tell of records. Raises DiskError, DiskFull."""
        assert kind not in (FRAME, RECORDS, SEAL), "frames and seals are counted"
        segment = self._writable()
        segment.write(kind, mark, content)
        self.unsynced.add(segment.number)

    def _writable(self) -> Segment:
        """The newest segment; another one if that is full."""
        self.appear()
        segment = self.segments[-1]
        full = segment.size > self.options.segment_bytes
        if segment.sealed or (segment.count and full):
            return self.roll()
        self.file(segment)
        return segment

    def note_state(self, mark: int) -> None:
        """Append the bounds as they are now."""
        self.note(STATE, mark, self._bounds(self.segments[-1].number))

    def roll(self) -> Segment:
        """Close the newest segment and begin another."""
        self.appear()
        segment = self.segments[-1]
        if not segment.sealed:
            self._seal(segment)
            self.unsynced.add(segment.number)
            self._tables.append(segment)
        return self.begin()

    def _seal(self, segment: Segment) -> None:
        self.file(segment)
        segment.seal()

    def begin(self) -> Segment:
        """Begin a segment. Raises DiskError, DiskFull, and leaves no file then."""
        segment = Segment(self.made_number + 1)
        path = self.path(segment.number)
        if not self.made_number:
            self._late = LateFile(self.disk, path)
        segment.file = self._late or PatientFile.create(self.disk, path)
        try:
            segment.write(STATE, self._index.mark, self._bounds(segment.number))
        except DiskError:
            segment.file.close()
            self.disk.remove(path)
            raise
        self.made_number += 1
        segment.first_seq = self._index.last + 1
        self.add(segment)
        self._open.append(segment)
        self.unsynced.add(segment.number)
        if self._late is None:
            self._opened(segment)
        return segment

    def _bounds(self, number: int) -> bytes:
        return self._index.bounds(self.home(number)).encode()

    def home(self, number: int) -> int:
        """What bounds say of where a segment belongs."""
        return home_of(self.directory, number)

    def appear(self) -> None:
        """Make a real file of a first segment that is none yet. Raises DiskError."""
        if self._late is not None:
            segment = self.segments[-1]
            segment.file = self._late.appear()
            self._late = None
            self._opened(segment)

    def find_room(self) -> bool:
        """Write what the disk had no room for; whether all is written. Raises DiskError."""
        self.appear()
        self._reappear()
        files = [one.file for one in self._open if isinstance(one.file, PatientFile)]
        return all([file.flush() for file in files if file.is_waiting])

    def _reappear(self) -> None:
        """Where somebody removed a file that is not synced yet, write it once more from what is
        open: the checkpoint that follows lets go of the log, and nobody else may have it."""
        for one in self._open:
            path = self.path(one.number)
            known = one.number not in self.unsynced or waits_for_room(one)
            if not known and one.file is not None and not self.disk.is_file(path):
                kept = readable(one.file, one.size)
                one.file.close()
                one.file = PatientFile(self.disk, path, None, kept)

    def distrust(self, present: set[int], number: int, offset: int, *, is_known: bool) -> None:
        """What files have behind a position may be in the page cache only: the next checkpoint
        syncs them. After a sync that failed that cache counts as written, so all of it is written
        once more; not where the position is lost, and any of it may have been promised."""
        for one in self.segments:
            if one.number in present and one.number >= number:
                self.unsynced.add(one.number)
                if is_known:
                    self._write_anew(one, offset if one.number == number else 0)

    def _write_anew(self, segment: Segment, start: int) -> None:
        # What fails here is left to the sync, and to who reads.
        with suppress(DiskError):
            file = self.disk.open(self.path(segment.number))
            try:
                for at in range(start, segment.size, _COPIED_BYTES):
                    file.write(at, (file.read(at, min(_COPIED_BYTES, segment.size - at)),))
            finally:
                file.close()

    def begin_anew(self) -> None:
        """Begin a segment and give up all others, as soon as there is no view: the store is empty
        now."""
        self.appear()
        newest = self.segments[-1]
        if not newest.sealed:
            self._seal(newest)
        self.begin()
        while len(self.segments) > 1 and not self.views:
            self.doom(self.segments[0])

    def add(self, segment: Segment) -> None:
        """Take a segment behind all others; its first sequence may still change."""
        assert not self.segments or segment.number > self.segments[-1].number, "numbers ascend"
        self.segments.append(segment)
        self.firsts.append(segment.first_seq)

    def doom(self, segment: Segment) -> None:
        """A segment nobody needs: its file goes with the next checkpoint, not before."""
        at = self.segments.index(segment)
        del self.segments[at], self.firsts[at]
        self.doomed.append(segment.number)
        self.changes += 1
        self.unsynced.discard(segment.number)
        self._forget(segment)

    def replace(self, number: int, made: Segment) -> None:
        """A segment has been rewritten, and its file has taken the old one's place."""
        assert made.number == number, "a segment keeps its number"
        known = next((one for one in self.segments if one.number == number), None)
        if made.file is not None:
            made.file.close()
            made.file = None
        if known is None:
            # It died while it was rewritten: the new file has to go as well.
            self.doomed.append(number)
            return
        at = self.segments.index(known)
        self.segments[at] = made
        self.firsts[at] = made.first_seq
        self._forget(known)
        self.changes += 1

    def _forget(self, segment: Segment) -> None:
        self.close_file(segment)
        if segment in self._tables:
            self._tables.remove(segment)

    # Catalogues.

    def catalogue_path(self, number: int) -> str:
        """Where a segment's catalogue lies."""
        return f"{self.directory}/{catalogue_name(number)}"

    def catalogue_writes(self) -> list[CatalogueWrite]:
        """What the next checkpoint has to add to catalogues."""
        found: list[CatalogueWrite] = []
        for one in self.segments:
            tail = one.catalogue
            if one.table is not None:
                tail.collect(one.table, one.mark)
            if tail.unusable:
                tail.unwritten.clear()
            elif tail.unwritten:
                found.append(CatalogueWrite(one, tuple(tail.unwritten), tail.size, tail.crc))
        return found

    def catalogued(self, segment: Segment) -> dict[int, Facts]:
        """What a segment's catalogue knows of its records; nothing if it is of no use."""
        known, facts = self._catalogued
        if known is not segment:
            size = None if segment.sealed else segment.catalogue.size
            found = self.read_catalogue(segment.number, size)
            facts = found.facts() if found is not None else {}
            self._catalogued = (segment, facts)
        return facts

    def read_catalogue(self, number: int, size: int | None) -> Catalogue | None:
        """A catalogue up to a size, or a finished one whole; None if none is there and sound."""
        return read_catalogue(self.disk, self.directory, number, size)

    # Finding.

    def of(self, seq: int) -> Segment:
        """The segment that has a sequence, if any has."""
        return self.segments[max(0, bisect_right(self.firsts, seq) - 1)]

    def live_of(self, segment: Segment) -> int:
        """How many of a segment's records are live."""
        if not segment.count:
            return 0
        return self._index.live_count(segment.first_seq, segment.last_seq)

    # Files and tables, of which some are kept.

    def file(self, segment: Segment) -> File:
        """A segment's open file. Raises DiskError."""
        if segment.file is None:
            path = self.path(segment.number)
            file = self.disk.open(path)
            segment.file = file if segment.sealed else PatientFile(self.disk, path, file)
            self._open.append(segment)
            self._opened(segment)
            if len(self._open) > _OPEN_FILES_MAX:
                kept = segment, self.segments[-1]
                others = (one for one in self._open if one not in kept)
                old = next((one for one in others if not self.is_needed(one)), None)
                if old is not None:
                    self.close_file(old)
        return segment.file

    def _opened(self, segment: Segment) -> None:
        """A segment has a real file: see that there are not too many."""
        self.options.open_files.opened(segment, self)
        if self.disk.is_crowded(len(self.options.open_files)):
            self.options.open_files.relieve(segment)

    def pin(self, numbers: set[int]) -> None:
        """Keep the files of these open until other ones are, or none: what is written anew has
        another file in its place before it is known here, with records at other places."""
        self._pinned = numbers
        for segment in [one for one in self.segments if one.number in numbers]:
            with suppress(DiskError):  # which is found when somebody reads
                self.file(segment)

    def is_needed(self, segment: Segment) -> bool:
        """Whether a file that is open has to stay so."""
        return segment.number in self._pinned or waits_for_room(segment)

    def close_file(self, segment: Segment) -> None:
        """Close a segment's file until it is needed."""
        self.options.open_files.closed(segment)
        if segment.file is not None:
            segment.file.close()
            segment.file = None
        if segment in self._open:
            self._open.remove(segment)

    def close(self) -> None:
        """Release all files; nothing is synced."""
        for segment in list(self._open):
            self.close_file(segment)

    def rest(self) -> None:
        """A checkpoint is made: let go of tables that nobody has asked for since the last one."""
        for segment in self._tables:
            if segment.number not in self._asked and not segment.damaged:
                segment.table = None
        self._asked.clear()
        self.forget_partial()

    def forget_partial(self) -> None:
        """Let go of what was made while the disk did not read all: it may have come to itself."""
        for segment in self._tables:
            if self.is_partial(segment):
                segment.table = None
        self._tables = [one for one in self._tables if one.table is not None]
        self._partial.clear()
        self._catalogued = (None, {})

    def is_partial(self, segment: Segment) -> bool:
        """Whether a segment's table was made while the disk did not read all of it."""
        return segment.number in self._partial

    def place(self, segment: Segment, seq: int) -> tuple[int, int] | None:
        """Where a single record of a closed segment may lie, without its table: see
        `Segment.sealed_place`. Raises DiskError."""
        return segment.sealed_place(self.file(segment), seq)

    def table(self, segment: Segment) -> Table:
        """The segment's table, from memory, from its seal, or by reading it all.

        Of one that cannot be read, or is gone, it has what can be read and what the catalogue
        knows. It does not raise: who asks may be about to remove what is damaged.
        """
        self._asked.add(segment.number)
        if segment.table is None:
            segment.table = self._load_table(segment)
            self._tables.append(segment)
        if len(self._tables) > _TABLES_MAX:
            old = self._tables.pop(0)
            if old is not segment and old.sealed:
                old.table = None
        return segment.table

    def places(self, segment: Segment, seqs: Iterable[int]) -> dict[int, tuple[int, int]]:
        """(offset, length) of records of a segment, as far as its table has them."""
        table = self.table(segment)
        found = ((seq, table.find(seq)) for seq in seqs)
        return {seq: (table.offsets[at], table.lengths[at]) for seq, at in found if at >= 0}

    def _load_table(self, segment: Segment) -> Table:
        try:
            return self._sealed_table(segment) or self._walked_table(segment)
        except DiskError:
            self._partial.add(segment.number)
            return self._table_of(segment, self._readable(segment))

    def _sealed_table(self, segment: Segment) -> Table | None:
        start = seal_offset(segment.size, segment.count)
        if not segment.sealed or start <= 0:
            return None
        data = self.file(segment).read(start, segment.size - start)
        seal = next(walk(data, 0, None), None)
        if not isinstance(seal, Envelope) or seal.kind != SEAL:
            return None
        return Table.decode(data[seal.start : seal.end])

    def _walked_table(self, segment: Segment) -> Table:
        return self._table_of(segment, self.file(segment).read(0, segment.size))

    def _readable(self, segment: Segment) -> bytes:
        try:
            file = self.file(segment)
        except DiskError:
            return b""
        return readable(file, segment.size)

    def _table_of(self, segment: Segment, data: bytes) -> Table:
        made = Table()
        for one in walk(data, 0, 0):
            for some, end in columns_of(data, one):
                made.add(some, end, 0)
        if len(made.seqs) == segment.count:
            return made
        made = _with_damaged(made, self.catalogued(segment))
        live = self._index.live(segment.first_seq, segment.last_seq, segment.count)
        if any(seq not in self._index.lost and made.find(seq) < 0 for seq in live):
            self.guessed.add(segment.number)
        return made


def _with_damaged(table: Table, facts: dict[int, Facts]) -> Table:
    """A table to which records that cannot be found are added, with a length that nothing has."""
    missing = [seq for seq in facts if table.find(seq) < 0]
    if not missing:
        return table
    made = Table()
    for seq in sorted([*table.seqs, *missing]):
        at = table.find(seq)
        if at < 0:
            made.put(seq, 0, 1, facts[seq].crc, facts[seq].size)
        else:
            place = table.offsets[at], table.lengths[at], table.crcs[at], table.sizes[at]
            made.put(seq, *place)
    return made
