"""Options and what streams hold -> ranges of sequences, one per task.

A plan of the same offsets is the same plan, whatever arrived since: that is what makes a replayed
micro-batch the same batch.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jsctl.api.stream import StreamInfo
from jsctl.api.words import Retention
from jsctl.errors import Conflict, NotFound, UsageError
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import EARLIEST, LATEST, Position, ReadMode, SourceOptions
from jsctl.spark.scan.range import Range

SEQUENCES_PER_TASK_MIN = 50_000
BYTES_PER_TASK_MIN = 16 << 20
"""Of either there must be so much, or another task costs more than it brings."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a stream: `first <= sequence < end`."""

    info: StreamInfo
    first: int
    end: int

    @property
    def size(self) -> int:
        """How many sequences, also those that hold no message."""
        return max(self.end - self.first, 0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What pushed filters leave of a read. `end_*` are exclusive; None and empty: no bound."""

    first_seq: int | None = None
    end_seq: int | None = None
    first_ns: int | None = None
    end_ns: int | None = None
    streams: frozenset[str] | None = None
    subjects: tuple[str, ...] | None = None


def stream_names(js: JetStream, options: SourceOptions) -> list[str]:
    """The streams to read, sorted. Raises NotFound when no name matches the pattern."""
    if options.streams:
        return sorted(options.streams)
    found = js.names_like(options.stream_pattern)
    if not found:
        raise NotFound(f"option streamPattern: no stream is named like {options.stream_pattern!r}")
    return found


def first_sequence(js: JetStream, info: StreamInfo, start: Position, *, strict: bool) -> int:
    """Where a read of a stream begins.

    Raises Conflict for a sequence that is gone or not there yet, if `strict`.
    """
    first, behind = max(info.state.first_seq, 1), info.state.last_seq + 1
    if start.time_ns is not None:
        return js.sequence_at(info, start.time_ns)
    wanted = start.of(info.config.name)
    if wanted == EARLIEST:
        return first
    if wanted == LATEST:
        return behind
    if strict:
        check_first(info, max(wanted, 1))
    return min(max(wanted, first), behind)


def check_first(info: StreamInfo, first: int) -> None:
    """Raises Conflict when reading cannot begin at a sequence without losing something.

    From work queues and interest streams messages leave because they were acknowledged.
    """
    name, state = info.config.name, info.state
    if first < state.first_seq and info.config.retention is Retention.LIMITS:
        raise Conflict(
            f"stream {name}: sequences {first} to {state.first_seq - 1} are gone,"
            f" its first is {state.first_seq}",
            hints=("keep messages longer, or set failOnDataLoss to false",),
        )
    if first > state.last_seq + 1:
        raise Conflict(
            f"stream {name}: sequence {first} is not there, its last is {state.last_seq}",
            hints=("was the stream restored or made again? failOnDataLoss=false goes on",),
        )


def end_sequence(js: JetStream, info: StreamInfo, end: Position) -> int:
    """The first sequence behind a batch read."""
    behind = info.state.last_seq + 1
    if end.time_ns is not None:
        return js.sequence_at(info, end.time_ns)
    wanted = end.of(info.config.name)
    return behind if wanted == LATEST else min(wanted, behind)


def batch_ranges(
    js: JetStream, options: SourceOptions, bounds: Bounds, *, headers_only: bool
) -> list[Range]:
    """The tasks of a batch read. Raises what its parts raise."""
    spans = []
    for name in stream_names(js, options):
        if bounds.streams is not None and name not in bounds.streams:
            continue
        info = js.info(name)
        first = first_sequence(js, info, options.start, strict=options.fail_on_data_loss)
        span = Span(info, first, end_sequence(js, info, options.end))
        spans.append(_bounded(js, span, bounds))
    filters = options.filter_subjects if bounds.subjects is None else bounds.subjects
    return split(spans, replace(options, filter_subjects=filters), headers_only=headers_only)


def split(
    spans: Sequence[Span],
    options: SourceOptions,
    *,
    headers_only: bool,
) -> list[Range]:
    """Spans cut into ranges of about the same size."""
    total = sum(span.size for span in spans)
    if not total:
        return []
    wanted = options.min_partitions or default_tasks(spans)
    size = max(-(-total // wanted), 1)
    if options.max_records_per_partition:
        size = min(size, options.max_records_per_partition)
    ranges = []
    for span in spans:
        if not span.size:
            continue
        mode = read_mode(span.info, options.read_mode)
        pieces = -(-span.size // size)
        for piece in range(pieces):
            ranges.append(
                Range(
                    stream=span.info.config.name,
                    created=span.info.created,
                    first=span.first + span.size * piece // pieces,
                    end=span.first + span.size * (piece + 1) // pieces,
                    filters=options.filter_subjects,
                    mode=mode,
                    headers_only=headers_only and mode is ReadMode.CONSUMER,
                    complete=options.fail_on_data_loss,
                )
            )
    return ranges


def default_tasks(spans: Sequence[Span]) -> int:
    """One per core of the driver, fewer for small ranges."""
    sequences = sum(span.size for span in spans)
    worth = max(sequences // SEQUENCES_PER_TASK_MIN, sum(map(stored, spans)) // BYTES_PER_TASK_MIN)
    return max(min(os.cpu_count() or 1, worth), 1)


def stored(span: Span) -> int:
    """About how many bytes it has, by the mean of its stream."""
    state = span.info.state
    return span.size * state.bytes // max(state.last_seq - state.first_seq + 1, 1)


def read_mode(info: StreamInfo, wanted: ReadMode) -> ReadMode:
    """How a stream is read; AUTO takes what never disturbs others. Raises UsageError."""
    name, config = info.config.name, info.config
    queue = config.retention is Retention.WORK_QUEUE
    if wanted is ReadMode.CONSUMER and queue:
        raise UsageError(
            f"stream {name} is a work queue, a consumer would take its messages away",
            hints=("use readMode direct",),
        )
    allow = f"`jsctl stream edit {name} --allow-direct`"
    if wanted is ReadMode.DIRECT and not config.allow_direct:
        raise UsageError(f"stream {name} does not allow direct gets", hints=(allow,))
    if wanted is not ReadMode.AUTO:
        return wanted
    if config.retention is Retention.LIMITS:
        return ReadMode.CONSUMER
    if config.allow_direct:
        return ReadMode.DIRECT
    if queue:
        raise UsageError(
            f"stream {name} is a work queue and does not allow direct gets", hints=(allow,)
        )
    return ReadMode.CONSUMER


def _bounded(js: JetStream, span: Span, bounds: Bounds) -> Span:
    first, end = span.first, span.end
    if bounds.first_seq is not None:
        first = max(first, bounds.first_seq)
    if bounds.end_seq is not None:
        end = min(end, bounds.end_seq)
    if bounds.first_ns is not None and first < end:
        first = max(first, js.sequence_at(span.info, bounds.first_ns))
    if bounds.end_ns is not None and first < end:
        end = min(end, js.sequence_at(span.info, bounds.end_ns))
    return Span(span.info, first, max(end, first))
