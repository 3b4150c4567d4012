"""Segment files alone: where they roll, what they keep, what they give up."""

import random

import pytest

from jsctl.broker.errors import DiskFull
from jsctl.broker.store import record
from jsctl.broker.store.file_records import FileRecords
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.record import FRAME_HEADER_BYTES, Record
from jsctl.broker.store.segments.files import SegmentFiles, StoreOptions
from jsctl.broker.store.segments.segment import FRAME, SEAL, STATE, Envelope, walk
from tests.support.sim_disk import SimDisk


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
    frame = record.encode_frame(rows)
    found = record.columns(frame, FRAME_HEADER_BYTES, len(frame))
    files.write_frame(frame, first, found)
    index.count_in(found, sum(found.lengths))


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


def test_a_full_disk_leaves_no_half_segment() -> None:
    disk, index, files = made(3)
    before = [(one.number, one.size, one.count) for one in files.segments]
    disk.capacity -= disk.free_bytes() - 10
    with pytest.raises(DiskFull):
        for first in range(4, 60, 3):
            append(index, files, first)
    assert [(one.number, one.size, one.count) for one in files.segments] == before
    disk.capacity = 1 << 40
    append(index, files, 4)
    rows, bad = FileRecords(files, index).read(range(1, 7), 0)
    assert ([one[0] for one in rows], bad) == ([1, 2, 3, 4, 5, 6], 0)


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
