"""Variables of the environment are read as flags are; two of them say how tables are drawn."""

import pytest

from jsctl.commands.toolkit.grammar.values import parse_whole
from jsctl.render.details import Details
from jsctl.render.table import table
from jsctl.render.theme import Theme
from tests.commands.conftest import Result
from tests.commands.test_command_line import Run

ERRORS = ("errors", "ls", "insufficient resources")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NATS_COLOR", "beige", "enum value must be one of blue,"),
        ("NATS_CA", "nofile", "path 'nofile' does not exist"),
        ("NATS_CERT", "nofile", "path 'nofile' does not exist"),
        ("NATS_TIMEOUT", "soon", "--timeout: invalid duration 'soon'"),
    ],
)
def test_a_value_that_no_flag_would_take(
    name: str, value: str, said: str, cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    found: Result = cli(*ERRORS)
    assert (found.code, found.out) == (1, "")
    assert said in found.err


def test_a_flag_beats_a_wrong_variable(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_COLOR", "beige")
    assert cli(*ERRORS, "--colors", "blue").code == 0


@pytest.mark.parametrize(("form", "mark"), [("csv", ","), ("CSV", ","), ("tsv", "\t")])
def test_tables_without_boxes(
    form: str, mark: str, cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_TABLE_FORMAT", form)
    title, heads, *rows = cli(*ERRORS).out.rstrip().split("\n")
    assert title == "NATS Errors"
    assert heads.split(mark)[:2] == ["NATS Code", "HTTP Error Code"]
    assert all(row.startswith("1") and row.count(mark) == heads.count(mark) for row in rows)


def test_cells_that_hold_what_separates_them() -> None:
    comma, tab = Theme(separator=","), Theme(separator="\t")
    rows: list[list[str | int | float]] = [["a,b", 'say "x"'], [1]]
    assert table(["K", "V"], rows, title="T", theme=comma) == 'T\nK,V\n"a,b","say ""x"""\n1,'
    assert table(["K", "V"], [["a,b", "c    d"]], theme=tab) == 'K\tV\na,b\t"c    d"'


def test_a_footer_is_a_row_of_a_markdown_table() -> None:
    rows: list[list[str | int | float]] = [["a|b", 1]]
    made = table(["K", "N"], rows, title="T", footer=["sum"], theme=Theme(pipes=True))
    assert made == "# T\n| K | N |\n| --- | ---:|\n| a\\|b | 1 |\n| sum |  |"


def test_screens_as_markdown() -> None:
    screen = Details("About X")
    screen.row("Name", "x")
    screen.section("Empty")
    screen.section("Limits")
    screen.rows("Subjects", ["a", "b"])
    assert screen.render(Theme(markdown=True)) == (
        "# About X\n\n- **Name:** x\n\n## Limits\n\n- **Subjects:** a\n- b\n"
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("-7", -7),
        ("010", 10),
        ("0_1", 1),
        ("0x1f", 31),
        ("0o17", 15),
        ("0b11", 3),
        ("1_000", 1000),
    ],
)
def test_whole_numbers(text: str, number: int) -> None:
    assert parse_whole(text) == number


@pytest.mark.parametrize(
    "text", ["", " 1", "1.5", "1e3", "x", "0x", "1__0", "٣", "0x٣", str(2**63), "9" * 100]
)
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number"):
        parse_whole(text)


def test_help_behind_two_dashes_is_no_flag(cli: Run) -> None:
    found = cli("pub", "--server", "nats://127.0.0.1:1", "subject", "--", "--help")
    assert found.code == 1
    assert "no servers available" in found.err


def test_a_flag_given_twice_comes_with_the_page_of_its_command(cli: Run) -> None:
    found = cli("--user", "x", "stream", "ls", "--user", "y")
    assert found.err.startswith("error: flag 'user' cannot be repeated\n")
    assert found.out.startswith("usage: jsctl stream ls ")
