"""Values on the command line: text that has been checked against its option's kind."""

from jsctl.api.times import parse_duration
from jsctl.commands.toolkit.grammar.spec import Kind, Option
from jsctl.errors import UsageError

Value = str | bool | tuple[str, ...] | None

_SIZE_UNITS = {"": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(text: str) -> int:
    """Bytes of `512`, `1K`, `5MB`, `2GiB`, all 1024-based; empty or negative is -1."""
    text = text.strip()
    if not text or text.startswith("-"):
        return -1
    digits = text.rstrip("kKmMgGtTiIbB ")
    unit = text[len(digits) :].strip().upper().replace("IB", "").rstrip("B") or ""
    try:
        return int(float(digits) * 1024 ** _SIZE_UNITS[unit])
    except (KeyError, ValueError):
        raise UsageError(f"invalid bytes specification {text!r}") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"expected a whole number, got '{text}'") from None


def check_value(option: Option, text: str) -> str:
    """The text, if it fits the option's kind and choices; raises UsageError."""
    if option.choices and text not in option.choices:
        words = ",".join(option.choices)
        raise UsageError(f"enum value must be one of {words}, got '{text}'")
    try:
        if option.kind is Kind.INTEGER:
            _whole(text)
        elif option.kind is Kind.DURATION:
            parse_duration(text)
        elif option.kind is Kind.SIZE:
            parse_size(text)
        elif option.kind is Kind.MAP and not any(mark in text for mark in "=:"):
            raise UsageError(f"expected KEY:VALUE or KEY=VALUE, got '{text}'")
    except ValueError as error:
        raise UsageError(f"--{option.name}: {error}") from None
    return text
