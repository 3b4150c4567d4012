"""Line charts of several rows, drawn with blocks."""

from collections.abc import Callable, Sequence

from rich.text import Text

from jsctl.dashboard.look.cells import both_ends
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.palette import mixed

_BLOCKS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*#@"


def chart(
    title: str,
    values: Sequence[float],
    width: int,
    height: int,
    ink: Ink,
    role: str,
    shown: Callable[[float], str],
) -> Text:
    """A heading with the newest value and the peak, then `height` rows, newest at the right.

    It starts empty and grows: samples that were never taken are not drawn as zeros.
    """
    samples = list(values)[-width:]
    top = max(samples, default=0.0)
    last = samples[-1] if samples else 0.0
    left = Text(f"{title} ", ink.muted, no_wrap=True, end="")
    left.append(shown(last), f"bold {ink.text}")
    right = Text(f"peak {shown(top)}", ink.muted, no_wrap=True, end="")
    lines = [both_ends(left, right, width)]
    blocks = _ASCII if ink.glyphs.logo == "#" else _BLOCKS
    colour = ink.colour(role)
    for row in range(height - 1, -1, -1):
        line = Text(" " * (width - len(samples)), no_wrap=True, end="")
        shade = mixed(colour, ink.palette.background, 0.55 + 0.45 * (row + 1) / height)
        cells = []
        for value in samples:
            level = (value / top * height if top else 0.0) - row
            cells.append(blocks[max(0, min(8, round(level * 8)))])
        if row == 0:
            cells = [blocks[1] if cell == " " else cell for cell in cells]
        line.append("".join(cells), shade)
        lines.append(line)
    return Text("\n", end="").join(lines)
