"""Spark against nats-py on this machine, on both servers: `python -m benchmarks.spark [--quick]`.

Rates beside those of nats-py in the same run, so that ratios hold although the machine's speed
drifts; then how rates grow with tasks, message sizes and filters. Medians of several runs. A ratio
above 1 means that Spark is better.
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
from benchmarks.figure import Figure
from benchmarks.servers import OURS, REAL, REAL_ALWAYS, Kind
from benchmarks.wire import Address
from jsctl.spark.runtime import start_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = 1_000_000
MODES = ("consumer", "direct")
SIZES = ((200, 100_000), (10_000, 50_000), (1_000_000, 500))
FILTERS = (("every subject", "", 1), ("1 of 100 subjects", "BENCH.7", 100))
TASKS = (1, 2, 4)


class Suite:
    """One server's figures, printed as they come."""

    def __init__(self, spark: "SparkSession", kind: Kind, scale: int, runs: int) -> None:
        self.spark, self.kind, self.runs = spark, kind, runs
        self.count = MESSAGES // scale

    def run(self) -> None:
        """All of it."""
        print(f"\n{self.kind.name}, {self.count:,} messages of 200 B")
        with servers.single(self.kind) as broker:
            self.url, self.at = broker.url, servers.address(broker)
            spark_cases.fill(self.at, "BENCH", self.count, 200)
            self.reading()
            self.writing()
            self.latencies()
            self.tasks()
            self.filters()
            self.sizes()

    def line(self, title: str, figure: Figure, base: Figure | None = None, more: str = "") -> None:
        """A row; `base` is what it is compared with."""
        ratio = f"{times(figure, base):8.2f}x" if base is not None else " " * 9
        print(f"  {title:46}{figure.value:>12,.1f} {figure.unit:6}{ratio}  {more}", flush=True)

    def aimed(self, title: str, figure: Figure, aim: float, base: Figure | None = None) -> None:
        """A row with what the project promises: a ratio to `base`, or at most so much."""
        reached = times(figure, base) if base is not None else figure.value
        met = reached >= aim if base is not None else reached <= aim
        bound = f"aim {aim:g}x" if base is not None else f"aim at most {aim:g} {figure.unit}"
        self.line(title, figure, base, f"{bound} {'ok' if met else 'MISSED'}")

    def middle(self, run: Callable[[], Figure]) -> Figure:
        """The median of the runs."""
        return median(run, self.runs)

    def in_turn(self, *runs: Callable[[], Figure]) -> list[Figure]:
        """The median of each, all run in turn: a machine that slows down slows all of them."""
        rounds = [[run() for run in runs] for _ in range(self.runs)]
        return [median(iter(found).__next__, self.runs) for found in zip(*rounds, strict=True)]

    def reading(self) -> None:
        """From the stream to nothing, and to files."""
        few = self.count // 5
        rows = spark_cases.frame(self.spark, self.url, "BENCH")
        for warm in (spark_cases.to_noop, spark_cases.to_noop, spark_cases.to_parquet):
            warm(rows, self.count)
        base, noop = self.in_turn(
            lambda: spark_cases.nats_py_read(self.url, "BENCH", few),
            lambda: spark_cases.to_noop(rows, self.count),
        )
        self.line("read: nats-py, one process", base)
        self.aimed("read: Spark to noop, consumer", noop, 10, base)
        for mode in MODES:
            raw = self.middle(partial(spark_cases.raw_read, self.url, "BENCH", readMode=mode))
            self.line(f"read: one task without Spark, {mode}", raw, base)
        direct = spark_cases.frame(self.spark, self.url, "BENCH", readMode="direct")
        figure = self.middle(lambda: spark_cases.to_noop(direct, self.count))
        self.line("read: Spark to noop, direct", figure, base)
        files = self.middle(lambda: spark_cases.to_parquet(rows, self.count))
        self.aimed("read: Spark to Parquet, zstd", files, 6, base)
        made = self.middle(lambda: spark_cases.generated(self.spark, self.count))
        share = Figure(100 * noop.value / made.value, "%", higher=False)
        self.aimed("share of Spark and its pipe in reading", share, 30)

    def writing(self) -> None:
        """From cached rows to a stream."""
        count = self.count // 5
        streams = [spark_cases.fresh(self.at, f"OUT{n}") for n in range(self.runs + 1)]
        rows = self.spark.range(count).selectExpr("cast(repeat('x', 200) as binary) data").cache()
        rows.count()
        name = streams.pop()
        spark_cases.to_stream(rows, self.url, f"{name}.0", count)
        base, wrote = self.in_turn(
            lambda: spark_cases.nats_py_write(self.url, streams.pop(), count, 200),
            lambda: spark_cases.to_stream(rows, self.url, f"{name}.0", count),
        )
        self.line("write: nats-py with ids, one process", base)
        self.aimed("write: Spark, exactly once", wrote, 2.5, base)
        rows.unpersist()

    def latencies(self) -> None:
        """What others feel, what a small micro-batch costs, and a small job from a cold start."""
        idle = spark_cases.publish_p99(self.at, "BENCH.0", lambda: time.sleep(2))
        self.line("publish p99, nothing else runs", idle)
        busy = self.publish_p99(self.url, self.at)
        if self.kind is OURS:
            self.line("publish p99 while Spark reads", busy)
            self.same_promise(busy)
        else:
            self.aimed("publish p99 while Spark reads", busy, 10)
        few = partial(spark_cases.micro_batches, self.spark, self.at, self.url, "BENCH")
        few()
        self.aimed("micro-batch p50", self.middle(few), 300)
        spark_cases.fill(self.at, "SMALL", 1_000, 200)
        with tempfile.TemporaryDirectory() as directory:
            first = spark_cases.warm_cache(self.url, "SMALL", Path(directory))
            self.line("a small stream to Parquet, first start ever", first)
            cold = self.middle(lambda: spark_cases.cold_copy(self.url, "SMALL", Path(directory)))
        self.aimed("a small stream to Parquet, cold start", cold, 12)

    def publish_p99(self, url: str, at: Address) -> Figure:
        """What publishers of a stream feel while Spark reads it with all cores."""
        rows = spark_cases.frame(self.spark, url, "BENCH")
        read = partial(spark_cases.to_noop, rows, self.count)
        return self.middle(lambda: spark_cases.publish_p99(at, "BENCH.0", read))

    def same_promise(self, busy: Figure) -> None:
        """Beside the real server where it too syncs before it acknowledges."""
        with servers.single(REAL_ALWAYS) as broker:
            at = servers.address(broker)
            spark_cases.fill(at, "BENCH", self.count, 200)
            synced = self.publish_p99(broker.url, at)
        self.line(f"the same on {REAL_ALWAYS.name}", synced)
        self.aimed("publish p99 while Spark reads, beside that", busy, 1, synced)

    def tasks(self) -> None:
        """Growth with tasks; the ratio is to one."""
        first = None
        for tasks in TASKS:
            rows = spark_cases.frame(self.spark, self.url, "BENCH", minPartitions=str(tasks))
            figure = self.middle(partial(spark_cases.to_noop, rows, self.count))
            first = first or figure
            self.line(f"read: Spark with {tasks} tasks", figure, first, "of one task")

    def filters(self) -> None:
        """Growth with the share of a stream that a filter takes; one task without Spark."""
        for title, subject, divisor in FILTERS:
            count = min(self.count // divisor, self.count // 5)
            base = self.middle(
                partial(spark_cases.nats_py_read, self.url, "BENCH", count, subject=subject)
            )
            self.line(f"filter on {title}: nats-py", base)
            for mode in MODES:
                more = {"filterSubjects": subject, "readMode": mode}
                figure = self.middle(partial(spark_cases.raw_read, self.url, "BENCH", **more))
                self.line(f"filter on {title}: one task, {mode}", figure, base)

    def sizes(self) -> None:
        """Growth with the size of messages, through Spark."""
        for size, count in SIZES:
            stream = f"SIZE{size}"
            spark_cases.fill(self.at, stream, count, size)
            base = self.middle(
                partial(spark_cases.nats_py_read, self.url, stream, count, size=size)
            )
            self.line(f"{size:,} B: nats-py", base, None, megabytes(base, size))
            for mode in MODES:
                rows = spark_cases.frame(self.spark, self.url, stream, readMode=mode)
                spark_cases.to_noop(rows, count)
                figure = self.middle(partial(spark_cases.to_noop, rows, count))
                self.line(f"{size:,} B: Spark, {mode}", figure, base, megabytes(figure, size))


def times(figure: Figure, base: Figure) -> float:
    """How many times better than `base`."""
    return figure.value / base.value if figure.higher else base.value / figure.value


def megabytes(figure: Figure, size: int) -> str:
    """The same rate in bytes."""
    return f"{figure.value * size / 1e6:,.0f} MB/s"


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
