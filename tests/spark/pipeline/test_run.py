"""Pipelines run: decoding, SQL, every sink, dead letters, replays, errors with a remedy."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jsctl.testing import Broker
from tests.spark.pipeline.conftest import Run, make_stream, on, orders, publish, stored, write_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")
ROWS = 2_000
BAD_EVERY = 100
SCHEMA = "id BIGINT, amount DOUBLE"


def files_of(path: Path) -> list[str]:
    return [str(path / name) for name in json.loads((path / "_manifest.json").read_text())["files"]]


def read_by_all(spark: "SparkSession", path: Path) -> list[list[int]]:
    """The sorted ids of a directory as Spark, pyarrow and DuckDB see it, and by its manifest."""
    import duckdb
    import pyarrow.dataset as dataset

    by_spark = [row["id"] for row in spark.read.parquet(str(path)).select("id").collect()]
    by_arrow = dataset.dataset(path, partitioning="hive").to_table(columns=["id"])["id"].to_pylist()
    query = f"SELECT id FROM read_parquet('{path}/batch=*/**/*.parquet', hive_partitioning=true)"
    by_duckdb = [row[0] for row in duckdb.connect().execute(query).fetchall()]
    listed = [row[0] for row in duckdb.read_parquet(files_of(path)).select("id").fetchall()]
    return [sorted(found) for found in (by_spark, by_arrow, by_duckdb, listed)]


def test_stream_to_parquet_with_dead_letters(
    spark: "SparkSession", server: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    make_stream(server, fresh)
    make_stream(server, f"{fresh}_DLQ", subjects=(f"dlq.{fresh}",))
    publish(server, orders(fresh, ROWS, bad_every=BAD_EVERY))
    spec = write_spec(
        tmp_path,
        f"""\
name: {fresh}
source: {{stream: {fresh}}}
decode: {{format: json, schema: "{SCHEMA}", on_error: dead_letter}}
transform: SELECT subject, seq, timestamp, id, amount FROM input
sink: {{type: parquet, path: out, partition_by: [day]}}
dead_letter: {{type: jetstream, subject: dlq.{fresh}}}
trigger: once
limits: {{max_offsets: 1200}}
checkpoint: ckpt
""",
    )
    servers = ("--server", server.url)
    plan = cli("pipeline", "plan", str(spec), "-j", *servers).json
    assert (plan["messages"], plan["batches"]) == (ROWS, 2)
    done = cli("pipeline", "run", str(spec), *servers)
    assert done.code == 0, done.err
    good = [n for n in range(ROWS) if n % BAD_EVERY]
    assert read_by_all(spark, tmp_path / "out") == [good] * 4
    assert stored(server, f"{fresh}_DLQ") == ROWS - len(good)
    letter = on(server, lambda manager: manager.message(f"{fresh}_DLQ", seq=2))
    assert letter.data == b"no json"
    assert f"Jsctl-Orig-Seq: {BAD_EVERY + 1}\r\n".encode() in letter.hdrs
    assert b"Jsctl-Error: it does not fit the schema" in letter.hdrs

    publish(server, orders(fresh, 10))
    assert cli("pipeline", "plan", str(spec), "-j", *servers).json["messages"] == 10
    assert cli("pipeline", "run", str(spec), *servers).code == 0
    assert read_by_all(spark, tmp_path / "out") == [sorted([*good, *range(10)])] * 4
    status = cli("pipeline", "status", str(spec), "-j").json[0]
    assert (status["state"]["state"], status["position"]) == ("finished", {fresh: ROWS + 10})

    merged = cli("pipeline", "compact", str(spec), "-j").json
    assert (merged["batches"], merged["rows"], merged["files_after"]) == (3, len(good) + 10, 1)
    assert read_by_all(spark, tmp_path / "out") == [sorted([*good, *range(10)])] * 4
    publish(server, orders(fresh, 3))
    assert cli("pipeline", "run", str(spec), *servers).code == 0
    assert read_by_all(spark, tmp_path / "out") == [sorted([*good, *range(10), *range(3)])] * 4


def test_another_checkpoint_does_not_write_into_the_same_directory(
    broker: Broker, cli: Run, fresh: str, tmp_path: Path
) -> None:
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 10))
    text = f"""\
name: {fresh}
source: {{stream: {fresh}}}
sink: {{type: parquet, path: out}}
transform: SELECT seq FROM input
trigger: once
checkpoint: CKPT
"""
    spec = write_spec(tmp_path, text)
    assert cli("pipeline", "run", str(spec), "-s", broker.url).code == 0
    write_spec(tmp_path, text.replace("CKPT", "other"))
    done = cli("pipeline", "run", str(spec), "-s", broker.url)
    assert (done.code, done.out) == (1, "")
    assert "was written by another pipeline" in done.err


def test_stream_to_stream_by_groups(broker: Broker, cli: Run, fresh: str, tmp_path: Path) -> None:
    make_stream(broker, fresh)
    make_stream(broker, f"{fresh}_SUMS", subjects=(f"sums.{fresh}.*",))
    publish(broker, orders(fresh, 700))
    spec = write_spec(
        tmp_path,
        f"""\
name: {fresh}
source: {{stream: {fresh}}}
decode: {{format: json, schema: "{SCHEMA}"}}
transform: |
  SELECT concat('sums.{fresh}.', split(subject, '[.]')[1]) AS subject,
         to_json(struct(count(*) AS n, sum(amount) AS amount)) AS data
  FROM input GROUP BY split(subject, '[.]')[1]
