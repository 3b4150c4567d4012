"""What a segment holds, in a second file: its catalogue.

A catalogue repeats a segment without headers and payloads: for each record its sequence, checksum,
size, time and subject, and every other envelope as it is. When a segment is damaged, its catalogue
says what there was: which messages are lost, what they counted, and what was removed. So limits
remove the same messages as on replicas without damage.

    catalogue = envelopes as in a segment: STATE, then RECORDS, REMOVE, TRUNCATE ..., SEAL (empty)

It is written with a checkpoint, up to the position that becomes durable. Nothing of it is needed
while its segment is sound.
"""

import struct
from array import array
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

from jsctl.broker.errors import DiskError
from jsctl.broker.ports import Disk
from jsctl.broker.store.index import Facts
from jsctl.broker.store.segments.segment import (
    RECORDS,
    SEAL,
    CatalogueItem,
    Envelope,
    RecordColumns,
    Segment,
    belongs,
    encode_envelope,
    home_of,
    walk,
)
from jsctl.dataclass import dataclass

_RECORDS = struct.Struct("<IIQ")
_DENSE = 1 << 31
"""In the count: the sequences follow each other, and are not listed."""


def catalogue_name(number: int) -> str:
    """File name of a segment's catalogue."""
    return f"{number:010d}.cat"


def encode_records(some: RecordColumns) -> bytes:
    """Content of a RECORDS envelope."""
    count, first = len(some.seqs), some.seqs[0]
    are_dense = some.seqs[-1] - first == count - 1
    names = dict.fromkeys(some.subjects)
    numbers = dict(zip(names, range(len(names)), strict=True))
    subjects = array("I", map(numbers.__getitem__, some.subjects))
    parts = (
        _RECORDS.pack(count | _DENSE if are_dense else count, len(names), first),
        b"" if are_dense else some.seqs.tobytes(),
        some.times.tobytes(),
        some.crcs.tobytes(),
        some.sizes.tobytes(),
        subjects.tobytes(),
        array("H", map(len, names)).tobytes(),
        *names,
    )
    return b"".join(parts)


def decode_records(data: bytes) -> RecordColumns:
    """Inverse of `encode_records`, for verified bytes."""
    told, names_count, first = _RECORDS.unpack_from(data)
    count = told & ~_DENSE
    at = _RECORDS.size
    columns: list[array[int]] = []
    lengths = (("Q", 0 if told & _DENSE else count), ("q", count), *[("I", count)] * 3)
    for code, length in (*lengths, ("H", names_count)):
        column = array(code)
        end = at + length * column.itemsize
        column.frombytes(data[at:end])
        columns.append(column)
        at = end
    seqs, times, crcs, sizes, subjects, name_lengths = columns
    if told & _DENSE:
        seqs = array("Q", range(first, first + count))
    ends = list(accumulate(name_lengths, initial=at))
    names = [data[start:end] for start, end in pairwise(ends)]
    return RecordColumns(seqs, crcs, sizes, times, [names[number] for number in subjects])


@dataclass(slots=True)
class CatalogueWrite:
    """Appends to a segment's catalogue. Runs on the disk thread; once more, if there was no room
    for what its job writes next."""

    segment: Segment
    items: tuple[CatalogueItem, ...]
    start: int
    crc: int
    end: int = 0
    """Where it ends now; 0 before the run."""
    end_crc: int = 0

    def run(self, disk: Disk, path: str) -> None:
        """Write and sync. Raises DiskError, DiskFull."""
        parts: list[bytes] = []
        crc = self.crc
        for kind, mark, content in self.items:
            body = encode_records(content) if isinstance(content, RecordColumns) else content
            head, crc = encode_envelope(kind, mark, crc, body)
            parts += (head, body)
        file = disk.open(path, create=True)
        try:
            file.truncate(self.start)
            file.write(self.start, parts)
            file.sync()
        finally:
            file.close()
        self.end_crc = crc
        self.end = self.start + sum(map(len, parts))

    def landed(self) -> None:
        """Tell the segment how far its catalogue goes, if the run came so far."""
        if self.end:
            known = self.segment.catalogue
            known.size, known.crc = self.end, self.end_crc
            del known.unwritten[: len(self.items)]


class Catalogue(NamedTuple):
    """A sound catalogue."""

    envelopes: list[Envelope]
    data: bytes
    size: int

    @property
    def crc(self) -> int:
        """Checksum of the last envelope."""
        return self.envelopes[-1].crc

    def records(self) -> Iterator[RecordColumns]:
        """All records of the segment, live or not."""
        for one in self.envelopes:
            if one.kind == RECORDS:
                yield decode_records(self.content(one))

    def content(self, one: Envelope) -> bytes:
        """The bytes of an envelope."""
        return self.data[one.start : one.end]

    def facts(self) -> dict[int, Facts]:
        """What is known of each record."""
        found: dict[int, Facts] = {}
        for some in self.records():
            rows = zip(some.crcs, some.sizes, some.times, some.subjects, strict=True)
            found.update(zip(some.seqs, map(Facts._make, rows), strict=True))
        return found


def read_catalogue(disk: Disk, directory: str, number: int, size: int | None) -> Catalogue | None:
    """A catalogue up to a size, or a finished one whole; None if it is not there, not sound, or
    that of another segment."""
    path = f"{directory}/{catalogue_name(number)}"
    if size == 0 or not disk.exists(path):
        return None
    try:
        file = disk.open(path)
        data = file.read(0, file.size() if size is None else size)
        file.close()
    except DiskError:
        return None
    found: list[Envelope] = []
    for one in walk(data, 0, 0):
        if not isinstance(one, Envelope):
            return None
        found.append(one)
    whole = len(data) == size if size is not None else bool(found) and found[-1].kind == SEAL
    if not whole or not found or not belongs(data, found[0], home_of(directory, number)):
        return None
    return Catalogue(found, data, len(data))
