"""What is done with each message of a batch alike, for all of them in one call: the reference, and
the twin of `_columns.c`.

A publish is (subject, reply, headers, payload, ...), as a sink captured it. A record is how a
message is stored, and a frame a checksummed batch of them; `store.record` has what else is done
with these, `docs/formats.md` their layouts:

    frame  = magic, version, flags, count, first seq, last seq, body length, crc | records
    record = crc, length, seq, time, subject length, headers length | subject headers payload

Records that are read lie in verified bytes. Both twins raise ValueError for bytes in which records
do not lie one behind the other to the end, and neither reads beyond it.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, count
from typing import NamedTuple
from zlib import crc32

from jsctl.broker.checksums import SHARED_BYTES, behind

FRAME_MAGIC = 0x46534A01
FRAME_VERSION = 1
RECORD_OVERHEAD = 30
"""Bytes of a record that are not subject, headers or payload."""
HEADED_BYTES = 4
"""What a message with headers counts more than its record takes."""
FRAME_HEADER_BYTES = 36
ID_BYTES_MAX = 0xFFFF
FAST_INGEST = b".$FI"
"""What replies of the fast ingest protocol end with: it is asked for there, not in a header."""
ONLY_ID = b"NATS/1.0\r\nNats-Msg-Id:"
"""What header blocks begin with that hold an id and nothing else."""

PLAIN_ACKS = frozenset({b"", b"+ACK", b"+OK"})
"""Payloads of acknowledgements that say nothing else."""
SEQ_TOKEN = 5
"""Which token of an acknowledgement's subject is the stream's sequence."""
_SEQ_MAX = (1 << 64) - 1
_DIGITS_MAX = 20

_FRAME = struct.Struct("<IHHIQQI")
_HEAD = struct.Struct("<IQqHI")
_RECORD = struct.Struct("<IIQqHI")
_U32 = struct.Struct("<I")
_ID = struct.Struct("<QqH")
_pack_head, _pack_u32, _pack_id = _HEAD.pack, _U32.pack, _ID.pack

Row = tuple[int, int, bytes, bytes, bytes]
"""(sequence, time in ns, subject, headers, payload) of a message."""
Publish = tuple[bytes, bytes, bytes, bytes, object]
"""(subject, reply, headers, payload, origin)."""
Parts = tuple[bytes, bytes, bytes, bytes]
"""Of a record behind its checksum: the rest of its head, subject, headers, payload."""


class Columns(NamedTuple):
    """The records of a buffer, column by column, without their payloads."""

    offsets: Sequence[int]
    crcs: Sequence[int]
    lengths: Sequence[int]
    """What each counts in a stream's `bytes`: 4 more than it takes where there are headers."""
    seqs: Sequence[int]
    times: Sequence[int]
    subjects: Sequence[bytes]


# Publishes


def read_publishes(batch: Sequence[Publish]) -> tuple[list[bytes], int, int, int] | None:
    """`(ids, bytes, longest headers, longest headers and payload)` of publishes that have no
    headers, and then no ids, or an id each and nothing else; None if they are not all alike in
    that, or one asks for fast ingest."""
    if not batch or FAST_INGEST in b" ".join([item[1] for item in batch]):
        return None
    headers = [item[2] for item in batch]
    ids: list[bytes] = []
    if any(headers):
        ids = plain_ids(headers)
        if not ids:
            return None
    lengths = [len(item[2]) + len(item[3]) for item in batch]
    size = sum(lengths) + sum([len(item[0]) for item in batch])
    return ids, size, max(map(len, headers)), max(lengths)


def plain_ids(blocks: Sequence[bytes]) -> list[bytes]:
    """The message ids of header blocks that hold nothing else; empty if not all are such."""
    start = len(ONLY_ID)
    ids = [
        block[start:-4].lstrip(b" ")
        if block.startswith(ONLY_ID) and block.find(b"\r\n", start) == len(block) - 4
        else b""
        for block in blocks
    ]
    return ids if all(ids) else []


def encode_publishes(
    head: bytes, batch: Sequence[Publish], first_seq: int, time_ns: int
) -> tuple[bytes, Sequence[int], Sequence[int], Sequence[int], Sequence[bytes]]:
    """As `encode_rows` for publishes that get sequences from `first_seq` on, and one time: the
    bytes, offsets, checksums, what each counts, and subjects."""
    rows = [(seq, time_ns, item[0], item[2], item[3]) for seq, item in enumerate(batch, first_seq)]
    frame, found = encode_rows(head, rows)
    return frame, found.offsets, found.crcs, found.lengths, found.subjects


