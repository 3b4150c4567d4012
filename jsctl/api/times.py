"""Times and lengths of time between text and nanoseconds, as Go writes them."""

import re
from functools import lru_cache

from jsctl.api.fields import ZERO_TIME

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS
DAY_S = 86_400
SECONDS_KEPT = 8
"""Whose words are kept: an answer tells some times, and most of them are those of now."""

_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{1,2}):([0-9]{2}):([0-9]{2})"
    r"(?:[.,]([0-9]{1,9})[0-9]*)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
"""All that `time_error` finds nothing wrong with, and a little more."""
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w|M|y)")
_DURATION_NS_END = 1 << 63
_DURATION_CHARACTERS_MAX = 200
"""No duration within 64 bits is written with more by anybody."""
_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "h": HOUR_NS,
    "d": DAY_NS,
    "w": 7 * DAY_NS,
    "M": 30 * DAY_NS,
    "y": 365 * DAY_NS,
}
_GO_UNITS = frozenset({"ns", "us", "µs", "μs", "ms", "s", "m", "h"})
_ZERO_NS = -62135596800 * SECOND_NS
_DAYS_OF_CYCLE = 146_097
"""Days in the 400 years after which the calendar repeats."""


def parse_time(text: str) -> int:
    """Nanoseconds since the Unix epoch; 0 for the server's zero time and for empty text.

    Raises ValueError for text that is not RFC 3339.
    """
    if not text or text == ZERO_TIME:
        return 0
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"not a RFC 3339 time: {text!r}")
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60):
        raise ValueError(f"not a RFC 3339 time: {text!r}")
    seconds = _days_until(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second
    zone = found[8]
    if zone not in "Zz":
        offset = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
        seconds -= offset if zone[0] == "+" else -offset
    return seconds * SECOND_NS + int((found[7] or "").ljust(9, "0") or 0)


_LAYOUT = "2006-01-02T15:04:05Z07:00"
_TWO = r"[0-9]{2}"
_ELEMENTS = (
    *(("2006", r"[0-9]{4}", 0, 9999, ""), ("-", "-", 0, 0, ""), ("01", _TWO, 1, 12, "month")),
    *(("-", "-", 0, 0, ""), ("02", _TWO, 1, 31, "day"), ("T", "T", 0, 0, "")),
    *(("15", r"[0-9]{1,2}", 0, 23, "hour"), (":", ":", 0, 0, "")),
    *(("04", _TWO, 0, 59, "minute"), (":", ":", 0, 0, "")),
    *(("05", _TWO, 0, 59, "second"), ("Z07:00", r"Z|[+-][0-9]{2}:[0-9]{2}", 0, 0, "")),
)
"""Element of the layout, what it looks like, its least and greatest number, its name."""
_FRACTION = re.compile(r"[.,][0-9]+")


def time_error(text: str) -> str:
    """What follows `parsing time "..."` in Go's words; empty if it is RFC 3339."""
    rest = text
    day = [0, 0, 0]
    for at, (element, looks, low, high, name) in enumerate(_ELEMENTS):
        found = re.match(looks, rest)
        if found is None:
            return f' as "{_LAYOUT}": cannot parse "{rest}" as "{element}"'
        if high and not low <= int(found[0]) <= high:
            return f": {name} out of range"
        if at in (0, 2, 4):
            day[at // 2] = int(found[0])
        rest = rest[found.end() :]
        if element == "05" and (fraction := _FRACTION.match(rest)):
            rest = rest[fraction.end() :]
    if rest:
        return f': extra text: "{rest}"'
    if day[2] > _days_of(day[0], day[1]):
        return ": day out of range"
    return ""


def _days_of(year: int, month: int) -> int:
    if month == 2:
        return 28 + (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    return 30 if month in (4, 6, 9, 11) else 31


def format_time(time_ns: int) -> str:
    """RFC 3339 in UTC without trailing zeros; 0 gives the server's zero time."""
    if time_ns == 0 or time_ns == _ZERO_NS:
        return ZERO_TIME
    seconds, fraction = divmod(time_ns, SECOND_NS)
    if fraction:
        return f"{_second(seconds)}." + f"{fraction:09}".rstrip("0") + "Z"
    return f"{_second(seconds)}Z"


@lru_cache(SECONDS_KEPT)
def _second(seconds: int) -> str:
    days, rest = divmod(seconds, DAY_S)
    year, month, day = civil_date(days)
    return f"{year:04}-{month:02}-{day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def _days_until(year: int, month: int, day: int) -> int:
    """The inverse of `civil_date`, for year 0 too, which Go knows and the library does not."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * _DAYS_OF_CYCLE + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil_date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a count of days since 1970-01-01."""
    days += 719_468
    era, of_era = divmod(days, _DAYS_OF_CYCLE)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    day = of_year - (153 * shifted + 2) // 5 + 1
    return year + era * 400 + (month <= 2), month, day


def parse_duration(text: str, *, go_only: bool = False) -> int:
    """Nanoseconds of `1h30m`, `250ms`, `1y2M3d`, `1h 30m`; `M` has 30 days and `y` 365.

    `go_only` accepts only the units of Go itself (up to hours). Raises ValueError.
    """
    trimmed = text if go_only else text.strip(" ,")
    sign = -1 if trimmed.startswith("-") else 1
    rest = trimmed[1:] if trimmed[:1] in ("+", "-") else trimmed
    if rest == "0":
        return 0
    if len(rest) > _DURATION_CHARACTERS_MAX:
        raise ValueError("a duration of so many characters is not understood")
    total = 0.0
    whole = 0
    at = 0
    while at < len(rest):
        if not go_only and rest[at] in " ,":
            at += 1
            continue
        found = _DURATION_PART.match(rest, at)
        if found is None or (go_only and found[2] not in _GO_UNITS):
            break
        if "." in found[1]:
            total += float(found[1]) * _UNIT_NS[found[2]]
        else:
            whole += int(found[1]) * _UNIT_NS[found[2]]
        at = found.end()
    if not rest or at < len(rest) or whole + total >= _DURATION_NS_END:
        raise ValueError(f"invalid duration {text!r}")
    return sign * (whole + round(total))


def format_duration(duration_ns: int) -> str:
    """As Go prints a duration: `1h2m3.5s`, `1.5ms`, `0s`."""
    if duration_ns == 0:
        return "0s"
    sign = "-" if duration_ns < 0 else ""
    rest = abs(duration_ns)
    if rest < SECOND_NS:
        for unit, size in (("ms", 1_000_000), ("µs", 1_000), ("ns", 1)):
            if rest >= size:
                return f"{sign}{_decimal(rest, size)}{unit}"
    hours, rest = divmod(rest, HOUR_NS)
    minutes, rest = divmod(rest, MINUTE_NS)
    text = f"{_decimal(rest, SECOND_NS)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def _decimal(value: int, size: int) -> str:
    whole, part = divmod(value, size)
    if not part:
        return str(whole)
    digits = len(str(size)) - 1
    return f"{whole}.{part:0{digits}}".rstrip("0")
