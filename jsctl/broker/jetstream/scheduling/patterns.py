"""What a schedule says: once at a time, at each interval, or by the calendar.

    @at 2027-01-02T03:04:05Z      once
    @every 90s                    at each interval, from a second or more
    @hourly  0 30 6 * * mon-fri   by the calendar of UTC or of a time zone

Which are valid is as in the real server.
"""

import re
from calendar import timegm
from typing import NamedTuple

from jsctl.api.times import SECOND_NS, civil_date, parse_duration
from jsctl.broker.jetstream.scheduling.cron import OffsetAt, next_time, parse_cron

NEVER_NS = (1 << 63) - 1
"""The last moment that can be told: what is due later is due then."""
_AT = "@at "
_EVERY = "@every "
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_NAMED = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
_ZERO_NS = -62_135_596_800 * SECOND_NS
"""The first moment of the year 1 stands for no time at all."""


class Due(NamedTuple):
    """When a schedule is due, in ns; whether again and again, and then as text."""

    at_ns: int
    text: str = ""

    @property
    def repeats(self) -> bool:
        """Whether it is due again and again."""
        return bool(self.text)


def next_due(text: str, zone: OffsetAt | None, after_ns: int, now_ns: int) -> Due | None:
    """When a schedule is due that was due, or stored, at `after_ns`; None if it is not valid.

    What was missed by `now_ns` is due once, not as often as it was missed. `zone` is the one that
    was asked for, if any.
    """
    if text.startswith(_AT):
        at_ns = None if zone is not None else parse_at(text[len(_AT) :])
        return None if at_ns is None else Due(min(at_ns, NEVER_NS))
    if text.startswith(_EVERY):
        return None if zone is not None else _every(text[len(_EVERY) :], after_ns, now_ns)
    return _by_calendar(_NAMED.get(text, text), zone, after_ns, now_ns)


def is_no_schedule(due: Due) -> bool:
    """Whether it names the moment that stands for none."""
    return due.at_ns == _ZERO_NS


def _every(text: str, after_ns: int, now_ns: int) -> Due | None:
    try:
        interval_ns = parse_duration(text, go_only=True)
    except ValueError:
        return None
    if interval_ns < SECOND_NS:
        return None
    at_ns = _round(after_ns) + interval_ns
    if at_ns < now_ns:
        at_ns = _round(now_ns) + interval_ns
    at_ns = min(at_ns, NEVER_NS)
    return Due(at_ns, written(at_ns, 0))


def _by_calendar(text: str, zone: OffsetAt | None, after_ns: int, now_ns: int) -> Due | None:
    cron = parse_cron(text)
    if cron is None:
        return None
    offset_at = zone or _no_offset
    at = next_time(cron, after_ns, offset_at)
    if at is not None and at * SECOND_NS < now_ns:
        at = next_time(cron, _round(now_ns), offset_at)
    if at is None:
        return None
    return Due(min(at * SECOND_NS, NEVER_NS), written(at * SECOND_NS, offset_at(at)))


def _no_offset(at: int) -> int:
    return 0


def _round(at_ns: int) -> int:
    """To whole seconds; halves up."""
    return (at_ns + SECOND_NS // 2) // SECOND_NS * SECOND_NS


def parse_at(text: str) -> int | None:
    """A time as RFC 3339 has it, in ns; None if it is none."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    if not (1 <= month <= 12 and day >= 1 and hour < 24 and minute < 60 and second < 60):
        return None
    seconds = timegm((year or 400, month, 1, hour, minute, second)) + (day - 1) * 86_400
    if civil_date(seconds // 86_400)[1] != month:
        return None
    seconds -= 0 if year else 146_097 * 86_400
    if found[8]:
        hours, minutes = int(found[9]), int(found[10])
        if hours > 24 or minutes > 60:
            return None
        offset = hours * 3600 + minutes * 60
        seconds -= offset if found[8] == "+" else -offset
    return seconds * SECOND_NS + int((found[7] or "0")[:9].ljust(9, "0"))


def written(at_ns: int, offset: int) -> str:
    """A time as RFC 3339 has it, in a zone so many seconds ahead of UTC."""
    seconds, fraction = divmod(at_ns, SECOND_NS)
    days, rest = divmod(seconds + offset, 86_400)
    year, month, day = civil_date(days)
    text = f"{year:04}-{month:02}-{day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    if fraction:
        text += "." + f"{fraction:09}".rstrip("0")
    if not offset:
        return text + "Z"
    minutes = abs(offset) // 60
    return f"{text}{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
