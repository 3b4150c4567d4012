"""Spark against nats-py on this machine, on both servers: `python -m benchmarks.spark [--quick]`.

Rates beside those of nats-py in the same run, so that ratios hold although the machine's speed
drifts; then how rates grow with tasks, message sizes and filters. Medians of several runs.
"""

import argparse
import platform
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import servers, spark_cases
from benchmarks.__main__ import median
from benchmarks.cases import Figure
from benchmarks.servers import OURS, REAL, Kind
from jsctl.spark.runtime import start_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = 1_000_000
SIZES = ((200, 100_000), (10_000, 20_000), (1_000_000, 300))
FILTERS = (("all of 100 subjects", ""), ("1 of 100 subjects", "BENCH.7"))


class Suite:
    """One server's figures, printed as they come."""

    def __init__(self, spark: "SparkSession", kind: Kind, scale: int, runs: int) -> None:
        self.spark, self.kind, self.runs = spark, kind, runs
        self.count = MESSAGES // scale
        self.scale = scale

    def run(self) -> None:
        """All of it."""
        print(f"\n{self.kind.name}, {self.count:,} messages of 200 B")
        with servers.single(self.kind) as broker:
            self.url, self.at = broker.url, servers.address(broker)
            spark_cases.fill(self.at, "BENCH", self.count, 200)
            self.reading()
            self.writing()
            self.latencies()
            self.growth()

    def line(self, title: str, figure: Figure, base: Figure | None = None, aim: str = "") -> None:
        """A row; `base` is what it is compared with."""
        ratio = f"{figure.value / base.value:8.2f}x" if base is not None else " " * 9
        print(f"  {title:44}{figure.value:>12,.1f} {figure.unit:6}{ratio}  {aim}", flush=True)

    def middle(self, run: Callable[[], Figure]) -> Figure:
        """The median of the runs."""
        return median(run, self.runs)

    def reading(self) -> None:
        """From the stream to nothing, and to files."""
        few = self.count // 5
        base = self.middle(lambda: spark_cases.nats_py_read(self.url, "BENCH", few))
        self.line("read: nats-py, one process", base)
        for mode in ("consumer", "direct"):
            raw = self.middle(partial(spark_cases.raw_read, self.url, "BENCH", readMode=mode))
            self.line(f"read: one task without Spark, {mode}", raw, base)
        rows = spark_cases.frame(self.spark, self.url, "BENCH")
        for warm in (spark_cases.to_noop, spark_cases.to_noop, spark_cases.to_parquet):
            warm(rows, self.count)
        noop = self.middle(lambda: spark_cases.to_noop(rows, self.count))
        self.line("read: Spark to noop", noop, base, "aim 10x")
        files = self.middle(lambda: spark_cases.to_parquet(rows, self.count))
        self.line("read: Spark to Parquet, zstd", files, base, "aim 6x")
        made = self.middle(lambda: spark_cases.generated(self.spark, self.count))
        share = Figure(100 * noop.value / made.value, "%", higher=False)
        self.line("share of Spark and its pipe in reading", share, None, "aim at most 30 %")

    def writing(self) -> None:
        """From cached rows to a stream."""
        count = self.count // 5
        streams = [spark_cases.fresh(self.at, f"OUT{n}") for n in range(2 * self.runs + 1)]
        base = self.middle(lambda: spark_cases.nats_py_write(self.url, streams.pop(), count, 200))
        self.line("write: nats-py with ids, one process", base)
        rows = self.spark.range(count).selectExpr("cast(repeat('x', 200) as binary) data").cache()
        rows.count()
        name = streams.pop()
        spark_cases.to_stream(rows, self.url, f"{name}.0", count)
        wrote = self.middle(lambda: spark_cases.to_stream(rows, self.url, f"{name}.0", count))
        self.line("write: Spark, exactly once", wrote, base, "aim 2.5x")
        rows.unpersist()

    def latencies(self) -> None:
        """What others feel, and what a small micro-batch costs."""
        rows = spark_cases.frame(self.spark, self.url, "BENCH")
        idle = spark_cases.publish_p99(self.at, "BENCH.0", lambda: time.sleep(2))
        self.line("publish p99, nothing else runs", idle)
        busy = spark_cases.publish_p99(
            self.at, "BENCH.0", lambda: spark_cases.to_noop(rows, self.count)
        )
        self.line("publish p99 while Spark reads", busy, None, "aim at most 10 ms")
        batch = spark_cases.micro_batches(self.spark, self.at, self.url, "BENCH")
        self.line("micro-batch p50", batch, None, "aim at most 300 ms")

    def growth(self) -> None:
        """With tasks, filters and sizes."""
        for tasks in (1, 2, 4):
            rows = spark_cases.frame(self.spark, self.url, "BENCH", minPartitions=str(tasks))
            self.line(f"read with {tasks} tasks", spark_cases.to_noop(rows, self.count))
        for title, subject in FILTERS:
            figure = spark_cases.raw_read(self.url, "BENCH", filterSubjects=subject)
            self.line(f"one task, filter on {title}", figure)
        for size, count in SIZES:
            number = max(count // self.scale, 50)
            spark_cases.fill(self.at, f"SIZE{size}", number, size)
            rows = spark_cases.frame(self.spark, self.url, f"SIZE{size}")
            figure = spark_cases.to_noop(rows, number)
            self.line(f"read {size:,} B messages", figure)
            megabytes = Figure(figure.value * size / 1e6, "MB/s")
            self.line(f"read {size:,} B messages", megabytes)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a quarter of the messages, one run")
    quick = parser.parse_args().quick
    scale, runs = (4, 1) if quick else (1, 5)
    print(f"Spark and nats-py side by side on {platform.machine()}, medians of {runs}")
    with tempfile.TemporaryDirectory() as directory:
        spark = start_session("bench", memory="2g", log_file=Path(directory) / "log")
        for kind in (REAL, OURS):
            Suite(spark, kind, scale, runs).run()
        stop_session(spark)


if __name__ == "__main__":
    main()
