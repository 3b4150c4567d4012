"""Runs a pipeline: stream or archive -> decode -> SQL -> output, batch after batch.

Theory of operation: one Spark streaming query whose batches are handed to `_batch`. Spark logs the
range of a batch before it and its completion after it; outputs recognise a batch they have. So a
run that was killed anywhere goes on with the very batch it was in.
"""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsctl.settings import Settings
from jsctl.spark.failures import reporting
from jsctl.spark.options import connection_options
from jsctl.spark.pipeline.archives.source import archive_stream, check_archive
from jsctl.spark.pipeline.decode import ERROR, bad, decoded, good
from jsctl.spark.pipeline.failures import explain
from jsctl.spark.pipeline.outputs import (
    Output,
    Print,
    dead_letter_messages,
    dead_letters_of,
    output_of,
)
from jsctl.spark.pipeline.specification.spec import Spec
from jsctl.spark.pipeline.state import Checkpoint, RunState, reached, this_host

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader

LOOK_S = 0.5
"""How often a run looks for a request to stop, and says how it goes."""
STOP_S = 60.0
"""How long a batch may take to end after a request to stop; then it is broken off."""
PAUSE_S = 0.02
VIEW = "input"
ASKING = (signal.SIGTERM, signal.SIGINT)
"""Signals that ask for an end."""
Report = Callable[[RunState], None]


