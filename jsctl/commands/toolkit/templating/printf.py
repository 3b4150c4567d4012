"""`printf` with the verbs of Go."""

import re
from collections.abc import Callable, Mapping, Sequence

from jsctl.api.strict import quoted
from jsctl.commands.toolkit.templating.values import general, shown, type_of
from jsctl.dataclass import dataclass

_VERB = re.compile(r"%([+\-# 0]*)(\*|[0-9]+)?(?:(\.)(\*|[0-9]+)?)?(.|$)", re.DOTALL)
WIDTH_MAX = 1_000_000
WRITTEN_MAX = 64 * 1024 * 1024
"""Of all values of a text with their widths; a few characters may ask for gigabytes."""


@dataclass(frozen=True, slots=True)
class _Spec:
    flags: str
    width: int
    precision: int
    verb: str

    def padded(self, text: str, *, zeros: bool = False, signed: bool = True) -> str:
        """In its width; zeros go behind the sign."""
        if "-" in self.flags:
            return text.ljust(self.width)
        if zeros and "0" in self.flags:
            sign = text[:1] if signed and text[:1] in ("+", "-", " ") else ""
            return sign + text[len(sign) :].rjust(self.width - len(sign), "0")
        return text.rjust(self.width)


class _Arguments:
    def __init__(self, values: Sequence[object]) -> None:
        self.values = values
        self.at = self.written = 0

    def take(self) -> object:
        """Raises IndexError behind the last one."""
        value = self.values[self.at]
        self.at += 1
        return value


def printf(form: str, *values: object) -> str:
    """The text; what does not fit stands in it as Go words that."""
    arguments = _Arguments(values)
    end = next((found for found in _VERB.finditer(form) if _endless(found)), None)
    text = _VERB.sub(lambda found: _written(found, arguments), form[: end and end.start()])
    if end:  # Go reads no further, and misses the verb.
        arguments.at = min(len(values), arguments.at + (end[2] == "*"))
        text += "%!(NOVERB)"
    rest = values[arguments.at :]
    if rest:
        left = ", ".join(
            "<nil>" if value is None else f"{type_of(value)}={shown(value)}" for value in rest
        )
        text += f"%!(EXTRA {left})"
    return text


def _endless(found: re.Match[str]) -> bool:
    """Whether a width or precision that stands there has more digits than Go looks at."""
    numbers = (text.lstrip("0") for text in found.group(2, 4) if text and text != "*")
    return any(int(digits[:-1][:9] or 0) > WIDTH_MAX for digits in numbers)


def _written(found: re.Match[str], arguments: _Arguments) -> str:
    flags, width, point, precision, verb = found.groups()
    if not verb:
        return "%!(NOVERB)"
    if verb == "%":
        return "%"
    problems, wide = _star(width, "WIDTH", arguments)
    more, exact = _star(precision if precision or not point else "0", "PREC", arguments)
    spec = _Spec(flags, wide or 0, -1 if exact is None else exact, verb)
    if spec.width < 0:
        spec = _Spec(f"{flags}-", -spec.width, spec.precision, verb)
    try:
        value = arguments.take()
    except IndexError:
        return f"{problems}{more}%!{verb}(MISSING)"
    text = f"{problems}{more}{_value(spec, value)}"
    arguments.written += len(text)
    _bounded(arguments.written)
    return text


def _star(given: str | None, what: str, arguments: _Arguments) -> tuple[str, int | None]:
    """A width or precision: a number, or the next argument."""
    if given != "*":
        return "", int(given) if given else None
    try:
        value = arguments.take()
    except IndexError:
        return f"%!(BAD{what})", None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > WIDTH_MAX:
        return f"%!(BAD{what})", None
    return ("", value) if what == "WIDTH" or value >= 0 else (f"%!(BAD{what})", None)


def _value(spec: _Spec, value: object) -> str:
    if spec.verb == "T":
        return spec.padded(type_of(value))
    if value is None:
        return spec.padded("<nil>") if spec.verb == "v" else f"%!{spec.verb}(<nil>)"
    if isinstance(value, list | tuple) and spec.verb not in "T":
        _bounded(max(spec.width, spec.precision) * _leaves(value))
        return f"[{' '.join(_value(spec, one) for one in value)}]"
    for kind, verbs in _VERBS:
        if isinstance(value, kind):
            write = verbs.get(spec.verb)
            return write(spec, value) if write else _wrong(spec, value)
    return spec.padded(shown(value)) if spec.verb in ("v", "s") else _wrong(spec, value)


