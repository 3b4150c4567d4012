"""Small words that all endpoints share: times, lengths, numbers, refusals."""

from collections.abc import Sequence
from typing import TypeVar

from jsctl.api.times import format_time

T = TypeVar("T")

SECOND_NS = 1_000_000_000
UINT64_MASK = 2**64 - 1
CONNECTIONS_LISTED = 1024
"""Page of connections and subscriptions when the request names no limit."""


class Refused(Exception):
    """The request cannot be answered; the text is told to whoever asked."""


class Absent(Refused):
    """There is none of it: a page says so, and an answer in a message has nothing in it."""


class NotMine(Exception):
    """Another server answers, or nobody: stay silent."""


def uptime(length_ns: int) -> str:
    """A length of time as `1y2d3h4m5s`, starting with the largest unit that is not zero."""
    seconds = max(length_ns, 0) // SECOND_NS
    minutes, hours = seconds // 60, seconds // 3600
    days, years = hours // 24, hours // 24 // 365
    text = f"{seconds % 60}s"
    for count, shown in (
        (minutes, f"{minutes % 60}m"),
        (hours, f"{hours % 24}h"),
        (days, f"{days % 365}d"),
        (years, f"{years}y"),
    ):
        if count:
            text = shown + text
    return text


def time_or_nothing(time_ns: int) -> str:
    """A time, empty (left out) when it never came."""
    return format_time(time_ns) if time_ns else ""


def number(value: float) -> float:
    """A float as Go writes it: without `.0` when it is whole."""
    return int(value) if value == int(value) else value


def unsigned(value: int) -> int:
    """-1 (unlimited) as the unsigned number that the real server shows."""
    return value & UINT64_MASK


def page(items: Sequence[T], offset: int, limit: int) -> Sequence[T]:
    """A window on a list; out of range is empty."""
    start = min(max(offset, 0), len(items))
    return items[start : start + limit]
