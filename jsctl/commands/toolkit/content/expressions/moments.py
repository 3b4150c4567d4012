"""Times and lengths of time in expressions, with the methods that they have in Go."""

from collections.abc import Callable, Mapping
from functools import partial

from jsctl.api.times import (
    HOUR_NS,
    MINUTE_NS,
    SECOND_NS,
    civil_date,
    format_duration,
    parse_duration,
    parse_time,
)
from jsctl.dataclass import dataclass

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time."""

    ns: int

    def __str__(self) -> str:
        return format_duration(self.ns)

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, as nanoseconds since the Unix epoch."""

    ns: int

    def moved(self, by: Span) -> "Moment":
        """The time that is so much later."""
        return Moment(self.ns + by.ns)

    def since(self, other: "Moment") -> Span:
        """What lies between."""
        return Span(self.ns - other.ns)

    def __str__(self) -> str:
        seconds, fraction = divmod(self.ns, SECOND_NS)
        days, rest = divmod(seconds, _DAY_S)
        year, month, day = civil_date(days)
        clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        part = f".{fraction:09}".rstrip("0") if fraction else ""
        return f"{year:04}-{month:02}-{day:02} {clock}{part} +0000 UTC"

    __repr__ = __str__


def moment_of(text: object) -> Moment:
    """The time that a text tells: RFC 3339, a date, or a date and a time of day in UTC.

    Raises ValueError.
    """
    if isinstance(text, Moment):
        return text
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no date")
    for form in ("{}", "{}T00:00:00Z", "{}Z"):
        try:
            return Moment(parse_time(form.format(text.replace(" ", "T", 1) or "-")))
        except ValueError:
            continue
    raise ValueError(f"invalid date {text}")


def span_of(text: object) -> Span:
    """The length that a text tells in the units of Go, or of nanoseconds. Raises ValueError."""
    if isinstance(text, Span):
        return text
    if isinstance(text, int) and not isinstance(text, bool):
        return Span(text)
    if not isinstance(text, str):
        raise TypeError(f"{text!r} is no length of time")
    return Span(parse_duration(text, go_only=True))


def method_of(value: object, name: str) -> Callable[..., object]:
    """What is called as `value.name(...)`; a text is the time that it tells. Raises ValueError."""
    if isinstance(value, str) and name in _OF_MOMENTS:
        value = moment_of(value)
    for kind, methods in _METHODS:
        if isinstance(value, kind) and name in methods:
            return partial(methods[name], value)
    raise ValueError(f"{value!r} has no method {name}")


def _date(at: int) -> Callable[[Moment], int]:
    return lambda moment: civil_date(moment.ns // SECOND_NS // _DAY_S)[at]


def _clock(size: int, count: int) -> Callable[[Moment], int]:
    return lambda moment: moment.ns // size % count


def _moment(value: object) -> Moment:
    if not isinstance(value, Moment):
        raise TypeError(f"{value!r} is no date")
    return value


def _span(value: object) -> Span:
    if not isinstance(value, Span):
        raise TypeError(f"{value!r} is no length of time")
    return value


_OF_MOMENTS: Mapping[str, Callable[..., object]] = {
    **{"Year": _date(0), "Month": _date(1), "Day": _date(2)},
    "Hour": _clock(HOUR_NS, 24),
    "Minute": _clock(MINUTE_NS, 60),
    "Second": _clock(SECOND_NS, 60),
    "Nanosecond": _clock(1, SECOND_NS),
    "Unix": lambda moment: moment.ns // SECOND_NS,
    "UnixMilli": lambda moment: moment.ns // 1_000_000,
    "UnixMicro": lambda moment: moment.ns // 1_000,
    "UnixNano": lambda moment: moment.ns,
    "Add": lambda moment, span: moment.moved(_span(span)),
    "Sub": lambda moment, other: moment.since(_moment(other)),
    "Before": lambda moment, other: moment.ns < _moment(other).ns,
    "After": lambda moment, other: moment.ns > _moment(other).ns,
    "Equal": lambda moment, other: moment == _moment(other),
    "UTC": lambda moment: moment,
    "String": str,
}
_OF_SPANS: Mapping[str, Callable[..., object]] = {
    "Hours": lambda span: span.ns / HOUR_NS,
    "Minutes": lambda span: span.ns / MINUTE_NS,
    "Seconds": lambda span: span.ns / SECOND_NS,
    "Milliseconds": lambda span: int(span.ns / 1_000_000),
    "Microseconds": lambda span: int(span.ns / 1_000),
    "Nanoseconds": lambda span: span.ns,
    "String": str,
}
_METHODS: tuple[tuple[type, Mapping[str, Callable[..., object]]], ...] = (
    (Moment, _OF_MOMENTS),
    (Span, _OF_SPANS),
)
