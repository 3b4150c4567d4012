"""Catalogues alone: what is written is read again, and anything else is refused."""

import random

from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.store import record
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.record import Record
from jsctl.broker.store.segments.catalogue import (
    CatalogueWrite,
    decode_records,
    encode_records,
    read_catalogue,
)
from jsctl.broker.store.segments.files import SegmentFiles, StoreOptions
from jsctl.broker.store.segments.segment import REMOVE, Segment
from jsctl.broker.store.seqset import SeqSet
from tests.support.sim_disk import SimDisk

PATH = "s/0000000001.cat"


def made(gaps: list[int]) -> tuple[SimDisk, SegmentFiles, list[Record]]:
    """Segment files with a frame for each gap, and nothing of it in catalogues yet."""
    disk = SimDisk(random.Random(1))
    disk.make_directory("s")
    index = StoreIndex()
    files = SegmentFiles(disk, "s", StoreOptions(400), index)
    files.begin()
    rows: list[Record] = []
    last = 0
    for mark, gap in enumerate(gaps, 1):
        some = [
            Record(last + gap + n, 50 - n, b"s.%d" % (n % 2), b"H" * (n % 3), b"x" * n)
            for n in range(1, 4)
        ]
        last = some[-1].seq
        frame = frame_of(some)
        files.write_frame(frame, mark)
        index.count_in(frame.columns, sum(frame.columns.lengths))
        rows += some
    return disk, files, rows


def write(files: SegmentFiles) -> list[CatalogueWrite]:
    writes = files.catalogue_writes()
    for one in writes:
        one.run(files.disk, files.catalogue_path(one.segment.number))
        one.landed()
    assert not files.catalogue_writes()
    return writes


def test_a_catalogue_may_be_written_twice() -> None:
    """A job for the rest of which there is no room runs again from its start."""
    disk, files, _ = made([0, 0])
    for one in files.catalogue_writes():
        for _ in range(2):
            one.run(disk, files.catalogue_path(one.segment.number))
        one.landed()
        size = None if one.segment.sealed else one.segment.catalogue.size
        assert read_catalogue(disk, "s", one.segment.number, size) is not None


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_a_catalogue_knows_what_its_segment_holds(gaps: list[int]) -> None:
    disk, files, rows = made(gaps)
    write(files)
    known: dict[int, tuple[int, int, bytes]] = {}
    for segment in files.segments:
        size = None if segment.sealed else segment.catalogue.size
        found = read_catalogue(disk, "s", segment.number, size)
        assert found is not None
        assert len(found.facts()) == segment.count
        known.update((seq, (a.size, a.time_ns, a.subject)) for seq, a in found.facts().items())
        if not segment.sealed:
            assert read_catalogue(disk, "s", segment.number, None) is None, "it is not finished"
    sizes = [record.message_bytes(len(one[2]), len(one[3]), len(one[4])) for one in rows]
    assert known == {
        one.seq: (size, one.time_ns, one.subject) for one, size in zip(rows, sizes, strict=True)
    }


def test_it_is_continued_where_it_ended() -> None:
    disk, files, _ = made([0])
    write(files)
    before = disk.content(PATH)
    gone = SeqSet([(2, 2)])
    files.note(REMOVE, 5, gone.encode())
    (again,) = write(files)
    content = disk.content(PATH)
    assert content.startswith(before)
    assert again.end == len(content)
    found = read_catalogue(disk, "s", 1, len(content))
    assert found is not None
    assert found.envelopes[-1].kind == REMOVE
    assert SeqSet.decode(found.content(found.envelopes[-1])) == gone


def test_what_was_not_told_to_have_landed_is_written_again() -> None:
    disk, files, _ = made([0])
    (lost,) = files.catalogue_writes()
    lost.run(disk, PATH)
    image = disk.content(PATH)
    (again,) = files.catalogue_writes()
    again.run(disk, PATH)
    assert disk.content(PATH) == image


def test_every_damage_of_a_catalogue_is_noticed() -> None:
    disk, files, _ = made([0, 1])
    write(files)
    image = disk.content(PATH)
    for bit in range(8 * len(image)):
        disk.flip_bit(PATH, bit)
        assert read_catalogue(disk, "s", 1, len(image)) is None, bit
        disk.overwrite(PATH, image)
    for length in range(len(image)):
        disk.overwrite(PATH, image[:length])
        assert read_catalogue(disk, "s", 1, len(image)) is None, length
    disk.remove(PATH)
    assert read_catalogue(disk, "s", 1, len(image)) is None


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-9, 9), st.binary(max_size=3))))
def test_columns_come_back(rows: list[tuple[int, int, bytes]]) -> None:
    segment = Segment(1)
    assert segment.table is not None
    seq = 0
    for gap, time_ns, subject in [(1, 0, b"s"), *rows]:
        seq += gap
        segment.table.put(seq, 0, 1, seq * 7, seq + 30)
        segment.catalogue.times.append(time_ns)
        segment.catalogue.subjects.append(subject)
    segment.catalogue.collect(segment.table, 1)
    ((_, _, columns),) = segment.catalogue.unwritten
    assert not isinstance(columns, bytes)
    assert decode_records(encode_records(columns)) == columns
