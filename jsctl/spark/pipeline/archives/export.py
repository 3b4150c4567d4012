"""Exports a stream to an archive, batch by batch, and goes on where it was stopped.

A batch covers a range of sequences. The hash and the number of rows are taken while it is
written, in the same pass. Running it again adds what the stream has got since.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsctl.api.stream import StreamInfo
from jsctl.errors import Conflict, JsctlError
from jsctl.settings import Settings
from jsctl.spark.options import connection_options
from jsctl.spark.pipeline.archives.archive import (
    ARCHIVE_COLUMNS,
    KIND,
    about_stream,
    folded,
    hash_column,
    hash_sum,
    identity,
)
from jsctl.spark.pipeline.failures import explain
from jsctl.spark.pipeline.layout import BatchDirectory, BatchEntry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export did; sequences are those asked for, inclusive. `rows` are new ones."""

    path: str
    stream: str
    first_seq: int
    last_seq: int
    rows: int
    batches: int
    rows_in_all: int

    def document(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Export:
    """What to export. `from_seq` and `to_seq` 0 mean from the first and to the last."""

    settings: Settings
    info: StreamInfo
    path: Path
    filters: tuple[str, ...] = ()
    from_seq: int = 0
    to_seq: int = 0
    chunk: int = 1_000_000
    progress_subject: str = ""


def export(
    what: Export, start: "Callable[[], SparkSession]", note: Note, log_file: Path | None = None
) -> Exported:
    """Write the archive; a session is started only when there is something to read.

    Raises JsctlError: the directory is another's, the stream went away, the disk is full.
    """
    directory = BatchDirectory(what.path)
    try:
        with directory.locked():
            directory.open(identity(what.info, what.filters), KIND)
            return _export(what, directory, start, note)
    except Exception as error:
        raise explain(error, log_file=log_file) from error


def _export(
    what: Export, directory: BatchDirectory, start: "Callable[[], SparkSession]", note: Note
) -> Exported:
    done = directory.entries()
    first, last = _range(what, done)
    about = about_stream(what.info, what.filters)
    directory.write_manifest(about)
    rows = batches = 0
    spark: SparkSession | None = None
    for at in range(first, last + 1, what.chunk):
        spark = spark or start()
        end = min(last, at + what.chunk - 1)
        batch = len(done) and done[-1].id + 1
        entry = _one(spark, what, directory, batch, at, end)
        done.append(entry)
        directory.write_manifest(about)
        rows, batches = rows + entry.rows, batches + 1
        note(f"{what.info.config.name}: sequences {at} to {end}, {entry.rows} messages")
    total = sum(entry.rows for entry in done)
    return Exported(str(what.path), what.info.config.name, first, last, rows, batches, total)


def _range(what: Export, done: list[BatchEntry]) -> tuple[int, int]:
    """What is left to read. Raises Conflict when messages were lost in between."""
    state = what.info.state
    last = min(what.to_seq or state.last_seq, state.last_seq)
    first = what.from_seq or max(1, state.first_seq)
    if not done:
        return first, last
    reached = int(done[-1].extra["to"])
    if what.from_seq > reached + 1:
        raise Conflict(
            f"the archive ends at sequence {reached}, --from-seq {what.from_seq} would leave a gap",
            hints=("leave --from-seq out, or choose another directory",),
        )
    return reached + 1, last


def _one(
    spark: "SparkSession", what: Export, directory: BatchDirectory, batch: int, at: int, end: int
) -> BatchEntry:
    """Write one batch and make it visible."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    rows = range_of(spark, what, at, end)
    seen = Observation()
    hashed = rows.withColumn("hash", hash_column()).observe(
        seen, hash_sum().alias("hash"), f.count(f.lit(1)).alias("rows")
    )
    staged = directory.staging(batch)
    writer = hashed.drop("hash").write.mode("overwrite").option("compression", "zstd")
    writer.parquet(str(staged))
    found: dict[str, Any] = seen.get
    entry = directory.publish(batch, {"from": at, "to": end}, hash=folded(found["hash"]))
    if entry.rows != found["rows"]:
        raise JsctlError(f"batch {batch} has {entry.rows} rows on disk, {found['rows']} were read")
    return entry


def range_of(spark: "SparkSession", what: Export, at: int, end: int) -> "DataFrame":
    """The messages of a range of sequences, with the columns of an archive."""
    name = what.info.config.name
    options = {
        **connection_options(what.settings),
        "stream": name,
        "includeHeaders": "true",
        "startingOffsets": json.dumps({name: at}),
        "endingOffsets": json.dumps({name: end + 1}),
        "failOnDataLoss": "false" if what.from_seq else "true",
    }
    if what.filters:
        options["filterSubjects"] = ",".join(what.filters)
    if what.progress_subject:
        options["progressSubject"] = what.progress_subject
    rows = spark.read.format("jetstream").options(**options).load()
    return rows.select(*ARCHIVE_COLUMNS)
