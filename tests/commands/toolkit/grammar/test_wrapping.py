"""Lines of help: none longer than there is room for, whatever the room."""

import pytest

from jsctl.commands.toolkit.grammar.wrapping import WIDTH, help_width, wrapped

TEXT = "Sets the size of a message, in bytes. Larger ones are refused"


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (80, [TEXT]),
        (40, ["Sets the size of a message, in bytes.", "Larger ones are refused"]),
        (45, ["Sets the size of a message, in bytes.", "Larger ones are refused"]),
        (24, ["Sets the size of a", "message, in bytes.", "Larger ones are refused"]),
        (1, TEXT.split()),
    ],
)
def test_lines_end_where_a_sentence_pauses(width: int, lines: list[str]) -> None:
    assert wrapped(TEXT, width) == lines


def test_nothing_is_one_empty_line() -> None:
    assert wrapped("", 10) == [""]


@pytest.mark.parametrize(
    ("told", "width"),
    [("120", 120), ("20", 20), ("0", WIDTH), ("-5", None), ("x", None), ("9" * 50, None)],
)
def test_the_room_is_what_columns_says(told: str, width: int | None) -> None:
    assert help_width({"COLUMNS": told}) == (width or help_width({}))
