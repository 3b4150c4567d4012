"""Numbers, sizes, times and lengths of time as people read them; the rules of natscli."""

import time
from collections.abc import Sequence
from decimal import Decimal

from jsctl.api.fields import NANOS_MAX
from jsctl.api.times import DAY_NS, HOUR_NS, MINUTE_NS, SECOND_NS, format_time, parse_time

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_YEAR_DAYS = 365
DECIMALS = 3


def number(value: int | float) -> str:
    """With thousands commas; with a fraction three decimals, of which none is rounded."""
    if isinstance(value, int):
        return f"{value:,}"
    whole, _, decimals = f"{Decimal(repr(value)):,f}".partition(".")
    return f"{whole}.{decimals[:DECIMALS]:0<{DECIMALS}}"


def counted(count: int, one: str, many: str = "") -> str:
    """`1 row`, `2 rows`; `many` where it is not `one` with an s."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def size(byte_count: int) -> str:
    """IEC units: one decimal below 10, none above."""
    if byte_count < 10:
        return f"{byte_count} B"
    value, unit = float(byte_count), 0
    while value >= 1024 and unit < len(_SIZES) - 1:
        value /= 1024
        unit += 1
    tenths = int(value * 10 + 0.5)
    if tenths < 100 and unit:
        return f"{tenths / 10:.1f} {_SIZES[unit]}"
    return f"{int(value + 0.5)} {_SIZES[unit]}"  # rounded once: 10.46 is no 10.5


def duration(duration_ns: int) -> str:
    """`231µs`, `35ms`, `12.34s`, `1m5s`, `3d2h1m0s`, `1y2d3h4m5s`, `never`."""
    if duration_ns >= NANOS_MAX:
        return "never"
    if duration_ns < 0:
        return "-" + duration(-duration_ns)
    if duration_ns < SECOND_NS:
        return _below_a_second(duration_ns)
    if duration_ns < MINUTE_NS:
        return f"{duration_ns / SECOND_NS:.2f}s"
    days, rest = divmod(duration_ns, DAY_NS)
    hours, rest = divmod(rest, HOUR_NS)
    minutes, rest = divmod(rest, MINUTE_NS)
    years, days = divmod(days, _YEAR_DAYS)
    parts = [(years, "y"), (days, "d"), (hours, "h"), (minutes, "m"), (rest // SECOND_NS, "s")]
    while parts[0][0] == 0:
        parts.pop(0)
    return "".join(f"{count}{unit}" for count, unit in parts)


def _below_a_second(duration_ns: int) -> str:
    if duration_ns == 0:
        return "0s"
    if duration_ns < 1_000_000:
        microseconds = (duration_ns + 500) // 1000
        return f"{microseconds}µs" if microseconds < 1000 else "1ms"
    milliseconds = (duration_ns + 500_000) // 1_000_000
    return f"{milliseconds}ms" if milliseconds < 1000 else "1s"


def moment(text: str) -> str:
    """An API time as local `2006-01-02 15:04:05`."""
    return moment_ns(parse_time(text))


def moment_ns(time_ns: int) -> str:
    """Nanoseconds of the Unix epoch as local time, as `moment_s`."""
    return moment_s(time_ns // SECOND_NS) if time_ns else "0001-01-01 00:00:00"


def moment_s(seconds: int) -> str:
    """Seconds of the Unix epoch as local time; as they stand where no calendar has that day."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, OSError, ValueError):
        return f"{seconds}s"


def go_moment(text: str) -> str:
    """An API time as Go prints times to programmers: `2006-01-02 15:04:05.5 +0000 UTC`."""
    return go_moment_ns(parse_time(text))


def go_moment_ns(time_ns: int) -> str:
    """The same from nanoseconds of the Unix epoch."""
    return format_time(time_ns).replace("T", " ").replace("Z", " +0000 UTC")


def since(then: str, now: str) -> str:
    """How long before `now`; `never` for a time that was never set."""
    then_ns = parse_time(then)
    return duration(parse_time(now) - then_ns) if then_ns else "never"


def boolean(value: bool) -> str:
    """`true` or `false`."""
    return "true" if value else "false"


def joined(items: Sequence[object]) -> str:
    """As one line."""
    return ", ".join(str(item) for item in items)


def limit(value: int, *, none_from: int = -1) -> str:
    """A limit, `unlimited` at or below `none_from`."""
    return "unlimited" if value <= none_from else number(value)


def compact(names: Sequence[str]) -> list[str]:
    """Names without the trailing dotted parts that all of them share; the first part stays."""
    if len(names) < 2:
        return [name.split(".")[0] if "." in name else name for name in names]
    split = [name.split(".") for name in names]
    shared = 0
    while all(len(parts) > shared + 1 for parts in split) and (
        len({parts[-1 - shared] for parts in split}) == 1
    ):
        shared += 1
    return [".".join(parts[: len(parts) - shared]) for parts in split]
