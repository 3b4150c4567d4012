"""At which times of day a user may be connected, and for how long it still may."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from jsctl.broker.errors import ConfigError

SECOND_NS = 1_000_000_000
LOCAL = ("", "Local")
DAY = timedelta(days=1)


class HoursUnknown(ConfigError):
    """Times, or a time zone, that nobody can read."""


def open_for_ns(hours: tuple[tuple[str, str], ...], zone: str, now_ns: int) -> int:
    """How long the longest of the ranges that are open now stays so; 0: none is open. Raises
    HoursUnknown. A range whose end is before its start goes over midnight. Where clocks are set
    meanwhile, what passes until they show the end."""
    place, now = _zone(zone), datetime.fromtimestamp(now_ns / SECOND_NS, UTC)
    day = now.astimezone(place).date()
    left = timedelta()
    for start, end in hours:
        times = _time(start), _time(end)
        left = max(left, _left(*times, day, place, now))
    return int(left / timedelta(microseconds=1)) * 1000


def _zone(name: str) -> tzinfo | None:
    """None: that of the machine."""
    if name in LOCAL:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise HoursUnknown(f"unknown time zone {name}") from None


def _time(text: str) -> time:
    try:
        return time.fromisoformat(text)
    except ValueError:
        raise HoursUnknown(f"{text!r} is no time of day") from None


def _left(start: time, end: time, day: date, place: tzinfo | None, now: datetime) -> timedelta:
    begins, ends = _at(day, start, place), _at(day, end, place)
    if begins < now < ends:
        return ends - now
    if begins > ends:
        if now < ends:
            return ends - now
        if begins < now:
            return _at(day + DAY, end, place) - now
    return timedelta()


def _at(day: date, clock: time, place: tzinfo | None) -> datetime:
    """When clocks show that. Of a time that comes twice, or that is skipped, nats-server has one of
    the two that it may mean; it is the same one here."""
    shown = datetime.combine(day, clock, UTC)
    ahead = _ahead(shown, place)
    return shown - _ahead(shown - ahead, place) if ahead else shown


def _ahead(instant: datetime, place: tzinfo | None) -> timedelta:
    """How far clocks are ahead of UTC."""
    return instant.astimezone(place).utcoffset() or timedelta()
