"""The saved index: a picture of counters and subjects at a durable position.

It is only a shortcut: if anything of it does not fit the segments, they are read instead.
"""

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice, pairwise
from typing import NamedTuple
from zlib import crc32

from jsctl.broker.errors import Damaged, DiskError
from jsctl.broker.store.checkpoint import INDEX_NAME, Durable
from jsctl.broker.store.index import StoreIndex
from jsctl.broker.store.segments.files import SegmentFiles
from jsctl.broker.store.segments.salvage import columns_of
from jsctl.broker.store.segments.segment import (
    FRAME,
    HEAD_BYTES,
    Envelope,
    Segment,
    UnsoundBytes,
    seal_offset,
    segment_name,
    walk,
)
from jsctl.broker.store.sequences.packed import CODES, Steps
from jsctl.broker.store.subject_index import SubjectIndex
from jsctl.broker.store.transfer import TransferBounds

_INDEX = struct.Struct("<IIQ")
_INDEX_MAGIC = 0x58494A02
_FORMER_MAGIC = 0x58494A01
_SEGMENT = struct.Struct("<IQIQQqIB")
_BLOCK = struct.Struct("<QQIB")
_PARTS = struct.Struct("<9Q")


def encode_index(state: bytes, segments: Iterable[Segment], subjects: SubjectIndex) -> bytes:
    """The content of an index file."""
    rows = [
        _SEGMENT.pack(
            one.number,
            one.size,
            one.last_crc,
            one.first_seq,
            one.last_seq,
            one.last_time,
            one.count,
            one.sealed,
        )
        for one in segments
    ]
    singles = subjects.singles()
    names: list[bytes] = []
    counts = array("I")
    blocks: list[bytes] = []
    steps: list[bytes] = []
    for subject, some in subjects.others():
        before = len(blocks)
        for block in some:
            blocks.append(_block_row(block))
            steps.append(b"" if isinstance(block, range) else block.steps.tobytes())
        names.append(subject)
        counts.append(len(blocks) - before)
    parts = (
        state,
        b"".join(rows),
        array("H", map(len, singles)).tobytes(),
        b"".join(singles),
        array("Q", singles.values()).tobytes(),
        array("H", map(len, names)).tobytes() + counts.tobytes(),
        b"".join(names),
        b"".join(blocks),
        b"".join(steps),
    )
    body = b"".join((_PARTS.pack(*map(len, parts)), *parts))
    return _INDEX.pack(_INDEX_MAGIC, crc32(body), len(body)) + body


def _block_row(block: range | Steps) -> bytes:
    if isinstance(block, range):
        return _BLOCK.pack(block[0], block.step, len(block), 0)
    return _BLOCK.pack(block.first, 0, len(block), block.steps.itemsize)


class SavedIndex(NamedTuple):
    """A decoded index file."""

    state: bytes
    segments: list[tuple[int, int, int, int, int, int, int, bool]]
    singles: tuple[list[bytes], "array[int]"]
    """Subjects with one message, and those."""
    others: list[tuple[bytes, list[range | Steps]]]


def decode_index(data: bytes) -> SavedIndex | None:
    """Inverse of `encode_index`; None for one in a former format. Raises Damaged."""
    if len(data) < _INDEX.size:
        raise Damaged("the index is cut short", path=INDEX_NAME)
    magic, crc, length = _INDEX.unpack_from(data)
    body = data[_INDEX.size :]
    if magic not in (_INDEX_MAGIC, _FORMER_MAGIC) or len(body) != length or crc32(body) != crc:
        raise Damaged("the index does not check", path=INDEX_NAME)
    if magic == _FORMER_MAGIC:
        return None
    parts: list[bytes] = []
    at = _PARTS.size
    for size in _PARTS.unpack_from(body):
        parts.append(body[at : at + size])
        at += size
    state, segments, single_lengths, single_names, seqs, heads, names, rows, steps = parts
    count = len(heads) // 6
    blocks = _blocks(rows, steps)
    others = [
        (name, list(islice(blocks, some)))
        for name, some in zip(
            _names(heads[: 2 * count], names), array("I", heads[2 * count :]), strict=True
        )
    ]
    singles = list(_names(single_lengths, single_names)), array("Q", seqs)
    return SavedIndex(state, list(_SEGMENT.iter_unpack(segments)), singles, others)