def _leaves(value: object) -> int:
    """How many values are written for one."""
    return sum(map(_leaves, value)) if isinstance(value, list | tuple) else 1


def _bounded(length: int) -> None:
    if length > WRITTEN_MAX:
        raise ValueError(f"no more than {WRITTEN_MAX} characters")


def _wrong(spec: _Spec, value: object) -> str:
    plain = _Spec(spec.flags, spec.width, spec.precision, "v")
    return f"%!{spec.verb}({type_of(value)}={_value(plain, value)})"


def _truth(spec: _Spec, value: object) -> str:
    return spec.padded(shown(value))


def _text(spec: _Spec, value: object) -> str:
    text = str(value)
    cut = text if spec.precision < 0 else text[: spec.precision]
    if spec.verb == "q" or (spec.verb == "v" and "#" in spec.flags):
        cut = (
            f"`{cut}`" if spec.verb == "q" and "#" in spec.flags and "`" not in cut else quoted(cut)
        )
    elif spec.verb in "xX":
        cut = cut.encode("utf-8", "surrogateescape").hex(*((" ",) if " " in spec.flags else ()))
        cut = cut.upper() if spec.verb == "X" else cut
        cut = f"0{spec.verb}{cut}" if "#" in spec.flags and cut else cut
    return spec.padded(cut, zeros=True, signed=False)


_BASES = {"b": ("b", "0b"), "o": ("o", "0"), "O": ("o", "0o"), "x": ("x", "0x"), "X": ("X", "0X")}


def _number(spec: _Spec, value: object) -> str:
    assert isinstance(value, int)
    form, prefix = _BASES.get(spec.verb, ("d", ""))
    digits = format(abs(value), form)
    if spec.precision >= 0:
        digits = "" if spec.precision == 0 and not value else digits.rjust(spec.precision, "0")
    if spec.verb == "O" or ("#" in spec.flags and prefix):
        digits = prefix + digits
    sign = "-" if value < 0 else "+" if "+" in spec.flags else " " if " " in spec.flags else ""
    return spec.padded(sign + digits, zeros=spec.precision < 0)


_HALVES = range(0xD800, 0xE000)
"""Numbers of no characters: two of them are one in UTF-16."""


def _character(spec: _Spec, value: object) -> str:
    assert isinstance(value, int)
    try:
        sign = "\ufffd" if value in _HALVES else chr(value)
    except (ValueError, OverflowError):
        sign = "\ufffd"
    if spec.verb == "U":
        return spec.padded(f"U+{value:04X}" + (f" '{sign}'" if "#" in spec.flags else ""))
    return spec.padded(quoted(sign, "'") if spec.verb == "q" else sign)


def _float(spec: _Spec, value: object) -> str:
    assert isinstance(value, float)
    verb, precision = spec.verb.lower(), spec.precision
    if verb in "ef":
        text = f"{value:.{6 if precision < 0 else precision}{verb}}"
    else:
        text = general(value, precision, upper=spec.verb == "G")
    text = text.upper() if spec.verb in "EF" else text
    if not text.startswith(("-", "+")):
        text = ("+" if "+" in spec.flags else " " if " " in spec.flags else "") + text
    return spec.padded(text, zeros=True)


def _complex(spec: _Spec, value: object) -> str:
    assert isinstance(value, complex)
    plain = _Spec(spec.flags, 0, spec.precision, spec.verb)
    signed = _Spec(f"{spec.flags}+", 0, spec.precision, spec.verb)
    return spec.padded(f"({_float(plain, value.real)}{_float(signed, value.imag)}i)")


_Verbs = Mapping[str, Callable[[_Spec, object], str]]
_NUMBERS: _Verbs = {
    **dict.fromkeys("vdboOxX", _number),
    **dict.fromkeys("cqU", _character),
}
_VERBS: tuple[tuple[type, _Verbs], ...] = (
    (bool, dict.fromkeys("vt", _truth)),
    (int, _NUMBERS),
    (float, dict.fromkeys("veEfFgG", _float)),
    (complex, dict.fromkeys("veEfFgG", _complex)),
    (str, dict.fromkeys("vsqxX", _text)),
)
