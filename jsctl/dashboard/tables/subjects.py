"""Columns of a stream's subjects."""

import zlib

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, fitted
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.dataclass import dataclass
from jsctl.render.column import Align, Column

TOKEN_ROLES = ("flow", "accent", "star", "text", "ok")


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """A subject and how many messages it has."""

    subject: str
    messages: int


def subject_cell(subject: str, ink: Ink, width: int) -> Text:
    """A subject; its second token has a colour of its own, so that kinds can be told apart."""
    shown = fitted(clean(subject), width)
    tokens = shown.split(".")
    cell = Text(no_wrap=True, end="")
    for at, token in enumerate(tokens):
        if at:
            cell.append(".", ink.muted)
        if at == 1:
            role = TOKEN_ROLES[zlib.crc32(token.encode()) % len(TOKEN_ROLES)]
            colour = ink.text if role == "text" else ink.colour(role)
            cell.append(token, f"bold {colour}")
        else:
            cell.append(token, ink.muted)
    return cell


SUBJECTS: tuple[GridColumn[SubjectRow], ...] = (
    GridColumn(
        Column("subject", "Subject", lambda row: row.subject),
        lambda row, ink, width: subject_cell(row.subject, ink, width),
        20,
        1.0,
    ),
    GridColumn(
        Column("messages", "Messages", lambda row: row.messages, align=Align.RIGHT),
        lambda row, ink, _width: cells.number(row.messages, ink),
        9,
        descending=True,
    ),
)
