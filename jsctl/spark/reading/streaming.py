"""A streaming read: offsets are sequences, a micro-batch is a set of ranges.

One object lives as long as the query runs and is asked on the driver; `read` runs in tasks.
Planning a batch again, after any crash, gives the same ranges.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from jsctl.api.requests import StreamPurgeRequest
from jsctl.api.stream import StreamInfo
from jsctl.api.times import SECOND_NS
from jsctl.errors import Conflict, NotFound, UsageError
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.failures import reported
from jsctl.spark.offsets import Offset, StreamOffset
from jsctl.spark.options import LATEST, OnCommit, Position, SourceOptions
from jsctl.spark.reading.batch import Part, read_part
from jsctl.spark.reading.plan import Span, check_first, first_sequence, split, stream_names
from jsctl.spark.scan.read import check_created

if TYPE_CHECKING:
    import pyarrow as pa

Document = dict[str, object]
SEQUENCES_PER_TASK_MIN = 10_000
"""Below that another task costs a micro-batch more than it brings."""


class JetStreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of one query. It connects when it is first asked something."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """Raises UsageError for options that only batch reads have."""
        if options.end != Position(LATEST):
            raise UsageError("a streaming read has no endingOffsets and no endingTimestamp")
        self.options = options
        self.columns = schema
        self._initial: Offset | None = None
        self._target: Offset | None = None
        """Where a run with AvailableNow ends."""
        self._waiting_since: float | None = None
        self._reached = False
        """Whether a server ever answered; from then on an outage is waited for."""

    @reported
    def initialOffset(self) -> Document:
        """Where a new query begins. The same answer however often it is asked in one run."""
        if self._initial is None:
            tasks = self.options.min_partitions or os.cpu_count() or 1
            with self._js() as js:
                streams = {
                    name: self._begin(js, js.info(name), self.options.start)
                    for name in stream_names(js, self.options)
                }
            self._initial = Offset(streams, tasks, initial=True)
        return self._initial.to_json()

    @reported
    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:
        """The end of the next micro-batch: `start` itself when there is nothing to do."""
        begin = Offset.of(start)
        latest = self._target or self._available(begin)
        end = self._limited(begin, self._following(begin, latest), limit)
        if not begin.initial and end.streams == begin.streams:
            return start
        return end.to_json()

    @reported
    def reportLatestOffset(self) -> Document | None:
        """What there is now, so that the query's progress shows the lag."""
        return self._available(Offset()).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the options."""
        options = self.options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        if options.min_offsets > 1:
            return ReadMinRows(options.min_offsets)
        return ReadAllAvailable()

    @reported
    def prepareForTriggerAvailableNow(self) -> None:
        """What comes from now on is for the next run."""
        self._target = self._available(Offset())

    @reported
    def partitions(self, start: Document, end: Document) -> Sequence[InputPartition]:
        """The ranges of a micro-batch. Raises Conflict for streams that are not what they were."""
        begin, until = Offset.of(start), Offset.of(end)
        spans = []
        with self._js() as js:
            for name, one in until.streams.items():
                span = self._span(js, name, begin, one)
                if span is not None:
                    spans.append(span)
        headers_only = "data" not in self.columns.fieldNames()
        tasks = until.tasks
        if self.options.min_partitions is None:
            tasks = min(tasks, sum(span.size for span in spans) // SEQUENCES_PER_TASK_MIN)
        options = replace(self.options, min_partitions=max(tasks, 1))
        found = split(spans, options, headers_only=headers_only)
        return [Part(one) for one in found]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of one range."""
        return read_part(self.options, self.columns, partition)

    @reported
    def commit(self, end: Document) -> None:
        """A micro-batch is done. With onCommit=purge its messages are deleted.

        Spark tells it when it builds the next batch, so the last one of a run stays.
        """
        if self.options.on_commit is not OnCommit.PURGE:
            return
        with self._js() as js:
            for name, one in Offset.of(end).streams.items():
                info = self._maybe_info(js, name)
                if info is None or info.created != one.created:
                    continue  # one that was made again holds what nobody has read
                for subject in self.options.filter_subjects or ("",):
                    request = StreamPurgeRequest(seq=one.next, filter=subject)
                    js.ask("stream_purge", name, body=request)

    def stop(self) -> None:
        """Nothing is held between calls."""

    @contextmanager
    def _js(self) -> Iterator[JetStream]:
        with JetStream(self.options.connection, patient=self._reached) as js:
            yield js
        self._reached = True

    def _begin(self, js: JetStream, info: StreamInfo, start: Position) -> StreamOffset:
        strict = self.options.fail_on_data_loss
        first = first_sequence(js, info, start, strict=strict)
        return StreamOffset(first, first, info.created)

    def _available(self, begin: Offset) -> Offset:
        """All streams as they are now; streams of `begin` that are gone are left out."""
        streams: dict[str, StreamOffset] = {}
        with self._js() as js:
            for name in stream_names(js, self.options):
                try:
                    info = js.info(name)
                except NotFound:
                    if self.options.fail_on_data_loss:
                        raise
                    continue
                behind = info.state.last_seq + 1
                known = begin.streams.get(name)
                base = known.base if known is not None else max(info.state.first_seq, 1)
                streams[name] = StreamOffset(behind, base, info.created)
        return Offset(streams)

    def _following(self, begin: Offset, latest: Offset) -> Offset:
        """`latest`, seen from `begin`: streams keep their base, and never go back."""
        found = dict(begin.streams)
        for name, one in latest.streams.items():
            before = begin.streams.get(name)
            if before is None:
                found[name] = one
            elif before.created != one.created:
                self._recreated(name, before, one)
                found[name] = replace(one, base=1)
            else:
                found[name] = replace(before, next=max(one.next, before.next))
        return Offset(found, self.options.min_partitions or begin.tasks)

    def _recreated(self, name: str, before: StreamOffset, now: StreamOffset) -> None:
        if self.options.fail_on_data_loss:
            raise Conflict(
                f"stream {name} was deleted and made again at {now.created}; the checkpoint is of"
                f" the one made at {before.created}, read up to sequence {before.next - 1}",
                hints=("start a new checkpoint, or set failOnDataLoss to false",),
            )

    def _limited(self, begin: Offset, latest: Offset, limit: ReadLimit) -> Offset:
        """No more than a limit allows, shared out by what each stream has."""
        if isinstance(limit, ReadAllAvailable):
            return latest
        starts = {name: _start(begin, name, one) for name, one in latest.streams.items()}
        infos = self._infos(name for name, one in latest.streams.items() if starts[name] < one.next)
        for name, info in infos.items():
            starts[name] = min(max(starts[name], info.state.first_seq), latest.streams[name].next)
        due = {
            name: one.next - starts[name] if name in infos else 0
            for name, one in latest.streams.items()
        }
        if self._too_few(sum(due.values())):
            return replace(begin, initial=False) if begin.initial else begin
        allowed = self._allowed(limit, infos)
        total = sum(due.values())
        if allowed is None or total <= allowed:
            return latest
        ends = {
            name: starts[name] + max(due[name] * allowed // total, 1 if due[name] else 0)
            for name in due
        }
        return replace(
            latest,
            streams={name: replace(one, next=ends[name]) for name, one in latest.streams.items()},
        )

    def _infos(self, names: Iterable[str]) -> dict[str, StreamInfo]:
        """Streams that there are; raises NotFound for others if they may not be gone."""
        with self._js() as js:
            found = {name: self._maybe_info(js, name) for name in names}
        if self.options.fail_on_data_loss and None in found.values():
            gone = ", ".join(name for name, info in found.items() if info is None)
            raise NotFound(f"stream {gone} does not exist")
        return {name: info for name, info in found.items() if info is not None}

    @staticmethod
    def _maybe_info(js: JetStream, name: str) -> StreamInfo | None:
        try:
            return js.info(name)
        except NotFound:
            return None

    def _too_few(self, due: int) -> bool:
        """Whether to wait for more; not for ever, and not in a run that shall end."""
        if self._target is not None or due >= self.options.min_offsets:
            self._waiting_since = None
            return False
        now = time.monotonic()
        self._waiting_since = since = self._waiting_since or now
        if now - since < self.options.max_trigger_delay_ns / SECOND_NS:
            return True
        self._waiting_since = None
        return False

    def _allowed(self, limit: ReadLimit, infos: Mapping[str, StreamInfo]) -> int | None:
        """Sequences that a limit allows; all options count, whichever of them the limit is."""
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        size = self.options.max_bytes
        if size is None:
            return rows
        messages = sum(info.state.messages for info in infos.values())
        stored = sum(info.state.bytes for info in infos.values())
        by_size = max(size * messages // stored, 1) if stored else None
        return min((n for n in (rows, by_size) if n is not None), default=None)

    def _span(self, js: JetStream, name: str, begin: Offset, until: StreamOffset) -> Span | None:
        """A stream's part of a micro-batch, None for an empty one. Raises Conflict, NotFound."""
        before = begin.streams.get(name)
        if before is None or begin.initial:
            first = until.base
        elif before.created != until.created:
            first = 1
        else:
            first = before.next
        if first >= until.next:
            return None
        strict = self.options.fail_on_data_loss
        try:
            info = js.info(name)
        except NotFound:
            if strict:
                raise
            return None
        if strict:
            check_created(info, until.created)
            check_first(info, max(first, 1))
        elif info.created != until.created:
            return None
        return Span(info, max(first, info.state.first_seq), until.next)


def _start(begin: Offset, name: str, until: StreamOffset) -> int:
    before = begin.streams.get(name)
    if before is None:
        return until.base
    return before.next if before.created == until.created else 1
