"""At which times of day a user may be connected, and for how long it still may."""

from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from jsctl.broker.errors import ConfigError

SECOND_NS = 1_000_000_000
LOCAL = ("", "Local")


class HoursUnknown(ConfigError):
    """Times, or a time zone, that nobody can read."""


def open_for_ns(hours: tuple[tuple[str, str], ...], zone: str, now_ns: int) -> int:
    """How long the longest of the ranges that are open now stays so; 0: none is open. Raises
    HoursUnknown. A range whose end is before its start goes over midnight."""
    now = datetime.fromtimestamp(now_ns / SECOND_NS, UTC).astimezone(_zone(zone))
    left = timedelta()
    for start, end in hours:
        left = max(left, _left(_at(now, start), _at(now, end), now))
    return int(left / timedelta(microseconds=1)) * 1000


def _zone(name: str) -> tzinfo | None:
    """None: that of the machine."""
    if name in LOCAL:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise HoursUnknown(f"unknown time zone {name}") from None


def _at(now: datetime, text: str) -> datetime:
    """A time of the day of `now`."""
    try:
        return datetime.combine(now.date(), time.fromisoformat(text), now.tzinfo)
    except ValueError:
        raise HoursUnknown(f"{text!r} is no time of day") from None


def _left(start: datetime, end: datetime, now: datetime) -> timedelta:
    if start < now < end:
        return end - now
    if start > end:
        if now < end:
            return end - now
        if start < now:
            return end + timedelta(days=1) - now
    return timedelta()
