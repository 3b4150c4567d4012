"""One file of a stream's store: envelopes one behind the other, each with its mark.

    envelope = magic, kind, length, mark, checksum of the envelope before it, checksum | content

Kinds: STATE (bounds of the store when the segment began: always the first one), FRAME (messages,
verbatim), RECORDS (what is known of messages whose bytes never came), REMOVE and TRUNCATE (what is
gone), SEAL (table of records; the last one of a full segment). The chain shows an envelope that
was taken out or swapped.
"""

import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
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
_NEXT_BYTES_MAX = 64 * 1024
STATE, FRAME, REMOVE, TRUNCATE, SEAL, RECORDS = range(1, 7)
"""Kinds of envelopes. RECORDS is in catalogues what frames are in segments; in a segment it names
records that the store was told of and did not get: they are damaged."""


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
            array("Q", seqs[start:]),
            table.crcs[start:],
            table.sizes[start:],
            self.times,
            self.subjects,
        )
        self.unwritten.append((RECORDS, mark, some))
        self.start, self.times, self.subjects = len(seqs), array("q"), []

    def written(self, records: int, size: int, crc: int) -> None:
        """All up to now is in the catalogue, which ends there."""
        self.start, self.size, self.crc = records, size, crc
        self.times, self.subjects, self.unwritten = array("q"), [], []


def encode_envelope(
    kind: int, mark: int, previous: int, content: bytes | memoryview
) -> tuple[bytes, int]:
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


def home_of(directory: str, number: int) -> int:
    """What the bounds at the begin of a segment say of where it belongs: number, and whose."""
    owner = directory.rpartition("/")[0] or directory
    return number | crc32(owner.encode()) << 32


def belongs(data: bytes, begin: Envelope, home: int) -> bool:
    """Whether bounds are of a segment, or catalogue, of there: files may have been swapped.

    Those of a former version tell its number only.
    """
    told = int.from_bytes(data[begin.start : begin.start + 8], "little")
    return begin.kind == STATE and told in (home, home & 0xFFFF_FFFF)


def envelope_length(data: bytes, start: int) -> int:
    """How long the envelope at an offset says that it is, with its head; 0 if none begins there."""
    magic, _, length, *_ = _HEAD.unpack_from(data, start)
    return HEAD_BYTES + int(length) if magic == MAGIC else 0


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
        self.seqs: array[int] | range = array("Q")
        self.offsets = array("I")
        self.lengths = array("I")
        self.crcs = array("I")
        self.sizes = array("I")

    def settle(self) -> None:
        """Nothing is added any more: hold what is alike once."""
        if self.seqs and self.seqs[-1] - self.seqs[0] == len(self.seqs) - 1:
            self.seqs = range(self.seqs[0], self.seqs[-1] + 1)
        if self.sizes == self.lengths:
            self.sizes = self.lengths

    def add(self, found: Columns, end: int, shift: int) -> None:
        """Note the records of a frame whose columns were taken at another offset."""
        # An array takes an array at once, and anything else number by number.
        starts = found.offsets
        sizes = array("I", found.lengths)
        if sum(sizes) == end - starts[0]:
            # No record has headers, so each counts what it takes.
            lengths = sizes
        else:
            lengths = array("I", list(map(sub, [*starts[1:], end], starts)))
        assert isinstance(self.seqs, array), "a settled table takes nothing more"
        self.seqs.extend(array("Q", found.seqs))
        self.offsets.extend(array("I", [shift + start for start in starts]))
        self.lengths.extend(lengths)
        self.crcs.extend(array("I", found.crcs))
        self.sizes.extend(sizes)

    def put(self, seq: int, offset: int, length: int, crc: int, size: int) -> None:
        """Note one record behind the others."""
        assert isinstance(self.seqs, array), "a settled table takes nothing more"
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

    def spans(self, wanted: Sequence[int], first: int) -> tuple[Sequence[int], Sequence[int]]:
        """Offsets and lengths of ascending sequences, of which the first is at `first`; up to the
        first that the segment does not have."""
        last = first + wanted[-1] - wanted[0]
        if last < len(self.seqs) and self.seqs[last] == wanted[-1]:
            # None is missing between them.
            if last - first == len(wanted) - 1:
                return self.offsets[first : last + 1], self.lengths[first : last + 1]
            shift = wanted[0] - first
            places = [seq - shift for seq in wanted]
        else:
            places = list(map(self.find, wanted))
            if -1 in places:
                del places[places.index(-1) :]
        return [self.offsets[at] for at in places], [self.lengths[at] for at in places]

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
        count = len(self.seqs)
        first = self.seqs[0] if count else 0
        is_dense = count and self.seqs[-1] - first == count - 1
        rest = range(count) if is_dense else [seq - first for seq in self.seqs]
        lengths = self.lengths
        if self.sizes != lengths:
            both = zip(lengths, self.sizes, strict=True)
            lengths = array("I", [n | _HEADED if size != n else n for n, size in both])
        columns = (array("I", rest), self.offsets, lengths, self.crcs)
        return b"".join((_TABLE.pack(count | _HEADED, first), *map(_bytes, columns)))

    @staticmethod
    def decode(data: bytes) -> "Table | None":
        """Inverse of `encode`, for verified bytes; None for one that does not tell of headers."""
        made = Table()
        count, first = _TABLE.unpack_from(data)
        if not count & _HEADED:
            return None
        count ^= _HEADED
        seqs, made.offsets, told, made.crcs = (_column(data, count, n) for n in range(4))
        if count and seqs[-1] == count - 1:
            made.seqs = range(first, first + count)
        else:
            made.seqs = array("Q", [first + seq for seq in seqs])
        if max(told, default=0) < _HEADED:
            made.lengths = made.sizes = told
        else:
            made.lengths = array("I", [length & ~_HEADED for length in told])
            headed = zip(made.lengths, told, strict=True)
            made.sizes = array("I", [n if n == one else n + HEADED_BYTES for n, one in headed])
        return made


