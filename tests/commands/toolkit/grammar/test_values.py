"""Text on the command line: sizes, and what does not fit its option."""

import pytest

from jsctl.commands.toolkit.grammar.spec import Kind, Option
from jsctl.commands.toolkit.grammar.values import check_value, is_count, parse_size
from jsctl.errors import UsageError


def test_values_are_checked_by_kind() -> None:
    assert parse_size("1K") == 1024
    assert parse_size("1.5MiB") == 3 * 512 * 1024
    assert parse_size("2GB") == 2 * 1024**3
    assert parse_size("") == parse_size("-5") == -1
    assert parse_size("9223372036854775807") == parse_size("+9223372036854775807b") == 2**63 - 1
    assert parse_size("0.0009765625 KiB") == 1
    for kind, wrong in (
        (Kind.INTEGER, "x"),
        (Kind.DURATION, "5 minutes"),
        (Kind.SIZE, "1X"),
        (Kind.MAP, "novalue"),
    ):
        with pytest.raises(UsageError):
            check_value(Option("o", "", kind), wrong)


NO_SIZES = [
    " ",
    "K",
    "1KK",
    "1Ki",
    "1e3",
    "1_000",
    "0x10",
    "nan",
    "infinity",
    "٣",
    "1.5.5",
    "8388608T",
    "9223372036854775808",
]


@pytest.mark.parametrize("text", [*NO_SIZES, "9" * 5000])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid bytes specification"):
        parse_size(text)


@pytest.mark.parametrize("text", ["0", "7", "007", str(2**64 - 1)])
def test_digits_are_a_count(text: str) -> None:
    assert is_count(text)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "²", "٣", "1_0", " 1", "1\n", "0x1", str(2**64), "9" * 5000]
)
def test_anything_else_is_none(text: str) -> None:
    """Least of all what Python's own parser chokes on."""
    assert not is_count(text)
