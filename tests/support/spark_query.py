"""A program of its own: copies a stream, with streaming queries that a test may kill at any time.

    python -m tests.support.spark_query URL SOURCE TARGET DIRECTORY KIND...

Kinds: `plain` and `shuffle` write to the stream TARGET, the second without the columns that tell
where a row came from, and in other partitions; `group` writes counts per subject; `lake` writes
Parquet, a directory a batch; `files` uses Spark's own Parquet sink. Ends when all that was there
is copied.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.spark.runtime import start_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

BATCH = 4_000


def lake(directory: Path) -> "Callable[[DataFrame, int], None]":
    """Writes a batch into a directory of its own, over what an earlier attempt left."""

    def write(frame: "DataFrame", batch: int) -> None:
        frame.write.mode("overwrite").parquet(str(directory / f"batch={batch}"))

    return write


def counts(options: dict[str, str]) -> "Callable[[DataFrame, int], None]":
    """Writes a batch of an aggregation: Spark lets sinks in Python only append."""

    def write(frame: "DataFrame", _batch: int) -> None:
        writer = frame.write.format("jetstream").options(**options, sinkName="counts")
        writer.mode("append").save()

    return write


def written(
    spark: "SparkSession", url: str, source: str, target: str, directory: Path, kind: str
) -> "DataStreamWriter":
    """The query of a kind, not started."""
    reader = spark.readStream.format("jetstream").options(servers=url, stream=source)
    frame = reader.option("maxOffsetsPerTrigger", BATCH).option("minPartitions", 2).load()
    checkpoint = str(directory / f"checkpoint-{kind}")
    if kind in ("lake", "files"):
        rows = frame.selectExpr("seq", "subject", "cast(data as string) data")
        if kind == "files":
            made = rows.writeStream.format("parquet").option("path", str(directory / "files"))
        else:
            made = rows.writeStream.foreachBatch(lake(directory / "lake"))
        return made.option("checkpointLocation", checkpoint)
    if kind == "plain":
        rows = frame.select("data", "stream", "seq")
    elif kind == "shuffle":
        rows = frame.select("data").repartition(3)
    else:
        rows = frame.groupBy("subject").count().selectExpr("concat(subject, ' ', count) data")
    # Slow, so that a kill finds a batch half written.
    options = {"servers": url, "subject": f"{target}.{kind}", "maxInFlight": "16"}
    if kind == "group":
        made = rows.writeStream.foreachBatch(counts(options)).outputMode("update")
    else:
        made = rows.writeStream.format("jetstream").options(**options)
    return made.option("checkpointLocation", checkpoint)


def main() -> None:
    """Run the queries of the command line to their end."""
    url, source, target, place, *kinds = sys.argv[1:]
    directory = Path(place)
    spark = start_session(
        "copy",
        master="local[2]",
        log_file=directory / "log",
        conf={"spark.sql.shuffle.partitions": "2"},
        short=True,
    )
    queries = [
        written(spark, url, source, target, directory, kind).trigger(availableNow=True).start()
        for kind in kinds
    ]
    for query in queries:
        query.awaitTermination()
    for kind in kinds:
        if kind in ("lake", "files"):
            rows = spark.read.parquet(str(directory / kind)).select("seq")
            print(kind, rows.count(), rows.distinct().count(), flush=True)
    stop_session(spark)


if __name__ == "__main__":
    main()
