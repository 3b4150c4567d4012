"""Numbers as they are written in a template."""

import re

from jsctl.api.strict import quoted
from jsctl.commands.toolkit.templating.quoting import unquoted

INT64_MAX, INT64_MIN, UINT64_MAX = 2**63 - 1, -(2**63), 2**64 - 1
_OCTAL = re.compile(r"([+-]?)0([0-7_]+)")
_UNDERSCORES = re.compile(r"__|_$|^[+-]?_|_\.|\._")


class Complex(complex):
    """One with an imaginary part."""


def number_of(written: str) -> object:
    """Its value: int, float or Complex. Raises ValueError in Go's words."""
    if written.startswith("'"):
        return _character(written)
    if written.endswith("i"):
        return _complex(written)
    whole = _integer(written)
    if whole is not None:
        return whole
    try:
        value = float.fromhex(written) if "x" in written.lower() else _float(written)
    except (ValueError, OverflowError):
        raise ValueError(f"illegal number syntax: {quoted(written)}") from None
    if not any(sign in written for sign in ".eEpP"):
        raise ValueError(f"integer overflow: {quoted(written)}")
    return value


def _character(written: str) -> int:
    try:
        text = unquoted(written)
    except ValueError:
        raise ValueError(f"malformed character constant: {written}") from None
    if len(text) != 1:
        raise ValueError(f"malformed character constant: {written}")
    return ord(text)


def _integer(written: str) -> int | None:
    try:
        octal = _OCTAL.fullmatch(written)
        value = int(f"{octal[1]}{octal[2]}", 8) if octal else int(written, 0)
    except ValueError:
        return None
    return value if INT64_MIN <= value <= UINT64_MAX else None


def _float(written: str) -> float:
    if _UNDERSCORES.search(written):
        raise ValueError(written)
    value = float(written)
    if value in (float("inf"), float("-inf")):
        raise OverflowError(written)
    return value


def _complex(written: str) -> Complex:
    at = max(written.rfind("+"), written.rfind("-"))
    try:
        real = _float(written[:at]) if at > 0 else 0.0
        return Complex(real, _float(written[max(at, 0) : -1]))
    except (ValueError, OverflowError):
        raise ValueError(f"illegal number syntax: {quoted(written)}") from None
