"""One file of a stream's store: envelopes one behind the other, each with its mark.

    envelope = magic, kind, length, mark, checksum of the envelope before it, checksum | content

Kinds: STATE (bounds of the store when the segment began: always the first one), FRAME (messages,
verbatim), REMOVE and TRUNCATE (what is gone), SEAL (table of records; the last one of a full
segment). The chain shows an envelope that was taken out or swapped.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import sub
from typing import NamedTuple
from zlib import crc32

from jsctl.broker.ports import File
from jsctl.broker.store import record
from jsctl.broker.store.record import FRAME_HEADER_BYTES, Columns

MAGIC = 0x4553_4A01
_MAGIC_BYTES = MAGIC.to_bytes(4, "little")
_ENVELOPE = struct.Struct("<IIIQI")
_HEAD = struct.Struct("<IIIQII")
HEAD_BYTES = _HEAD.size
_TABLE = struct.Struct("<IQ")
HEADED_BYTES = 4
"""What headers add to the bytes that a record counts."""
_HEADED = 1 << 31
"""In the count of a table: the lengths tell of headers. In a length: the record has some."""
STATE, FRAME, REMOVE, TRUNCATE, SEAL, RECORDS = range(1, 7)
"""Kinds of envelopes. RECORDS is in catalogues what frames are in segments."""


class Envelope(NamedTuple):
    """A sound envelope; `start` is where its content begins."""

    kind: int
    start: int
    end: int
    mark: int
    crc: int


class UnsoundBytes(NamedTuple):
    """Bytes in which no sound envelope begins; `frame`: a frame whose content is damaged."""

    start: int
    end: int
    frame: Envelope | None


class RecordColumns(NamedTuple):
    """What a catalogue says of records, column by column."""

    seqs: "array[int]"
    crcs: "array[int]"
    sizes: "array[int]"
    times: "array[int]"
    subjects: list[bytes]


CatalogueItem = tuple[int, int, bytes | RecordColumns]
"""Kind, mark and content of an envelope of a catalogue."""


class CatalogueTail:
    """How far a segment's catalogue is written, and what is to be added to it.

    Of records only what their table does not have is kept, until the next checkpoint.
    """

    __slots__ = ("crc", "size", "start", "subjects", "times", "unusable", "unwritten")

    def __init__(self) -> None:
        self.unusable = False
        """Nobody knows all of what the segment held: it can have no catalogue any more."""
        self.size = 0
        self.crc = 0
        self.start = 0
        """How many records of the table are written or in `unwritten`."""
        self.times = array("q")
        self.subjects: list[bytes] = []
        self.unwritten: list[CatalogueItem] = []

    def collect(self, table: "Table", mark: int) -> None:
        """Put the records that came since the last call to what is unwritten."""
        if not self.subjects:
            return
        seqs, start = table.seqs, self.start
        assert len(seqs) - start == len(self.subjects), "a table has all records of its segment"
        some = RecordColumns(
            seqs[start:], table.crcs[start:], table.sizes[start:], self.times, self.subjects
        )
        self.unwritten.append((RECORDS, mark, some))
        self.start, self.times, self.subjects = len(seqs), array("q"), []

    def written(self, records: int, size: int, crc: int) -> None:
        """All up to now is in the catalogue, which ends there."""
        self.start, self.size, self.crc = records, size, crc
        self.times, self.subjects, self.unwritten = array("q"), [], []


def encode_envelope(kind: int, mark: int, previous: int, content: bytes) -> tuple[bytes, int]:
    """The head for some content, and its checksum.

    A frame has a checksum of its own in its header, so only that is covered again.
    """
    packed = _ENVELOPE.pack(MAGIC, kind, len(content), mark, previous)
    covered = content[:FRAME_HEADER_BYTES] if kind == FRAME else content
    crc = crc32(covered, crc32(packed))
    return packed + crc.to_bytes(4, "little"), crc


def walk(data: bytes, start: int, previous: int | None) -> Iterator[Envelope | UnsoundBytes]:
    """Everything in `data` from an offset on, verified; what does not check as `UnsoundBytes`.

    `previous` is the checksum of the envelope before, None if it is not known.
    """
    size = len(data)
    while start < size:
        found = _envelope_at(data, start, previous)
        if found is None:
            end = _resynchronise(data, start + 1)
            yield UnsoundBytes(start, end, None)
            start, previous = end, None
            continue
        start, previous = found.end, found.crc
        if found.kind == FRAME and not record.frame_is_sound(data[found.start : found.end]):
            yield UnsoundBytes(found.start, found.end, found)
            continue
        yield found


def _envelope_at(data: bytes, start: int, previous: int | None) -> Envelope | None:
    if len(data) - start < HEAD_BYTES:
        return None
    magic, kind, length, mark, before, crc = _HEAD.unpack_from(data, start)
    begin = start + HEAD_BYTES
    end = begin + length
    if magic != MAGIC or end > len(data) or previous not in (None, before):
        return None
    covered = min(end, begin + FRAME_HEADER_BYTES) if kind == FRAME else end
    head = crc32(data[start : start + _ENVELOPE.size])
    if crc32(data[begin:covered], head) != crc:
        return None
    return Envelope(kind, begin, end, mark, crc)


def _resynchronise(data: bytes, start: int) -> int:
    while True:
        at = data.find(_MAGIC_BYTES, start)
        if at < 0:
            return len(data)
        if _envelope_at(data, at, None) is not None:
            return at
        start = at + 1


class Table:
    """Where each record of a segment lies, and what it counts in the stream's `bytes`."""

    __slots__ = ("crcs", "lengths", "offsets", "seqs", "sizes")

    def __init__(self) -> None:
        self.seqs = array("Q")
        self.offsets = array("I")
        self.lengths = array("I")
        self.crcs = array("I")
        self.sizes = array("I")

    def add(self, found: Columns, end: int, shift: int) -> None:
        """Note the records of a frame whose columns were taken at another offset."""
        starts = found.offsets
        self.seqs.extend(found.seqs)
        self.offsets.extend(map(shift.__add__, starts) if shift else starts)
        self.lengths.extend(map(sub, [*starts[1:], end], starts))
        self.crcs.extend(found.crcs)
        self.sizes.extend(found.lengths)

    def put(self, seq: int, offset: int, length: int, crc: int, size: int) -> None:
        """Note one record behind the others."""
        assert not self.seqs or seq > self.seqs[-1], "a table ascends"
        self.seqs.append(seq)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.crcs.append(crc)
        self.sizes.append(size)

    def find(self, seq: int) -> int:
        """Position of a sequence; -1 if the segment does not have it."""
        seqs = self.seqs
        if not seqs:
            return -1
        guess = seq - seqs[0]
        if 0 <= guess < len(seqs) and seqs[guess] == seq:
            return guess
        at = bisect_left(seqs, seq)
        return at if at < len(seqs) and seqs[at] == seq else -1

    def tally(self, wanted: Sequence[int]) -> tuple[int, int]:
        """`(sizes, checksums)` of ascending sequences, summed; what is not here counts nothing."""
        first, last = self.find(wanted[0]), self.find(wanted[-1])
        if 0 <= first == last + 1 - len(wanted):
            return sum(self.sizes[first : last + 1]), sum(self.crcs[first : last + 1])
        seqs = self.seqs
        if seqs and seqs[-1] - seqs[0] == len(seqs) - 1 and min(first, last) >= 0:
            begin = seqs[0]
            places = [seq - begin for seq in wanted]
        else:
            places = [at for at in map(self.find, wanted) if at >= 0]
        return sum(map(self.sizes.__getitem__, places)), sum(map(self.crcs.__getitem__, places))

    def encode(self) -> bytes:
        """Content of a SEAL."""
        first = self.seqs[0] if self.seqs else 0
        count = len(self.seqs)
        seqs = struct.pack(f"<{count}I", *[seq - first for seq in self.seqs])
        rest = (struct.pack(f"<{count}I", *column) for column in self._columns())
        return b"".join((_TABLE.pack(count | _HEADED, first), seqs, *rest))

    def _columns(self) -> tuple["array[int]", list[int], "array[int]"]:
        both = zip(self.lengths, self.sizes, strict=True)
        lengths = [length | _HEADED if size != length else length for length, size in both]
        return self.offsets, lengths, self.crcs

    @staticmethod
    def decode(data: bytes) -> "Table | None":
        """Inverse of `encode`, for verified bytes; None for one that does not tell of headers."""
        made = Table()
        count, first = _TABLE.unpack_from(data)
        if not count & _HEADED:
            return None
        count ^= _HEADED
        wide = 4 * count
        columns = [struct.unpack_from(f"<{count}I", data, _TABLE.size + wide * n) for n in range(4)]
        made.seqs = array("Q", [first + seq for seq in columns[0]])
        made.offsets = array("I", columns[1])
        made.lengths = array("I", [length & ~_HEADED for length in columns[2]])
        headed = zip(made.lengths, columns[2], strict=True)
        made.sizes = array("I", [n if n == told else n + HEADED_BYTES for n, told in headed])
        made.crcs = array("I", columns[3])
        return made


