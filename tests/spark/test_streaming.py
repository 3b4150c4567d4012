"""Streaming reads: offsets, limits, restarts, lag, and streams that are not what they were."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from jsctl.errors import Conflict
from jsctl.spark.offsets import Offset, StreamOffset, lag
from jsctl.spark.options import source_options
from jsctl.spark.reading.streaming import JetStreamStreamReader
from jsctl.testing import Broker
from tests.support.filling import Filler, plain
from tests.support.spark_tables import Tables, failure, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Collector:
    """Keeps the sequences of every micro-batch; fails as often as asked."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.batches: dict[int, list[int]] = {}

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        seqs = sorted(row.seq for row in frame.select("seq").collect())
        if self.failures:
            self.failures -= 1
            raise RuntimeError("planned")
        self.batches[batch] = seqs

    @property
    def seqs(self) -> list[int]:
        return [seq for batch in sorted(self.batches) for seq in self.batches[batch]]


def query(
    frame: "DataFrame", collector: Callable[..., None], checkpoint: Path
) -> Callable[[], object]:
    """A query to its end, as a call."""
    writer = frame.writeStream.foreachBatch(collector)
    return lambda: run(writer.option("checkpointLocation", str(checkpoint)))


def test_limits_restarts_and_lag(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    filler.stream(fresh)
    filler.publish(plain(250, fresh.lower()))
    got = Collector()
    frame = tables.follow(fresh, maxOffsetsPerTrigger="100")
    query(frame, got, tmp_path)()
    assert [len(batch) for batch in got.batches.values()] == [100, 100, 50]
    filler.publish(plain(30, fresh.lower()))
    writer = frame.writeStream.foreachBatch(got).option("checkpointLocation", str(tmp_path))
    last = run(writer).lastProgress
    assert last is not None
    assert got.seqs == list(range(1, 281))
    source = json.loads(last.json)["sources"][0]
    assert source["numInputRows"] == 30
    assert lag(source) == {fresh: 0}


@pytest.mark.one_server
def test_latest_stays_where_it_was_when_the_first_batch_fails(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    """The start is asked for again after a crash before the first commit; it must not move."""
    filler.stream(fresh)
    filler.publish(plain(40, fresh.lower()))
    got = Collector(failures=2)
    frame = tables.follow(fresh, startingOffsets="latest")
    query(frame, Collector(), tmp_path / "other")()
    writer = frame.writeStream.foreachBatch(got).option("checkpointLocation", str(tmp_path / "c"))
    live = writer.trigger(processingTime="0 seconds").start()
    filler.publish(plain(10, fresh.lower()))
    with pytest.raises(Exception, match="planned"):
        live.awaitTermination(60)
    filler.publish(plain(20, fresh.lower()))
    assert "planned" in str(failure(query(frame, got, tmp_path / "c")))
    filler.publish(plain(30, fresh.lower()))
    query(frame, got, tmp_path / "c")()
    first = got.seqs[0]
    assert 41 <= first <= 51, "it began where latest was when the query was first started"
    assert got.seqs == list(range(first, 101))


@pytest.mark.one_server
def test_a_stream_that_was_made_again(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    filler.stream(fresh)
    filler.publish(plain(50, fresh.lower()))
    got = Collector()
    query(tables.follow(fresh), got, tmp_path)()
    filler.api(f"STREAM.DELETE.{fresh}")
    assert "does not exist" in str(failure(query(tables.follow(fresh), got, tmp_path)))
    filler.stream(fresh)
    filler.publish(plain(20, fresh.lower()))
    error = failure(query(tables.follow(fresh), got, tmp_path))
    assert isinstance(error, Conflict)
    assert f"stream {fresh} was deleted and made again" in str(error)
    assert "failOnDataLoss" in error.hints[0]
    query(tables.follow(fresh, failOnDataLoss="false"), got, tmp_path)()
    assert got.seqs == [*range(1, 51), *range(1, 21)]


@pytest.mark.one_server
def test_a_stream_that_was_purged_below_the_offset(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    filler.stream(fresh)
    filler.publish(plain(50, fresh.lower()))
    got = Collector()
    query(tables.follow(fresh), got, tmp_path)()
    filler.publish(plain(50, fresh.lower()))
    filler.api(f"STREAM.PURGE.{fresh}", {"seq": 81})
    error = failure(query(tables.follow(fresh), got, tmp_path))
    assert isinstance(error, Conflict)
    assert f"stream {fresh}: sequences 51 to 80 are gone" in str(error)
    assert "failOnDataLoss" in error.hints[0]
    query(tables.follow(fresh, failOnDataLoss="false"), got, tmp_path)()
    assert got.seqs == [*range(1, 51), *range(81, 101)]


@pytest.mark.one_server
def test_new_streams_of_a_pattern_are_found(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    got: list[tuple[str, int]] = []

    def collect(frame: "DataFrame", _batch: int) -> None:
        got.extend((row.stream, row.seq) for row in frame.collect())

    frame = tables.follow("", streamPattern=f"{fresh}_.")
    for name in (f"{fresh}_A", f"{fresh}_B"):
        filler.stream(name)
        filler.publish(plain(7, name.lower()))
        query(frame, collect, tmp_path)()
    assert sorted(got) == [(f"{fresh}_{end}", n) for end in "AB" for n in range(1, 8)]


def test_purge_on_commit_lags_by_one_batch(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    filler.stream(fresh, retention="workqueue", allow_direct=True)
    filler.publish(plain(30, fresh.lower()))
    got = Collector()
    frame = tables.follow(fresh, onCommit="purge", maxOffsetsPerTrigger="10")
    query(frame, got, tmp_path)()
    assert got.seqs == list(range(1, 31))
    assert filler.state(fresh)["messages"] == 10


def reader(broker: Broker, stream: str, **options: str) -> JetStreamStreamReader:
    """The object that Spark asks on the driver."""
    given = source_options({"servers": broker.url, "stream": stream, **options})
    return JetStreamStreamReader(given, StructType())


def test_replaying_a_batch_gives_the_same_ranges(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh)
    filler.publish(plain(45_000, fresh.lower(), size=20))
    one = reader(broker, fresh, minPartitions="3")
    start = one.initialOffset()
    end = one.latestOffset(start, ReadMaxRows(40_000))
    filler.publish(plain(10, fresh.lower()))
    ranges = [part.range for part in one.partitions(start, end)]  # type: ignore[attr-defined]
    other = reader(broker, fresh, minPartitions="7", startingOffsets="latest")
    again = [
        part.range  # type: ignore[attr-defined]
        for part in other.partitions(other.initialOffset(), json.loads(json.dumps(end)))
    ]
    assert again == ranges
    assert ranges[0].first == 1
    assert ranges[-1].end == 40_001


def test_nothing_new_is_the_same_offset(broker: Broker, filler: Filler, fresh: str) -> None:
    filler.stream(fresh)
    filler.publish(plain(5, fresh.lower()))
    one = reader(broker, fresh)
    end = one.latestOffset(one.initialOffset(), ReadAllAvailable())
    assert one.latestOffset(end, ReadAllAvailable()) is end
    one.prepareForTriggerAvailableNow()
    filler.publish(plain(5, fresh.lower()))
    assert one.latestOffset(end, ReadAllAvailable()) is end
    assert reader(broker, fresh).latestOffset(end, ReadAllAvailable()) != end


@pytest.mark.one_server
def test_a_minimum_is_waited_for_but_not_for_ever(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh)
    filler.publish(plain(5, fresh.lower()))
    options = {"minOffsetsPerTrigger": "10", "maxTriggerDelay": "1h"}
    one = reader(broker, fresh, **options)
    start = one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())
    assert Offset.of(start).streams[fresh].next == 1
    filler.publish(plain(5, fresh.lower()))
    end = one.latestOffset(start, one.getDefaultReadLimit())
    assert Offset.of(end).streams[fresh].next == 11
    hasty = reader(broker, fresh, **{**options, "maxTriggerDelay": "1ns"})
    filler.publish(plain(1, fresh.lower()))
    hasty.latestOffset(end, hasty.getDefaultReadLimit())
    last = hasty.latestOffset(end, hasty.getDefaultReadLimit())
    assert Offset.of(last).streams[fresh].next == 12


@pytest.mark.one_server
def test_bytes_limit_a_batch(broker: Broker, filler: Filler, fresh: str) -> None:
    filler.stream(fresh)
    filler.publish(plain(1_000, fresh.lower(), size=1_000))
    one = reader(broker, fresh, maxBytesPerTrigger="100000")
    end = one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())
    assert 80 <= Offset.of(end).streams[fresh].next - 1 <= 100


def test_an_offset_is_its_document() -> None:
    offset = Offset({"B": StreamOffset(7, 1, "x"), "A": StreamOffset(2, 2, "y")}, 3, initial=True)
    document = json.loads(json.dumps(offset.to_json()))
    assert Offset.of(document) == offset
    assert list(document["streams"]) == ["A", "B"]
    other = failure(lambda: Offset.of({"topic": {"0": 5}}))
    assert "checkpoint" in str(other)
    assert "new checkpoint" in other.hints[0]