sink: {{type: jetstream, stream: {fresh}_SUMS}}
trigger: once
checkpoint: ckpt
""",
    )
    done = cli("pipeline", "run", str(spec), "-s", broker.url)
    assert done.code == 0, done.err
    assert "7 rows in 1 batch;" in done.err
    subjects = on(broker, lambda manager: manager.stream_subjects(f"{fresh}_SUMS"))
    assert subjects == {f"sums.{fresh}.{n}": 1 for n in range(7)}
    message = on(
        broker, lambda manager: manager.message(f"{fresh}_SUMS", last_for=f"sums.{fresh}.3")
    )
    amounts = [n / 2 for n in range(700) if n % 7 == 3]
    assert json.loads(message.data) == {"n": 100, "amount": sum(amounts)}


def test_console_shows_rows(broker: Broker, cli: Run, fresh: str, tmp_path: Path) -> None:
    make_stream(broker, fresh)
    publish(broker, [(f"{fresh}.a", "grüße".encode()), (f"{fresh}.b", b"\xff")])
    spec = write_spec(
        tmp_path,
        f"""\
name: {fresh}
source: {{stream: {fresh}}}
decode: {{format: text, on_error: skip}}
transform: SELECT seq, value FROM input
sink: {{type: console}}
trigger: once
checkpoint: ckpt
""",
    )
    done = cli("pipeline", "run", str(spec), "-s", broker.url)
    assert done.code == 0, done.err
    assert "│ 1   │ grüße │" in done.out
    assert "│ 2" not in done.out


def avro_messages(stream: str) -> tuple[str, list[Any]]:
    import io

    import fastavro

    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": ["null", "string"]}],
    }
    messages: list[Any] = []
    for n in range(50):
        out = io.BytesIO()
        row = {"id": n, "city": f"c{n}" if n % 2 else None}
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        messages.append((f"{stream}.a", out.getvalue()))
    messages.append((f"{stream}.a", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
    return json.dumps(schema), messages


def test_avro_into_a_delta_table(broker: Broker, cli: Run, fresh: str, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    make_stream(broker, fresh)
    schema, messages = avro_messages(fresh)
    publish(broker, messages)
    (tmp_path / "order.avsc").write_text(schema)
    spec = write_spec(
        tmp_path,
        f"""\
name: {fresh}
source: {{stream: {fresh}}}
decode: {{format: avro, schema_file: order.avsc, on_error: dead_letter}}
transform: SELECT seq, id, city FROM input
sink: {{type: delta, path: table}}
dead_letter: {{type: parquet, path: dead}}
trigger: once
limits: {{max_offsets: 30}}
checkpoint: ckpt
""",
    )
    done = cli("pipeline", "run", str(spec), "-s", broker.url)
    assert done.code == 0, done.err
    table = deltalake.DeltaTable(tmp_path / "table")
    rows = table.to_pyarrow_table().sort_by("seq")
    assert rows["id"].to_pylist() == list(range(50))
    assert rows["city"].to_pylist() == [f"c{n}" if n % 2 else None for n in range(50)]
    assert table.version() == 1, "one version a batch"
    assert len(files_of(tmp_path / "dead")) == 1


def test_a_replayed_batch_is_not_written_twice(spark: "SparkSession", tmp_path: Path) -> None:
    from jsctl.spark.pipeline.outputs import DeltaOutput, ParquetOutput

    pytest.importorskip("deltalake")
    rows = spark.range(10)
    for output in (DeltaOutput(str(tmp_path / "d"), ()), ParquetOutput(str(tmp_path / "p"))):
        output.open("me")
        assert not output.has(0)
        assert output.write(rows, 0) == 10
        assert output.has(0)
        assert not output.has(1)
        output.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("SELECT id", "SELECT idd"), "idd"),
        (("SELECT id", "SELEC id"), "is not a query"),
        (("stream: NAME", "stream: NAMEX"), "stream NAMEX not found"),
        (("on_error: skip", "on_error: fail"), "NAME#1 on NAME.0.new is not json"),
        (("{type: parquet, path: out}", "{type: parquet, path: /proc/nowhere}"), "/proc/nowhere"),
        (("{type: parquet, path: out}", "{type: parquet, path: out, partition_by: [city]}"),
         "no column city"),
        (("{type: parquet, path: out}", "{type: jetstream, subject: x}"), "needs a column data"),
        (("{type: parquet, path: out}", "{type: jetstream, subject: nobody.listens}"), "data"),
    ],
)  # fmt: skip
def test_what_cannot_run_says_why(
    broker: Broker,
    cli: Run,
    fresh: str,
    tmp_path: Path,
    change: tuple[str, str],
    words: str,
) -> None:
    make_stream(broker, fresh)
    publish(broker, orders(fresh, 5, bad_every=10))
    text = """\
name: NAME
source: {stream: NAME}
decode: {format: json, schema: "id BIGINT", on_error: skip}
transform: SELECT id FROM input
sink: {type: parquet, path: out}
trigger: once
checkpoint: ckpt
"""
    spec = write_spec(tmp_path, text.replace(*change).replace("NAME", fresh))
    done = cli("pipeline", "run", str(spec), "-s", broker.url)
    assert (done.code, done.out) == (1, "")
    assert words.replace("NAME", fresh) in done.err
    _, *hints = done.err.splitlines()
    assert len(hints) <= 3 and all(one.startswith("  ") for one in hints), "one line, no trace"
    assert "Traceback" not in done.err
    assert not list((tmp_path / "out").glob("batch=*"))
