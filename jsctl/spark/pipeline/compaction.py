"""Merges the small batches of a directory into one, without a moment of wrong data on disk."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.spark.pipeline.failures import explain
from jsctl.spark.pipeline.layout import BatchDirectory, BatchEntry, paths_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCHES_MIN = 2
HASH_MODULUS = 2**64
INFERENCE = "spark.sql.sources.partitionColumnTypeInference.enabled"
"""Off, so that a directory `hour=05` stays what it is."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was done. `files_before` and `files_after` count files of the merged batches."""

    batches: int
    rows: int
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int

    def document(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


NOTHING = Compacted(0, 0, 0, 0, 0, 0)


def compact(
    spark: "SparkSession",
    directory: BatchDirectory,
    *,
    keep: int,
    file_bytes: int,
    again: bool = True,
) -> Compacted:
    """Merge all batches but the newest `keep` into files of about `file_bytes`.

    With `again` off those that are as large already stay as they are, with all before them: who
    merges now and then would write everything anew each time. A column that some batches lack
    is null there.

    The caller holds the directory's lock. Raises AssertionError if rows got lost on the way,
    before anything is replaced.
    """
    directory.recover()
    entries = directory.entries()
    merged = entries[: max(0, len(entries) - keep)]
    if not again:
        merged = merged[_large(merged, file_bytes) :]
    files = [file for entry in merged for file in entry.files]
    if len(merged) < BATCHES_MIN or not files:
        return NOTHING
    last = merged[-1].id
    staged = directory.staging(last)
    size = sum(file.bytes for file in files)
    spark.conf.set(INFERENCE, "false")
    reader = spark.read.option("basePath", str(directory.root)).option("mergeSchema", "true")
    rows = reader.parquet(*paths_of(directory.root, files))
    _write(rows, staged, merged, max(1, -(-size // file_bytes)))
    total = sum(entry.rows for entry in merged)
    written = spark.read.parquet(str(staged)).count()
    assert written == total, f"compaction wrote {written} rows of {total}"
    directory.publish_compacted(staged, merged, hash=_hash(merged))
    after = next(entry for entry in directory.entries() if entry.id == last)
    return Compacted(
        len(merged), total, len(files), len(after.files), size, sum(f.bytes for f in after.files)
    )


def _large(entries: list[BatchEntry], file_bytes: int) -> int:
    """How many there are up to the last one of that size."""
    sizes = [sum(file.bytes for file in entry.files) for entry in entries]
    return max((at + 1 for at, size in enumerate(sizes) if size >= file_bytes), default=0)


def compact_now(
    start: "Callable[[], SparkSession]",
    directory: BatchDirectory,
    *,
    keep: int,
    file_bytes: int,
    log_file: Path | None = None,
) -> Compacted:
    """The same with a session of its own. Raises JsctlError."""
    try:
        return compact(start(), directory, keep=keep, file_bytes=file_bytes)
    except Exception as error:
        raise explain(error, log_file=log_file) from error


def _write(rows: "DataFrame", staged: object, merged: list[BatchEntry], files: int) -> None:
    kept = [name for name in rows.columns if name != "batch"]
    by = _partitions(merged)
    rows = rows.select(*kept)
    if "seq" in kept:
        rows = rows.repartitionByRange(files, "seq").sortWithinPartitions("seq")
    else:
        rows = rows.coalesce(files)
    writer = rows.write.mode("overwrite").option("compression", "zstd")
    if by:
        writer = writer.partitionBy(*by)
    writer.parquet(str(staged))


def _partitions(merged: list[BatchEntry]) -> list[str]:
    """The partition columns, read off a path `batch=1/day=2026-01-01/part.parquet`."""
    path = next(file.path for entry in merged for file in entry.files)
    return [part.partition("=")[0] for part in path.split("/")[1:-1]]


def _hash(merged: list[BatchEntry]) -> int:
    known = [entry.hash for entry in merged if entry.rows]
    return -1 if any(one < 0 for one in known) else sum(known) % HASH_MODULUS
