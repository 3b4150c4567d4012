"""The house colours as plain values, so that a test can compute their contrast.

`colourblind` follows Okabe and Ito: ok is blue, warning yellow, bad vermilion. No state is told
by colour alone in any of them; see `glyphs`.
"""

from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours as `#rrggbb`. `cursor` lies behind the row under the cursor."""

    name: str
    dark: bool
    background: str
    surface: str
    border: str
    cursor: str
    cursor_idle: str
    text: str
    muted: str
    ok: str
    warn: str
    bad: str
    accent: str
    flow: str
    star: str
    track: str
    on_accent: str

    def inks(self) -> dict[str, str]:
        """What is written with, by role."""
        roles = ("text", "muted", "ok", "warn", "bad", "accent", "flow", "star")
        return {role: getattr(self, role) for role in roles}


DARK = Palette(
    name="jsctl-dark",
    dark=True,
    background="#0a0c12",
    surface="#10151c",
    border="#2a3542",
    cursor="#12364c",
    cursor_idle="#121c28",
    text="#dfe6ef",
    muted="#8390a2",
    ok="#2dd4a4",
    warn="#ffb547",
    bad="#ff5d62",
    accent="#38aaeb",
    flow="#8ccb3c",
    star="#ffa53d",
    track="#263140",
    on_accent="#05080c",
)
LIGHT = Palette(
    name="jsctl-light",
    dark=False,
    background="#f7f9fb",
    surface="#ffffff",
    border="#b9c5d2",
    cursor="#cfe5f4",
    cursor_idle="#e6edf4",
    text="#1b2430",
    muted="#566475",
    ok="#00755a",
    warn="#955800",
    bad="#c21807",
    accent="#0a6aab",
    flow="#46750d",
    star="#a84a00",
    track="#c9d4df",
    on_accent="#ffffff",
)
COLOURBLIND = Palette(
    name="jsctl-colourblind",
    dark=True,
    background="#0b0b0d",
    surface="#141417",
    border="#3a3a40",
    cursor="#0f3f5e",
    cursor_idle="#1b1f26",
    text="#f0f0f0",
    muted="#9a9aa2",
    ok="#56b4e9",
    warn="#f0e442",
    bad="#f07f43",
    accent="#56b4e9",
    flow="#cfc23a",
    star="#e69f00",
    track="#34343a",
    on_accent="#050506",
)
PALETTES = (DARK, LIGHT, COLOURBLIND)


def rgb(colour: str) -> tuple[int, int, int]:
    """The parts of `#rrggbb`, each 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mixed(one: str, other: str, share: float) -> str:
    """`share` of the first colour, the rest of the second."""
    parts = zip(rgb(one), rgb(other), strict=True)
    return "#" + "".join(f"{round(a * share + b * (1 - share)):02x}" for a, b in parts)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of the WCAG, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def linear(part: int) -> float:
    """One part of a colour, 0 to 255, as an amount of light, 0 to 1."""
    share = part / 255
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


def _luminance(colour: str) -> float:
    red, green, blue = (linear(part) for part in rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
