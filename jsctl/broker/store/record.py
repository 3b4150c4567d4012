"""The bytes of messages: records, and the frames that carry a batch of them.

A record is one message. A frame is a checksummed batch of records; the leader encodes it once,
and followers write the same bytes, so replicas are byte-identical. Both carry a CRC-32 over
lengths and content: the frame's for appends and scans, the record's so that a single read can
verify alone. Layouts are in `docs/formats.md`.

    frame  = magic, version, count, first seq, last seq, body length, crc | records
    record = crc, length, seq, time, subject length, headers length | subject headers payload

What is done with all messages of a batch alike, is so in the loops of `accel.columns`.
"""

import struct
from array import array
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

from jsctl.broker.accel import columns
from jsctl.broker.accel.choice import column_loops
from jsctl.broker.accel.columns import FRAME_HEADER_BYTES as FRAME_HEADER_BYTES
from jsctl.broker.accel.columns import FRAME_MAGIC, FRAME_VERSION, frame_header
from jsctl.broker.accel.columns import RECORD_OVERHEAD as RECORD_OVERHEAD
from jsctl.broker.accel.columns import Columns as Columns
from jsctl.broker.accel.columns import Publish as Publish
from jsctl.broker.accel.columns import Row as Row
from jsctl.broker.errors import Damaged

PASSED_ONCE_BYTES = 8 * 1024
"""Messages of this size are encoded in Python, which copies a payload once, and passes over it once
for both of its checksums; looking at each in Python costs little beside that."""
SUBJECT_BYTES_MAX = 0xFFFF
FRAME_BYTES_MAX = 1 << 30

_RECORD = struct.Struct("<IIQqHI")
_U32 = struct.Struct("<I")
_HEADERS_LENGTH = RECORD_OVERHEAD - 4
"""Where in a record the length of its headers is."""
_PEEK = struct.Struct("<IHHIQQII")
_unpack_record = _RECORD.unpack_from


class Record(NamedTuple):
    """One message. `headers` is empty when there are none; time in ns since the epoch."""

    seq: int
    time_ns: int
    subject: bytes
    headers: bytes
    payload: bytes


RecordLike = Record | Row
"""A record, or its values: to make a record takes longer than to read one."""


def message_bytes(subject: int, headers: int, payload: int) -> int:
    """What a message with parts of these lengths counts in a stream's `bytes`."""
    return RECORD_OVERHEAD + subject + payload + (4 + headers if headers else 0)


def within(rows: list[Row], bytes_max: int) -> list[Row]:
    """The first rows whose sizes stay within a bound; at least one. 0: no bound."""
    if not bytes_max:
        return rows
    total = 0
    for at, (_, _, subject, headers, payload) in enumerate(rows):
        total += message_bytes(len(subject), len(headers), len(payload))
        if total > bytes_max and at:
            return rows[:at]
    return rows


def encode_rows(head: bytes, rows: Sequence[RecordLike]) -> tuple[bytes, Columns]:
    """See `columns.encode_rows`: by which twin, follows from how large payloads are."""
    size = sum([len(row[4]) for row in rows])
    loops = column_loops() if size < PASSED_ONCE_BYTES * len(rows) else columns
    frame, found = loops.encode_rows(head, [*rows])
    return frame, Columns(*found)


def encode_publishes(
    head: bytes, batch: list[Publish], first_seq: int, time_ns: int, size: int
) -> tuple[bytes, Columns]:
    """As `encode_rows` for publishes that get sequences from `first_seq` on, and one time. `size`
    is about what they take together."""
    loops = column_loops() if size < PASSED_ONCE_BYTES * len(batch) else columns
    made = loops.encode_publishes(head, batch, first_seq, time_ns)
    frame, offsets, crcs, sizes, subjects = made
    seqs = range(first_seq, first_seq + len(batch))
    return frame, Columns(offsets, crcs, sizes, seqs, array("q", (time_ns,)) * len(batch), subjects)


def read_columns(buffer: bytes, start: int, end: int) -> Columns:
    """Everything of verified records that an index needs. Raises ValueError for what is none."""
    return Columns(*column_loops().read_columns(buffer, start, end))


def header_blocks(buffer: bytes, found: Columns) -> list[bytes]:
    """The header block of each record, empty where there is none."""
    blocks: list[bytes] = []
    unpack = _U32.unpack_from
    for start, subject in zip(found.offsets, map(len, found.subjects), strict=True):
        begin = start + RECORD_OVERHEAD + subject
        blocks.append(buffer[begin : begin + unpack(buffer, start + _HEADERS_LENGTH)[0]])
    return blocks


def frame_of_raw(raws: Sequence[bytes]) -> bytes:
    """A frame of records that are already encoded, in ascending order."""
    body = b"".join(raws)
    header = frame_header(len(raws), raw_seq(raws[0]), raw_seq(raws[-1]), len(body))
    return b"".join((header, _U32.pack(crc32(body, crc32(header))), body))


def peek(frame: bytes, offset: int = 0) -> tuple[int, int, int, int]:
    """`(count, first seq, last seq, frame length)` of the frame at `offset`, unverified.

    Raises Damaged where no frame header is.
    """
    if len(frame) - offset < FRAME_HEADER_BYTES:
        raise Damaged("the frame is shorter than its header", path="frame")
    magic, version, flags, count, first, last, length, _ = _PEEK.unpack_from(frame, offset)
    if magic != FRAME_MAGIC or version != FRAME_VERSION or flags or not count:
        raise Damaged("not a frame header", path="frame")
    return count, first, last, FRAME_HEADER_BYTES + length


