"""Offsets of a streaming read, asked as Spark asks: of streams that are empty, gone, made again."""

from typing import cast

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType

from jsctl.spark.options import source_options
from jsctl.spark.reading.batch import Part
from jsctl.spark.reading.streaming import Document, JetStreamStreamReader
from jsctl.testing import Broker
from tests.support.filling import Filler, plain

EVERYTHING = ReadAllAvailable()
HUNDRED = ReadMaxRows(100)


def reader(broker: Broker, **more: str) -> JetStreamStreamReader:
    """The reader of one query."""
    columns = StructType([StructField("seq", LongType())])
    return JetStreamStreamReader(source_options({"servers": broker.url, **more}), columns)


def planned(one: JetStreamStreamReader, start: Document, end: Document) -> list[tuple[int, int]]:
    """First sequence and end of each task of a micro-batch."""
    parts = [cast(Part, part).range for part in one.partitions(start, end)]
    return [(part.first, part.end) for part in parts]


def test_a_start_by_time_in_an_empty_stream_is_its_first_sequence(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh)
    one = reader(broker, stream=fresh, startingTimestamp="2020-01-01T00:00:00Z")
    start = one.initialOffset()
    filler.publish(plain(5, fresh.lower()))
    end = one.latestOffset(start, EVERYTHING)
    assert planned(one, start, end) == [(1, 6)]


def test_a_limit_goes_on_without_a_stream_that_is_gone(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    for name in (f"{fresh}A", f"{fresh}B"):
        filler.stream(name)
        filler.publish(plain(5, name.lower()))
    one = reader(broker, streamPattern=f"{fresh}[AB]", failOnDataLoss="false")
    start = one.latestOffset(one.initialOffset(), HUNDRED)
    filler.api(f"STREAM.DELETE.{fresh}A")
    filler.publish(plain(5, f"{fresh.lower()}b"))
    assert planned(one, start, one.latestOffset(start, HUNDRED)) == [(6, 11)]


def test_a_run_that_shall_end_goes_on_without_a_stream_that_is_gone(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    for name in (f"{fresh}A", f"{fresh}B"):
        filler.stream(name)
        filler.publish(plain(5, name.lower()))
    one = reader(broker, streamPattern=f"{fresh}[AB]", failOnDataLoss="false")
    start = one.initialOffset()
    one.prepareForTriggerAvailableNow()
    filler.api(f"STREAM.DELETE.{fresh}A")
    end = one.latestOffset(start, HUNDRED)
    assert planned(one, start, end) == [(1, 6)]
    assert one.latestOffset(end, HUNDRED) == end


def test_a_commit_purges_only_the_stream_that_was_read(
    broker: Broker, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh)
    filler.publish(plain(5, fresh.lower()))
    one = reader(broker, stream=fresh, onCommit="purge", failOnDataLoss="false")
    end = one.latestOffset(one.initialOffset(), EVERYTHING)
    filler.api(f"STREAM.DELETE.{fresh}")
    one.commit(end)
    filler.stream(fresh)
    filler.publish(plain(3, fresh.lower()))
    one.commit(end)
    assert filler.state(fresh)["messages"] == 3
