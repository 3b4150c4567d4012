"""Columns of the tables inside a stream's view."""

import zlib
from dataclasses import dataclass

from rich.text import Text

from jsctl.dashboard.connection.messages import StoredMessage
from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.payload import one_line
from jsctl.dashboard.look.words import clean, fitted, short_bytes
from jsctl.dashboard.widgets.bars import clock
from jsctl.dashboard.widgets.grid import GridColumn
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


def _time(row: StoredMessage, ink: Ink, _width: int) -> Text:
    part = row.time_ns // 1_000_000 % 1000
    return Text(f"{clock(row.time_ns)}.{part:03}", ink.muted)


MESSAGES: tuple[GridColumn[StoredMessage], ...] = (
    GridColumn(
        Column("seq", "Seq", lambda row: row.seq, align=Align.RIGHT),
        lambda row, ink, _width: Text(str(row.seq), ink.muted),
        9,
        descending=True,
    ),
    GridColumn(Column("time", "Time", lambda row: row.time_ns, priority=2), _time, 12),
    GridColumn(
        Column("subject", "Subject", lambda row: row.subject),
        lambda row, ink, width: subject_cell(row.subject, ink, width),
        18,
        1.0,
        40,
    ),
    GridColumn(
        Column("size", "Size", lambda row: len(row.data), align=Align.RIGHT, priority=1),
        lambda row, ink, _width: Text(short_bytes(len(row.data)), ink.muted),
        5,
        descending=True,
    ),
    GridColumn(
        Column("payload", "Payload", lambda row: row.data),
        lambda row, ink, width: Text(fitted(one_line(row.data, width), width), ink.text),
        12,
        3.0,
    ),
)
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
