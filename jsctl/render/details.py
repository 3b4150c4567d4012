"""Info screens: a heading, then right-aligned `label: value` lines in titled sections."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from jsctl.render.column import Column
from jsctl.render.table import safe, width_of
from jsctl.render.theme import PLAIN, Theme

INDENT = 2


class _Kind(Enum):
    """What a line is."""

    ROW = "row"
    TITLE = "title"
    PARENT = "parent"
    """A title that is shown without rows, because others below belong to it."""
    LEAD = "lead"
    """A title that stands in a line of its own, right above its rows."""
    TEXT = "text"


class _Line(NamedTuple):
    kind: _Kind
    label: str
    value: str
    indent: int


class Fact(NamedTuple):
    """A line of a screen as a row of its own."""

    section: str
    name: str
    value: str


FACT_COLUMNS: tuple[Column[Fact], ...] = (
    Column("section", "Section", lambda row: row.section),
    Column("name", "Name", lambda row: row.name),
    Column("value", "Value", lambda row: row.value),
)


class Details:
    """Collects the lines of a screen; labels are aligned over the whole of it."""

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self._lines: list[_Line] = []
        self._indent = 0

    def row(self, label: str, value: object) -> None:
        """A line; an empty label goes on with the value above."""
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        self._lines.append(_Line(_Kind.ROW, safe(label), safe(text), self._indent))

    def row_if(self, label: str, value: object) -> None:
        """A line, unless the value is empty, zero or false."""
        if value:
            self.row(label, value)

    def rows(self, label: str, values: Iterable[object]) -> None:
        """Several values below each other under one label."""
        for value in values:
            self.row(label, value)
            label = ""

    def section(self, title: str, *, indent: int = 0, parent: bool = False) -> None:
        """Starts a titled section; one without rows is shown only as a `parent` of others.

        `indent` moves its title and what follows to the right.
        """
        self._indent = indent
        kind = _Kind.PARENT if parent else _Kind.TITLE
        self._lines.append(_Line(kind, safe(title), "", indent))

    def lead(self, title: str, *, indent: int = 0) -> None:
        """Starts a section whose title has neither a colon nor empty lines around it."""
        self._indent = indent
        self._lines.append(_Line(_Kind.LEAD, safe(title), "", indent))

    def indent(self, width: int) -> None:
        """Moves what follows to the right, without a title."""
        self._indent = width

    def text(self, text: str = "") -> None:
        """A sentence in the place of rows; an empty one below a title is left out."""
        self._lines.append(_Line(_Kind.TEXT, "", safe(text), self._indent))

    def sections(self) -> dict[str, dict[str, str]]:
        """Title -> label -> value, for output that machines read."""
        found: dict[str, dict[str, str]] = {"": {}}
        current, last = found[""], ""
        for kind, label, value, _ in self._lines:
            if kind in (_Kind.TITLE, _Kind.PARENT, _Kind.LEAD):
                current = found.setdefault(label, {})
            elif kind is _Kind.TEXT:
                continue
            elif label:
                current[label] = value
                last = label
            else:
                current[last] = f"{current[last]}\n{value}"
        return {title: rows for title, rows in found.items() if rows}

    def facts(self) -> list[Fact]:
        """The rows of all sections, for tables that programs read."""
        return [
            Fact(section, name, value)
            for section, rows in self.sections().items()
            for name, value in rows.items()
        ]

    def render(self, theme: Theme = PLAIN) -> str:
        """The screen, ending with its last line's newline."""
        if theme.markdown:
            return self._markdown()
        longest = max(
            (width_of(line.label) for line in self._lines if line.kind is _Kind.ROW), default=0
        )
        out = [safe(self.heading), ""] if self.heading else []
        colon = theme.border(":")
        for line in self._shown():
            if line.kind is _Kind.TEXT:
                if line.value or (out and out[-1]):
                    out.append(f"{' ' * line.indent} {line.value}".rstrip())
            elif line.kind is _Kind.LEAD:
                out.append(f"{' ' * line.indent} {line.label}")
            elif line.kind is _Kind.ROW:
                pad = " " * (INDENT + line.indent + longest - width_of(line.label))
                out.append(f"{pad}{line.label}{colon if line.label else ' '} {line.value}")
            else:
                if out and out[-1]:
                    out.append("")
                out += [f"{' ' * line.indent}{line.label}:", ""]
        return "\n".join(out) + "\n"

    def _markdown(self) -> str:
        """Headings and lists; what is further to the right is a level deeper."""
        out = [f"# {safe(self.heading)}", ""] if self.heading else []
        for line in self._shown():
            if line.kind is _Kind.TEXT:
                out.append(line.value)
            elif line.kind is _Kind.ROW:
                out.append(f"- **{line.label}:** {line.value}" if line.label else f"- {line.value}")
            else:
                deeper = "#" * (line.indent > 0)
                out += [*([""] if len(out) > 2 else []), f"##{deeper} {line.label}", ""]
        return "\n".join(out) + "\n"

    def _shown(self) -> list[_Line]:
        """Without titles that nothing follows."""
        following = [line.kind for line in self._lines[1:]] + [_Kind.TITLE]
        return [
            line
            for line, after in zip(self._lines, following, strict=True)
            if line.kind is not _Kind.TITLE or after in (_Kind.ROW, _Kind.TEXT)
        ]
