"""The house palettes as themes of Textual."""

from textual.theme import Theme

from jsctl.dashboard.look.palette import PALETTES, Palette


def theme_of(palette: Palette) -> Theme:
    """A theme with the variables that the style sheets use."""
    return Theme(
        name=palette.name,
        primary=palette.accent,
        secondary=palette.flow,
        accent=palette.star,
        foreground=palette.text,
        background=palette.background,
        surface=palette.surface,
        panel=palette.surface,
        success=palette.ok,
        warning=palette.warn,
        error=palette.bad,
        dark=palette.dark,
        variables={
            "panel-border": palette.border,
            "title": palette.accent,
            "muted": palette.muted,
            "track": palette.track,
            "cursor-row": palette.cursor,
            "on-accent": palette.on_accent,
            "scrollbar": palette.track,
            "scrollbar-hover": palette.muted,
            "scrollbar-active": palette.accent,
            "scrollbar-background": palette.background,
            "scrollbar-background-hover": palette.background,
            "scrollbar-background-active": palette.background,
            "scrollbar-corner-color": palette.background,
            "block-cursor-background": palette.cursor,
            "block-cursor-foreground": palette.text,
            "block-hover-background": palette.cursor_idle,
            "input-cursor-background": palette.text,
            "input-cursor-foreground": palette.background,
            "button-focus-text-style": "bold",
            "border": palette.accent,
            "border-blurred": palette.border,
        },
    )


THEMES = tuple(theme_of(palette) for palette in PALETTES)
DEFAULTS = {
    "panel-border": "#2a3542",
    "title": "#38aaeb",
    "muted": "#8390a2",
    "track": "#263140",
    "cursor-row": "#12364c",
    "on-accent": "#05080c",
}
"""Variables that foreign themes lack."""