def encode_rows(head: bytes, rows: Sequence[Row]) -> tuple[bytes, Columns]:
    """Encode a batch (at least one message, sequences ascending) as a frame behind other bytes.

    The columns are what `read_columns` would find: who encodes a frame need not read it.
    Raises ValueError for a batch without messages.
    """
    if not rows:
        raise ValueError("a frame has messages")
    seqs, times, subjects, headers, payloads = zip(*rows, strict=True)
    subject_lengths = list(map(len, subjects))
    header_lengths = list(map(len, headers))
    lengths = [
        RECORD_OVERHEAD + s + h + p
        for s, h, p in zip(subject_lengths, header_lengths, map(len, payloads), strict=True)
    ]
    heads = map(_pack_head, lengths, seqs, times, subject_lengths, header_lengths)
    header = frame_header(len(seqs), seqs[0], seqs[-1], sum(lengths))
    encode = _encode_large if min(lengths) >= SHARED_BYTES else _encode_small
    crc, crcs, body = encode(crc32(header), zip(heads, subjects, headers, payloads, strict=True))
    frame = b"".join((head, header, _pack_u32(crc), *body))
    begin = len(head) + FRAME_HEADER_BYTES
    offsets = list(accumulate(lengths[:-1], initial=begin))
    sizes = _counted(lengths, header_lengths)
    return frame, Columns(offsets, crcs, sizes, seqs, times, subjects)


def _encode_small(crc: int, rows: Iterable[Parts]) -> tuple[int, list[int], Iterable[bytes]]:
    """What `crc` becomes behind records, their own checksums, and their bytes."""
    bodies = list(map(b"".join, rows))
    crcs = list(map(crc32, bodies))
    body = b"".join(chain.from_iterable(zip(map(_pack_u32, crcs), bodies, strict=True)))
    return crc32(body, crc), crcs, (body,)


def _encode_large(crc: int, rows: Iterable[Parts]) -> tuple[int, list[int], Iterable[bytes]]:
    """As `_encode_small`, without copies of payloads and with one pass over them."""
    crcs: list[int] = []
    body: list[bytes] = []
    for parts in rows:
        own = 0
        for part in parts:
            own = crc32(part, own)
        packed = _pack_u32(own)
        crc = behind(crc32(packed, crc), own, sum(map(len, parts)))
        crcs.append(own)
        body += (packed, *parts)
    return crc, crcs, body


def _counted(lengths: Sequence[int], headers: Sequence[int]) -> Sequence[int]:
    if not any(headers):
        return lengths
    return [n + HEADED_BYTES if more else n for n, more in zip(lengths, headers, strict=True)]


def frame_header(count: int, first_seq: int, last_seq: int, length: int) -> bytes:
    """All of a frame's header but its checksum."""
    assert first_seq <= last_seq, "sequences ascend in a frame"
    assert last_seq - first_seq >= count - 1, "sequences are distinct in a frame"
    return _FRAME.pack(FRAME_MAGIC, FRAME_VERSION, 0, count, first_seq, last_seq, length)


# Records


def read_columns(buffer: bytes, start: int, end: int) -> Columns:
    """Everything of records that an index needs."""
    offsets: list[int] = []
    crcs: list[int] = []
    lengths: list[int] = []
    seqs: list[int] = []
    times: list[int] = []
    subjects: list[bytes] = []
    note_offset, note_crc, note_length = offsets.append, crcs.append, lengths.append
    note_seq, note_time, note_subject = seqs.append, times.append, subjects.append
    for at, crc, length, seq, time_ns, subject, headers in _heads(buffer, start, end):
        note_offset(at)
        note_crc(crc)
        note_seq(seq)
        note_time(time_ns)
        note_length(length + HEADED_BYTES if headers else length)
        note_subject(buffer[at + RECORD_OVERHEAD : at + RECORD_OVERHEAD + subject])
    return Columns(offsets, crcs, lengths, seqs, times, subjects)


def read_ids(buffer: bytes, start: int, end: int) -> list[bytes]:
    """The ids of records that hold one each and no other header; empty if not all are such."""
    blocks: list[bytes] = []
    for at, _, _, _, _, subject, headers in _heads(buffer, start, end):
        begin = at + RECORD_OVERHEAD + subject
        blocks.append(buffer[begin : begin + headers])
    return plain_ids(blocks)


