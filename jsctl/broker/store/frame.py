"""A frame as those who take it share it: stream, store, limits by subject, consumers.

A frame comes as part of an entry of the log. It is neither copied out of there nor read twice: what
somebody asks of it is found out once, and kept for all others. Whoever encoded it knows its columns
without a look at the bytes.

Invariant: the bytes are sound. Who brought them here has verified them: the peer frame or the log
that they came in, or the importer of a store.
"""

from collections.abc import Sequence

from jsctl.broker.accel.choice import column_loops
from jsctl.broker.store import record
from jsctl.broker.store.record import FRAME_HEADER_BYTES, Columns, Publish, Record, RecordLike


class Frame:
    """The frame that is in a buffer from `start` to the end. Raises Damaged if none is there."""

    __slots__ = (
        "_columns",
        "_headers",
        "_records",
        "buffer",
        "count",
        "first_seq",
        "last_seq",
        "start",
    )

    def __init__(self, buffer: bytes, start: int = 0, known: Columns | None = None) -> None:
        self.buffer = buffer
        self.start = start
        self.count, self.first_seq, self.last_seq, _ = record.peek(buffer, start)
        self._columns = known
        self._headers: list[bytes] | None = None
        self._records: list[Record] | None = None

    def __len__(self) -> int:
        return len(self.buffer) - self.start

    @property
    def view(self) -> memoryview:
        """The frame's own bytes; not a copy."""
        return memoryview(self.buffer)[self.start :]

    @property
    def columns(self) -> Columns:
        """What an index needs; offsets count from the begin of the buffer."""
        if self._columns is None:
            begin = self.start + FRAME_HEADER_BYTES
            self._columns = record.read_columns(self.buffer, begin, len(self.buffer))
        return self._columns

    @property
    def header_blocks(self) -> list[bytes]:
        """The header block of each message, empty where there is none."""
        if self._headers is None:
            self._headers = record.header_blocks(self.buffer, self.columns)
        return self._headers

    @property
    def plain_ids(self) -> list[bytes]:
        """The id of each message, if all have one and no other header; else empty."""
        begin = self.start + FRAME_HEADER_BYTES
        return column_loops().read_ids(self.buffer, begin, len(self.buffer))

    @property
    def records(self) -> list[Record]:
        """The messages, with copies of their payloads."""
        if self._records is None:
            begin = self.start + FRAME_HEADER_BYTES
            self._records = record.decode_records(self.buffer, begin, len(self.buffer))
        return self._records


def frame_of(records: Sequence[RecordLike], head: bytes = b"") -> Frame:
    """Encode a batch (at least one record, sequences ascending) behind some bytes."""
    buffer, known = record.encode_rows(head, records)
    return Frame(buffer, len(head), known)


def frame_of_publishes(
    head: bytes, batch: list[Publish], first_seq: int, time_ns: int, size: int
) -> Frame:
    """As `frame_of` for publishes that get sequences from `first_seq` on, and one time. `size` is
    about what they take together."""
    buffer, known = record.encode_publishes(head, batch, first_seq, time_ns, size)
    return Frame(buffer, len(head), known)
