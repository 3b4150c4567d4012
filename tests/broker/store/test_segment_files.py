"""Segment files alone: where they roll, what they keep, what they give up."""

import random

import pytest

from jsctl.broker.errors import Damaged, DiskError, DiskFull
from jsctl.broker.store.file_records import FileRecords
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.message_store import MessageStore
from jsctl.broker.store.record import Record
from jsctl.broker.store.segments import patient_file
from jsctl.broker.store.segments.files import SegmentFiles, StoreOptions
from jsctl.broker.store.segments.segment import FRAME, SEAL, STATE, Envelope, walk
from tests.broker.store.test_retained import settle
from tests.support.sim_disk import SimDisk, SimFile


def made(count: int = 30) -> tuple[SimDisk, StoreIndex, SegmentFiles]:
    disk = SimDisk(random.Random(1))
    disk.make_directory("s")
    index = StoreIndex()
    files = SegmentFiles(disk, "s", StoreOptions(500), index)
    files.begin()
    for first in range(1, count + 1, 3):
        append(index, files, first)
    return disk, index, files


def append(index: StoreIndex, files: SegmentFiles, first: int) -> None:
    rows = [Record(seq, seq, b"s", b"", b"%03d" % seq) for seq in range(first, first + 3)]
    frame = frame_of(rows)
    files.write_frame(frame, first)
    index.count_in(frame.columns, sum(frame.columns.lengths))


def test_a_segment_begins_with_bounds_and_ends_with_a_seal() -> None:
    disk, _, files = made()
    assert len(files.segments) > 3
    for segment in files.segments:
        data = disk.content(files.path(segment.number))
        kinds = [one.kind for one in walk(data, 0, 0) if isinstance(one, Envelope)]
        assert kinds[0] == STATE
        assert (kinds[-1] == SEAL) == segment.sealed
        assert set(kinds[1:-1]) <= {FRAME}
        assert segment.size == len(data)
    assert [one.sealed for one in files.segments] == [True] * (len(files.segments) - 1) + [False]


def test_the_segment_of_a_sequence_has_it() -> None:
    _, index, files = made()
    for seq in range(1, index.last + 1):
        assert files.table(files.of(seq)).find(seq) >= 0


def test_tables_come_from_seals_and_from_records() -> None:
    disk, _, files = made()
    segment = files.segments[0]
    want = files.table(segment).encode()
    segment.table = None
    assert files.table(segment).encode() == want
    segment.table = None
    disk.flip_bit(files.path(segment.number), 8 * (segment.size - 4))
    assert files.table(segment).encode() == want


def test_a_doomed_segment_keeps_its_file_until_the_checkpoint() -> None:
    disk, _, files = made()
    segment = files.segments[0]
    files.doom(segment)
    assert files.doomed == [segment.number]
    assert segment not in files.segments
    assert disk.exists(files.path(segment.number))


def test_a_full_disk_is_waited_for_in_memory_over_several_segments() -> None:
    disk, index, files = made(3)
    count = len(files.segments)
    disk.capacity -= disk.free_bytes() - 10
    for first in range(4, 60, 3):
        append(index, files, first)
    assert len(files.segments) > count + 2
    assert not files.find_room()
    rows, bad = FileRecords(files, index).read(range(1, 61), 0)
    assert ([one[0] for one in rows], bad) == (list(range(1, 61)), 0)
    disk.capacity = 1 << 40
    assert files.find_room()
    assert sorted(disk.paths()) == [files.path(one.number) for one in files.segments]
    for one in files.segments:
        assert len(disk.content(files.path(one.number))) == one.size
    rows, bad = FileRecords(files, index).read(range(1, 61), 0)
    assert ([one[0] for one in rows], bad) == (list(range(1, 61)), 0)


def test_not_everything_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_file, "WAITING_BYTES_MAX", 400)
    disk, index, files = made(3)
    disk.capacity -= disk.free_bytes() - 10
    with pytest.raises(DiskFull, match="none left to wait in"):
        for first in range(4, 60, 3):
            append(index, files, first)


def test_records_name_the_first_that_is_damaged() -> None:
    disk, index, files = made()
    records = FileRecords(files, index)
    path = files.path(files.of(14).number)
    disk.flip_bit(path, 8 * disk.content(path).index(b"014"))
    rows, bad = records.read(range(10, 20), 0)
    assert ([one[0] for one in rows], bad) == ([10, 11, 12, 13], 14)
    raws, bad = records.read_raw([13, 14])
    assert (len(raws), bad) == (1, 14)
    assert records.time_of(14) is None
    assert records.sizes([13, 14]) == [34, 34]
    assert records.tally([14])[0] == 34


