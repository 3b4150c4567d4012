"""Colours can be read, also on the row under the cursor, and told apart by the colour-blind.

Contrast is that of the WCAG. Colour blindness is simulated with the matrices of Machado, Oliveira
and Fernandes (2009) at full severity; distances are CIE76.
"""

import pytest

from jsctl.dashboard.look.palette import PALETTES, Palette, contrast, linear, rgb

READABLE = 4.5
LEGIBLE = 3.0
"""For what is muted or large, and on the row under the cursor."""
APART = 20.0
MACHADO = {
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
STATES = (("ok", "bad"), ("ok", "warn"))


def seen(colour: str, kind: str) -> tuple[float, ...]:
    """Linear light of a colour as somebody sees it."""
    light = [linear(part) for part in rgb(colour)]
    return tuple(
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, light, strict=True))))
        for row in MACHADO[kind]
    )


def lab(light: tuple[float, ...]) -> tuple[float, float, float]:
    """CIELAB of linear sRGB."""
    red, green, blue = light
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(one: str, other: str, kind: str) -> float:
    """How different two colours look."""
    pairs = zip(lab(seen(one, kind)), lab(seen(other, kind)), strict=True)
    return float(sum((a - b) ** 2 for a, b in pairs) ** 0.5)


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_everything_can_be_read(palette: Palette) -> None:
    for role, colour in palette.inks().items():
        for ground in (palette.background, palette.surface):
            assert contrast(colour, ground) >= READABLE, role


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_everything_can_be_read_under_the_cursor(palette: Palette) -> None:
    for role, colour in palette.inks().items():
        for ground in (palette.cursor, palette.cursor_idle):
            assert contrast(colour, ground) >= LEGIBLE, role
    assert contrast(palette.text, palette.cursor) >= 7.0


@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_chosen_words_can_be_read(palette: Palette) -> None:
    for ground in (palette.accent, palette.star, palette.warn):
        assert contrast(palette.on_accent, ground) >= READABLE


@pytest.mark.parametrize("kind", list(MACHADO))
@pytest.mark.parametrize("palette", PALETTES, ids=lambda palette: palette.name)
def test_states_can_be_told_apart(palette: Palette, kind: str) -> None:
    for one, other in STATES:
        found = distance(getattr(palette, one), getattr(palette, other), kind)
        assert found >= APART, (one, other, round(found))


@pytest.mark.parametrize("kind", list(MACHADO))
def test_the_colourblind_theme_is_far_better(kind: str) -> None:
    palette = next(one for one in PALETTES if "colourblind" in one.name)
    assert distance(palette.ok, palette.bad, kind) >= 60.0
