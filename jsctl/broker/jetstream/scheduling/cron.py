"""Cron expressions of six fields, and when they are due next.

Which expressions are valid, and what they mean where clocks are put forward or back, is as in the
real server, which goes forward from the second behind a moment and looks at one field after the
other: months, days, hours, minutes, seconds. So does this, with leaps where nothing lies between.
An expression that is not due within five years is none.
"""

import re
from calendar import timegm
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from jsctl.api.times import civil_date

OffsetAt = Callable[[int], int]
"""Seconds that local time is ahead of UTC at a Unix time in seconds."""

_YEARS_MAX = 5
_DAY_S = 86_400
_EXPRESSION_LENGTH_KEPT = 120
_SPACES = re.compile("[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_NUMBER = re.compile("[+-]?[0-9]+")
_DAYS_OF_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class _Field(NamedTuple):
    low: int
    high: int
    names: dict[str, int]


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_FIELDS = (
    _Field(0, 59, {}),
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_STAR = 1 << 63


class Cron(NamedTuple):
    """An expression; bit n of a field is set where n is one of its values."""

    second: int
    minute: int
    hour: int
    day: int
    month: int
    weekday: int

    def fits(self, days: int, day: int) -> bool:
        """Whether a day, counted from 1970-01-01, is one of those in the month or the week."""
        of_month = bool(self.day >> day & 1)
        of_week = bool(self.weekday >> (days + 4) % 7 & 1)
        if (self.day | self.weekday) & _STAR:
            return of_month and of_week
        return of_month or of_week


def parse_cron(text: str) -> Cron | None:
    """The expression, which is due some time; None if it is not valid."""
    return _parse_kept(text) if len(text) <= _EXPRESSION_LENGTH_KEPT else _parse(text)


def _parse(text: str) -> Cron | None:
    words = _SPACES.split(text.strip("\t\n\v\f\r \x85\xa0"))
    if len(words) != len(_FIELDS):
        return None
    fields: list[int] = []
    for word, field in zip(words, _FIELDS, strict=True):
        bits = _bits(word, field)
        if not bits:
            return None
        fields.append(bits)
    found = Cron(*fields)
    return found if _comes(found) else None


_parse_kept = lru_cache(1024)(_parse)


def _comes(cron: Cron) -> bool:
    """Whether one of its months has one of its days."""
    if cron.day & _STAR or not cron.weekday & _STAR:
        return True
    lengths = [days for month, days in enumerate(_DAYS_OF_MONTH, 1) if cron.month >> month & 1]
    return any(cron.day >> day & 1 for day in range(1, max(lengths) + 1))


def _bits(word: str, field: _Field) -> int:
    """The values of a field; 0 if it is not valid, or has none."""
    bits = 0
    for part in word.split(","):
        if part:
            found = _range(part, field)
            if not found:
                return 0
            bits |= found
    return bits


def _range(part: str, field: _Field) -> int:
    ends, *steps = part.split("/")
    low, *rest = ends.split("-")
    star = 0
    first: int | None
    last: int | None
    if low in ("*", "?"):
        first, last, star = field.low, field.high, _STAR
    else:
        first = last = _number(low, field.names)
        if rest:
            last = _number(rest[0], field.names) if len(rest) == 1 else None
    step: int | None = 1
    if steps:
        step = _number(steps[0], {}) if len(steps) == 1 else None
        last = last if rest else field.high
        star = star if step == 1 else 0
    if first is None or last is None or not step:
        return 0
    if not field.low <= first <= last <= field.high:
        return 0
    return sum([1 << value for value in range(first, last + 1, step)]) | star


def _number(text: str, names: dict[str, int]) -> int | None:
    named = names.get(text.lower())
    if named is not None:
        return named
    if _NUMBER.fullmatch(text) is None:
        return None
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > 18 or (text[0] == "-" and digits != "0"):
        return None
    return int(digits)


class _Moment:
    """A second, and what clocks show in its zone."""

    __slots__ = ("_offset_at", "at", "day", "days", "month", "of_day", "offset", "year")

    def __init__(self, at: int, offset_at: OffsetAt) -> None:
        self._offset_at = offset_at
        self._go(at)

    def _go(self, at: int) -> None:
        self.at = at
        self.offset = self._offset_at(at)
        self.days, self.of_day = divmod(at + self.offset, _DAY_S)
        self.year, self.month, self.day = civil_date(self.days)

    def _show(self, days: int, of_day: int) -> None:
        """Be where clocks show this. Which of the times around it is taken if they never do, or do
        twice, follows from what is looked up first."""
        local = days * _DAY_S + of_day
        offset = self._offset_at(local)
        if offset:
            offset = self._offset_at(local - offset)
        self._go(local - offset)

    def cut(self, unit_s: int) -> None:
        """Be at the beginning of the minute or second, which is the same in all zones, or at what
        clocks show at the beginning of the hour or day."""
        if unit_s < 3600:
            self._go(self.at - self.at % unit_s)
        else:
            self._show(self.days, self.of_day - self.of_day % unit_s)

    def cut_month(self) -> None:
        """Be at what clocks show at the beginning of the month."""
        self._show(self.days - self.day + 1, 0)

    def next_month(self) -> bool:
        """The same time on the same day of the next month; False if a year begins."""
        year, month = (self.year + 1, 1) if self.month == 12 else (self.year, self.month + 1)
        first = timegm((year, month, 1, 0, 0, 0)) // _DAY_S
        self._show(first + self.day - 1, self.of_day)
        return self.month != 1

    def next_day(self) -> bool:
        """The same time on the next day; False if a month begins."""
        self._show(self.days + 1, self.of_day)
        return self.day != 1

    def leap(self, bits: int, size: int, unit_s: int) -> bool:
        """Go on to the next value of a field that has `size` of them, `unit_s` each, or to the
        next place to look from; False if that is the field's beginning."""
        value = self.of_day // unit_s % size
        ahead = (bits & ((1 << size) - 1)) >> value
        steps = (ahead & -ahead).bit_length() - 1 if ahead else size - value
        at = self.at + steps * unit_s
        if self._offset_at(at) == self.offset:
            self._go(at)
        else:
            # Clocks are put forward or back on the way: it is gone step by step.
            self._go(self.at + unit_s)
        return self.of_day // unit_s % size != 0


def next_time(cron: Cron, after_ns: int, offset_at: OffsetAt) -> int | None:
    """When an expression is due next behind a moment, in seconds; None within five years."""
    moment = _Moment(after_ns // 1_000_000_000 + 1, offset_at)
    last_year = moment.year + _YEARS_MAX
    exact = True
    while moment.year <= last_year:
        found, exact = _look(cron, moment, exact)
        if found:
            return moment.at
    return None


_TIMES = ((2, 24, 3600), (1, 60, 60), (0, 60, 1))
"""Fields of a day: where in an expression, how many values, seconds of each."""


def _look(cron: Cron, moment: _Moment, exact: bool) -> tuple[bool, bool]:
    """Go on until all fields fit or one of them begins anew. `exact`: where the search began
    counts, not yet where a unit of time does."""
    while not cron.month >> moment.month & 1:
        if exact:
            exact = False
            moment.cut_month()
        if not moment.next_month():
            return False, exact
    while not cron.fits(moment.days, moment.day):
        if exact:
            exact = False
            moment.cut(_DAY_S)
        if not moment.next_day():
            return False, exact
    return _look_in_day(cron, moment, exact)


def _look_in_day(cron: Cron, moment: _Moment, exact: bool) -> tuple[bool, bool]:
    for field, size, unit_s in _TIMES:
        while not cron[field] >> moment.of_day // unit_s % size & 1:
            if exact:
                exact = False
                moment.cut(unit_s)
            if not moment.leap(cron[field], size, unit_s):
                return False, exact
    return True, exact
