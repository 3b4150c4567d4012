"""What the columns of several tables share."""

from rich.text import Text

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, fitted
from jsctl.dashboard.model.snapshot import Level
from jsctl.render.column import Align

RIGHT = Align.RIGHT


def plain_text(found: str, ink: Ink, width: int, role: str = "") -> Text:
    """Foreign text, cut to a width."""
    colour = (ink.muted if role == "muted" else ink.colour(role)) if role else ink.text
    return Text(fitted(clean(found), width), colour, no_wrap=True, end="")


def state_text(level: Level, why: str, ink: Ink, width: int) -> Text:
    """What is wrong, in the colour of how bad it is."""
    return Text(fitted(clean(why), width), ink.level(level) if level else ink.muted)
