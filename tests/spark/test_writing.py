"""Writing: rows become messages, each once; what makes that impossible is refused."""

import base64
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jsctl.errors import NotFound, UsageError
from jsctl.spark.writing.identity import Identities, Scope
from jsctl.spark.writing.rows import Encoder, check_columns
from tests.support.filling import Filler, plain
from tests.support.spark_tables import Tables, failure, run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCOPE = Scope("query", "run", 3, "")


def payloads(tables: Tables, stream: str) -> Counter[str]:
    """What a stream holds."""
    rows = tables.read(stream, "data binary").collect()
    return Counter(bytes(row.data).decode() for row in rows)


@pytest.mark.one_server
def test_columns_become_parts_of_a_message(tables: Tables, filler: Filler, fresh: str) -> None:
    base = fresh.lower()
    filler.stream(fresh, allow_msg_ttl=True)
    rows = [
        (f"{base}.a", "text", {"K": ["1", "2"], "Nats-Msg-Id": ["theirs"]}, "id-1", "1h"),
        (f"{base}.b", None, None, "id-2", None),
    ]
    schema = (
        "subject string, data string, headers map<string,array<string>>, msg_id string, ttl string"
    )
    tables.write(tables.spark.createDataFrame(rows, schema).coalesce(1))
    a, b = tables.read(fresh, includeHeaders="true").orderBy("subject").collect()
    assert (a.subject, bytes(a.data)) == (f"{base}.a", b"text")
    assert a.headers == {"Nats-Msg-Id": ["id-1"], "K": ["1", "2"], "Nats-TTL": ["1h"]}
    assert (b.subject, bytes(b.data), b.headers) == (f"{base}.b", b"", {"Nats-Msg-Id": ["id-2"]})


@pytest.mark.one_server
def test_two_jobs_write_twice_and_equal_rows_all_count(
    tables: Tables, filler: Filler, fresh: str
) -> None:
    filler.stream(fresh)
    frame = tables.spark.range(2_000).selectExpr("cast(id % 10 as string) data")
    for times in (1, 2):
        tables.write(frame, subject=f"{fresh.lower()}.x", maxInFlight="100")
        assert payloads(tables, fresh) == {str(n): 200 * times for n in range(10)}


@pytest.mark.one_server
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"retention": "workqueue"}, "removes messages that were acknowledged"),
        ({"max_msgs_per_subject": 1}, "keeps only 1 messages of a subject"),
    ],
)
def test_a_target_that_hides_what_was_written_is_refused(
    tables: Tables, filler: Filler, fresh: str, config: dict[str, object], words: str
) -> None:
    filler.stream(fresh, **config)
    frame = tables.spark.range(5).selectExpr("cast(id as string) data")
    error = failure(lambda: tables.write(frame, subject=f"{fresh.lower()}.x"))
    assert isinstance(error, UsageError)
    assert words in str(error)
    assert "at-least-once" in error.hints[0]
    tables.write(frame, subject=f"{fresh.lower()}.x", guarantee="at-least-once")
    assert filler.state(fresh)["last_seq"] == 5


@pytest.mark.one_server
def test_other_refusals_are_explained(tables: Tables, filler: Filler, fresh: str) -> None:
    frame = tables.spark.range(3).selectExpr("cast(id as string) data")
    subject = f"{fresh.lower()}.x"
    nobody = failure(lambda: tables.write(frame, subject=f"nobody.{subject}"))
    assert isinstance(nobody, NotFound)
    assert f"no stream stores the subject nobody.{subject}" in str(nobody)
    filler.stream(fresh, max_msgs=2, discard="new")
    full = failure(lambda: tables.write(frame, subject=subject))
    assert f"stream {fresh} refuses a message to {subject}: maximum messages exceeded" in str(full)
    assert "make room" in full.hints[0]
    filler.stream(f"{fresh}N", no_ack=True)
    mute = failure(lambda: tables.write(frame, subject=f"{subject[:-2]}n.x"))
    assert "does not acknowledge" in str(mute)
    over = failure(lambda: tables.write(frame, "overwrite", subject=subject))
    assert "only appended" in str(over)
    extra = frame.withColumn("price", F.lit(1))
    unknown = failure(lambda: tables.write(extra, subject=subject))
    assert "does not know the column price" in str(unknown)
    large = tables.spark.range(1).selectExpr("repeat('x', 2000000) data")
    filler.stream(f"{fresh}L")
    big = failure(lambda: tables.write(large, subject=f"{subject[:-2]}l.x"))
    assert "the server takes 1048576" in str(big)


