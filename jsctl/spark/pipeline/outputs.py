"""Where a batch goes: parquet, delta, jetstream, console. Each can be sent the same batch again.

Theory of operation: Spark runs a batch that was not committed again, with the same input, under
the same id. Every output therefore makes the batch visible in one step that it can recognise
later: a rename, a table version with the batch's id, ids in the target stream.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsctl.errors import Conflict, JsctlError, UsageError
from jsctl.settings import Settings
from jsctl.spark.options import connection_options
from jsctl.spark.pipeline.compaction import compact
from jsctl.spark.pipeline.layout import BatchDirectory
from jsctl.spark.pipeline.payloads import missing
from jsctl.spark.pipeline.specification.keys import DERIVED_PARTITIONS
from jsctl.spark.pipeline.specification.spec import DeadLetter, Sink, Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Print = Callable[[str], None]
RESERVED_COLUMN = "batch"
COMPACT_FILE_BYTES = 256 * 1024 * 1024


class Output(ABC):
    """One output of one pipeline."""

    def open(self, owner: str) -> None:
        """Before the first batch: take the target, or refuse it. Raises JsctlError."""
        return

    def has(self, batch: int) -> bool:
        """Whether the batch is there already; outputs that cannot know say no."""
        return False

    @abstractmethod
    def write(self, rows: "DataFrame", batch: int) -> int:
        """Store a batch and give its number of rows."""

    def close(self) -> None:
        """After the last batch."""
        return


class ParquetOutput(Output):
    """Files in directories of whole batches; see `layout`."""

    def __init__(
        self,
        path: str,
        *,
        partition_by: tuple[str, ...] = (),
        compression: str = "zstd",
        files: int = 0,
        compact_every: int = 0,
    ) -> None:
        self.directory = BatchDirectory(Path(path))
        self.partition_by = partition_by
        self.compression = compression
        self.files = files
        self.compact_every = compact_every
        self._lock: Any = None

    def open(self, owner: str) -> None:
        """Lock the directory and finish what a crash left."""
        self._lock = self.directory.locked()
        try:
            self._lock.__enter__()
            self.directory.open(owner, "pipeline")
            self.directory.write_manifest()
        except OSError as error:
            raise JsctlError(f"{self.directory.root}: {error.strerror}") from None

    def has(self, batch: int) -> bool:
        """Whether the batch was renamed to its place."""
        return self.directory.has(batch)

    def write(self, rows: "DataFrame", batch: int) -> int:
        """Stage, then rename."""
        staged = self.directory.staging(batch)
        rows = with_partitions(rows, self.partition_by)
        if RESERVED_COLUMN in {name.lower() for name in rows.columns}:
            raise UsageError(f"the query has a column {RESERVED_COLUMN}, the directories need it")
        if self.files:
            rows = rows.coalesce(self.files)
        writer = rows.write.mode("overwrite").option("compression", self.compression)
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.parquet(str(staged))
        entry = self.directory.publish(batch)
        self.directory.write_manifest()
        if self.compact_every and (batch + 1) % self.compact_every == 0:
            spark, size = rows.sparkSession, COMPACT_FILE_BYTES
            compact(spark, self.directory, keep=0, file_bytes=size, again=False)
        return entry.rows

    def close(self) -> None:
        """Let others have the directory."""
        if self._lock is not None:
            self._lock.__exit__(None, None, None)
            self._lock = None


class DeltaOutput(Output):
    """A Delta table; the version that adds a batch carries the batch's id."""

    def __init__(self, path: str, partition_by: tuple[str, ...]) -> None:
        self.path = path
        self.partition_by = partition_by
        self._owner = ""

    def open(self, owner: str) -> None:
        """Look at the table. Raises JsctlError without the library."""
        self._owner = owner
        try:
            from deltalake import DeltaTable
        except ImportError:
            raise missing("deltalake", "a delta sink") from None
        if not DeltaTable.is_deltatable(self.path):
            if Path(self.path).exists() and any(Path(self.path).iterdir()):
                raise Conflict(f"{self.path} is neither empty nor a Delta table")
            return
        DeltaTable(self.path)

    def has(self, batch: int) -> bool:
        """Whether the table has taken this batch of this pipeline."""
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(self.path):
            return False
        version = DeltaTable(self.path).transaction_version(self._owner)
        return version is not None and version >= batch

    def write(self, rows: "DataFrame", batch: int) -> int:
        """Append one version. The rows go through this process."""
        from deltalake import CommitProperties, Transaction, write_deltalake
        from deltalake.exceptions import DeltaError

        table = with_partitions(rows, self.partition_by).toArrow()
        done = CommitProperties(app_transactions=[Transaction(self._owner, batch)])
        try:
            write_deltalake(
                self.path,
                table,
                mode="append",
                partition_by=list(self.partition_by) or None,
                commit_properties=done,
            )
        except (DeltaError, OSError, ValueError) as error:
            raise JsctlError(f"delta table {self.path}: {error}") from None
        return int(table.num_rows)


