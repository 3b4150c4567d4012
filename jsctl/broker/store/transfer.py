"""A whole store as a sequence of chunks, for a replica that is too far behind.

    chunk = kind u8, crc u32 | body
    HEAD, END: from, first, last (u64), last time (i64), mark u64, digest (16 B) | deleted set
    ROWS: a frame
    LOST: what is known of records that are damaged in the store that is read

Holes and bounds travel too: the replica ends with an equal state and an equal digest. Every
chunk is checked on arrival, and the digest at the end. Damage does not end a transfer: what is
whole is sent, what is not is named, and is damaged in the replica, too, until it is put back.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Protocol
from zlib import crc32

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass

CHUNK_RECORDS_MAX = 2048
CHUNK_BYTES_AIMED = 512 * 1024
_CHUNK = struct.Struct("<BI")
_BOUNDS = struct.Struct("<QQQqQ16s")
_HEAD, _ROWS, _END, _LOST = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class TransferBounds:
    """What a store is besides its records."""

    from_seq: int
    first: int
    last: int
    last_time: int
    mark: int
    digest: int
    deleted: SeqSet

    def encode(self) -> bytes:
        """As bytes."""
        digest = self.digest.to_bytes(16, "little")
        packed = _BOUNDS.pack(
            self.from_seq, self.first, self.last, self.last_time, self.mark, digest
        )
        return packed + self.deleted.encode()

    @staticmethod
    def decode(data: bytes) -> "TransferBounds":
        """Inverse of `encode`. Raises Damaged."""
        if len(data) < _BOUNDS.size:
            raise Damaged("bounds are cut short", path="chunk")
        from_seq, first, last, last_time, mark, digest = _BOUNDS.unpack_from(data)
        deleted = SeqSet.decode(data[_BOUNDS.size :])
        return TransferBounds(
            from_seq, first, last, last_time, mark, int.from_bytes(digest, "little"), deleted
        )


class Source(Protocol):
    """The store that is read."""

    def bounds(self, from_seq: int) -> TransferBounds:
        """Its bounds now."""

    def live_seqs(self, start: int, stop: int, count: int) -> list[int]:
        """Up to `count` live sequences in [start, stop]."""

    def read_raw(self, seqs: Sequence[int]) -> list[bytes]:
        """Verified records. Raises Damaged."""

    def lost_records(self, seqs: Sequence[int]) -> bytes:
        """What is known of damaged ones."""


class TransferTarget(Protocol):
    """The store that is filled."""

    def import_start(self, bounds: TransferBounds) -> None:
        """Make ready."""

    def import_frame(self, frame: bytes) -> None:
        """Take rows."""

    def import_lost(self, records: bytes) -> None:
        """Take what is known of damaged rows. Raises Damaged."""

    def import_end(self, bounds: TransferBounds) -> None:
        """Take bounds."""

    def digest(self) -> int:
        """Over what is there now."""


def _chunk(kind: int, body: bytes) -> bytes:
    return _CHUNK.pack(kind, crc32(body, kind)) + body


def export(store: Source, from_seq: int) -> Iterator[bytes]:
    """Chunks of the store from a sequence on, up to its end at the first call."""
    head = store.bounds(from_seq)
    yield _chunk(_HEAD, head.encode())
    start = max(from_seq, head.first)
    count = 64
    while seqs := store.live_seqs(start, head.last, count):
        raws, lost = _whole(store, seqs)
        if raws:
            size = sum(map(len, raws))
            yield _chunk(_ROWS, record.frame_of_raw(raws))
            count = max(1, min(CHUNK_RECORDS_MAX, CHUNK_BYTES_AIMED * len(raws) // size))
        if lost:
            yield _chunk(_LOST, store.lost_records(lost))
        start = seqs[len(raws) + len(lost) - 1] + 1
    now = store.bounds(from_seq)
    deleted = now.deleted
    deleted.remove_range(head.last + 1, (1 << 64) - 1)
    unchanged = now.mark == head.mark
    end = TransferBounds(
        from_seq,
        min(now.first, head.last + 1),
        head.last,
        head.last_time,
        head.mark,
        now.digest if unchanged else 0,
        deleted,
    )
    yield _chunk(_END, end.encode())


def _whole(store: Source, seqs: list[int]) -> tuple[list[bytes], list[int]]:
    """The records in front of the first damaged one, and the damaged ones that follow them."""
    try:
        return store.read_raw(seqs), []
    except Damaged as damage:
        first, last = damage.first_seq, damage.last_seq
    front = list(takewhile(lambda seq: seq < first, seqs))
    lost = list(takewhile(lambda seq: seq <= last, seqs[len(front) :]))
    if not front:
        return [], lost
    try:
        return store.read_raw(front), lost
    except Damaged:
        # What was sound a moment ago is not any more.
        return _whole(store, front)


class StoreImporter:
    """Feeds chunks to a store, in order."""

    __slots__ = ("_started", "_store")

    def __init__(self, store: TransferTarget) -> None:
        self._store = store
        self._started = False

    def feed(self, chunk: bytes) -> bool:
        """Take a chunk; True when it was the last. Raises Damaged."""
        if len(chunk) < _CHUNK.size:
            raise Damaged("a chunk is cut short", path="chunk")
        kind, crc = _CHUNK.unpack_from(chunk)
        body = chunk[_CHUNK.size :]
        if crc32(body, kind) != crc or (kind == _HEAD) == self._started:
            raise Damaged("a chunk does not check or is out of order", path="chunk")
        if kind == _HEAD:
            self._store.import_start(TransferBounds.decode(body))
            self._started = True
        elif kind == _ROWS:
            if not record.frame_is_sound(body):
                raise Damaged("rows of a chunk do not check", path="chunk")
            self._store.import_frame(body)
        elif kind == _LOST:
            self._store.import_lost(body)
        else:
            self._end(TransferBounds.decode(body))
        return bool(kind == _END)

    def _end(self, bounds: TransferBounds) -> None:
        self._store.import_end(bounds)
        if bounds.digest and self._store.digest() != bounds.digest:
            raise Damaged("the imported store has another digest", path="chunk")