@pytest.mark.one_server
def test_an_aggregation_goes_through_foreach_batch(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    """Spark refuses the rest by itself; the test of kills does it."""
    filler.stream(fresh)
    filler.publish(plain(10, fresh.lower()))
    counts = tables.follow(fresh).groupBy("subject").count().selectExpr("'x' data", "subject")
    writer = tables.sink(counts, tmp_path, subject=f"{fresh}.x").outputMode("update")
    assert "foreachBatch" in failure(lambda: run(writer)).hints[0]


@pytest.mark.one_server
def test_a_write_in_foreach_batch_needs_a_name_and_is_then_exact(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    source, target = f"{fresh}S", f"{fresh}D"
    filler.stream(source)
    filler.stream(target, f"{target}.>", duplicate_window=100_000_000)
    filler.publish(plain(60, source.lower()))
    fails: list[bool] = [True]

    def copy(named: dict[str, str]) -> Any:
        def body(frame: "DataFrame", _batch: int) -> None:
            tables.write(frame.select("data"), subject=f"{target}.x", **named)
            if fails:
                fails.pop()
                raise RuntimeError("planned")

        return body

    frame = tables.follow(source, maxOffsetsPerTrigger="40")

    def started(named: dict[str, str]) -> object:
        writer = frame.writeStream.foreachBatch(copy(named))
        return run(writer.option("checkpointLocation", str(tmp_path / "c")))

    assert "needs option sinkName" in str(failure(lambda: started({})))
    assert "planned" in str(failure(lambda: started({"sinkName": "main"})))
    started({"sinkName": "main"})
    assert sorted(payloads(tables, target).values()) == [1] * 60


def test_a_full_restart_relies_on_no_window(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    """A batch fails when it is written but not noted; its messages are not written again."""
    source, target = f"{fresh}S", f"{fresh}D"
    filler.stream(source)
    filler.stream(target, f"{target}.>", duplicate_window=100_000_000, max_msgs=70, discard="new")
    filler.publish(plain(100, source.lower(), subjects=1))
    frame = tables.follow(source, maxOffsetsPerTrigger="50").select("data")
    writer = tables.sink(frame, tmp_path, subject=f"{target}.x")
    assert "maximum messages exceeded" in str(failure(lambda: run(writer)))
    assert filler.state(target)["messages"] == 70
    changed = filler.api(f"STREAM.INFO.{target}")["config"] | {"max_msgs": -1}
    filler.api(f"STREAM.UPDATE.{target}", changed)
    run(tables.sink(frame, tmp_path, subject=f"{target}.x"))
    found = payloads(tables, target)
    assert len(found) == 100
    assert set(found.values()) == {1}


@pytest.mark.one_server
def test_lost_evidence_is_an_error(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    source, target = f"{fresh}S", f"{fresh}D"
    filler.stream(source)
    filler.stream(target, f"{target}.>", duplicate_window=100_000_000, max_msgs=70, discard="new")
    filler.publish(plain(100, source.lower(), subjects=1))
    frame = tables.follow(source, maxOffsetsPerTrigger="50").select("data")
    failure(lambda: run(tables.sink(frame, tmp_path, subject=f"{target}.x")))
    filler.api(f"STREAM.PURGE.{target}", {"seq": 61})
    error = failure(lambda: run(tables.sink(frame, tmp_path, subject=f"{target}.x")))
    assert f"exactly-once is impossible: stream {target} has lost the sequences 51 to 60" in str(
        error
    )


@pytest.mark.one_server
def test_a_target_that_was_made_again_is_read_from_its_start(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    """What is remembered of the stream before says nothing about the one that is there now."""
    source, target = f"{fresh}S", f"{fresh}D"
    made = {"duplicate_window": 100_000_000, "discard": "new"}
    filler.stream(source)
    filler.stream(target, f"{target}.>", **made)
    filler.publish(plain(50, source.lower(), subjects=1))
    frame = tables.follow(source, maxOffsetsPerTrigger="50").select("data")
    run(tables.sink(frame, tmp_path, subject=f"{target}.x"))
    filler.api(f"STREAM.DELETE.{target}")
    filler.stream(target, f"{target}.>", max_msgs=20, **made)
    filler.publish(plain(50, source.lower(), subjects=1, first=50))
    full = failure(lambda: run(tables.sink(frame, tmp_path, subject=f"{target}.x")))
    assert "maximum messages exceeded" in str(full)
    assert "make room" in full.hints[0]
    assert filler.state(target)["messages"] == 20
    changed = filler.api(f"STREAM.INFO.{target}")["config"] | {"max_msgs": -1}
    filler.api(f"STREAM.UPDATE.{target}", changed)
    run(tables.sink(frame, tmp_path, subject=f"{target}.x"))
    found = payloads(tables, target)
    assert len(found) == 50
    assert set(found.values()) == {1}


def test_ids_do_not_depend_on_order() -> None:
    rows = [(f"s.{n % 3}", b"%d" % (n % 5)) for n in range(100)]
    schema = pa.schema([("subject", pa.string()), ("data", pa.binary())])

    def ids(
        order: list[tuple[str, bytes]], scope: Scope = SCOPE, partition: int = 0
    ) -> Counter[str]:
        identities = Identities(scope, partition, with_source=False)
        encoder = Encoder("", "", identities)
        columns = [list(column) for column in zip(*order, strict=True)]
        batch = pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=schema)
        return Counter(message.id for message in encoder.messages(batch))

    assert ids(rows) == ids(rows[::-1])
    assert set(ids(rows).values()) == {1}
    assert not set(ids(rows)) & set(ids(rows, partition=1))
    assert not set(ids(rows)) & set(ids(rows, Scope("query", "run", 4, "")))
    assert ids(rows) == ids(rows, Scope("query", "another run", 3, ""))


def test_rows_of_a_source_keep_their_id_in_any_partition() -> None:
    schema = pa.schema([("data", pa.binary()), ("stream", pa.string()), ("seq", pa.int64())])
    columns = [[b"x"] * 3, ["S"] * 3, [1, 2, 3]]
    batch = pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=schema)
    made = [
        [m.id for m in Encoder("s", "", Identities(SCOPE, p, with_source=True)).messages(batch)]
        for p in (0, 1)
    ]
    assert made[0] == made[1]
    assert len(set(made[0])) == 3


def test_equal_rows_that_came_from_no_message_are_told_apart() -> None:
    """As after an outer join: a second one, in another partition, would be lost."""
    schema = pa.schema([("data", pa.binary()), ("stream", pa.string()), ("seq", pa.int64())])
    columns = [[b"x"] * 2, [None, "S"], [1, None]]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)], schema=schema
    )
    made = [
        m.id
        for p in (0, 1)
        for m in Encoder("s", "", Identities(SCOPE, p, with_source=True)).messages(batch)
    ]
    assert len(set(made)) == 4


