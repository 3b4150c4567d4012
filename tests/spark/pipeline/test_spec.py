"""Specifications: every problem is found at once, with file, line and remedy, without Spark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jsctl.errors import NotFound
from jsctl.spark.pipeline.plan import input_columns
from jsctl.spark.pipeline.specification.document import BadDocument, parse_size
from jsctl.spark.pipeline.specification.spec import Spec, parse_spec
from jsctl.spark.pipeline.specification.spec import load_spec as load
from jsctl.spark.pipeline.specification.templates import template

GOOD = """\
name: orders-lake
source:   {stream: ORDERS, filter: ["orders.*.paid"], start: earliest, headers: true}
decode:   {format: json, schema: "id BIGINT, amount DOUBLE", on_error: dead_letter}
transform: |
  SELECT subject, seq, timestamp, id, amount FROM input WHERE amount > 0
sink:     {type: parquet, path: lake/orders, partition_by: [day], compression: zstd}
dead_letter: {type: jetstream, subject: dlq.orders}
trigger:  {every: 10s}
limits:   {max_offsets: 200_000, max_bytes: 64MB, partitions: 4}
checkpoint: ${HOME_OF_IT}/orders
spark:    {master: "local[*]", memory: 1g, conf: {spark.sql.shuffle.partitions: 4}}
"""


def read(text: str) -> Spec:
    return parse_spec(text, "/srv/orders.yaml", {"HOME_OF_IT": "/ckpt"})


def problems(text: str) -> dict[str, tuple[int, str]]:
    with pytest.raises(BadDocument) as caught:
        read(text)
    return {one.key: (one.line, one.text) for one in caught.value.problems}


def test_a_whole_specification() -> None:
    spec = read(GOOD)
    assert (spec.name, spec.source.stream, spec.source.filter) == (
        "orders-lake",
        "ORDERS",
        ("orders.*.paid",),
    )
    assert spec.sink.path == "/srv/lake/orders", "relative to the file"
    assert spec.checkpoint == "/ckpt/orders", "variables are put in"
    assert spec.trigger.every == 10_000_000_000
    assert (spec.limits.max_offsets, spec.limits.max_bytes) == (200_000, 64 * 1024**2)
    assert spec.spark.conf == {"spark.sql.shuffle.partitions": "4"}
    assert spec.dead_letter is not None
    assert spec.dead_letter.subject == "dlq.orders"
    assert input_columns(spec)[-3:] == ("value", "id", "amount")


def test_all_problems_come_with_their_lines() -> None:
    found = problems("""\
name: orders lake
source: {streem: ORDERS, start: yesterday}
decode:
  format: json
  schema: "id BIGNIT"
  on_error: dead_leter
transform: DELETE FROM x
sink: {type: console, path: /lake}
trigger: {every: 10 parsecs}
limits: {max_offsets: many, partitions: -1}
spark: {master: moon}
colour: blue
""")
    lines = {key: line for key, (line, _) in found.items()}
    assert lines == {
        "name": 1,
        "checkpoint": 1,
        "source": 2,
        "source.streem": 2,
        "source.start": 2,
        "decode.schema": 5,
        "decode.on_error": 6,
        "transform": 7,
        "sink.path": 8,
        "trigger.every": 9,
        "limits.max_offsets": 10,
        "limits.partitions": 10,
        "spark.master": 11,
        "colour": 12,
    }
    assert "did you mean stream?" in found["source.streem"][1]
    assert "unknown type BIGNIT" in found["decode.schema"][1]


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("text", "key", "line", "words"),
    [
        (changed("HOME_OF_IT", "NOWHERE"), "checkpoint", 10, "no variable NOWHERE"),
        (changed("${HOME_OF_IT}", "lake"), "checkpoint", 10, "must not lie in"),
        (changed("${HOME_OF_IT}/orders", "lake/orders/c"), "checkpoint", 10, "must not lie in"),
        (changed("dead_letter: {type: jetstream, subject: dlq.orders}\n", ""), "decode.on_error", 3,
         "needs a section"),
        (changed("on_error: dead_letter", "on_error: skip"), "dead_letter", 7, "is used only"),
        (changed("{every: 10s}", "never"), "trigger", 8, "neither once"),
        (changed("{every: 10s}", "{every: 1s, once: true}"), "trigger", 8, "exclude each other"),
        (changed("ORDERS,", "ORDERS, archive: /a,"), "source.archive", 2, "not both"),
        (changed("stream: ORDERS,", "archive: /a,"), "trigger", 8, "does not grow"),
        (changed("path: lake/orders", "path: s3://bucket/x"), "sink.path", 6, "only directories"),
        (changed("format: json", "format: text"), "decode.schema", 3, "is for json"),
        (changed("FROM input", "FROM elsewhere"), "transform", 4, "does not read from input"),
        (changed("> 0\n", "> 0; SELECT 1 FROM input\n"), "transform", 4, "more than one"),
        (changed("dlq.orders", "dlq.>"), "dead_letter.subject", 7, "wildcards"),
        (changed("name: orders-lake", "name: a\nname: b"), "name", 2, "stands twice"),
        (changed("{spark.sql.shuffle.partitions: 4}", "5"), "spark.conf", 11, "expected keys"),
    ],
)  # fmt: skip
def test_one_problem(text: str, key: str, line: int, words: str) -> None:
    found = problems(text)
    assert found[key][0] == line
    assert words in found[key][1]


@pytest.mark.parametrize("text", ["", "- a", "a: [", "just words", "a: 1\n\tb: 2"])
def test_what_is_no_specification(text: str) -> None:
    with pytest.raises(BadDocument):
        read(text)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        load(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("sink", ["parquet", "delta", "jetstream", "console"])
def test_templates_are_valid(sink: str) -> None:
    spec = read(template("orders", "ORDERS", sink, "orders.yaml"))
    assert spec.sink.type == sink


def test_sizes() -> None:
    assert [parse_size(text) for text in ("512", "64MB", "2 GiB", "1.5k")] == [
        512,
        64 * 1024**2,
        2 * 1024**3,
        1536,
    ]
    with pytest.raises(ValueError):
        parse_size("much")


@pytest.mark.processes
def test_neither_java_nor_spark_is_touched(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(template("orders", "ORDERS", "parquet", "orders.yaml"))
    code = (
        "import sys, json; from jsctl.cli import main\n"
        f"main(['pipeline', 'validate', {str(path)!r}, '-j'])\n"
        "print(json.dumps([m for m in ('pyspark', 'pyarrow', 'py4j', 'matplotlib') "
        "if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []
