"""Columns of key-value buckets and object stores: they are streams, counted in other words."""

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import short_time
from jsctl.dashboard.model.snapshot import Stream
from jsctl.dashboard.tables.columns import RIGHT, plain_text, state_text
from jsctl.dashboard.tables.streams import STREAMS
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Column

_BY_KEY = {one.column.key: one for one in STREAMS}


def _store_name(row: Stream, ink: Ink, width: int) -> Text:
    name = row.name.partition("_")[2] or row.name
    return cells.named(row.level, name, ink, width)


def _last(row: Stream, ink: Ink, _width: int) -> Text:
    return (
        Text(short_time(row.idle_ns), ink.muted) if row.idle_ns >= 0 else Text("never", ink.muted)
    )


def _store_columns(title: str, counted: str) -> tuple[GridColumn[Stream], ...]:
    """What buckets and object stores have in common."""
    return (
        GridColumn(Column("name", title, lambda row: row.name), _store_name, 14, 2.0, 40),
        _BY_KEY["replicas"],
        GridColumn(
            Column("subjects", counted, lambda row: row.num_subjects, align=RIGHT),
            lambda row, ink, _width: cells.number(row.num_subjects, ink),
            8,
            descending=True,
        ),
        _BY_KEY["messages"],
        _BY_KEY["bytes"],
        _BY_KEY["rate"],
        _BY_KEY["peers"],
        GridColumn(
            Column("storage", "Store", lambda row: row.storage, priority=2),
            lambda row, ink, width: plain_text(row.storage, ink, width, "muted"),
            6,
        ),
        GridColumn(
            Column("changed", "Changed", lambda row: -row.last_ns, align=RIGHT, priority=1),
            _last,
            8,
        ),
        GridColumn(
            Column("why", "State", lambda row: row.why, priority=3),
            lambda row, ink, width: state_text(row.level, row.why, ink, width),
            12,
            1.0,
        ),
    )


BUCKETS = _store_columns("Bucket", "Keys")


OBJECTS = _store_columns("Object store", "Subjects")
