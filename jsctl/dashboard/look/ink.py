"""Ink: the colours of the present theme and the present set of characters, ready for cells."""

from collections.abc import Mapping
from dataclasses import field

from jsctl.dashboard.look.glyphs import UNICODE, Glyphs
from jsctl.dashboard.look.palette import DARK, PALETTES, Palette
from jsctl.dashboard.model.snapshot import Badge, Level, PeerState
from jsctl.dataclass import dataclass

BADGES = {
    Badge.NO_ACCESS: Level.WARN,
    Badge.HEALTHY: Level.OK,
    Badge.DEGRADED: Level.WARN,
    Badge.DOWN: Level.BAD,
    Badge.UNKNOWN: Level.WARN,
}


@dataclass(frozen=True, slots=True)
class Ink:
    """What cells are drawn with.

    `faded` is for a screen that is not of now, `aged` for a row that is not: its marks keep their
    colour.
    """

    palette: Palette = DARK
    glyphs: Glyphs = UNICODE
    faded: bool = False
    aged: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    """How servers are called here: their names without what all of them share."""

    @property
    def text(self) -> str:
        """Ordinary text."""
        return self.palette.muted if self.faded or self.aged else self.palette.text

    @property
    def muted(self) -> str:
        """Labels, units, zeros."""
        return self.palette.muted

    def level(self, level: Level) -> str:
        """The colour of a severity."""
        if self.faded:
            return self.muted
        return (self.palette.ok, self.palette.accent, self.palette.warn, self.palette.bad)[level]

    def badge(self, badge: Badge) -> tuple[str, str]:
        """Glyph and colour of the one word."""
        level = BADGES.get(badge, Level.NOTE)
        return self.glyphs.level(level), self.level(level)

    def peer(self, state: PeerState) -> str:
        """The colour of a replica's name."""
        if self.faded:
            return self.muted
        colours = {
            PeerState.LEADER: self.palette.text,
            PeerState.BEHIND: self.palette.warn,
            PeerState.OFFLINE: self.palette.bad,
        }
        return colours.get(state, self.palette.muted)

    def colour(self, role: str) -> str:
        """A role of the palette: accent, flow, star, warn, ..."""
        grey = self.faded or self.aged
        return self.muted if grey else str(getattr(self.palette, role))


def ink_of(theme: str, variables: Mapping[str, str], glyphs: Glyphs, *, dark: bool) -> Ink:
    """Ink for one of our themes, or for a foreign one by its variables."""
    for palette in PALETTES:
        if palette.name == theme:
            return Ink(palette, glyphs)
    base = DARK if dark else PALETTES[1]

    def pick(role: str, fallback: str) -> str:
        found = variables.get(role, "")
        return found[:7] if found.startswith("#") and len(found) >= 7 else fallback

    background = pick("background", base.background)
    made = Palette(
        name=theme,
        dark=dark,
        background=background,
        surface=pick("surface", base.surface),
        border=pick("border-blurred", base.border),
        cursor=pick("primary-muted", base.cursor),
        cursor_idle=pick("surface", base.cursor_idle),
        text=pick("foreground", base.text),
        muted=base.muted,
        ok=pick("success", base.ok),
        warn=pick("warning", base.warn),
        bad=pick("error", base.bad),
        accent=pick("primary", base.accent),
        flow=pick("secondary", base.flow),
        star=pick("accent", base.star),
        track=pick("panel", base.track),
        on_accent=background,
    )
    return Ink(made, glyphs)
