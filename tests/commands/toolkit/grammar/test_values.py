"""Text on the command line: sizes, and what does not fit its option."""

import pytest

from jsctl.commands.toolkit.grammar.spec import Argument, Kind, Option
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
        (Kind.SPAN, "-5m"),
        (Kind.SIZE, "1X"),
        (Kind.MAP, "novalue"),
    ):
        with pytest.raises(UsageError):
            check_value(Option("o", "", kind), wrong)


@pytest.mark.parametrize(
    ("text", "bits"), [("0", 64), ("0x_f", 64), (str(2**64 - 1), 64), ("65535", 16)]
)
def test_numbers_without_a_sign_have_so_many_bits(text: str, bits: int) -> None:
    for declared in (
        Option("n", "", Kind.UNSIGNED, bits=bits),
        Argument("n", "", kind=Kind.UNSIGNED, bits=bits),
    ):
        assert check_value(declared, text) == str(int(text, 0))


@pytest.mark.parametrize(
    ("text", "bits", "told"),
    [
        ("-1", 64, "not negative"),
        ("+5", 64, "without a sign"),
        ("-0", 64, "without a sign"),
        ("65536", 16, "at most 16 bits"),
        (str(2**32), 32, "at most 32 bits"),
        (str(2**64), 64, "a whole number"),
        ("", 64, "a whole number"),
    ],
)
def test_what_is_no_number_without_a_sign_is_refused(text: str, bits: int, told: str) -> None:
    with pytest.raises(UsageError, match=f"^--n: expected .*{told}"):
        check_value(Option("n", "", Kind.UNSIGNED, bits=bits), text)


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
