"""Box characters and the few colours of the command line."""

from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """The lines of a table, corner by corner."""

    top: str
    top_rule: str
    rule: str
    bottom: str
    side: str
    line: str
    """`top`, `top_rule`, ... hold left, middle, right; `line` is the horizontal."""


ROUNDED = Box(top="╭┬╮", top_rule="├┬┤", rule="├┼┤", bottom="╰┴╯", side="│", line="─")
DOUBLE = Box(top="╔╦╗", top_rule="╠╦╣", rule="╠╬╣", bottom="╚╩╝", side="║", line="═")
ASCII = Box(top="+++", top_rule="+++", rule="+++", bottom="+++", side="|", line="-")

_CODES = {
    "blue": "34",
    "cyan": "36",
    "green": "32",
    "magenta": "35",
    "red": "31",
    "yellow": "33",
    "bold": "1",
    "dim": "2",
}


@dataclass(frozen=True, slots=True)
class Theme:
    """How tables look. `accent` colours borders and the colons of info screens."""

    box: Box = ROUNDED
    accent: str = ""
    colour: bool = False
    separator: str = ""
    """Between the cells of tables that are drawn without boxes, as CSV or TSV."""
    pipes: bool = False
    """Whether tables are those of Markdown."""
    markdown: bool = False
    """Whether info screens are Markdown."""

    def paint(self, text: str, colour: str) -> str:
        """The text in a colour, or as it is without colours."""
        if not self.colour or colour not in _CODES or not text:
            return text
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"

    def border(self, text: str) -> str:
        """The text as part of a border."""
        return self.paint(text, self.accent)


PLAIN = Theme()


def theme_of(scheme: str, *, colour: bool, ascii_only: bool = False) -> Theme:
    """The theme for a colour scheme of a context (`double`, `red`, ...)."""
    box = ASCII if ascii_only else DOUBLE if scheme == "double" else ROUNDED
    return Theme(box=box, accent=scheme if scheme in _CODES else "", colour=colour)
