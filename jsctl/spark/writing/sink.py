"""Writes tables into streams: each row one message, stored exactly once per query.

Theory of operation. A task publishes its rows under ids that every attempt makes again
(`identity`). The server drops a second one within its window for duplicates; the window ends, a
restart may take longer. So a query remembers (`memory`) which batch it wrote whole and how far
the targets were then. A task skips a batch that is remembered. Its first attempt in the run that
wrote the batch before needs nothing more. Any other attempt, that is after a restart or a failed
task, first reads the targets from the remembered place and leaves out the ids that are there.
"""

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from jsctl.api.times import MINUTE_NS
from jsctl.errors import Conflict, JsctlError, UsageError
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.failures import reported, reporting
from jsctl.spark.options import Guarantee, SinkOptions
from jsctl.spark.writing.identity import Identities, Scope
from jsctl.spark.writing.memory import Memory, Record
from jsctl.spark.writing.publish import Publisher
from jsctl.spark.writing.rows import Encoder, check_columns
from jsctl.spark.writing.targets import Targets, ids_behind, position_of

BATCH_PROPERTY = "streaming.sql.batchId"
QUERY_PROPERTY = "sql.streaming.queryId"
RUN_PROPERTY = "spark.jobGroup.id"
DRIVER_MARGIN_NS = 5 * MINUTE_NS
"""How much the driver's clock and a server's may differ."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task did. `skipped` messages were there already."""

    scope: Scope
    written: int = 0
    skipped: int = 0
    positions: dict[str, int] = field(default_factory=dict)


