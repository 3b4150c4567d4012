"""Values on the command line: text that has been checked against its option's kind."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jsctl.api.times import parse_duration
from jsctl.commands.toolkit.grammar.spec import Argument, Kind, Option
from jsctl.errors import UsageError

Value = str | bool | tuple[str, ...] | None

_COUNT = re.compile(r"[0-9]{1,20}")
_DECIMAL = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_WORD_END = 2**64
_DIGITS_MAX = 80
_SIZE = re.compile(r"\+?([0-9]+)(?:\.([0-9]*))?\s*(?:([kmgt])(?:i?b)?|b)?", re.IGNORECASE)
_SIZE_UNITS = "KMGT"
SIZE_MAX = 2**63 - 1


def parse_size(text: str) -> int:
    """Bytes of `512`, `1.5K`, `5MB`, `2GiB`, all 1024-based; empty or negative is -1.

    Raises UsageError for anything else, and for more than 63 bits hold.
    """
    if not text or text.strip().startswith("-"):
        return -1
    found = _SIZE.fullmatch(text.strip()) if len(text) < _DIGITS_MAX else None
    if found is None:
        raise UsageError(
            f"invalid bytes specification {text!r}: bytes end in B, K, KB, M, MB, G, GB, T or TB"
        )
    whole, part, unit = found[1], found[2] or "", (found[3] or "").upper()
    thousands = _SIZE_UNITS.index(unit) + 1 if unit else 0
    size = (int(whole + part) << 10 * thousands) // int("1" + "0" * len(part))
    if size > SIZE_MAX:
        raise UsageError(f"invalid bytes specification {text!r}: the maximum is {SIZE_MAX:,}")
    return size


def parse_age(text: str) -> int:
    """Nanoseconds; -1 and nothing mean no limit. Raises ValueError."""
    if text in ("", "-1", "0"):
        return 0
    found = parse_duration(text)
    if found < 0:
        raise ValueError(f"expected a duration that is not negative, or -1 for none, got '{text}'")
    return found


def parse_span(text: str) -> int:
    """Nanoseconds. Raises ValueError."""
    found = parse_duration(text)
    if found < 0:
        raise ValueError(f"expected a duration that is not negative, got '{text}'")
    return found


def parse_whole(text: str) -> int:
    """A number of 64 bits, also as `0x1f`, `0o17`, `0b11` or `1_000`. Raises ValueError."""
    return _parsed(text, -_WORD_END // 2, _WORD_END // 2)


def _parsed(text: str, least: int, end: int) -> int:
    """Zeros in front of a decimal number mean nothing."""
    found = None
    if text.isascii() and text == text.strip() and len(text) < _DIGITS_MAX:
        with suppress(ValueError):
            found = int(text, 10 if _DECIMAL.fullmatch(text) else 0)
    if found is None or not least <= found < end:
        raise ValueError(f"expected a whole number, got '{text}'")
    return found


def is_count(text: str) -> bool:
    """Whether a text is a number of plain digits, of 64 bits at the most."""
    return bool(_COUNT.fullmatch(text)) and int(text) < _WORD_END


def parse_unsigned(text: str) -> int:
    """As `parse_whole`, without a sign: all 64 bits count. Raises ValueError."""
    found = _parsed(text, -_WORD_END // 2, _WORD_END)
    if found < 0:
        raise ValueError(f"expected a number that is not negative, got '{text}'")
    if text[0] in "+-":
        raise ValueError(f"expected a number without a sign, got '{text}'")
    return found


def parse_counted(text: str) -> int:
    """A number with a sign or of all 64 bits: one that was checked before. Raises ValueError."""
    return _parsed(text, -_WORD_END // 2, _WORD_END)


def _pair(text: str) -> None:
    if not any(mark in text for mark in "=:"):
        raise ValueError(f"expected KEY:VALUE or KEY=VALUE, got '{text}'")


def must_be_there(path: str, kind: Kind) -> None:
    """Raises UsageError without a file (INPUT) or directory (FOLDER) of that name."""
    found = Path(path).expanduser()
    if not path or not found.exists():
        raise UsageError(f"path '{path}' does not exist")
    if found.is_dir() and kind is Kind.INPUT:
        raise UsageError(f"'{path}' is a directory")
    if not found.is_dir() and kind is Kind.FOLDER:
        raise UsageError(f"'{path}' is a file")


_CHECKS: dict[Kind, Callable[[str], object]] = {
    Kind.INTEGER: parse_whole,
    Kind.UNSIGNED: parse_unsigned,
    Kind.DURATION: parse_duration,
    Kind.AGE: parse_age,
    Kind.SPAN: parse_span,
    Kind.SIZE: parse_size,
    Kind.MAP: _pair,
}


def check_value(declared: Option | Argument, text: str) -> str:
    """The text, if it fits the kind and choices of what it is for; raises UsageError."""
    if declared.choices and text not in declared.choices:
        words = ",".join(declared.choices)
        raise UsageError(f"enum value must be one of {words}, got '{text}'")
    if declared.kind in (Kind.INPUT, Kind.FOLDER):
        must_be_there(text, declared.kind)
    check = _CHECKS.get(declared.kind)
    try:
        found = check(text) if check is not None else None
        if declared.kind is Kind.UNSIGNED and parse_unsigned(text) >> declared.bits:
            raise ValueError(f"expected a number of at most {declared.bits} bits, got '{text}'")
    except (ValueError, UsageError) as error:
        place = f"--{declared.name}" if isinstance(declared, Option) else declared.name
        raise UsageError(f"{place}: {error}") from None
    return str(found) if declared.kind in (Kind.INTEGER, Kind.UNSIGNED) else text
