"""What the values of a template are called and look like."""

import math
from collections.abc import Callable, Mapping

from jsctl.dataclass import dataclass

NO_VALUE = "<no value>"
_PLAIN_EXPONENTS = 6


@dataclass(frozen=True, slots=True)
class Callee:
    """A function of a template: what it takes (`rest`: any number more of that), and its work.

    It raises ValueError with what is wrong.
    """

    run: Callable[..., object]
    takes: tuple[str, ...] = ()
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A value with fields and methods, and the name of its type."""

    name: str
    fields: Mapping[str, object]
    methods: Mapping[str, Callee]


class Long(int):
    """A number whose type has 64 bits by name."""

    __slots__ = ()


class Unsigned(int):
    """A byte of a text."""

    __slots__ = ()


def type_of(value: object) -> str:
    """As Go calls it."""
    if isinstance(value, Record):
        return value.name
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    return "<nil>"


def truth(value: object) -> bool:
    """Of `if` and `and`."""
    return True if isinstance(value, Record) else bool(value)


def shown(value: object) -> str:
    """As `%v` writes it."""
    if value is None:
        return "<nil>"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return general(value)
    if isinstance(value, complex):
        imaginary = general(value.imag)
        sign = "" if imaginary.startswith(("+", "-")) else "+"
        return f"({general(value.real)}{sign}{imaginary}i)"
    if isinstance(value, Mapping):
        pairs = (f"{shown(key)}:{shown(value[key])}" for key in sorted(value))
        return f"map[{' '.join(pairs)}]"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(shown, value))}]"
    if isinstance(value, Record):
        return f"&{{{' '.join(map(shown, value.fields.values()))}}}"
    return str(value)


def general(value: float, digits: int = -1, *, upper: bool = False) -> str:
    """A float in the shortest form that is read back as the same, or with so many digits."""
    if not math.isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    text = f"{value:.{max(digits, 1) - 1}e}" if digits >= 0 else _shortest(value)
    mantissa, _, power = text.partition("e")
    exponent = int(power)
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    count = len(mantissa.lstrip("-").replace(".", ""))
    limit = max(digits, 1)
    if limit > count > exponent:
        limit = count
    if -4 <= exponent < (limit if digits >= 0 else _PLAIN_EXPONENTS):
        found = _plain(mantissa, exponent)
    else:
        found = f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return found.upper() if upper else found


def _shortest(value: float) -> str:
    digits = len(repr(value).partition("e")[0].lstrip("-").replace(".", "").strip("0")) or 1
    for places in range(digits - 1, 18):
        text = f"{value:.{places}e}"
        if float(text) == value:
            return text
    return f"{value:.17e}"


def _plain(mantissa: str, exponent: int) -> str:
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    rest = digits[exponent + 1 :]
    return f"{sign}{whole}{f'.{rest}' if rest else ''}"


_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (Unsigned, "uint8"),
    (Long, "int64"),
    (int, "int"),
    (float, "float64"),
    (complex, "complex128"),
    (str, "string"),
    (list, "[]interface {}"),
    (tuple, "[]interface {}"),
    (dict, "map[string]interface {}"),
)
