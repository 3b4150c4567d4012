"""The looks of an answer: formats, boxes, columns that fit."""

import io

import pytest

from jsctl.commands.toolkit.invocation.output import Output, make_output
from jsctl.render.column import Column


@pytest.mark.parametrize(
    ("environ", "form", "corner"),
    [
        ({}, "table", "╭"),
        ({"NATS_TABLE_FORMAT": "markdown"}, "table", "╭"),
        ({"NATS_TABLE_FORMAT": "csv"}, "table", "╭"),
        ({"LLMFORMAT": "1"}, "table", "╭"),
        ({"LLMFORMAT": "0"}, "table", "╭"),
        ({"JSCTL_ASCII": "1"}, "table", "+"),
        ({"TERM": "dumb"}, "table", "+"),
    ],
)
def test_the_environment_chooses_the_looks(environ: dict[str, str], form: str, corner: str) -> None:
    output = make_output("", "", environ)
    assert (output.form, output.theme.box.top[0]) == (form, corner)
    assert make_output("yaml", "", environ).form == "yaml"


def test_tables_as_they_are_drawn_and_those_for_programs() -> None:
    environ = {"NATS_TABLE_FORMAT": "csv"}
    assert make_output("", "", environ).theme.separator == ","
    for markdown in ({"NATS_TABLE_FORMAT": "md"}, {"LLMFORMAT": "1"}):
        theme = make_output("", "", markdown).theme
        assert (theme.pipes, theme.markdown) == (True, "LLMFORMAT" in markdown)
        assert not make_output("md", "", {"NATS_TABLE_FORMAT": "md"}).theme.pipes
    asked = make_output("csv", "", environ)
    assert (asked.form, asked.theme.separator) == ("csv", "")


def test_columns_of_low_priority_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    columns: tuple[Column[str], ...] = (
        Column("a", "A" * 30, lambda row: row),
        Column("b", "B" * 30, lambda row: row, priority=2),
        Column("c", "C" * 30, lambda row: row, priority=1),
    )
    monkeypatch.setattr(Output, "width", 80)
    output = make_output("", "", {})
    assert [column.key for column in output.fitting(["x"], columns)] == ["a", "c"]


def test_a_sentence_moves_no_cursor() -> None:
    """It may name what others have named; an answer is as it is."""
    out = io.StringIO()
    output = Output(out, io.StringIO())
    output.say("of a\x1b\n\tb")
    output.print("c\x1b")
    assert out.getvalue() == "of a\\x1b\n\tb\nc\x1b\n"
