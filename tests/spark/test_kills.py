"""Queries that are killed while they write: what arrived in the end is exact.

A kill waits for an event: messages of a batch that is not whole are in the target, or a file of a
batch is being written. The target forgets ids after 100 ms, a restart takes seconds.
"""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import source_options
from jsctl.spark.reading.plan import Bounds, batch_ranges
from jsctl.spark.scan.read import read
from jsctl.testing import Broker, BrokerFactory
from tests.spark.conftest import KINDS
from tests.support.filling import Filler, plain
from tests.support.moving_files import files
from tests.support.process_tree import kill_tree
from tests.support.spark_query import BATCH
from tests.support.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
LIFE_S = 240.0
SUBJECTS = 10
LIVES_MAX = 3
SPARK_FAILED = ("Task serialization failed", "Task not serializable")


class Copy:
    """The program that copies, over all its lives."""

    def __init__(self, broker: Broker, directory: Path, kinds: tuple[str, ...], count: int) -> None:
        self.broker, self.directory, self.kinds, self.count = broker, directory, kinds, count
        self.errors = directory / "errors"
        """What the last life said."""
        self.filler = Filler(broker)
        self.filler.stream("SRC")
        self.filler.stream("DST", "DST.>", duplicate_window=100_000_000)
        self.filler.publish(plain(count, "src", size=60, subjects=SUBJECTS))
        self.in_flight: Counter[str] = Counter()

    def start(self) -> "subprocess.Popen[str]":
        """A life."""
        words = ["SRC", "DST", str(self.directory), *self.kinds]
        with self.errors.open("w") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.support.spark_query", self.broker.url, *words],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def kill_when(self, what: str, event: Callable[[], bool], proof: Callable[[], bool]) -> None:
        """Start it and kill it at an event; `proof` tells whether a batch was in flight."""
        process = self.start()
        try:
            wait_for(lambda: event() or process.poll() is not None, f"{what} is written", LIFE_S)
            assert process.poll() in (None, 0) or self.spark_failed(), self.why()
        finally:
            kill_tree(process.pid)
            process.communicate()
        if proof():
            self.in_flight[what] += 1

    def finish(self) -> str:
        """A last life to its end; what it printed.

        With two queries in one process Spark itself now and then cannot write a task down. That
        is one more death, which a query has to survive like the others.
        """
        for _ in range(LIVES_MAX):
            process = self.start()
            try:
                out, _ = process.communicate(timeout=LIFE_S * 2)
            finally:
                kill_tree(process.pid)
            if process.returncode == 0:
                return out
            if not self.spark_failed():
                break
        raise AssertionError(self.why())

    def spark_failed(self) -> bool:
        """Whether the last life ended for a reason of Spark's own."""
        said = self.errors.read_text()
        return any(text in said for text in SPARK_FAILED)

    def why(self) -> str:
        """What the last life said in the end, without the frames of Java's stacks."""
        lines = self.errors.read_text().splitlines()
        return "\n".join([one for one in lines if not one.startswith(("\tat ", "    at "))][-60:])

    def arrived(self) -> int:
        """Messages in the target."""
        return int(self.filler.state("DST")["messages"])

    def in_batch(self) -> bool:
        """Whether the target has a part of a batch."""
        asked = self.filler.api("STREAM.INFO.DST", {"subjects_filter": "DST.>"})
        return any(count % BATCH for count in asked["state"]["subjects"].values())

    def has(self, mark: int) -> bool:
        """Whether the target has so many messages."""
        return self.arrived() >= mark

    def kill_while_publishing(self, mark: int) -> None:
        """Kill it when the target has so many messages."""
        self.kill_when(
            "a batch of messages",
            lambda: self.arrived() >= mark,
            self.in_batch,
        )

    def kill_while_filing(self, kind: str) -> None:
        """Kill it when a file is being written."""
        before = set(self.parts(kind))
        self.kill_when(
            f"a {kind} file",
            lambda: bool(set(self.parts(kind)) - before),
            lambda: bool(self.unfinished(kind)),
        )

    def parts(self, kind: str) -> list[Path]:
        """Files with rows, finished or not."""
        return files(self.directory / kind, "**/*.parquet")

    def unfinished(self, kind: str) -> list[Path]:
        """What a batch that was cut off left."""
        if kind == "files":
            return self.parts(kind)
        return files(self.directory / kind, "batch=*/_temporary")

    def payloads(self) -> Counter[str]:
        """What the target holds, read without Spark."""
        given = source_options({"servers": self.broker.url, "stream": "DST"})
        found: Counter[str] = Counter()
        with JetStream(given.connection) as js:
            for wanted in batch_ranges(js, given, Bounds(), headers_only=False):
                for chunk in read(js, wanted):
                    found.update(payload.decode() for payload in chunk.payloads)
        return found


