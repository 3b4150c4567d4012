"""Columns of events."""

from rich.text import Text

from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, clock, fitted
from jsctl.dashboard.model.snapshot import Event
from jsctl.dashboard.tables.columns import plain_text
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Column


def _event_mark(row: Event, ink: Ink, width: int) -> Text:
    api = row.what in ("api", "client")
    glyph = ink.glyphs.dot if api and not row.level else ink.glyphs.level(row.level)
    colour = ink.colour("accent") if api and not row.level else ink.level(row.level)
    cell = Text(f"{glyph} ", ink.muted if api else colour)
    cell.append(fitted(clean(row.what), width - 2), colour)
    return cell


EVENTS: tuple[GridColumn[Event], ...] = (
    GridColumn(
        Column("time", "Time", lambda row: row.time_ns),
        lambda row, ink, _width: Text(clock(row.time_ns), ink.muted),
        8,
    ),
    GridColumn(Column("what", "What", lambda row: row.what), _event_mark, 10),
    GridColumn(
        Column("who", "Who", lambda row: row.who),
        lambda row, ink, width: Text(fitted(clean(row.who), width), f"bold {ink.text}"),
        12,
        0.4,
        36,
    ),
    GridColumn(
        Column("said", "", lambda row: row.said),
        lambda row, ink, width: plain_text(
            row.said, ink, width, "muted" if row.what in ("api", "client") else ""
        ),
        20,
        2.0,
    ),
)
