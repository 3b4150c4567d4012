"""Columns of streams."""

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import short, short_bytes
from jsctl.dashboard.model.snapshot import Level, Stream
from jsctl.dashboard.tables.columns import RIGHT, plain_text, state_text
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Column


def _spark_and_rate(row: Stream, ink: Ink, width: int) -> Text:
    room = max(1, width - 7)
    cell = cells.spark(row.trend, room, ink, "flow")
    cell.append(f"{short(row.rate):>7}", ink.text if row.rate else ink.muted)
    return cell


def _stream_name(row: Stream, ink: Ink, width: int) -> Text:
    return cells.named(row.level, row.name, ink, width)


def _stream_r(row: Stream, ink: Ink, _width: int) -> Text:
    if any(source.mirror for source in row.sources):
        return Text(ink.glyphs.mirror, ink.colour("accent"))
    return Text(f"R{row.replicas}", ink.muted)


def _stream_size(row: Stream, ink: Ink, _width: int) -> Text:
    return Text(short_bytes(row.bytes), ink.text if row.bytes else ink.muted)


def _lag_level(lag: int) -> Level:
    return Level.BAD if lag >= 10_000 else Level.WARN if lag >= 1000 else Level.OK


STREAMS: tuple[GridColumn[Stream], ...] = (
    GridColumn(Column("name", "Stream", lambda row: row.name), _stream_name, 12, 2.0, 34),
    GridColumn(Column("replicas", "R", lambda row: row.replicas), _stream_r, 2),
    GridColumn(
        Column("messages", "Msgs", lambda row: row.messages, align=RIGHT),
        lambda row, ink, _width: cells.number(row.messages, ink),
        6,
        descending=True,
    ),
    GridColumn(
        Column("bytes", "Size", lambda row: row.bytes, align=RIGHT),
        _stream_size,
        6,
        descending=True,
    ),
    GridColumn(
        Column("rate", "In/s", lambda row: row.rate, priority=2),
        _spark_and_rate,
        13,
        3.0,
        40,
        descending=True,
    ),
    GridColumn(
        Column("peers", "Replicas", lambda row: " ".join(peer.name for peer in row.peers)),
        lambda row, ink, width: cells.replicas(row.peers, ink.names, ink, width),
        11,
        1.0,
        30,
    ),
    GridColumn(
        Column("consumers", "Cons", lambda row: row.consumers, align=RIGHT, priority=3),
        lambda row, ink, _width: cells.number(row.consumers, ink),
        4,
        descending=True,
    ),
    GridColumn(
        Column("lag", "Lag", lambda row: row.lag, align=RIGHT),
        lambda row, ink, _width: cells.lag(row.lag, _lag_level(row.lag), ink),
        5,
        descending=True,
    ),
)


STREAMS_WIDE: tuple[GridColumn[Stream], ...] = (
    *STREAMS,
    GridColumn(
        Column("storage", "Store", lambda row: row.storage, priority=6),
        lambda row, ink, width: plain_text(row.storage, ink, width, "muted"),
        6,
    ),
    GridColumn(
        Column("subjects", "Subjects", lambda row: ",".join(row.subjects), priority=5),
        lambda row, ink, width: plain_text(", ".join(row.subjects), ink, width, "muted"),
        10,
        1.0,
    ),
    GridColumn(
        Column("why", "State", lambda row: row.why, priority=7),
        lambda row, ink, width: state_text(row.level, row.why, ink, width),
        12,
        2.0,
    ),
)
