"""Cells: sparklines, bars, replicas, numbers. Each gives a `Text` of at most its width."""

import math
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.text import Text

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.palette import mixed
from jsctl.dashboard.look.words import clean, fitted, short
from jsctl.dashboard.model.snapshot import Level, Peer, PeerState

OLDEST_SHARE = 0.35
"""How much of its colour the oldest sample of a sparkline keeps."""
LABEL = 10
"""Columns of the labels in a list of pairs."""
LAG_DECADES = 5.0
"""A lag bar is full at ten to this power."""


def plain(found: str, style: str = "") -> Text:
    """Foreign text, made safe."""
    return Text(clean(found), style, no_wrap=True, end="")


def named(level: Level, name: str, ink: Ink, width: int, mark: str = "") -> Text:
    """Glyph and name."""
    glyph = mark or ink.glyphs.level(level)
    cell = Text(f"{glyph} ", ink.level(level), no_wrap=True, end="")
    cell.append(fitted(clean(name), width - cell_len(glyph) - 1), f"bold {ink.text}")
    return cell


def spark(
    values: Sequence[float],
    width: int,
    ink: Ink,
    role: str = "accent",
    most: float = 0.0,
) -> Text:
    """The newest samples, newest at the right, older ones fading; `most` fixes the top."""
    shown = list(values)[-width:] if width > 0 else []
    cell = Text(" " * (width - len(shown)), no_wrap=True, end="")
    top = max(most, max(shown, default=0.0))
    low = 0.0 if most else min(shown, default=0.0)
    if top - low < 0.2 * top:
        low = top * 0.5
    steps = len(ink.glyphs.sparks) - 1
    colour, back = ink.colour(role), ink.palette.background
    for at, value in enumerate(shown):
        share = (value - low) / (top - low) if top > low else 0.0
        glyph = ink.glyphs.sparks[max(0, min(steps, round(share * steps)))]
        age = (at + 1) / len(shown)
        keep = OLDEST_SHARE + (1 - OLDEST_SHARE) * age
        cell.append(glyph, mixed(colour, back, round(keep, 1)))
    return cell


def bar(share: float, width: int, ink: Ink, colour: str) -> Text:
    """A thin line, filled from the left."""
    filled = max(0, min(width, round(share * width)))
    if share > 0 and not filled:
        filled = 1
    cell = Text(ink.glyphs.bar * filled, colour, no_wrap=True, end="")
    cell.append(ink.glyphs.gap * (width - filled), ink.palette.track)
    return cell


def lag_bar(lag: int, level: Level, width: int, ink: Ink) -> Text:
    """On a logarithmic scale, because lags span seven powers of ten."""
    share = math.log10(lag + 1) / LAG_DECADES if lag > 0 else 0.0
    return bar(min(1.0, share), width, ink, ink.level(level))


def lag(value: int, level: Level, ink: Ink) -> Text:
    """A lag; none is a dash."""
    if not value:
        return Text(ink.glyphs.none, ink.muted, end="")
    return Text(short(value), ink.level(level) if level >= Level.WARN else ink.text, end="")


def replicas(peers: Sequence[Peer], names: Mapping[str, str], ink: Ink, width: int) -> Text:
    """`★n2 n1 ▲n3`: leader first, marks before those that are behind or away."""
    cell = Text(no_wrap=True, end="")
    order = {PeerState.LEADER: 0, PeerState.CURRENT: 1}
    for peer in sorted(peers, key=lambda peer: order.get(peer.state, 2)):
        if cell:
            cell.append(" ")
        mark = ink.glyphs.peer(peer.state)
        star = peer.state is PeerState.LEADER
        cell.append(mark, ink.colour("star") if star else ink.peer(peer.state))
        weight = "bold " if star else ""
        cell.append(clean(names.get(peer.name, peer.name)), weight + ink.peer(peer.state))
    if cell.cell_len > width:
        cell.truncate(width, overflow="ellipsis")
    return cell


def number(value: float, ink: Ink, style: str = "") -> Text:
    """A short number; zero is muted."""
    return Text(short(value), style or (ink.text if value else ink.muted), end="")


def pair(label: str, value: Text | str, ink: Ink, width: int = 0) -> Text:
    """A muted label, right-aligned in `width`, and its value."""
    cell = Text(f"{label:>{width}}  " if width else f"{label} ", ink.muted, no_wrap=True, end="")
    cell.append_text(value if isinstance(value, Text) else Text(clean(value), ink.text))
    return cell


def both_ends(left: Text, right: Text, width: int) -> Text:
    """Two texts at the two ends of a line; the left one gives way."""
    if left.cell_len + right.cell_len + 1 > width:
        left = left.copy()
        left.truncate(max(0, width - right.cell_len - 1), overflow="ellipsis")
    line = Text(no_wrap=True, end="")
    line.append_text(left)
    line.append(" " * max(1, width - left.cell_len - right.cell_len))
    line.append_text(right)
    return line
