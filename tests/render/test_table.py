"""Tables, info screens, and columns: golden output."""

import re

import pytest

from jsctl.render.column import Column, documents, sort_rows
from jsctl.render.details import Details
from jsctl.render.table import safe, table, width_of
from jsctl.render.theme import ASCII, Theme, theme_of


def test_a_table_has_its_title_inside() -> None:
    text = table(
        ["Stream", "Bytes", "N"],
        [["ORDERS", "38 KiB", 3], ["LOGS", "1.0 GiB", 12]],
        title="Stream Report",
        footer=["", "1.0 GiB", 15],
    )
    assert text == (
        "╭───────────────────────╮\n"
        "│     Stream Report     │\n"
        "├────────┬─────────┬────┤\n"
        "│ Stream │ Bytes   │  N │\n"
        "├────────┼─────────┼────┤\n"
        "│ ORDERS │ 38 KiB  │  3 │\n"
        "│ LOGS   │ 1.0 GiB │ 12 │\n"
        "├────────┼─────────┼────┤\n"
        "│        │ 1.0 GiB │ 15 │\n"
        "╰────────┴─────────┴────╯"
    )


def test_odd_space_beside_a_title_goes_left() -> None:
    assert table(["Abcd"], [["x"]], title="Tit").splitlines()[1] == "│  Tit │"


def test_a_title_longer_than_the_table_wraps() -> None:
    lines = table(["Ab"], [["xyz"]], title="one two").splitlines()
    assert lines[1:3] == ["│ one │", "│ two │"]


def test_tables_without_title_headings_or_rows() -> None:
    assert table(["A"], []) == "╭───╮\n│ A │\n├───┤\n╰───╯"
    assert table([], [["a", "b"], ["c"]], title="T").splitlines()[3:5] == ["│ a │ b │", "│ c │   │"]


def test_rules_between_groups_of_rows() -> None:
    lines = table(["A"], [["x"], ["y"], ["z"]], rules_after={0, 2}).splitlines()
    assert [line[0] for line in lines] == list("╭│├│├││╰")


def test_ascii_and_colours() -> None:
    assert table(["A"], [["x"]], theme=Theme(box=ASCII)) == "+---+\n| A |\n+---+\n| x |\n+---+"
    red = table(["A"], [["x"]], theme=theme_of("red", colour=True))
    assert red.startswith("\x1b[31m╭───╮\x1b[0m")
    assert table(["A"], [["x"]], theme=theme_of("red", colour=False)) == table(["A"], [["x"]])
    assert table(["A"], [["x"]], theme=theme_of("double", colour=False))[0] == "╔"
    assert theme_of("red", colour=True).paint("", "red") == ""


def test_cells_are_kept_on_one_line_and_wide_ones_counted() -> None:
    assert safe("a\nb\x1b[0m") == "a\\nb\\x1b[0m"
    assert width_of("日本") == 4
    assert width_of("é") == 1
    lines = table(["A"], [["日本"], ["abcd"]]).splitlines()
    assert lines[3:5] == ["│ 日本 │", "│ abcd │"]


def test_rows_are_cut_only_when_asked() -> None:
    assert table(["Abcdefgh"], [["x"]], width_max=8).splitlines()[1] == "│ Abcd ≈"


def test_a_title_is_whole_above_columns_that_are_cut() -> None:
    lines = table(["Name", "Description"], [["a", "x" * 40]], title="All", width_max=20).split("\n")
    assert lines[:4] == [
        "╭──────────────────╮",
        "│        All       │",
        "├──────┬────────── ≈",
        "│ Name │ Descripti ≈",
    ]


def test_colours_and_wide_letters_are_cut_where_they_are_seen() -> None:
    red = theme_of("red", colour=True)
    lines = table(["A"], [["日本日本"], ["abcdefgh"]], width_max=9, theme=red).split("\n")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    assert plain[3:5] == ["│ 日本 ≈", "│ abcde ≈"]
    assert all(width_of(line) <= 9 for line in plain)
    assert all(line.count("\x1b[0m") == line.count("\x1b[31m") for line in lines)


def test_an_info_screen() -> None:
    screen = Details("Information for Stream S")
    screen.row("Replicas", 3)
    screen.row_if("Sealed", False)
    screen.section("Options")
    screen.row("Direct Get", True)
    screen.section("Empty")
    screen.section("State")
    screen.rows("Alternates", ["A", "B"])
    assert screen.render() == (
        "Information for Stream S\n"
        "\n"
        "    Replicas: 3\n"
        "\n"
        "Options:\n"
        "\n"
        "  Direct Get: true\n"
        "\n"
        "State:\n"
        "\n"
        "  Alternates: A\n"
        "              B\n"
    )
    assert screen.sections() == {
        "": {"Replicas": "3"},
        "Options": {"Direct Get": "true"},
        "State": {"Alternates": "A\nB"},
    }


NUMBERS: tuple[Column[int], ...] = (
    Column("n", "N", lambda row: row, lambda row: f"{row:,}", sort=lambda row: -row),
    Column("half", "Half", lambda row: row / 2, raw=lambda row: row // 2),
    Column("list", "List", lambda row: [row]),
)


def test_columns_show_sort_and_export() -> None:
    assert sort_rows([1, 3, 2], NUMBERS, "n") == [3, 2, 1]
    assert sort_rows([1, 3, 2], NUMBERS, "half", reverse=True) == [3, 2, 1]
    assert [column.cell(3000) for column in NUMBERS] == ["3,000", 1500.0, "[3000]"]
    assert [column.cell(3000, raw=True) for column in NUMBERS] == [3000, 1500, "[3000]"]
    assert documents([4], NUMBERS) == [{"n": 4, "half": 2.0, "list": [4]}]
    with pytest.raises(StopIteration):
        sort_rows([1], NUMBERS, "other")
