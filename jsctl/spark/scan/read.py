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
from collections.abc import Iterator

from jsctl.api.stream import StreamInfo
from jsctl.api.words import Retention
from jsctl.errors import Conflict, Unreachable
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.connection.wire import Closed
from jsctl.spark.options import ReadMode
from jsctl.spark.scan.consumer import ConsumerReader
from jsctl.spark.scan.direct import DirectReader
from jsctl.spark.scan.range import Chunk, Range, Reader

PAUSE_S = 0.05


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