def test_blanks_around_an_id_are_none_of_it() -> None:
    """Servers leave them out, and what is read back is compared."""
    schema = pa.schema([("data", pa.binary()), ("msg_id", pa.string())])
    batch = pa.RecordBatch.from_arrays([pa.array([b"x"]), pa.array([" i 1\t"])], schema=schema)
    (made,) = Encoder("s", "", Identities(SCOPE, 0, with_source=False)).messages(batch)
    assert made.id == "i 1"
    assert b"Nats-Msg-Id: i 1\r\n" in made.block


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("subject", None, "a row has no subject"),
        ("subject", "a b", "is not a subject"),
        ("msg_id", None, "has no msg_id"),
        ("msg_id", "a\nb", "is not a message id"),
        ("headers", [("A:B", ["x"])], "is not the name of a header"),
        ("msg_id", " ", "is not a message id"),
        ("headers", [("A", ["x\r\nB: y"])], "has a line break"),
        ("headers", [("A", ["x", None])], "header A has a value that is null"),
        ("ttl", "1s\r\nNats-Rollup: all", "is not a time to live"),
    ],
)
def test_a_row_that_is_no_message_is_named(column: str, value: object, words: str) -> None:
    types = {
        "subject": pa.string(),
        "data": pa.binary(),
        "msg_id": pa.string(),
        "ttl": pa.string(),
        "headers": pa.map_(pa.string(), pa.list_(pa.string())),
    }
    row: dict[str, object] = {
        "subject": "a.b",
        "data": b"x",
        "msg_id": "i",
        "ttl": None,
        "headers": None,
    }
    row[column] = value
    batch = pa.RecordBatch.from_pylist([row], schema=pa.schema(list(types.items())))
    encoder = Encoder("", "", Identities(SCOPE, 0, with_source=False))
    with pytest.raises(UsageError, match=words):
        list(encoder.messages(batch))


