"""Info screens: a heading, then right-aligned `label: value` lines in titled sections."""

from collections.abc import Iterable

from jsctl.render.table import safe, width_of
from jsctl.render.theme import PLAIN, Theme

INDENT = 2


class Details:
    """Collects the lines of a screen; labels are aligned over the whole of it."""

    def __init__(self, heading: str) -> None:
        self.heading = heading
        self._lines: list[tuple[str, str | None]] = []
        """(label, value); value None marks a section title."""
        self._indents: dict[str, int] = {}
        """How far a section's title and rows are moved to the right."""
        self._empty: set[str] = set()
        """Sections that are shown without rows, because others below belong to them."""

    def row(self, label: str, value: object) -> None:
        """A line; an empty label goes on with the value above."""
        text = ("true" if value else "false") if isinstance(value, bool) else str(value)
        self._lines.append((label, safe(text)))

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
        """Starts a titled section; one without rows is shown only as a `parent` of others."""
        self._lines.append((title, None))
        self._indents[title] = indent
        if parent:
            self._empty.add(title)

    def sections(self) -> dict[str, dict[str, str]]:
        """Title -> label -> value, for output that machines read."""
        found: dict[str, dict[str, str]] = {"": {}}
        current, last = found[""], ""
        for label, value in self._lines:
            if value is None:
                current = found.setdefault(label, {})
            elif label:
                current[label] = value
                last = label
            else:
                current[last] = f"{current[last]}\n{value}"
        return {title: rows for title, rows in found.items() if rows}

    def render(self, theme: Theme = PLAIN) -> str:
        """The screen, ending with its last line's newline."""
        longest = max(
            (width_of(label) for label, value in self._lines if value is not None), default=0
        )
        out = [safe(self.heading), ""] if self.heading else []
        colon = theme.border(":")
        indent = 0
        for label, value in self._shown():
            if value is None:
                indent = self._indents[label]
                if out and out[-1]:
                    out.append("")
                out += [f"{' ' * indent}{label}:", ""]
                continue
            pad = " " * (INDENT + indent + longest - width_of(label))
            out.append(f"{pad}{label}{colon if label else ' '} {value}")
        return "\n".join(out) + "\n"

    def _shown(self) -> list[tuple[str, str | None]]:
        following = [*self._lines[1:], ("", None)]
        return [
            line
            for line, after in zip(self._lines, following, strict=True)
            if line[1] is not None or after[1] is not None or line[0] in self._empty
        ]
