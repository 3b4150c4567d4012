"""One range of sequences of one stream -> chunks of rows. The only place that reads messages.

Theory of operation. A `Range` names what to read; two readers know how to fetch a piece of it, by
a consumer of its own or by direct gets. They hand out chunks and say where they are; `read` here
drives them and alone decides when the range is finished: when its last sequence was seen, or when
the stream's leader says that nothing that matches is left in it. "Nothing more" from a replica or
a consumer is never believed, they may lag behind. After a broken connection, a lost consumer or a
gap in what a consumer delivered, a new reader goes on behind the last row that was handed out.

Rows stay bytes here, column by column; `arrow` converts whole columns.
"""

import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from jsctl.api.stream import StreamInfo
from jsctl.api.words import Retention
from jsctl.errors import Conflict, Unreachable
from jsctl.spark.jetstream import JetStream
from jsctl.spark.options import ReadMode
from jsctl.spark.wire import Closed

CHUNK_ROWS = 10_000
CHUNK_BYTES = 8 << 20
"""A chunk is handed out when it has so many rows or bytes; one message may be larger."""
PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Range:
    """What one task reads: `first <= sequence < end` of a stream.

    `created` is the stream's time of creation: another one is another stream. With `complete`
    it is an error when the stream lost messages of the range from its head.
    """

    stream: str
    created: str
    first: int
    end: int
    filters: tuple[str, ...] = ()
    mode: ReadMode = ReadMode.CONSUMER
    headers_only: bool = False
    complete: bool = True


@dataclass(slots=True)
class Chunk:
    """Rows as columns. `times` are nanoseconds in digits, or RFC 3339 from direct gets.

    `heads` are header blocks as stored, empty for none.
    """

    subjects: list[bytes] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    times: list[bytes] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)

    def cut(self, end: int) -> None:
        """Drop rows at and behind a sequence."""
        keep = bisect_right(self.seqs, end - 1)
        if keep < len(self.seqs):
            for column in (self.subjects, self.seqs, self.times, self.heads, self.payloads):
                del column[keep:]


class Interrupted(Unreachable):
    """A reader cannot go on; another one, made behind the last row, can."""


class Reader:
    """Fetches a range piece by piece. `next` is the first sequence not handed out yet."""

    def __init__(self, js: JetStream, wanted: Range, first: int) -> None:
        self.js = js
        self.range = wanted
        self.next = first

    def chunk(self) -> Chunk:
        """The next rows in order; none when this reader sees nothing more at present.

        Raises Interrupted, Closed, TimeoutError and what requests raise.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give back what the server keeps for it."""


def read(js: JetStream, wanted: Range) -> Iterator[Chunk]:
    """All rows of a range in order of their sequences; each once.

    Raises Conflict when the stream is another one by now or lost what should be read, NotFound
    when it is gone, Unreachable when there was no progress for as long as an outage may last.
    """
    position, rows = wanted.first, 0
    reader: Reader | None = None
    alive = time.monotonic()
    try:
        while position < wanted.end:
            chunk = Chunk()
            try:
                if reader is None:
                    reader = make_reader(js, wanted, position)
                chunk = reader.chunk()
                position = max(position, reader.next)
                finished = (
                    not chunk.seqs and position < wanted.end and _nothing_left(js, wanted, position)
                )
            except (Unreachable, TimeoutError) as error:
                _give_up(js, reader, error)
                reader = None
                if time.monotonic() - alive > js.outage_s:
                    raise _stuck(wanted, position, js.outage_s, error) from error
                time.sleep(PAUSE_S)
                continue
            if chunk.seqs:
                chunk.cut(wanted.end)
                rows += len(chunk.seqs)
                alive = time.monotonic()
                if chunk.seqs:
                    yield chunk
                    alive = time.monotonic()
            elif finished:
                break
            elif time.monotonic() - alive > js.outage_s:
                raise _stuck(wanted, position, js.outage_s, None)
    finally:
        if reader is not None:
            reader.close()
    check_complete(js.info(wanted.stream), wanted, rows)


def make_reader(js: JetStream, wanted: Range, first: int) -> Reader:
    """The reader of a mode, starting at a sequence."""
    from jsctl.spark.scan_consumer import ConsumerReader
    from jsctl.spark.scan_direct import DirectReader

    kind = DirectReader if wanted.mode is ReadMode.DIRECT else ConsumerReader
    return kind(js, wanted, first)


def check_created(info: StreamInfo, created: str) -> None:
    """Raises Conflict when a stream is not the one that was planned."""
    if created and info.created != created:
        raise Conflict(
            f"stream {info.config.name} was deleted and made again at {info.created};"
            f" what was planned is of the one made at {created}",
            hints=("start a new checkpoint, or set failOnDataLoss to false",),
        )


def check_complete(info: StreamInfo, wanted: Range, rows: int) -> None:
    """Raises Conflict when messages of the range may have been removed before they were read.

    Only removals from the head count (limits, purges); single deletes leave holes on purpose, and
    on work queues and interest streams messages leave because they were acknowledged.
    """
    if not wanted.complete:
        return
    check_created(info, wanted.created)
    if info.config.retention is not Retention.LIMITS or info.state.first_seq <= wanted.first:
        return
    gone = min(info.state.first_seq, wanted.end)
    if not wanted.filters and rows >= wanted.end - wanted.first:
        return
    raise Conflict(
        f"stream {wanted.stream} lost messages while they were read: sequences {wanted.first} to"
        f" {gone - 1} are gone (its first is {info.state.first_seq})",
        hints=("keep messages longer, or set failOnDataLoss to false",),
    )


def _nothing_left(js: JetStream, wanted: Range, position: int) -> bool:
    """Whether the leader knows nothing that matches from here to the end of the range."""
    following = js.next_sequence(wanted.stream, position, wanted.filters)
    return following is None or following >= wanted.end


def _give_up(js: JetStream, reader: Reader | None, error: Exception) -> None:
    if isinstance(error, Closed | TimeoutError):
        js.drop()
    if reader is not None:
        reader.close()


def _stuck(wanted: Range, position: int, outage_s: float, error: Exception | None) -> Unreachable:
    why = f": {error}" if error is not None and str(error) else ""
    return Unreachable(
        f"stream {wanted.stream} at sequence {position} (of {wanted.first} to {wanted.end - 1}):"
        f" nothing came for {outage_s:g} s{why}",
        hints=("is a replica behind, or a server down? a longer outageTimeout waits longer",),
    )