class JetStreamOutput(Output):
    """Messages; the sink's own ids and records make every batch count once."""

    def __init__(self, settings: Settings, name: str, subject: str, stream: str = "") -> None:
        self.options = {**connection_options(settings), "sinkName": name}
        if subject:
            self.options["subject"] = subject
        if stream:
            self.options["expectStream"] = stream
        self.subject = subject

    def write(self, rows: "DataFrame", batch: int) -> int:
        """Publish; a repeated batch finds what it has sent already."""
        rows, count = observed(messages_of(rows, with_subject=not self.subject))
        rows.write.format("jetstream").mode("append").options(**self.options).save()
        return count()


class ConsoleOutput(Output):
    """Rows on stdout, for a look."""

    def __init__(self, rows: int, show: Print) -> None:
        self.rows = rows
        self.show = show

    def write(self, rows: "DataFrame", batch: int) -> int:
        """Print the first rows of a batch."""
        found = [row.asDict(recursive=True) for row in rows.limit(self.rows).collect()]
        self.show(table_of(found, rows.columns, f"Batch {batch}"))
        return len(found)


def output_of(sink: Sink, name: str, settings: Settings, show: Print) -> Output:
    """The output that a sink describes."""
    if sink.type == "parquet":
        return ParquetOutput(
            sink.path,
            partition_by=sink.partition_by,
            compression=sink.compression,
            files=sink.files,
            compact_every=sink.compact_every,
        )
    if sink.type == "delta":
        return DeltaOutput(sink.path, sink.partition_by)
    if sink.type == "jetstream":
        return JetStreamOutput(settings, f"{name}-rows", sink.subject, sink.stream)
    return ConsoleOutput(sink.rows, show)


def dead_letters_of(spec: Spec, settings: Settings) -> Output | None:
    """The output of undecodable messages, if there is one."""
    dead: DeadLetter | None = spec.dead_letter
    if dead is None:
        return None
    if dead.type == "parquet":
        return ParquetOutput(dead.path)
    return JetStreamOutput(settings, f"{spec.name}-dead-letters", dead.subject)


def dead_letter_messages(rows: "DataFrame", pipeline: str) -> "DataFrame":
    """Undecodable messages as they are sent on: the payload as it was, the reason in headers."""
    from pyspark.sql import functions as f

    entry = {
        "Jsctl-Pipeline": f.lit(pipeline),
        "Jsctl-Error": f.translate(f.col("error"), "\r\n", "  "),
        "Jsctl-Orig-Stream": f.col("stream"),
        "Jsctl-Orig-Subject": f.col("subject"),
        "Jsctl-Orig-Seq": f.col("seq").cast("string"),
    }
    pairs = [one for key, value in entry.items() for one in (f.lit(key), f.array(value))]
    return rows.select("data", f.create_map(*pairs).alias("headers"))


def messages_of(rows: "DataFrame", *, with_subject: bool) -> "DataFrame":
    """The columns that make a message. Raises UsageError when one is missing."""
    known = [
        name for name in ("subject", "data", "headers", "msg_id", "ttl") if name in rows.columns
    ]
    if "data" not in known:
        raise UsageError(
            "a jetstream sink needs a column data",
            hints=("SELECT to_json(struct(id, amount)) AS data FROM input",),
        )
    if with_subject and "subject" not in known:
        raise UsageError("a jetstream sink needs a column subject, or sink.subject")
    if not with_subject:
        known = [name for name in known if name != "subject"]
    from pyspark.sql import functions as f

    binary = f.col("data").cast("binary").alias("data")
    return rows.select(*(binary if name == "data" else f.col(name) for name in known))


def with_partitions(rows: "DataFrame", partition_by: tuple[str, ...]) -> "DataFrame":
    """The rows with `day` and `hour` where they are wanted and not there.

    Raises UsageError for a partition column that neither is there nor can be derived.
    """
    from pyspark.sql import functions as f

    for name in partition_by:
        if name in rows.columns:
            continue
        if name not in DERIVED_PARTITIONS or "timestamp" not in rows.columns:
            raise UsageError(
                f"sink.partition_by: the query gives no column {name}",
                hints=(f"it gives {', '.join(rows.columns)}",),
            )
        form = "yyyy-MM-dd" if name == "day" else "HH"
        rows = rows.withColumn(name, f.date_format("timestamp", form))
    return rows


def observed(rows: "DataFrame") -> "tuple[DataFrame, Callable[[], int]]":
    """The rows, and a function that gives their number after they were written."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation()
    return rows.observe(seen, f.count(f.lit(1)).alias("rows")), lambda: int(seen.get["rows"])


def table_of(rows: list[dict[str, Any]], columns: list[str], title: str) -> str:
    """Rows as a table; bytes are shown as text where they are text."""
    from jsctl.render.table import table

    def shown(value: Any) -> str:
        if isinstance(value, bytes | bytearray):
            return bytes(value).decode("utf-8", "backslashreplace")
        return str(value)

    return table(columns, [[shown(row[name]) for name in columns] for row in rows], title=title)