def read_rows(
    buffer: bytes,
    begin: int,
    seqs: Sequence[int],
    offsets: Sequence[int],
    lengths: Sequence[int],
    bytes_max: int,
) -> list[Row]:
    """The messages of records, wherever they lie in a file of which the buffer begins at `begin`.
    Ends before the first that does not check, or that would pass `bytes_max` with all before it,
    and where the shortest sequence does."""
    found: list[Row] = []
    append, unpack, size = found.append, _RECORD.unpack_from, len(buffer)
    for seq, offset, length in zip(seqs, offsets, lengths, strict=False):
        bytes_max -= length
        start = offset - begin
        end = start + length
        if bytes_max < 0 or length < RECORD_OVERHEAD or start < 0 or end > size:
            break
        crc, own, got, time_ns, subject, headers = unpack(buffer, start)
        a = start + RECORD_OVERHEAD
        b = a + subject
        c = b + headers
        if own != length or got != seq or c > end or crc32(buffer[start + 4 : end]) != crc:
            break
        append((seq, time_ns, buffer[a:b], buffer[b:c], buffer[c:end]))
    return found


def _heads(buffer: bytes, start: int, end: int) -> Iterator[tuple[int, ...]]:
    """Where each record begins, and its head."""
    unpack = _RECORD.unpack_from
    if not 0 <= start <= end <= len(buffer):
        raise ValueError("no such range")
    while start < end:
        if end - start < RECORD_OVERHEAD:
            raise ValueError("records do not end with the bytes")
        head = unpack(buffer, start)
        length = head[1]
        if not RECORD_OVERHEAD + head[4] + head[5] <= length <= end - start:
            raise ValueError("a record is longer than the bytes, or shorter than its parts")
        yield (start, *head)
        start += length


# Ids


def pack_ids(ids: Sequence[bytes], first_seq: int, time_ns: int) -> bytes:
    """Ids of messages that follow each other, as a stream's snapshot has them: sequence, time,
    length, id. Raises ValueError for one of 64 KiB and more."""
    if max(map(len, ids), default=0) > ID_BYTES_MAX:
        raise ValueError("an id is too long")
    return b"".join(
        [_pack_id(seq, time_ns, len(name)) + name for seq, name in enumerate(ids, first_seq)]
    )


# Acknowledgements


def ack_lines(
    replies: Sequence[bytes], first_seq: int, verb: bytes, infix: bytes, form: tuple[bytes, bytes]
) -> bytes:
    """What a client reads that gets the acknowledgements of messages with sequences from
    `first_seq` on, each to its reply. `form` stands around the sequence."""
    return b"".join(ack_each(replies, first_seq, verb, [infix] * len(replies), form))


def ack_each(
    replies: Sequence[bytes],
    first_seq: int,
    verb: bytes,
    infixes: Sequence[bytes],
    form: tuple[bytes, bytes],
) -> list[bytes]:
    """The same one by one, for as many clients: `infixes` are those of their subscriptions. Raises
    ValueError if there are not as many."""
    head, tail = form
    around = len(head) + len(tail)
    return [
        b"%b%b%b%d\r\n%b%d%b\r\n" % (verb, reply, infix, around + len(str(seq)), head, seq, tail)
        for seq, (reply, infix) in enumerate(zip(replies, infixes, strict=True), first_seq)
    ]


# Deliveries


def delivery_tails(front: bytes, rows: Sequence[Row], first: int, pending: int) -> list[bytes]:
    """What a client reads of messages without headers behind subject and subscription: replies that
    begin with `front`, and tell sequence, number (from `first` on), time and how many are left
    behind each (`pending` behind the first), then size and payload."""
    return [
        b"%b%d.%d.%d.%d %d\r\n%b\r\n" % (front, seq, number, time_ns, left, len(payload), payload)
        for (seq, time_ns, _, _, payload), number, left in zip(
            rows, count(first), count(pending, -1), strict=False
        )
    ]


def plain_acks(acks: Sequence[Publish]) -> tuple[list[int], list[bytes], list[int]]:
    """What consumers hear: the sequences that are acknowledged plainly, who is to be answered about
    each (empty: nobody), and the places of all that say something else. A subject without a
    sequence says nothing."""
    seqs: list[int] = []
    replies: list[bytes] = []
    others: list[int] = []
    for at, ack in enumerate(acks):
        if ack[3] not in PLAIN_ACKS:
            others.append(at)
            continue
        tokens = ack[0].split(b".", SEQ_TOKEN + 1)
        token = tokens[SEQ_TOKEN] if len(tokens) > SEQ_TOKEN else b""
        seq = int(token) if token.isdigit() and len(token.lstrip(b"0")) <= _DIGITS_MAX else 0
        if 0 < seq <= _SEQ_MAX:
            seqs.append(seq)
            replies.append(ack[1])
    return seqs, replies, others