def _bytes(column: "array[int]") -> bytes:
    """Little endian, as all that is kept."""
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _column(data: bytes, count: int, number: int) -> "array[int]":
    start = _TABLE.size + 4 * count * number
    column = array("I", data[start : start + 4 * count])
    if sys.byteorder == "big":
        column.byteswap()
    return column


class Segment:
    """A segment as the store knows it. Sequences are those of its records, live or not."""

    __slots__ = (
        "catalogue",
        "count",
        "damaged",
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
        self.damaged = False
        """Something in it, or in its catalogue, does not check: it is to be written anew."""
        self.table: Table | None = Table()
        self.catalogue = CatalogueTail()

    def write(self, kind: int, mark: int, content: bytes | memoryview) -> int:
        """Append an envelope; where its content begins. Raises DiskError, DiskFull."""
        assert self.file is not None, "an open segment has its file"
        head, crc = encode_envelope(kind, mark, self.last_crc, content)
        start = self.size
        self.file.write(start, (head, content))
        self.size = start + len(head) + len(content)
        self.last_crc = crc
        self.mark = mark
        if kind not in (FRAME, RECORDS):
            self.note(kind, mark, bytes(content))
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
        self.catalogue.times.extend(array("q", found.times))
        subjects = found.subjects
        if subjects.count(subjects[0]) == len(subjects):
            # Of many that are alike one is kept in memory.
            subjects = [subjects[0]] * len(subjects)
        self.catalogue.subjects += subjects
        if not self.count:
            self.first_seq = found.seqs[0]
        self.count += len(found.seqs)
        self.last_seq = found.seqs[-1]
        self.last_time = found.times[-1]

    def add_lost(self, some: RecordColumns) -> None:
        """Count records that an envelope names whose bytes are not in the file: a look at their
        place finds none."""
        assert self.table is not None, "an open segment has its table"
        for seq, crc, size in zip(some.seqs, some.crcs, some.sizes, strict=True):
            self.table.put(seq, 0, 1, crc, size)
        self.catalogue.times.extend(some.times)
        self.catalogue.subjects += some.subjects
        if not self.count:
            self.first_seq = some.seqs[0]
        self.count += len(some.seqs)
        self.last_seq, self.last_time = some.seqs[-1], some.times[-1]

    def seal(self) -> None:
        """Close it with its table. Raises DiskError, DiskFull."""
        assert self.table is not None, "an open segment has its table"
        self.write(SEAL, self.mark, self.table.encode())
        self.sealed = True
        self.table.settle()

    def sealed_place(self, file: File, seq: int) -> tuple[int, int] | None:
        """`(offset, size)` of bytes that begin with a record, by a look at its place in the table
        in the file alone; None where there is no such table, or not this sequence.

        Nothing of it is verified: who reads there sees whether it is that record.
        """
        count = self.count
        start = seal_offset(self.size, count)
        if not self.sealed or not count or start <= 0:
            return None
        columns = start + HEAD_BYTES + _TABLE.size
        at = seq - self.first_seq
        if self.last_seq - self.first_seq != count - 1:
            key = partial(_word, file, columns)
            at = bisect_left(range(count), at, key=key)
            if at == count or key(at) != seq - self.first_seq:
                return None
        words = file.read(columns + 4 * (count + at), 8)
        offset, behind = int.from_bytes(words[:4], "little"), int.from_bytes(words[4:], "little")
        if at + 1 < count and offset < behind <= start and behind - offset <= _NEXT_BYTES_MAX:
            # Up to where the next one begins; nearly always that is its length.
            return offset, behind - offset
        length = _word(file, columns, 2 * count + at) & ~_HEADED
        return (offset, length) if 0 < length <= start - offset else None


def _word(file: File, start: int, number: int) -> int:
    return int.from_bytes(file.read(start + 4 * number, 4), "little")


def segment_name(number: int) -> str:
    """File name of a segment."""
    return f"{number:010d}.seg"


def seal_offset(size: int, count: int) -> int:
    """Where the seal of a sealed segment with `count` records begins."""
    return size - HEAD_BYTES - _TABLE.size - 16 * count