class Segment:
    """A segment as the store knows it. Sequences are those of its records, live or not."""

    __slots__ = (
        "catalogue",
        "count",
        "erase",
        "file",
        "first_seq",
        "last_crc",
        "last_seq",
        "last_time",
        "mark",
        "number",
        "sealed",
        "size",
        "table",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.file: File | None = None
        self.size = 0
        self.sealed = False
        self.mark = 0
        self.last_crc = 0
        self.first_seq = 0
        self.last_seq = 0
        self.last_time = 0
        self.count = 0
        self.erase = False
        self.table: Table | None = Table()
        self.catalogue = CatalogueTail()

    def write(self, kind: int, mark: int, content: bytes) -> int:
        """Append an envelope; where its content begins. Raises DiskError, DiskFull."""
        assert self.file is not None, "an open segment has its file"
        head, crc = encode_envelope(kind, mark, self.last_crc, content)
        start = self.size
        self.file.write(start, (head, content))
        self.size = start + len(head) + len(content)
        self.last_crc = crc
        self.mark = mark
        if kind != FRAME:
            self.note(kind, mark, content)
        return start + len(head)

    def note(self, kind: int, mark: int, content: bytes) -> None:
        """Have the catalogue repeat an envelope; of a seal, that there is one."""
        if self.table is not None:
            self.catalogue.collect(self.table, mark)
        self.catalogue.unwritten.append((kind, mark, b"" if kind == SEAL else content))

    def add(self, found: Columns, end: int, shift: int) -> None:
        """Count the records of a frame that is in the file now."""
        assert self.table is not None, "an open segment has its table"
        self.table.add(found, end, shift)
        self.catalogue.times.extend(found.times)
        self.catalogue.subjects += found.subjects
        if not self.count:
            self.first_seq = found.seqs[0]
        self.count += len(found.seqs)
        self.last_seq = found.seqs[-1]
        self.last_time = found.times[-1]

    def seal(self) -> None:
        """Close it with its table. Raises DiskError, DiskFull."""
        assert self.table is not None, "an open segment has its table"
        self.write(SEAL, self.mark, self.table.encode())
        self.sealed = True


def segment_name(number: int) -> str:
    """File name of a segment."""
    return f"{number:010d}.seg"


def seal_offset(size: int, count: int) -> int:
    """Where the seal of a sealed segment with `count` records begins."""
    return size - HEAD_BYTES - _TABLE.size - 16 * count
