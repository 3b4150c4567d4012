"""Servers that go away, or have no room left, while Spark reads and writes: exact or an error."""

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from jsctl.errors import RequestFailed, Unreachable
from jsctl.spark.connection.jetstream import JetStream
from jsctl.spark.options import SourceOptions, source_options
from jsctl.spark.reading.plan import Bounds, batch_ranges
from jsctl.spark.scan.read import read
from jsctl.spark.writing.memory import Memory, Record
from jsctl.testing import Broker, BrokerFactory
from tests.spark.conftest import KINDS
from tests.support.filling import Filler, plain
from tests.support.spark_query import lake
from tests.support.spark_tables import QUERY_S, Tables, failure, run
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 60_000
BATCH = 20_000
MODES = ["consumer", "direct"]

Start = Callable[..., Broker]


@pytest.fixture(params=list(KINDS))
def start(request: pytest.FixtureRequest, jsctl_broker: BrokerFactory) -> Start:
    """Starts a server of this test alone."""
    kind = KINDS[str(request.param)]
    return lambda config="": jsctl_broker("-js", server=kind, config=config)


def fill(broker: Broker, count: int = COUNT, **config: object) -> None:
    """The streams SRC, filled, and DST, which forgets ids at once."""
    with Filler(broker) as filler:
        filler.stream("SRC", allow_direct=True, **config)
        filler.stream("DST", "DST.>", duplicate_window=100_000_000)
        filler.publish(plain(count, "src"))


def stored(broker: Broker) -> int:
    """Messages in the target."""
    with Filler(broker) as filler:
        return int(filler.state("DST")["messages"])


def options(broker: Broker, stream: str = "SRC", **more: str) -> SourceOptions:
    """Of a read without Spark."""
    return source_options({"servers": broker.url, "stream": stream, "timeout": "2s", **more})


def sequences(given: SourceOptions, event: Callable[[], object]) -> list[int]:
    """What a read gives when something happens behind its first rows."""
    found: list[int] = []
    with JetStream(given.connection) as js:
        for wanted in batch_ranges(js, given, Bounds(), headers_only=False):
            for chunk in read(js, wanted):
                if not found:
                    event()
                found += chunk.seqs
    return found


def copied(broker: Broker) -> Counter[str]:
    """What the target holds, without Spark."""
    given = options(broker, "DST")
    found: Counter[str] = Counter()
    with JetStream(given.connection) as js:
        for wanted in batch_ranges(js, given, Bounds(), headers_only=False):
            for chunk in read(js, wanted):
                found.update(payload.decode() for payload in chunk.payloads)
    return found


def published(count: int = COUNT) -> Counter[str]:
    """Each message once."""
    return Counter(payload.decode() for _, _, payload in plain(count, "src"))


@pytest.mark.parametrize("mode", MODES)
def test_a_read_goes_on_when_the_server_is_back(start: Start, mode: str) -> None:
    broker = start()
    fill(broker)
    given = options(broker, readMode=mode)
    assert sequences(given, lambda: broker.restart(kill=True)) == list(range(1, COUNT + 1))


@pytest.mark.parametrize("mode", MODES)
def test_a_read_without_a_server_fails(start: Start, mode: str) -> None:
    broker = start()
    fill(broker)
    given = options(broker, readMode=mode, outageTimeout="500ms", minPartitions="1")
    with pytest.raises(Unreachable, match=r"stream SRC at sequence \d+ .*nothing came for 0.5 s"):
        sequences(given, broker.kill)


