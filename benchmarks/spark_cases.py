"""What is measured of the Spark source and sink; rates of messages in a second, latencies in ms."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nats
import pyarrow as pa
from nats.js.api import AckPolicy, ConsumerConfig
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from benchmarks.figure import Figure
from benchmarks.wire import Address, Wire, now
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import SourceOptions, source_options
from jsctl.spark.reading.arrow import record_batch
from jsctl.spark.reading.batch import COLUMN_TYPES
from jsctl.spark.reading.plan import Bounds, batch_ranges
from jsctl.spark.scan.range import CHUNK_ROWS, Chunk
from jsctl.spark.scan.read import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBJECTS = 100
WINDOW = 4_000
FETCH = 5_000
STARTS_MAX = 5
PACE_S = 0.005
"""How often a message comes while micro-batches are measured."""
LOOK_AFTER = 20
BYTES_IN_FLIGHT = 32 << 20
SCHEMA = pa.schema(
    [
        ("subject", pa.string()),
        ("data", pa.binary()),
        ("stream", pa.string()),
        ("seq", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("ts_ns", pa.int64()),
    ]
)
"""What a read gives by default."""


def fill(at: Address, stream: str, count: int, size: int) -> None:
    """A fresh file stream with messages of one size on a hundred subjects."""
    fresh(at, stream)
    wire = Wire(at)
    wire.send(b"SUB _INBOX.fill 7\r\n")
    wire.flush()
    body = b"x" * size
    window = max(min(WINDOW, BYTES_IN_FLIGHT // size), 1)
    heads = [b"PUB %s.%d _INBOX.fill %d\r\n" % (stream.encode(), n, size) for n in range(SUBJECTS)]
    rest, acked = b"", 0
    for first in range(0, count, window):
        numbers = range(first, min(first + window, count))
        wire.send(b"".join(heads[n % SUBJECTS] + body + b"\r\n" for n in numbers))
        while acked < first:
            data = rest + wire.receive()
            if b'"error"' in data:
                raise RuntimeError(f"{stream} refused a message: {data[:500]!r}")
            end = data.rfind(b"\r\n") + 2
            acked += data.count(b'"seq":', 0, end)
            rest = data[end:]
    while wire.api(f"STREAM.INFO.{stream}")["state"]["messages"] < count:  # type: ignore[index]
        time.sleep(0.05)
    wire.close()


def fresh(at: Address, stream: str) -> str:
    """An empty file stream; its name."""
    wire = Wire(at)
    config = {
        "name": stream,
        "subjects": [f"{stream}.>"],
        "storage": "file",
        "num_replicas": 1,
        "retention": "limits",
        "max_msgs": -1,
        "max_bytes": -1,
        "allow_direct": True,
    }
    wire.api(f"STREAM.CREATE.{stream}", config)
    wire.close()
    return stream


def rate(count: int, run: Callable[[], object]) -> Figure:
    """How many a second."""
    start = now()
    run()
    return Figure(count / (now() - start), "msg/s")


def nats_py_read(url: str, stream: str, count: int, size: int = 200, subject: str = "") -> Figure:
    """nats-py: pull fetch with the metadata that a row needs."""
    fetch = max(min(FETCH, BYTES_IN_FLIGHT // size), 1)
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)

    async def body() -> None:
        client = await nats.connect(url)
        js = client.jetstream()
        pull = await js.pull_subscribe(subject, stream=stream, config=config)
        got = 0
        while got < count:
            for message in await pull.fetch(min(fetch, count - got), timeout=10):
                metadata = message.metadata
                _row = (message.subject, message.data, metadata.sequence.stream, metadata.timestamp)
                got += 1
        await client.close()

    return rate(count, lambda: asyncio.run(body()))


def nats_py_write(url: str, stream: str, count: int, size: int) -> Figure:
    """nats-py: asynchronous publishes with message ids."""

    async def body() -> None:
        client = await nats.connect(url)
        js = client.jetstream(publish_async_max_pending=WINDOW)
        payload = b"x" * size
        for number in range(count):
            headers = {"Nats-Msg-Id": f"{stream}-{number}"}
            await js.publish_async(f"{stream}.0", payload, headers=headers, wait_stall=30)
        await js.publish_async_completed()
        await client.close()

    return rate(count, lambda: asyncio.run(body()))


def options(url: str, stream: str, **more: str) -> SourceOptions:
    """Of a read."""
    return source_options({"servers": url, "stream": stream, **more})


def raw_read(url: str, stream: str, **more: str) -> Figure:
    """The reader of one task, with Arrow batches, in this process."""
    given = options(url, stream, minPartitions="1", **more)
    rows = 0
    start = now()
    with JetStream(given.connection) as js:
        for one in batch_ranges(js, given, Bounds(), headers_only=False):
            for chunk in read(js, one):
                rows += record_batch(chunk, SCHEMA, stream).num_rows
    return Figure(rows / (now() - start), "msg/s")


def frame(spark: "SparkSession", url: str, stream: str, **more: str) -> "DataFrame":
    """A batch read."""
    return spark.read.format("jetstream").options(servers=url, stream=stream, **more).load()


def to_noop(rows: "DataFrame", count: int) -> Figure:
    """Read everything and drop it."""
    return rate(count, lambda: rows.write.format("noop").mode("overwrite").save())


def to_parquet(rows: "DataFrame", count: int) -> Figure:
    """Read everything into Parquet files."""
    with tempfile.TemporaryDirectory() as directory:
        target = rows.write.option("compression", "zstd").mode("overwrite")
        return rate(count, lambda: target.parquet(f"{directory}/out"))


class Generated(DataSource):
    """The columns of a read without a server: what Spark and the pipe to it cost."""

    def schema(self) -> str:
        """As JetStream's."""
        return ", ".join(f"{n} {kind}" for n, kind in COLUMN_TYPES.items() if n != "headers")

    def reader(self, schema: StructType) -> "GeneratedReader":
        """Two tasks."""
        return GeneratedReader(int(self.options["count"]))


