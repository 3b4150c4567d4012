"""Batch reads through Spark: discovery, columns, filters, pushdown, errors."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    GreaterThanOrEqual,
    In,
    LessThan,
    Not,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from jsctl.errors import NotFound, Unreachable, UsageError
from jsctl.spark.options import source_options
from jsctl.spark.reading.arrow import record_batch
from jsctl.spark.reading.batch import JetStreamReader
from jsctl.spark.reading.pushdown import bounds_of
from jsctl.spark.scan.range import Chunk
from tests.support.filling import Filler, Row
from tests.support.spark_tables import Tables, failure


@pytest.fixture
def filled(filler: Filler, fresh: str) -> tuple[str, list[Row]]:
    """A stream of 3,000 messages; every tenth has headers."""
    base = fresh.lower()
    made: list[Row] = [
        (f"{base}.{n % 3}.x", {"N": str(n), "Twice": ["a", "b"]} if n % 10 == 0 else {}, b"%d" % n)
        for n in range(3_000)
    ]
    filler.stream(fresh, allow_direct=True)
    filler.publish(made)
    return fresh, made


@pytest.mark.parametrize("mode", ["consumer", "direct"])
def test_all_columns_of_all_rows(tables: Tables, filled: tuple[str, list[Row]], mode: str) -> None:
    stream, made = filled
    frame = tables.read(stream, includeHeaders="true", readMode=mode, minPartitions="3")
    assert frame.rdd.getNumPartitions() == 3
    rows = sorted(frame.collect(), key=lambda row: row.seq)
    assert [row.seq for row in rows] == list(range(1, 3_001))
    for row, (subject, headers, payload) in zip(rows, made, strict=True):
        assert (row.subject, bytes(row.data), row.stream) == (subject, payload, stream)
        assert row.headers == {
            name: [values] if isinstance(values, str) else values
            for name, values in headers.items()
        }
        nanoseconds = row.ts_ns // 1_000 * 1_000
        assert row.timestamp.timestamp() == pytest.approx(nanoseconds / 1e9, abs=1e-5)


@pytest.mark.one_server
def test_only_asked_for_columns_are_fetched(tables: Tables, filled: tuple[str, list[Row]]) -> None:
    stream, _ = filled
    frame = tables.read(stream, "seq bigint, headers map<string,array<string>>")
    rows = sorted(frame.collect())
    assert rows[0].headers == {"N": ["0"], "Twice": ["a", "b"]}
    assert rows[1].headers == {}
    assert failure(lambda: tables.read(stream, "sequence bigint").collect()).hints
    wrong = failure(lambda: tables.read(stream, "seq string").collect())
    assert "column seq is bigint, not string" in str(wrong)


@pytest.mark.one_server
def test_filters_of_a_query_hold(tables: Tables, filled: tuple[str, list[Row]]) -> None:
    stream, _ = filled
    base = stream.lower()
    frame = tables.read(stream)
    assert frame.where("seq >= 11 and seq < 21").count() == 10
    assert frame.where(F.col("subject") == f"{base}.1.x").count() == 1_000
    assert frame.where(F.col("subject").startswith(f"{base}.1.")).count() == 1_000
    assert frame.where(F.col("subject").isin(f"{base}.0.x", f"{base}.2.x")).count() == 2_000
    assert frame.where("seq in (5, 900)").count() == 2
    assert frame.where("stream = 'OTHER'").count() == 0
    middle = frame.where("seq = 1500").first()
    assert middle is not None
    late = frame.where(F.col("timestamp") >= middle.timestamp + timedelta(microseconds=1))
    assert late.count() == frame.where(f"ts_ns >= {middle.ts_ns // 1000 * 1000 + 1000}").count()


@pytest.mark.one_server
def test_several_streams_by_name_and_by_pattern(tables: Tables, filler: Filler, fresh: str) -> None:
    for end in "AB":
        filler.stream(f"{fresh}{end}")
        filler.publish([(f"{fresh}{end}".lower() + ".x", {}, end.encode())] * 5)
    assert tables.read(f"{fresh}A,{fresh}B").groupBy("stream").count().count() == 2
    reader = tables.spark.read.format("jetstream").option("servers", tables.url)
    assert reader.option("streamPattern", f"{fresh}[AB]").load().count() == 10
    nothing = failure(lambda: reader.option("streamPattern", "nothing-.*").load().count())
    assert isinstance(nothing, NotFound)
    assert "nothing-.*" in str(nothing)


@pytest.mark.one_server
def test_failures_are_one_line_with_a_remedy(tables: Tables) -> None:
    gone = failure(lambda: tables.read("NOPE").count())
    assert isinstance(gone, NotFound)
    assert str(gone) == "stream NOPE does not exist"
    assert "jsctl stream ls" in gone.hints[0]
    away = failure(lambda: Tables(tables.spark, "nats://127.0.0.1:1").read("S").count())
    assert isinstance(away, Unreachable)
    assert "127.0.0.1:1" in str(away)
    wrong = failure(lambda: tables.read("S", maxOffsetPerTrigger="1").count())
    assert isinstance(wrong, UsageError)
    assert wrong.hints == ("did you mean maxOffsetsPerTrigger?",)


def test_pushed_filters_become_bounds() -> None:
    subject, seq = ("subject",), ("seq",)
    given = [
        GreaterThanOrEqual(seq, 5),
        LessThan(seq, 9),
        In(subject, ("a.b", "a.c")),
        EqualTo(("stream",), "S"),
        Not(EqualTo(("data",), b"x")),
    ]
    bounds, left = bounds_of(given, ())
    assert (bounds.first_seq, bounds.end_seq) == (5, 9)
    assert bounds.subjects == ("a.b", "a.c")
    assert bounds.streams == frozenset({"S"})
    assert left == given[2:]
    assert bounds_of([StringStartsWith(subject, "a.")], ())[0].subjects == ("a.>",)
    assert bounds_of([StringStartsWith(subject, "a.b")], ())[0].subjects is None
    assert bounds_of([EqualTo(subject, "a.*")], ())[0].subjects is None
    assert bounds_of([EqualTo(subject, "a.b")], ("a.>",))[0].subjects == ("a.b",)
    assert bounds_of([EqualTo(subject, "b")], ("a.>",))[0].subjects is None


def test_spark_takes_the_reader_with_and_without_pushdown() -> None:
    """What Spark looks at when it decides whether a reader has filters of its own."""
    options = source_options({"servers": "h", "stream": "S"})
    reader = JetStreamReader(options, StructType())
    assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters


@pytest.mark.one_server
def test_pushdown_may_be_off(tables: Tables, filled: tuple[str, list[Row]]) -> None:
    stream, _ = filled
    name = "spark.sql.python.filterPushdown.enabled"
    tables.spark.conf.set(name, "false")
    try:
        assert tables.read(stream).where("seq < 11").count() == 10
    finally:
        tables.spark.conf.set(name, "true")


def test_subjects_that_are_no_text_and_headers_without_space() -> None:
    chunk = Chunk(
        [b"a.\xff"],
        [7],
        [b"1700000000123456789"],
        [b"NATS/1.0\r\nA:b\r\nC:  d e \r\n\r\n"],
        [b"\x00"],
    )
    pairs = pa.map_(pa.string(), pa.list_(pa.string()))
    schema = pa.schema([("subject", pa.string()), ("headers", pairs), ("ts_ns", pa.int64())])
    (row,) = record_batch(chunk, schema, "S").to_pylist()
    assert row["subject"] == "a.\ufffd"
    assert row["headers"] == [("A", ["b"]), ("C", ["d e"])]
    assert row["ts_ns"] == 1_700_000_000_123_456_789


@pytest.mark.one_server
def test_the_format_needs_nothing_but_the_package(tables: Tables) -> None:
    """Spark finds it by the name of a package; that package imports little."""
    import pyspark_jetstream

    assert pyspark_jetstream.DefaultSource.name() == "jetstream"
    lines = Path(pyspark_jetstream.__file__).read_text().splitlines()
    assert sum(line.startswith(("import ", "from ", "    from ")) for line in lines) == 1
    assert tables.spark.range(1).count() == 1


def test_local_workers_load_the_pyspark_that_is_installed(tables: Tables) -> None:
    """It is compiled already; the zip that Spark brings would be compiled by each worker."""
    import pyspark

    def where(_: object) -> list[str]:
        import pyspark

        return [pyspark.__file__]

    context = tables.spark.sparkContext
    assert context.parallelize([0], 1).mapPartitions(where).collect() == [pyspark.__file__]
