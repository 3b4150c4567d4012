"""Bars of blocks and curves of lines for terminals, and curves as pictures."""

from collections.abc import Callable, Mapping, Sequence

BAR_WIDTH_MAX = 30


def bars(
    values: Mapping[str, float], caption: str, text: Callable[[float], str], *, width: int = 0
) -> str:
    """Smallest first; lengths tell the distance to the smallest. `width` 0 is the widest."""
    width = width or BAR_WIDTH_MAX
    longest = max(map(len, values), default=0)
    low, high = min(values.values(), default=0.0), max(values.values(), default=0.0)
    lines = [caption, ""]
    for name, value in sorted(values.items(), key=lambda item: (item[1], item[0])):
        blocks = width if low == high else int((value - low) / ((high - low) / width))
        bar = "█" * blocks if value and blocks else "▏"
        lines.append(f"{' ' * (longest - len(name) + 2)}{name}: {bar} ({text(value)})")
    return "\n".join(lines)


def line_chart(
    values: Sequence[float],
    caption: str,
    text: Callable[[float], str],
    *,
    width: int,
    height: int,
) -> str:
    """A curve over an axis with values; the newest at the right. Lowest is zero, or less."""
    points = _stretched(list(values) or [0.0], max(2, width))
    low, high = min(0.0, *points), max(points)
    steps = max(1, height)
    scale = steps / (high - low) if high > low else 0.0
    rows = [round((value - low) * scale) for value in points]
    grid = [[" "] * len(points) for _ in range(steps + 1)]
    for at, row in enumerate(rows[1:], 1):
        before = rows[at - 1]
        if row == before:
            grid[row][at] = "─"
            continue
        grid[row][at] = "╭" if row > before else "╰"
        grid[before][at] = "╯" if row > before else "╮"
        for between in range(min(row, before) + 1, max(row, before)):
            grid[between][at] = "│"
    labels = [text(low + (high - low) * row / steps) for row in range(steps + 1)]
    wide = max(map(len, labels))
    lines = [
        f" {labels[row]:>{wide}} {'┼' if row == rows[0] else '┤'}{''.join(grid[row][1:]).rstrip()}"
        for row in range(steps, -1, -1)
    ]
    return "\n".join([*lines, f"{'':{max(0, (wide + width - len(caption)) // 2)}}{caption}"])


def _stretched(values: list[float], width: int) -> list[float]:
    """As many values as there are columns; those in between lie on a line."""
    if len(values) == 1:
        return values * width
    found: list[float] = []
    for column in range(width):
        place = column * (len(values) - 1) / (width - 1)
        at = min(int(place), len(values) - 2)
        found.append(values[at] + (values[at + 1] - values[at]) * (place - at))
    return found


SVG_WIDTH, SVG_HEIGHT, SVG_EDGE = 800, 200, 60
"""Of each curve of a picture, in its own units, and the room for axis and caption."""


SVG_FONTS = "sans-serif, DejaVu Sans, Liberation Sans, Noto Sans, Helvetica, Arial"
"""The first one is for browsers; what draws pixels knows families by their names only."""
PNG_ZOOM = 2


def png(picture: str) -> bytes:
    """A picture in pixels. Raises ModuleNotFoundError without the library that draws them."""
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=picture, zoom=PNG_ZOOM))


def svg(title: str, curves: Sequence[tuple[str, Sequence[float], Callable[[float], str]]]) -> str:
    """Curves (caption, values, text of a value) below each other, as a picture."""
    from xml.sax.saxutils import escape

    tall = SVG_HEIGHT + SVG_EDGE
    whole = SVG_EDGE + tall * len(curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SVG_WIDTH + 2 * SVG_EDGE} {whole}" '
        f'font-family="{SVG_FONTS}" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{SVG_EDGE}" y="30" font-size="18">{escape(title)}</text>',
    ]
    for at, (caption, values, text) in enumerate(curves):
        top = SVG_EDGE + at * tall
        points = list(values) or [0.0]
        low, high = min(0.0, *points), max(points)
        span, step = (high - low) or 1.0, SVG_WIDTH / max(1, len(points) - 1)
        path = " ".join(
            f"{SVG_EDGE + index * step:.1f},{top + SVG_HEIGHT * (1 - (value - low) / span):.1f}"
            for index, value in enumerate(points)
        )
        bottom = top + SVG_HEIGHT
        parts += [
            f'<path d="M{SVG_EDGE},{top}V{bottom}H{SVG_EDGE + SVG_WIDTH}" fill="none" '
            'stroke="gray"/>',
            f'<text x="{SVG_EDGE - 6}" y="{top + 6}" text-anchor="end">{escape(text(high))}</text>',
            f'<text x="{SVG_EDGE - 6}" y="{bottom}" text-anchor="end">{escape(text(low))}</text>',
            f'<polyline points="{path}" fill="none" stroke="#0b6bcb" stroke-width="2"/>',
            f'<text x="{SVG_EDGE}" y="{bottom + 24}">{escape(caption)}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])
