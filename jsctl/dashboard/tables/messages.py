"""Columns of a stream's messages."""

from rich.text import Text

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.payload import one_line
from jsctl.dashboard.look.words import clock, fitted, short_bytes
from jsctl.dashboard.model.message import StoredMessage
from jsctl.dashboard.tables.subjects import subject_cell
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Align, Column


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