class Runner:
    """One run of one pipeline."""

    def __init__(
        self,
        spec: Spec,
        settings: Settings,
        *,
        once: bool = False,
        show: Print = print,
        report: Report | None = None,
        progress_subject: str = "",
        log_file: Path | None = None,
    ) -> None:
        """`show` prints what a console sink shows; `report` hears how it goes."""
        self.spec = spec
        self.settings = settings
        self.once = once or spec.trigger.once
        self.checkpoint = Checkpoint(spec.checkpoint)
        self.output: Output = output_of(spec.sink, spec.name, settings, show)
        self.dead_letters = dead_letters_of(spec, settings)
        self.progress_subject = progress_subject
        self.log_file = log_file
        self._report = report
        self._stopping = threading.Event()
        self._state = RunState("starting")

    def run(self, start: "Callable[[], SparkSession]") -> RunState:
        """Run to the end; `start` gives the session, after all that can be wrong without one.

        Raises JsctlError for whatever ends it otherwise; the state file says so too.
        """
        try:
            return self._run(start)
        except OSError as error:
            raise explain(error, log_file=self.log_file) from error

    def _run(self, start: "Callable[[], SparkSession]") -> RunState:
        owner = self.checkpoint.prepare()
        with self.checkpoint.running(), self._opened(owner), self._signals():
            now = time.time_ns()
            self._state = RunState("starting", this_host(), _pid(), now, now)
            self._say()
            try:
                spark = start()
                self._listen()
                self._stream(spark)
            except BaseException as error:
                failure = explain(error, log_file=self.log_file)
                self._state = replace(self._state, state="failed", error=str(failure))
                with suppress(OSError):  # the disk may be full
                    self._say()
                if isinstance(error, Exception):
                    raise failure from error
                raise
            ended = "stopped" if self._stopping.is_set() else "finished"
            self._state = replace(self._state, state=ended)
            self._say()
        return self._state

    def stop(self) -> None:
        """Ask for an end after the present batch."""
        self._stopping.set()

    @contextmanager
    def _opened(self, owner: str) -> Iterator[None]:
        outputs = [one for one in (self.output, self.dead_letters) if one is not None]
        try:
            for one in outputs:
                one.open(owner)
            yield
        finally:
            for one in outputs:
                one.close()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """TERM and INT ask for the end; a second INT breaks off."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in ASKING}
        self._listen()
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _listen(self) -> None:
        """Hear of signals; of a session that has begun nobody else is to: PySpark would cancel the
        batch at once."""
        if threading.current_thread() is threading.main_thread():
            for number in ASKING:
                signal.signal(number, self._asked)

    def _asked(self, number: int, _frame: object) -> None:
        if self._stopping.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._stopping.set()

    def _check_source(self) -> None:
        if self.spec.source.archive:
            check_archive(self.spec.source.archive, self.checkpoint.root / "archive.json")

    def _stream(self, spark: "SparkSession") -> None:
        self._check_source()
        messages = source_of(spark.readStream, self.spec, self.settings, self.progress_subject)
        writer = (
            messages.load()
            .writeStream.queryName(self.spec.name)
            .option("checkpointLocation", str(self.checkpoint.spark))
            .foreachBatch(self._batch)
        )
        if self.once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(
                processingTime=f"{self.spec.trigger.every // 1_000_000} milliseconds"
            )
        self._state = replace(self._state, state="running")
        self._say()
        query = writer.start()
        try:
            self._watch(query)
        finally:
            if query.isActive:
                query.stop()

    def _watch(self, query: "StreamingQuery") -> None:
        """Until the query ends by itself or is asked to."""
        while not query.awaitTermination(LOOK_S):  # type: ignore[arg-type] # takes parts of seconds
            self._heard(query)
            if self._stopping.is_set() or self.checkpoint.asked_to_stop():
                self._stopping.set()
                _let_finish(query)
                self._heard(query)
                return
        self._heard(query)

    def _heard(self, query: "StreamingQuery") -> None:
        progress = query.lastProgress
        if progress is not None:
            position, lag = position_of(progress)
            self._state = replace(
                self._state,
                batch=max(
                    self._state.batch, progress["batchId"] if progress["numInputRows"] else -1
                ),
                position=position or self._state.position,
                lag=lag,
            )
        self._say()

    def _say(self) -> None:
        self._state = replace(self._state, updated=time.time_ns())
        self.checkpoint.save(self._state)
        if self._report is not None:
            self._report(self._state)

    def _batch(self, messages: "DataFrame", batch: int) -> None:
        """One batch, perhaps not for the first time."""
        with reporting():
            if self.output.has(batch):
                return
            self._check_source()
            rows = decoded(messages, self.spec)
            dropped = 0
            if self.dead_letters is not None:
                rows = rows.persist()
            try:
                if self.dead_letters is not None:
                    dropped = self._bury(rows, self.dead_letters, batch)
                good(rows, self.spec).createOrReplaceTempView(VIEW)
                result = rows.sparkSession.sql(self.spec.transform)
                written = self.output.write(result, batch)
            finally:
                if self.dead_letters is not None:
                    rows.unpersist()
            self._state = replace(
                self._state,
                batch=batch,
                batches=self._state.batches + 1,
                rows=self._state.rows + written,
                dead_letters=self._state.dead_letters + dropped,
            )

    def _bury(self, rows: "DataFrame", output: Output, batch: int) -> int:
        """Send on what could not be decoded; how many."""
        if output.has(batch) or rows.where(f"{ERROR} IS NOT NULL").isEmpty():
            return 0
        found = bad(rows)
        as_messages = (
            self.spec.dead_letter is not None and self.spec.dead_letter.type == "jetstream"
        )
        return output.write(
            dead_letter_messages(found, self.spec.name) if as_messages else found, batch
        )


def source_of(
    reader: "DataStreamReader", spec: Spec, settings: Settings, progress_subject: str = ""
) -> "DataStreamReader":
    """A stream reader for the pipeline's source."""
    if spec.source.archive:
        return archive_stream(reader, spec.source.archive)
    options = {
        **connection_options(settings),
        "stream": spec.source.stream,
        "includeHeaders": str(spec.source.headers).lower(),
        "readMode": spec.source.mode,
        "failOnDataLoss": str(spec.source.on_loss == "fail").lower(),
        **_start(spec),
    }
    if spec.source.filter:
        options["filterSubjects"] = ",".join(spec.source.filter)
    for name, value in (
        ("maxOffsetsPerTrigger", spec.limits.max_offsets),
        ("maxBytesPerTrigger", spec.limits.max_bytes),
        ("minPartitions", spec.limits.partitions),
    ):
        if value:
            options[name] = str(value)
    if progress_subject:
        options["progressSubject"] = progress_subject
    return reader.format("jetstream").options(**options)


def _start(spec: Spec) -> dict[str, str]:
    start = spec.source.start
    if start.isdigit():
        return {"startingOffsets": json.dumps({spec.source.stream: int(start)})}
    if start in ("earliest", "latest"):
        return {"startingOffsets": start}
    return {"startingTimestamp": start}


def position_of(progress: Any) -> tuple[dict[str, int], int]:
    """Last sequence read by stream, and how many messages wait (-1 unknown), from a progress."""
    sources = progress.get("sources", [])
    if not sources:
        return {}, -1
    end, latest = (reached(sources[0].get(key)) for key in ("endOffset", "latestOffset"))
    if not latest:
        return end, -1
    return end, sum(max(0, latest[stream] - end.get(stream, 0)) for stream in latest)


def _let_finish(query: "StreamingQuery") -> None:
    """Wait for the end of the present batch, within limits."""
    end = time.monotonic() + STOP_S
    before = query.lastProgress
    batch = before["batchId"] if before is not None else -1
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < end:
        now = query.lastProgress
        if now is not None and now["batchId"] != batch:
            return
        time.sleep(PAUSE_S)


def _pid() -> int:
    import os

    return os.getpid()