def frame_is_sound(frame: bytes) -> bool:
    """Whether length and checksum of a whole frame hold."""
    if len(frame) < FRAME_HEADER_BYTES:
        return False
    magic, version, flags, count, _, _, length, crc = _PEEK.unpack_from(frame)
    if magic != FRAME_MAGIC or version != FRAME_VERSION or flags or not count:
        return False
    if len(frame) != FRAME_HEADER_BYTES + length:
        return False
    view = memoryview(frame)
    return bool(
        crc32(view[FRAME_HEADER_BYTES:], crc32(view[: FRAME_HEADER_BYTES - _U32.size])) == crc
    )


def decode_records(buffer: bytes, start: int, end: int) -> list[Record]:
    """Records lying one behind the other in `buffer`; the caller has verified them."""
    found: list[Record] = []
    append = found.append
    unpack = _unpack_record
    make = tuple.__new__
    kind = Record
    while start < end:
        _, length, seq, time_ns, subject, headers = unpack(buffer, start)
        a = start + RECORD_OVERHEAD
        b = a + subject
        c = b + headers
        start += length
        append(make(kind, (seq, time_ns, buffer[a:b], buffer[b:c], buffer[c:start])))
    return found


def offsets(buffer: bytes, start: int, end: int) -> list[int]:
    """Where records begin, in verified bytes; payloads are not touched."""
    found: list[int] = []
    unpack = _U32.unpack_from
    while start < end:
        found.append(start)
        start += unpack(buffer, start + 4)[0]
    return found


def verify_record(buffer: bytes, start: int = 0) -> int:
    """Length of the sound record at `start`; 0 if there is none."""
    room = len(buffer) - start
    if room < RECORD_OVERHEAD:
        return 0
    crc, length, _, _, subject, headers = _unpack_record(buffer, start)
    if length > room or length < RECORD_OVERHEAD + subject + headers:
        return 0
    if crc32(memoryview(buffer)[start + 4 : start + length]) != crc:
        return 0
    return int(length)


def decode_row(raw: bytes) -> Row:
    """The fields of one verified record; its bytes are `raw`, no more."""
    _, _, seq, time_ns, subject, headers = _unpack_record(raw)
    a = RECORD_OVERHEAD + subject
    b = a + headers
    return seq, time_ns, raw[RECORD_OVERHEAD:a], raw[a:b], raw[b:]


def read_record(buffer: bytes, start: int, length: int, seq: int) -> Record | None:
    """The record at `start`, verified; None if it is not that sequence with that length."""
    end = start + length
    if length < RECORD_OVERHEAD or end > len(buffer):
        return None
    crc, own, found, time_ns, subject, headers = _unpack_record(buffer, start)
    a = start + RECORD_OVERHEAD
    b = a + subject
    c = b + headers
    if own != length or found != seq or c > end or crc32(buffer[start + 4 : end]) != crc:
        return None
    return Record(found, time_ns, buffer[a:b], buffer[b:c], buffer[c:end])


def read_records(
    buffer: bytes,
    begin: int,
    seqs: Sequence[int],
    offsets: Sequence[int],
    lengths: Sequence[int],
    left: int,
) -> list[Row]:
    """As `read_record` for many, each by its offset in a file of which the buffer begins at
    `begin`, and by the length that it should have.

    Ends before the first that does not check, or with which there are more than `left` bytes.
    """
    loops = column_loops() if sum(lengths) < PASSED_ONCE_BYTES * len(lengths) else columns
    return loops.read_rows(buffer, begin, seqs, offsets, lengths, left)


def raw_seq(raw: bytes) -> int:
    """Sequence of an encoded record."""
    return int(_unpack_record(raw)[2])


def raw_facts(raw: bytes, start: int = 0) -> tuple[int, int, int, bytes]:
    """`(crc, message bytes, time, subject)` of an encoded record."""
    crc, length, _, time_ns, subject, headers = _unpack_record(raw, start)
    a = start + RECORD_OVERHEAD
    return crc, length + 4 if headers else length, time_ns, raw[a : a + subject]


def raw_length(buffer: bytes, start: int) -> int:
    """Bytes of the record at `start`, as it says itself; 0 if no header fits."""
    if len(buffer) - start < RECORD_OVERHEAD:
        return 0
    return int(_U32.unpack_from(buffer, start + 4)[0])


def salvage(buffer: bytes, start: int, end: int, first: int, last: int) -> list[int]:
    """Offsets of the sound records with sequences in [first, last] between two offsets.

    For a frame whose checksum does not hold: one bad record costs one record. Behind a record
    whose length cannot be believed, the next one is found by its sequence number.
    """
    found: list[int] = []
    wanted = first
    while start < end and wanted <= last:
        length = verify_record(buffer, start)
        if length and start + length <= end and wanted <= raw_seq_at(buffer, start) <= last:
            found.append(start)
            wanted = raw_seq_at(buffer, start) + 1
            start += length
            continue
        start, wanted = _resynchronise(buffer, start + 1, end, wanted, last)
    return found


def raw_seq_at(buffer: bytes, start: int) -> int:
    """Sequence of the encoded record at `start`."""
    return int(_unpack_record(buffer, start)[2])


def _resynchronise(buffer: bytes, start: int, end: int, wanted: int, last: int) -> tuple[int, int]:
    for seq in range(wanted, min(last, wanted + 4096) + 1):
        mark = seq.to_bytes(8, "little")
        at = buffer.find(mark, start + 8, end)
        while at >= 0:
            length = verify_record(buffer, at - 8)
            if length and at - 8 + length <= end:
                return at - 8, seq
            at = buffer.find(mark, at + 1, end)
    return end, last + 1