@pytest.mark.processes
def test_columns_are_checked_before_anything_runs() -> None:
    for text, words in (
        ("data binary", "neither a column subject nor option subject"),
        ("subject string", "no column data"),
        ("subject string, data int", "column data is binary or string, not int"),
        ("subject string, data binary, other int", "does not know the column other"),
    ):
        with pytest.raises(UsageError, match=words):
            check_columns(cast(StructType, StructType.fromDDL(text)), "")


@pytest.mark.one_server
def test_a_checkpoint_that_is_older_than_the_messages_is_refused(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    source, target = f"{fresh}S", f"{fresh}D"
    filler.stream(source)
    filler.stream(target, f"{target}.>")
    filler.publish(plain(30, source.lower()))
    frame = tables.follow(source, maxOffsetsPerTrigger="10").select("data")
    run(tables.sink(frame, tmp_path, subject=f"{target}.x"))
    for batch in ("1", "2"):
        for kind in ("offsets", "commits"):
            for name in (batch, f".{batch}.crc"):
                (tmp_path / kind / name).unlink(missing_ok=True)
    error = failure(lambda: run(tables.sink(frame, tmp_path, subject=f"{target}.x")))
    assert "batch 1 is to be written, but the query has written batch 2" in str(error)
    assert filler.state(target)["messages"] == 30


@pytest.mark.one_server
def test_what_is_remembered_can_be_read(
    tables: Tables, filler: Filler, fresh: str, tmp_path: Path
) -> None:
    source, target = f"{fresh}S", f"{fresh}D"
    filler.stream(source)
    filler.stream(target, f"{target}.>")
    filler.publish(plain(10, source.lower()))
    frame = tables.follow(source).select("data")
    options = {"subject": f"{target}.x", "stateBucket": f"B{fresh}", "sinkName": "copy"}
    query = run(tables.sink(frame, tmp_path, **options))
    bucket = f"KV_B{fresh}"
    message = filler.api(f"STREAM.MSG.GET.{bucket}", {"last_by_subj": f"$KV.B{fresh}.>"})["message"]
    assert message["subject"] == f"$KV.B{fresh}.{query.id}.copy"
    record = json.loads(base64.b64decode(message["data"]))
    assert record == {"run": query.runId, "batch": 0, "positions": {target: 10}}
