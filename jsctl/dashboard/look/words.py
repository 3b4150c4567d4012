"""Numbers and foreign text as they stand in a cell: short, and safe to print.

Names, subjects, headers and payloads come from strangers. Control characters are shown as
pictures, so that no name can steer the terminal of the person who looks at it; marks that turn
the writing direction are shown as a dot, so that no name can dress up as another.
"""

import re
from time import localtime, strftime

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from jsctl.api.times import SECOND_NS

_BELOW_TEN = 9.995
_BELOW_HUNDRED = 99.95
_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
"""And halves of characters, which no terminal can be sent."""
_CLUSTERS = re.compile("[\u200b-\u200d\u2060\ufe00-\ufe0f\u0300-\u036f\u20d0-\u20ff]")
"""Marks that join or dress the character before: terminals disagree about their width."""


def clean(found: str) -> str:
    """The text with nothing in it that a terminal would obey."""
    if found.isascii() and found.isprintable():
        return found
    found = _CONTROLS.sub(_picture, found)
    return _CLUSTERS.sub("", _DIRECTIONS.sub("·", found))


def titled(found: str) -> Text:
    """Foreign text for the title of a frame, where plain strings are read as markup."""
    return Text(clean(found), no_wrap=True, end="")


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "␤" if code in (0x2028, 0x2029) else "·"


def fitted(found: str, width: int) -> str:
    """At most so many cells, cut with an ellipsis."""
    if width <= 0:
        return ""
    if found.isascii() and len(found) <= width:
        return found
    return found if cell_len(found) <= width else set_cell_size(found, width - 1).rstrip() + "…"


def short(value: float, *, none: str = "") -> str:
    """Three significant digits: `0`, `88`, `5.1k`, `12.4M`; `none` replaces zero."""
    if not value and none:
        return none
    size = abs(value)
    if size < 1000:
        return f"{value:.0f}" if size >= 10 or float(value).is_integer() else f"{value:.1f}"
    for unit in "kMGTP":
        value, size = value / 1000, size / 1000
        if size < 999.5 or unit == "P":
            break
    return f"{value:.1f}{unit}" if size < _BELOW_HUNDRED else f"{value:.0f}{unit}"


def short_bytes(value: float, *, none: str = "") -> str:
    """Three significant digits in units of 1024: `512B`, `8.1G`."""
    if not value and none:
        return none
    size = float(value)
    if size < 1000:
        return f"{size:.0f}B"
    for unit in "KMGTP":
        size /= 1024
        if size < 999.5 or unit == "P":
            break
    return f"{size:.1f}{unit}" if size < _BELOW_HUNDRED else f"{size:.0f}{unit}"


def short_time(duration_ns: float) -> str:
    """`410µs`, `3.9ms`, `12s`, `4m`, `3d 4h`."""
    if duration_ns < 1_000_000:
        return f"{duration_ns / 1000:.0f}µs"
    if duration_ns < SECOND_NS:
        value = duration_ns / 1_000_000
        return f"{value:.1f}ms" if value < _BELOW_TEN else f"{value:.0f}ms"
    seconds = int(duration_ns // SECOND_NS)
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if hours < 2:
        return f"{minutes}m"
    if days < 2:
        return f"{hours}h {minutes % 60}m"
    return f"{days}d {hours % 24}h"


def short_names(names: list[str]) -> dict[str, str]:
    """Names without what all share at the front and at the end, up to a dot or hyphen."""
    unique = sorted(set(names))
    if len(unique) < 2:
        return {name: name for name in unique}
    head = _shared(unique)
    tail = _shared([name[::-1] for name in unique])
    cut = {name: name[head : len(name) - tail if tail else None] for name in unique}
    good = all(cut.values()) and len(set(cut.values())) == len(unique)
    return cut if good else {name: name for name in unique}


def _shared(names: list[str]) -> int:
    """The length of the shared front that ends with a separator."""
    length = 0
    for at, characters in enumerate(zip(*names, strict=False), 1):
        if len(set(characters)) > 1:
            break
        if characters[0] in ".-":
            length = at
    return length


def clock(time_ns: int) -> str:
    """Local time of day."""
    return strftime("%H:%M:%S", localtime(time_ns // SECOND_NS))
