"""Boxes of cells with a title inside the box, exactly as natscli draws them.

Text stands left; a column whose body holds only numbers stands right. Off a terminal rows are
never cut; on one, `width_max` cuts them with a mark.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence

from jsctl.render.column import Cell
from jsctl.render.theme import PLAIN, Theme

_COLOUR = re.compile("(\x1b\\[[0-9;]*m)")
CUT_MARK = " ≈"


def width_of(text: str) -> int:
    """Terminal cells that a text takes; wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    cells = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        cells += 2 if unicodedata.east_asian_width(character) in "WF" else 1
    return cells


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    title: str = "",
    footer: Sequence[Cell] = (),
    theme: Theme = PLAIN,
    width_max: int = 0,
    rules_after: Collection[int] = (),
) -> str:
    """The whole table, without a newline at the end.

    Empty `headings` leave the heading row out. `rules_after` names body rows that a rule
    follows. `width_max` 0 means no limit.
    """
    if theme.pipes:
        return _piped(headings, rows, title, footer)
    if theme.separator:
        return _separated([headings, *rows, footer], title, theme.separator)
    body = [[safe(cell) for cell in row] for row in rows]
    heads = [safe(heading) for heading in headings]
    feet = [safe(cell) for cell in footer]
    widths = _widths([heads, feet, *body])
    right = [_is_numeric(rows, at) for at in range(len(widths))]
    box, inner = theme.box, sum(widths) + 3 * len(widths) - 3
    lines: list[str] = []
    if title:
        # It stands whole above columns that are cut.
        inner = max(1, min(inner, width_max - 4)) if width_max else inner
        lines.append(box.top[0] + box.line * (inner + 2) + box.top[2])
        lines += [_titled(part, inner, theme) for part in _wrapped(safe(title), inner)]
    top = box.top_rule if title else box.top
    lines.append(_rule(top, widths, theme))
    if heads:
        lines += [_line(heads, widths, right, theme), _rule(box.rule, widths, theme)]
    for at, row in enumerate(body):
        lines.append(_line(row, widths, right, theme))
        if at in rules_after and at + 1 < len(body):
            lines.append(_rule(box.rule, widths, theme))
    if feet:
        lines += [_rule(box.rule, widths, theme), _line(feet, widths, right, theme)]
    lines.append(_rule(box.bottom, widths, theme))
    if title:
        lines[0] = theme.border(lines[0])
    return "\n".join(_cut(line, width_max) for line in lines)


def as_markdown(headings: Sequence[str], rows: Sequence[Sequence[object]], title: str = "") -> str:
    """A pipe table; the title is a heading above it. Columns of numbers alone are to the right."""
    return _piped(headings, rows, title, ())


def _piped(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    title: str,
    footer: Sequence[object],
) -> str:
    lines = [f"# {safe(title)}"] if title else []
    lines.append(_between_pipes(headings))
    right = [all(_is_number(row[at]) for row in rows) for at in range(len(headings))]
    lines.append("|" + "".join(" ---:|" if one else " --- |" for one in right))
    lines += map(_between_pipes, rows)
    if footer:
        lines.append(_between_pipes([*footer, *[""] * (len(headings) - len(footer))]))
    return "\n".join(lines)


def _between_pipes(cells: Sequence[object]) -> str:
    return "| " + " | ".join(safe(str(cell)).replace("|", "\\|") for cell in cells) + " |"


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _separated(rows: Sequence[Sequence[Cell]], title: str, separator: str) -> str:
    """The same cells without a box, below their title."""
    count = max(len(row) for row in rows)
    lines = [title] if title else []
    for row in rows:
        if row:
            cells = [_quoted(str(cell), separator) for cell in row]
            lines.append(separator.join([*cells, *[""] * (count - len(row))]))
    return "\n".join(lines)


def _quoted(text: str, separator: str) -> str:
    wide = separator == "\t" and "    " in text
    if wide or any(mark in text for mark in (separator, '"', "\n")):
        return '"' + text.replace('"', '""') + '"'
    return text


def safe(cell: Cell) -> str:
    """The text of a cell on one line, control characters made visible."""
    text = str(cell)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_LAYOUT = frozenset("\n\t")


def readable(text: str) -> str:
    """The same of a text of several lines, which stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _LAYOUT else safe(c) for c in text)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    count = max((len(row) for row in rows), default=0)
    return [
        max((width_of(row[at]) for row in rows if at < len(row)), default=0) for at in range(count)
    ]


def _is_numeric(rows: Sequence[Sequence[Cell]], at: int) -> bool:
    cells = [row[at] for row in rows if at < len(row)]
    return bool(cells) and all(map(_is_number, cells))


def _rule(corners: str, widths: Sequence[int], theme: Theme) -> str:
    parts = [theme.box.line * (width + 2) for width in widths]
    return theme.border(corners[0] + corners[1].join(parts) + corners[2])


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], theme: Theme) -> str:
    side = theme.border(theme.box.side)
    parts: list[str] = []
    for at, width in enumerate(widths):
        cell = cells[at] if at < len(cells) else ""
        fill = " " * (width - width_of(cell))
        parts.append(fill + cell if right[at] else cell + fill)
    return f"{side} " + f" {side} ".join(parts) + f" {side}"


def _titled(text: str, inner: int, theme: Theme) -> str:
    spare = inner - width_of(text)
    left = (spare + 1) // 2
    side = theme.border(theme.box.side)
    return f"{side} {' ' * left}{text}{' ' * (spare - left)} {side}"


def _wrapped(text: str, width: int) -> list[str]:
    if width_of(text) <= width:
        return [text]
    lines: list[str] = [""]
    for word in text.split(" "):
        while width_of(word) > width > 0:
            lines.append(word[:width])
            word = word[width:]
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if width_of(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return [line for line in lines if line]


def _cut(line: str, width_max: int) -> str:
    """A line that fits; colours take no room, and those that are cut off still end."""
    line = line.rstrip()
    if not width_max or width_of(_COLOUR.sub("", line)) <= width_max:
        return line
    room = width_max - len(CUT_MARK)
    kept: list[str] = []
    for part in _COLOUR.split(line):
        if part.startswith("\x1b"):
            kept.append(part)
            continue
        fitting = _fitting(part, room)
        kept.append(fitting)
        room = room - width_of(fitting) if fitting == part else 0
    return "".join(kept) + CUT_MARK


def _fitting(text: str, room: int) -> str:
    """As much of its beginning as there is room for."""
    end = min(len(text), max(0, room))
    while width_of(text[:end]) > room > 0:
        end -= 1
    return text[:end]