class JetStreamStreamWriter(DataSourceStreamArrowWriter):
    """The sink of a streaming query."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_columns(schema, options.subject)
        self.options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task's rows."""
        with reporting():
            return Task(self.options, query_scope(self.options.sink_name), None).write(iterator)

    @reported
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """The batch is written whole: remember it."""
        remember(self.options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """The next attempt finds what was written."""


class JetStreamWriter(DataSourceArrowWriter):
    """A batch write; within foreachBatch it is a sink of the streaming query."""

    def __init__(self, options: SinkOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise UsageError("messages are only appended", hints=('use .mode("append")',))
        check_columns(schema, options.subject)
        self.options = options
        self.job = secrets.token_hex(8)
        self.began_ns = time.time_ns() - DRIVER_MARGIN_NS

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One task's rows."""
        with reporting():
            began = Record(self.job, -1, {}, self.began_ns)
            scope = self._scope()
            return Task(self.options, scope, None if scope.streaming else began).write(iterator)

    @reported
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Within foreachBatch: remember the batch."""
        remember(self.options, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """What was written stays; a job that is started anew is another job."""

    def _scope(self) -> Scope:
        context = task_context()
        if context.getLocalProperty(BATCH_PROPERTY) is None:
            return Scope(self.job, self.job, -1, "")
        if self.options.guarantee is Guarantee.AT_LEAST_ONCE:
            return query_scope(self.options.sink_name)
        if not self.options.sink_name:
            raise UsageError(
                "a write in foreachBatch needs option sinkName, another one for each write,"
                " so that a restart can tell what each of them wrote"
            )
        return query_scope(self.options.sink_name)


def task_context() -> TaskContext:
    """The running task's."""
    context = TaskContext.get()
    if context is None:
        raise JsctlError("messages are written in tasks of Spark only")
    return context


def query_scope(sink: str) -> Scope:
    """Which query, run and batch the running task belongs to. Raises JsctlError if unknown."""
    context = task_context()
    names = (QUERY_PROPERTY, RUN_PROPERTY, BATCH_PROPERTY)
    query, run, batch = (context.getLocalProperty(name) for name in names)
    if not query or not run or not batch:
        raise JsctlError(
            "this version of Spark does not tell a task its query and batch, which exactly-once"
            " writing needs",
            hints=("pip install 'pyspark>=4.2,<5'",),
        )
    return Scope(query, run, int(batch), sink)


class Task:
    """One attempt at one partition of one batch."""

    def __init__(self, options: SinkOptions, scope: Scope, began: Record | None) -> None:
        """`began` is where a job outside of streaming queries began."""
        self._options = options
        self._scope = scope
        self._record = began
        self._exactly = options.guarantee is Guarantee.EXACTLY_ONCE
        context = task_context()
        self._partition = context.partitionId()
        self._repeated = context.attemptNumber() > 0
        self._skipped = 0
        self._found: dict[str, set[str]] = {}
        """Streams that were read for what is there -> message ids."""

    def write(self, batches: Iterator[pa.RecordBatch]) -> Written:
        """Publish all rows that are not there yet; returns when they are acknowledged."""
        begun = self._scope.batch > 0  # an address that never worked is said at once
        with JetStream(self._options.connection, patient=begun) as js:
            self._js = js
            self._targets = Targets(js, self._options)
            publisher = Publisher(js, self._options, self._stored_now)
            for batch in batches:
                if batch.num_rows:
                    self._write_batch(publisher, batch)
            publisher.finish()
        skipped = self._skipped + publisher.recovered
        return Written(self._scope, publisher.written, skipped, publisher.positions)

    def _write_batch(self, publisher: Publisher, batch: pa.RecordBatch) -> None:
        encoder = self._encoder(batch.schema.names)
        for message in encoder.messages(batch):
            stream = self._targets.of(message.subject)
            if self._exactly and self._is_there(stream, message.id):
                self._skipped += 1
            else:
                publisher.send(message, stream)

    def _encoder(self, names: Iterable[str]) -> Encoder:
        if not hasattr(self, "_made"):
            with_source = {"stream", "seq"} <= set(names)
            identities = Identities(self._scope, self._partition, with_source=with_source)
            self._made = Encoder(self._options.subject, self._options.expect_stream, identities)
        return self._made

    def _is_there(self, stream: str, message_id: str) -> bool:
        """Whether an earlier attempt stored it; reads the stream when it has to."""
        record = self._remembered()
        if self._scope.streaming and record.batch >= self._scope.batch:
            if record.batch > self._scope.batch:
                raise Conflict(
                    f"batch {self._scope.batch} is to be written, but the query has written batch"
                    f" {record.batch} already: the checkpoint is older than the messages",
                    hints=("restore a newer checkpoint, or begin with a new one",),
                )
            return True
        if record.run == self._scope.run and not self._repeated:
            return False
        if stream not in self._found:
            self._found[stream] = self._read_ids(stream)
        return message_id in self._found[stream]

    def _remembered(self) -> Record:
        if self._record is None:
            memory = Memory(self._js, self._options.state_bucket, self._scope.name)
            found = memory.load()
            if found is None:
                first = Record(self._scope.run, self._scope.batch - 1)
                found = memory.begin(first, self._targets.replicas)
            self._record = found
        return self._record

    def _read_ids(self, stream: str) -> set[str]:
        position = position_of(self._js, stream, self._remembered())
        return ids_behind(self._options.connection, stream, position)

    def _stored_now(self, streams: Iterable[str]) -> set[str]:
        """After a disruption within this attempt."""
        if not self._exactly:
            return set()
        return set().union(*(self._read_ids(stream) for stream in streams))


def remember(options: SinkOptions, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Note that a batch was written whole. Nothing to note for jobs outside of streaming."""
    done = [message for message in messages if isinstance(message, Written)]
    if not done or not done[0].scope.streaming or options.guarantee is not Guarantee.EXACTLY_ONCE:
        return
    scope = done[0].scope
    with JetStream(options.connection, patient=True) as js:
        memory = Memory(js, options.state_bucket, scope.name)
        before = memory.load()
        if before is None and not any(one.written or one.skipped for one in done):
            return
        written: dict[str, int] = {}
        for one in done:
            for stream, seq in one.positions.items():
                written[stream] = max(written.get(stream, 0), seq)
        # A stream that was made again since is at lower sequences than before.
        positions = {**(before.positions if before is not None else {}), **written}
        batch = scope.batch if before is None else max(before.batch, scope.batch)
        memory.save(Record(scope.run, batch, positions))