class GeneratedReader(DataSourceReader):
    """Yields one batch over and over."""

    def __init__(self, count: int) -> None:
        self.count = count

    def partitions(self) -> list[InputPartition]:
        """Two of them."""
        return [InputPartition(self.count // 2), InputPartition(self.count // 2)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """So many rows."""
        seqs = list(range(CHUNK_ROWS))
        times, heads = [b"1700000000000000000"] * CHUNK_ROWS, [b""] * CHUNK_ROWS
        payloads = [b"x" * 200] * CHUNK_ROWS
        chunk = Chunk([b"BENCH.1"] * CHUNK_ROWS, seqs, times, heads, payloads)
        batch = record_batch(chunk, SCHEMA, "BENCH")
        for _ in range(partition.value // CHUNK_ROWS):
            yield batch


def generated(spark: "SparkSession", count: int) -> Figure:
    """Read as many rows without a server."""
    spark.dataSource.register(Generated)
    rows = spark.read.format("Generated").option("count", count).load()
    to_noop(rows, count)
    return to_noop(rows, count)


def to_stream(rows: "DataFrame", url: str, subject: str, count: int) -> Figure:
    """Write rows that are cached already."""
    writer = rows.write.format("jetstream").options(servers=url, subject=subject)
    return rate(count, lambda: writer.mode("append").save())


def publish_p99(at: Address, subject: str, busy: Callable[[], object]) -> Figure:
    """The 99th percentile of one publish at a time while something else runs."""
    stop = threading.Thread(target=busy)
    wire = Wire(at)
    times = []
    stop.start()
    while stop.is_alive():
        start = now()
        wire.request(subject, b"x" * 200)
        times.append((now() - start) * 1e3)
    wire.close()
    return Figure(statistics.quantiles(times, n=100)[98], "ms", higher=False)


def cold_copy(url: str, stream: str, cache: Path) -> Figure:
    """A new process, from nothing to Parquet files of a small stream, in seconds."""
    program = [sys.executable, "-m", "benchmarks.spark_small", url, stream]
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with tempfile.TemporaryDirectory() as directory:
        start = now()
        subprocess.run([*program, directory], check=True, env=environ)
        return Figure(now() - start, "s", higher=False)


def warm_cache(url: str, stream: str, cache: Path) -> Figure:
    """Starts Spark until its archive of classes is in use; what the first start took."""
    first = cold_copy(url, stream, cache)
    for _ in range(STARTS_MAX):
        if any(cache.glob("jsctl/*.jsa")):
            break
        cold_copy(url, stream, cache)
    return first


def micro_batches(spark: "SparkSession", at: Address, url: str, stream: str) -> Figure:
    """The median duration of a micro-batch of few messages."""
    rows = spark.readStream.format("jetstream").options(
        servers=url, stream=stream, startingOffsets="latest"
    )
    wire = Wire(at)
    with tempfile.TemporaryDirectory() as directory:
        writer = rows.load().writeStream.format("noop")
        query = writer.option("checkpointLocation", str(Path(directory) / "c")).start()
        end = now() + 60
        while len(query.recentProgress) < 15 and now() < end:
            # Few, and asked for rarely: Spark writes all its progress as JSON at every look.
            for _ in range(LOOK_AFTER):
                wire.request(f"{stream}.0", b"x")
                time.sleep(PACE_S)
        took = [p.durationMs["triggerExecution"] for p in query.recentProgress if p.numInputRows]
        query.stop()
        query.awaitTermination(20)
    wire.close()
    return Figure(statistics.median(took[3:] or took), "ms", higher=False)