def _names(lengths: bytes, names: bytes) -> Iterator[bytes]:
    ends = accumulate(array("H", lengths), initial=0)
    return (names[start:end] for start, end in pairwise(ends))


def _blocks(rows: bytes, steps: bytes) -> Iterator[range | Steps]:
    at = 0
    for first, step, count, width in _BLOCK.iter_unpack(rows):
        if not width:
            yield range(first, first + step * count, step)
            continue
        end = at + width * (count - 1)
        yield Steps(first, array(CODES[width], steps[at:end]))
        at = end


class IndexAdoption:
    """Starts a store from its saved index instead of reading all segments."""

    def __init__(
        self,
        files: SegmentFiles,
        index: StoreIndex,
        durable: Durable | None,
        present: set[int],
        contents: Callable[[int], bytes],
    ) -> None:
        """`present`: the segments that have files; `contents` reads one."""
        self.doubt = ""
        """Why an index that is there was not even read."""
        self._files = files
        self._index = index
        self._durable = durable
        self._present = present
        self._contents = contents

    def adopt(self, numbers: list[int]) -> int:
        """Fill index and files from it; the segment to read on from, 0 if it is of no use."""
        path = f"{self._files.directory}/{INDEX_NAME}"
        if not numbers or not self._files.disk.exists(path):
            return 0
        try:
            file = self._files.disk.open(path)
            saved = decode_index(file.read(0, file.size()))
            file.close()
        except (Damaged, DiskError) as error:
            self.doubt = f"{error}; the segments were read instead"
            return 0
        if saved is None:
            return 0
        try:
            segments = [self._fitting(row) for row in saved.segments]
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

    def _fitting(self, row: tuple[int, int, int, int, int, int, int, bool]) -> Segment:
        made = Segment(row[0])
        made.size, made.last_crc, made.first_seq, made.last_seq = row[1:5]
        made.last_time, made.count = row[5], row[6]
        made.sealed = bool(row[7])
        path = self._files.path(made.number)
        if made.number not in self._present:
            raise Damaged("a segment of the index is missing", path=path)
        file = self._files.disk.open(path)
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
        data = self._contents(segment.number)
        durable = self._durable
        if durable is not None and durable.segment == segment.number:
            rest = list(walk(data[: durable.offset], segment.size, None))
            if len(data) < durable.offset or not all(isinstance(one, Envelope) for one in rest):
                raise Damaged("the newest segment is damaged", path=segment_name(segment.number))
        data = data[: segment.size]
        made = Segment(segment.number)
        crc = 0
        for one in walk(data, 0, 0):
            if isinstance(one, UnsoundBytes):
                raise Damaged("the newest segment is damaged", path=segment_name(segment.number))
            crc = one.crc
            for found, end in columns_of(data, one):
                made.add(found, end, 0)
            if one.kind != FRAME:
                made.note(one.kind, one.mark, data[one.start : one.end])
        if crc != segment.last_crc or made.count != segment.count:
            raise Damaged("the newest segment has changed", path=segment_name(segment.number))
        segment.table, segment.catalogue = made.table, made.catalogue

    def _fill(self, saved: SavedIndex) -> None:
        index = self._index
        bounds = TransferBounds.decode(saved.state[8:])
        index.bytes = int.from_bytes(saved.state[:8], "little")
        index.first, index.last, index.last_time = bounds.first, bounds.last, bounds.last_time
        index.mark, index.digest, index.deleted = bounds.mark, bounds.digest, bounds.deleted
        index.subjects.put_singles(*saved.singles)
        for subject, blocks in saved.others:
            index.subjects.put(subject, blocks)
        index.messages = len(saved.singles[0])
        index.messages += sum(len(block) for _, blocks in saved.others for block in blocks)
