"""Reads, writes and streaming queries of the format, with the options that all of them need."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.errors import JsctlError
from jsctl.spark.runtime import explain_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

QUERY_S = 60


@dataclass(frozen=True, slots=True)
class Tables:
    """A session and a server."""

    spark: "SparkSession"
    url: str

    def read(self, stream: str, schema: str = "", **options: str) -> "DataFrame":
        """A batch read."""
        reader = self.spark.read.format("jetstream").options(servers=self.url, stream=stream)
        reader = reader.options(**options)
        return (reader.schema(schema) if schema else reader).load()

    def follow(self, stream: str, **options: str) -> "DataFrame":
        """A streaming read."""
        reader = self.spark.readStream.format("jetstream").options(**{"servers": self.url})
        named = {} if "streamPattern" in options else {"stream": stream}
        return reader.options(**named, **options).load()

    def write(self, frame: "DataFrame", mode: str = "append", **options: str) -> None:
        """A batch write."""
        frame.write.format("jetstream").options(servers=self.url, **options).mode(mode).save()

    def sink(self, frame: "DataFrame", checkpoint: Path, **options: str) -> "DataStreamWriter":
        """A streaming write that is not started."""
        made = frame.writeStream.format("jetstream").options(servers=self.url, **options)
        return made.option("checkpointLocation", str(checkpoint))


def run(writer: "DataStreamWriter") -> "StreamingQuery":
    """Run a query over what is available now, to its end. Raises what it failed with."""
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(QUERY_S), f"no end: {query.status}"
    finally:
        query.stop()
    return query


def failure(action: Callable[[], object]) -> JsctlError:
    """What an action fails with, explained."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - whatever Spark raises
        return explain_failure(error)
    raise AssertionError("nothing failed")