def copied(count: int) -> Counter[str]:
    """Each message once."""
    return Counter(body.decode() for _, _, body in plain(count, "src", size=60))


def check_lake(directory: Path, count: int) -> None:
    """The same rows for whoever reads the directory."""
    # What it made must not be there for good when the tests begin: it would tell of leaks.
    import duckdb

    wanted = list(range(1, count + 1))
    table = ds.dataset(directory, format="parquet").to_table(columns=["seq"])
    assert sorted(table.column("seq").to_pylist()) == wanted
    files = f"{directory}/*/*.parquet"
    rows = duckdb.execute("select seq from read_parquet(?) order by seq", [files]).fetchall()
    assert [row[0] for row in rows] == wanted


Copies = Callable[..., Copy]


@pytest.fixture
def copies(jsctl_broker: BrokerFactory, tmp_path: Path) -> Iterator[Copies]:
    """Makes a program with a filled server: kinds, messages, kind of server."""
    made: list[Copy] = []

    def make(kinds: tuple[str, ...], count: int, server: str = "nats-server") -> Copy:
        broker = jsctl_broker("-js", server=KINDS[server])
        made.append(Copy(broker, tmp_path, kinds, count))
        return made[-1]

    yield make
    for copy in made:
        copy.filler.close()


@pytest.mark.one_server
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_killed_copy_is_exact(copies: Copies, tmp_path: Path, kind: str) -> None:
    """One kill with two targets; long versions follow."""
    copy = copies(("shuffle", "lake"), 3 * BATCH, kind)
    copy.kill_while_publishing(BATCH + BATCH // 3)
    out = copy.finish()
    assert copy.in_flight["a batch of messages"] == 1, "the kill came between two batches"
    assert copy.payloads() == copied(3 * BATCH)
    assert out.split() == ["lake", str(3 * BATCH), str(3 * BATCH)]
    check_lake(tmp_path / "lake", 3 * BATCH)


@pytest.mark.spark_long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("server", list(KINDS))
def test_messages_after_twenty_kills(copies: Copies, server: str) -> None:
    """Two queries, one of them with a shuffle, write at the same time."""
    count = 30 * BATCH
    copy = copies(("plain", "shuffle"), count, server)
    chance = random.Random(20)
    while copy.in_flight.total() < 20:
        arrived = copy.arrived()
        assert arrived < 2 * count, f"only {copy.in_flight.total()} kills came in flight"
        copy.kill_while_publishing(arrived + chance.randrange(100, BATCH))
    copy.finish()
    assert copy.payloads() == copied(count) + copied(count)


@pytest.mark.spark_long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("server", list(KINDS))
def test_counts_after_kills(copies: Copies, server: str) -> None:
    """GROUP BY: one message a subject and batch, with the running count."""
    batches = 20
    copy = copies(("group",), batches * BATCH, server)
    for kill in range(1, 11):
        mark = 2 * kill * SUBJECTS - SUBJECTS // 2
        copy.kill_when("counts", partial(copy.has, mark), lambda: True)
    copy.finish()
    share = BATCH // SUBJECTS
    wanted = Counter(
        f"src.{n} {share * batch}" for n in range(SUBJECTS) for batch in range(1, batches + 1)
    )
    assert copy.payloads() == wanted


@pytest.mark.spark_long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("server", list(KINDS))
def test_parquet_after_twenty_kills(copies: Copies, tmp_path: Path, server: str) -> None:
    count = 40 * BATCH
    copy = copies(("lake", "files"), count, server)
    lives = 0
    while copy.in_flight.total() < 20:
        lives += 1
        assert lives < 40, f"only {copy.in_flight} kills came in flight"
        copy.kill_while_filing("lake")
    out = copy.finish().split()
    assert out == ["lake", str(count), str(count), "files", str(count), str(count)]
    check_lake(tmp_path / "lake", count)