def test_a_store_without_messages_has_no_files() -> None:
    disk, index = SimDisk(random.Random(1)), StoreIndex()
    files = SegmentFiles(disk, "new/store", StoreOptions(500), index)
    files.begin()
    assert disk.paths() == [] and not disk.exists("new")
    (only,) = files.segments
    before = files.file(only).read(0, only.size)
    assert files.file(only).size() == only.size == len(before) > 0
    append(index, files, 1)
    content = disk.content(files.path(1))
    assert content.startswith(before)
    kinds = [one.kind for one in walk(content, 0, 0) if isinstance(one, Envelope)]
    assert kinds == [STATE, FRAME]


@pytest.mark.parametrize("act", ["note_state", "begin_anew", "roll"])
def test_whatever_is_written_first_makes_the_files(act: str) -> None:
    disk, index = SimDisk(random.Random(1)), StoreIndex()
    files = SegmentFiles(disk, "new/store", StoreOptions(500), index)
    files.begin()
    files.note_state(1) if act == "note_state" else getattr(files, act)()
    assert files.path(1) in disk.paths()
    for path in disk.paths():
        assert all(isinstance(one, Envelope) for one in walk(disk.content(path), 0, 0))


def test_a_first_message_that_finds_no_room_is_written_when_there_is_some() -> None:
    disk, index = SimDisk(random.Random(1)), StoreIndex()
    files = SegmentFiles(disk, "new/store", StoreOptions(500), index)
    files.begin()
    room, disk.capacity = disk.capacity, 0
    append(index, files, 1)
    assert not files.find_room()
    disk.capacity = room
    append(index, files, 4)
    assert files.find_room()
    assert files.segments[0].count == 6 and disk.paths() == [files.path(1)]
    assert len(disk.content(files.path(1))) == files.segments[0].size


@pytest.mark.parametrize("catalogues", [True, False], ids=["catalogue", "none"])
def test_a_segment_that_cannot_be_read_any_more_stops_nothing(catalogues: bool) -> None:
    """It is mostly dead and about to be rewritten, and its last messages are removed, too."""
    disk = SimDisk(random.Random(2))
    store = MessageStore.open(disk, "s", StoreOptions(500))
    for first in range(1, 61, 3):
        rows = [Record(seq, seq, b"a", b"", b"%03d" % seq) for seq in range(first, first + 3)]
        store.append(frame_of(rows), first)
    settle(store)
    store.close()
    store = MessageStore.open(disk, "s", StoreOptions(500))
    path, *_ = sorted(one for one in disk.paths() if one.endswith(".seg"))
    if not catalogues:
        for one in [one for one in disk.paths() if one.endswith(".cat")]:
            disk.remove(one)
    disk.unreadable.append((path, 0, 1 << 20))
    store.remove([1, 2, 3, 4, 5], 100)
    settle(store)
    with pytest.raises(Damaged):
        store.load(6)
    store.append(frame_of([Record(61, 61, b"a", b"", b"061")]), 101)
    store.truncate_front(10, 102)
    settle(store)
    disk.unreadable.clear()
    store.close()
    store = MessageStore.open(disk, "s", StoreOptions(500))
    assert store.state().last_seq == 61 and store.load(20) is not None


class CountedDisk(SimDisk):
    """Knows the files that were opened."""

    def __init__(self) -> None:
        super().__init__(random.Random(1))
        self.files: list[SimFile] = []

    def open(self, path: str, *, create: bool = False) -> SimFile:
        self.files.append(super().open(path, create=create))
        return self.files[-1]

    def is_open(self, file: SimFile) -> bool:
        try:
            return file.size() >= 0
        except DiskError:
            return False


def test_only_so_many_files_are_open_whichever_was_opened_first() -> None:
    disk = CountedDisk()
    store = MessageStore.open(disk, "s", StoreOptions(400))
    for seq in range(1, 121):
        store.append(frame_of([Record(seq, seq, b"s", b"", bytes(100))]), seq)
    settle(store)
    store.close()
    store = MessageStore.open(disk, "s", StoreOptions(400))
    for seq in range(1, 121):
        assert store.load(seq) is not None
    assert sum(map(disk.is_open, disk.files)) <= 32
