"""Machine formats: what is written can be read back."""

import csv
import io
import json
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.stream import StreamConfig
from jsctl.render.column import Column
from jsctl.render.formats import (
    as_json,
    as_json_line,
    as_yaml,
    document_row,
    document_rows,
    render_rows,
)
from jsctl.render.table import as_markdown
from tests.support.quick import examples

Row = tuple[str, int]
COLUMNS: tuple[Column[Row], ...] = (
    Column("name", "Name", lambda row: row[0]),
    Column("count", "Count", lambda row: row[1], lambda row: f"{row[1]:,}"),
)
ROWS: list[Row] = [("a|b", 1000), ("c, d", 2)]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"), max_size=8)
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=examples(200), deadline=None)
@given(plain_values)
def test_yaml_reads_back_to_the_same_data(value: object) -> None:
    assert yaml.safe_load(as_yaml(value)) == value


@pytest.mark.parametrize(
    "word", ["no", "on", "1e3", "007", "null", "", " x", "a: b", "- a", "x:", "=", "1_0"]
)
def test_yaml_quotes_what_would_be_something_else(word: str) -> None:
    assert yaml.safe_load(as_yaml({"key": word})) == {"key": word}


def test_rows_in_every_format() -> None:
    objects = [{"name": "a|b", "count": 1000}, {"name": "c, d", "count": 2}]
    assert json.loads(render_rows(ROWS, COLUMNS, "json")) == objects
    lines = render_rows(ROWS, COLUMNS, "jsonl").splitlines()
    assert [json.loads(line) for line in lines] == objects
    assert yaml.safe_load(render_rows(ROWS, COLUMNS, "yaml")) == objects
    read = list(csv.DictReader(io.StringIO(render_rows(ROWS, COLUMNS, "csv"))))
    assert read == [{"name": "a|b", "count": "1000"}, {"name": "c, d", "count": "2"}]
    assert render_rows(ROWS, COLUMNS, "tsv") == "name\tcount\na|b\t1000\nc, d\t2"
    assert render_rows(ROWS, COLUMNS, "names") == "a|b\nc, d"
    assert render_rows(ROWS, COLUMNS, "md", title="T") == (
        "# T\n| Name | Count |\n| --- | --- |\n| a\\|b | 1,000 |\n| c, d | 2 |"
    )


def test_what_is_true_or_false_is_so_in_rows_as_in_documents() -> None:
    columns = [Column[bool]("on", "On", lambda row: row), Column("all", "All", lambda row: [row])]
    assert render_rows([True, False], columns, "csv") == "on,all\ntrue,true\nfalse,false"
    assert document_rows([{"on": True}], "csv") == "on\ntrue"


def test_empty_reports() -> None:
    assert render_rows([], COLUMNS, "json") == "[]"
    assert render_rows([], COLUMNS, "yaml") == "[]"
    assert render_rows([], COLUMNS, "names") == ""
    assert as_markdown(["A"], []) == "| A |\n| ---:|"
    assert as_markdown(["A", "B"], [[1, "x"], [2.5, 3]]).splitlines()[1] == "| ---:| --- |"


def test_api_objects_are_printed_with_the_servers_names() -> None:
    document = json.loads(as_json({"made": [StreamConfig(name="S", num_replicas=3)]}))
    assert document["made"][0]["num_replicas"] == 3
    assert as_json_line({"ü": "<&>"}) == '{"ü":"<&>"}'


@pytest.mark.parametrize("write", [as_json, as_json_line])
def test_json_has_nothing_that_a_terminal_obeys(write: Callable[[object], str]) -> None:
    odd = {"a\x1b[2J\x9b2J\x7f": ["\u202egnp.exe", "\u2028", "\ud800", "ü\u3000✓"]}
    text = write(odd)
    assert json.loads(text) == odd
    assert "ü\u3000✓" in text
    assert not set("\x1b\x9b\x7f\u202e\u2028\ud800") & set(text)


def test_documents_that_come_one_by_one_keep_the_columns_of_the_first() -> None:
    documents = [{"a": 1, "b": {"c": "x"}}, {"b": {"d": [2]}, "e": 'y, "z"'}, {"a": 2, "b": {}}]
    lines, keys = list[str](), None
    for one in documents:
        text, keys = document_row(one, "csv", keys, varied=True)
        lines.append(text)
    rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
    assert [list(row) for row in rows] == [["a", "b.c", "rest"]] * 3
    assert [row["a"] for row in rows] == ["1", "", "2"]
    rest = [json.loads(row["rest"]) if row["rest"] else None for row in rows]
    assert rest == [None, {"b.d": [2], "e": 'y, "z"'}, {"b": {}}]


def test_a_key_that_merges_others_is_a_text() -> None:
    assert yaml.safe_load(as_yaml({"<<": "x", "a": "<<"})) == {"<<": "x", "a": "<<"}


def test_a_title_moves_no_cursor() -> None:
    assert as_markdown(["A"], [["x"]], "t\x1b") == "# t\\x1b\n| A |\n| --- |\n| x |"


def test_a_line_end_in_a_value_ends_no_row() -> None:
    text = render_rows([("a\rb", 1), ("c\r\nd", 2)], COLUMNS, "csv")
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read[1:] == [["a\rb", "1"], ["c\r\nd", "2"]]