@pytest.mark.one_server
def test_a_query_whose_server_dies_goes_on_or_fails_and_is_exact(
    spark: "SparkSession", start: Start, tmp_path: Path
) -> None:
    """First the outage is longer than it may be, then it is not; both in the middle of a batch."""
    broker = start()
    fill(broker)
    tables = Tables(spark, broker.url)
    frame = tables.follow("SRC", maxOffsetsPerTrigger=str(BATCH), outageTimeout="30s")
    rows = frame.select("data")

    def kill_at(mark: int, outage: str) -> "Callable[[], None]":
        sink = tables.sink(rows, tmp_path, subject="DST.x", outageTimeout=outage)
        query = sink.trigger(availableNow=True).start()
        wait_for(lambda: stored(broker) >= mark or not query.isActive, "messages arrive", 60)
        broker.kill()

        def end() -> None:
            try:
                assert query.awaitTermination(QUERY_S)
            finally:
                query.stop()

        return end

    away = failure(kill_at(1_000, "1s"))
    assert isinstance(away, Unreachable)
    assert "not acknowledged within 1 s" in str(away) or str(broker.port) in str(away)
    broker.start()
    assert 0 < stored(broker) < BATCH, "the kill came in the middle of the first batch"
    finish = kill_at(BATCH + 1_000, "30s")
    broker.start()
    finish()
    assert copied(broker) == published()


@pytest.mark.one_server
def test_a_server_without_room_is_an_error_and_then_exact(
    spark: "SparkSession", start: Start, tmp_path: Path
) -> None:
    """Many small batches, for a server that adds up its streams only once a second."""
    broker = start("jetstream { max_file_store: 2200000 }")
    fill(broker, 8_000)
    tables = Tables(spark, broker.url)
    rows = tables.follow("SRC", maxOffsetsPerTrigger="400").select("data")
    full = failure(lambda: run(tables.sink(rows, tmp_path, subject="DST.x")))
    # Whichever write comes first: rows, or what the query remembers of them.
    wanted = ("stream DST refuses a message to DST.x: ", "bucket JSCTL_SPARK: ")
    assert str(full).startswith(wanted) and "resource" in str(full)
    assert any("make room" in hint for hint in full.hints)
    assert 0 < stored(broker) < 8_000
    broker.config = "jetstream { max_file_store: 64MB }"
    broker.restart()
    run(tables.sink(rows, tmp_path, subject="DST.x"))
    assert copied(broker) == published(8_000)


def test_what_is_remembered_needs_room_too(start: Start) -> None:
    broker = start()
    with Filler(broker) as filler:
        filler.stream("KV_SMALL", "$KV.SMALL.>", max_bytes=10, discard="new")
    with JetStream(options(broker).connection) as js, pytest.raises(RequestFailed) as refused:
        Memory(js, "SMALL", "query").begin(Record("run", 0), 1)
    assert str(refused.value).startswith("bucket SMALL: maximum bytes exceeded")
    assert any("make room" in hint for hint in refused.value.hints)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte; skips where tests may not mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    if mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)):
        pytest.skip("no file system can be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)  # Java may still look at it


def mount(*words: str) -> int:
    """What `mount` answers; 1 where there is none."""
    try:
        return subprocess.run(["mount", *words], check=False, capture_output=True).returncode
    except OSError:
        return 1


@pytest.mark.one_server
def test_a_full_disk_is_an_error_and_then_exact(
    tables: Tables, filler: Filler, fresh: str, small_disk: Path
) -> None:
    """Files and the checkpoint are on the disk; who reads the files sees whole batches only."""
    filler.stream(fresh)
    chance = random.Random(1)
    filler.publish((f"{fresh.lower()}.x", {}, chance.randbytes(200)) for _ in range(10_000))
    frame = tables.follow(fresh, maxOffsetsPerTrigger="2000").select("seq", "data")

    def copy() -> None:
        writer = frame.writeStream.foreachBatch(lake(small_disk / "lake"))
        run(writer.option("checkpointLocation", str(small_disk / "checkpoint")))

    def seqs() -> list[int]:
        table = ds.dataset(small_disk / "lake", format="parquet").to_table(columns=["seq"])
        return sorted(table.column("seq").to_pylist())

    assert "No space left on device" in str(failure(copy))
    half = seqs()
    assert half == list(range(1, len(half) + 1))
    assert len(half) in (2_000, 4_000)
    assert mount("-o", "remount,size=16m", str(small_disk)) == 0
    copy()
    assert seqs() == list(range(1, 10_001))
