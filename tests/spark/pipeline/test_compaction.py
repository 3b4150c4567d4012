"""Merging batches: nothing that they hold gets lost, and what is large already is left alone."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jsctl.spark.pipeline import outputs
from jsctl.spark.pipeline.compaction import compact
from jsctl.spark.pipeline.outputs import ParquetOutput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def opened(path: Path, *, compact_every: int = 0) -> ParquetOutput:
    """A sink that nobody else has."""
    sink = ParquetOutput(str(path), compact_every=compact_every)
    sink.open("me")
    return sink


def test_columns_of_some_batches_survive(spark: "SparkSession", tmp_path: Path) -> None:
    """As where the query of a pipeline was given one more between two runs."""
    sink = opened(tmp_path / "out")
    sink.write(spark.sql("SELECT 1 AS id"), 0)
    sink.write(spark.sql("SELECT 2 AS id, 'new' AS name"), 1)
    assert compact(spark, sink.directory, keep=0, file_bytes=1 << 20).rows == 2
    found = spark.read.parquet(str(tmp_path / "out" / "batch=1")).orderBy("id").collect()
    assert [(row["id"], row["name"]) for row in found] == [(1, None), (2, "new")]
    sink.close()


@pytest.mark.parametrize("keep", [2, 3, 5, 9])
def test_batches_that_are_to_stay_do(spark: "SparkSession", tmp_path: Path, keep: int) -> None:
    sink = opened(tmp_path / "out")
    for batch in range(3):
        sink.write(spark.sql(f"SELECT {batch} AS id"), batch)
    assert compact(spark, sink.directory, keep=keep, file_bytes=1 << 20).batches == 0
    assert [entry.id for entry in sink.directory.entries()] == [0, 1, 2]
    sink.close()


def test_what_is_large_already_is_not_written_again(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline that merges now and then would write all that it ever wrote each time."""
    sink = opened(tmp_path / "out", compact_every=2)
    for batch in range(5):
        sink.write(spark.range(1000).selectExpr("uuid() AS id"), batch)
        if not batch:
            size = sum(file.bytes for file in sink.directory.files())
            monkeypatch.setattr(outputs, "COMPACT_FILE_BYTES", size * 3 // 2)
    entries = sink.directory.entries()
    assert [(entry.first, entry.id) for entry in entries] == [(0, 1), (2, 3), (4, 4)]
    sink.close()
