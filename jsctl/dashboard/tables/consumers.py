"""Columns of consumers."""

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, fitted, short
from jsctl.dashboard.model.snapshot import Consumer, Level
from jsctl.dashboard.tables.columns import RIGHT, plain_text, state_text
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Column


def _consumer_name(row: Consumer, ink: Ink, width: int) -> Text:
    mark = ink.glyphs.paused if row.paused else ""
    cell = cells.named(row.level, row.name, ink, width, mark)
    room = width - cell.cell_len - 1
    if room > 1:
        cell.append(" " + fitted(clean(row.stream), room), ink.muted)
    return cell


def _acks(row: Consumer, ink: Ink, _width: int) -> Text:
    full = 0 < row.ack_pending_max <= row.ack_pending
    style = ink.level(Level.WARN) if full else ""
    if not row.ack_pending:
        return Text(ink.glyphs.none, ink.muted)
    return cells.number(row.ack_pending, ink, style)


def _own_name(row: Consumer, ink: Ink, width: int) -> Text:
    mark = ink.glyphs.paused if row.paused else ""
    return cells.named(row.level, row.name, ink, width, mark)


CONSUMERS: tuple[GridColumn[Consumer], ...] = (
    GridColumn(
        Column("name", "Consumer", lambda row: f"{row.name} {row.stream}"), _consumer_name, 14, 1.0
    ),
    GridColumn(
        Column("bar", " ", lambda row: row.lag, priority=2),
        lambda row, ink, width: cells.lag_bar(row.lag, row.level, width, ink),
        5,
        0.2,
        8,
        descending=True,
    ),
    GridColumn(
        Column("lag", "Lag", lambda row: row.lag, align=RIGHT),
        lambda row, ink, _width: cells.lag(row.lag, row.level, ink),
        5,
        descending=True,
    ),
    GridColumn(
        Column("ack_pending", "Ack", lambda row: row.ack_pending, align=RIGHT, priority=1),
        _acks,
        4,
        descending=True,
    ),
)


CONSUMERS_OF_ONE: tuple[GridColumn[Consumer], ...] = (
    GridColumn(Column("name", "Name", lambda row: row.name), _own_name, 14, 1.0),
    *CONSUMERS[1:],
)


def _consumer_rate(row: Consumer, ink: Ink, width: int) -> Text:
    room = max(1, width - 7)
    cell = cells.spark(row.trend, room, ink, "flow")
    cell.append(f"{short(row.rate):>7}", ink.text if row.rate else ink.muted)
    return cell


CONSUMERS_WIDE: tuple[GridColumn[Consumer], ...] = (
    GridColumn(
        Column("name", "Consumer", lambda row: row.name),
        _own_name,
        14,
        2.0,
        32,
    ),
    GridColumn(
        Column("stream", "Stream", lambda row: row.stream),
        lambda row, ink, width: plain_text(row.stream, ink, width, "muted"),
        10,
        1.0,
        26,
    ),
    GridColumn(
        Column("kind", "Kind", lambda row: "push" if row.push else "pull", priority=4),
        lambda row, ink, width: plain_text("push" if row.push else "pull", ink, width, "muted"),
        4,
    ),
    *CONSUMERS[1:],
    GridColumn(
        Column("redelivered", "Redel", lambda row: row.redelivered, align=RIGHT, priority=3),
        lambda row, ink, _width: cells.lag(row.redelivered, Level.OK, ink),
        5,
        descending=True,
    ),
    GridColumn(
        Column("waiting", "Wait", lambda row: row.waiting, align=RIGHT, priority=4),
        lambda row, ink, _width: cells.lag(row.waiting, Level.OK, ink),
        4,
        descending=True,
    ),
    GridColumn(
        Column("rate", "Delivered/s", lambda row: row.rate, priority=5),
        _consumer_rate,
        14,
        2.0,
        30,
        descending=True,
    ),
    GridColumn(
        Column("peers", "Replicas", lambda row: " ".join(peer.name for peer in row.peers)),
        lambda row, ink, width: cells.replicas(row.peers, ink.names, ink, width),
        10,
        1.0,
        24,
    ),
    GridColumn(
        Column("why", "State", lambda row: row.why, priority=6),
        lambda row, ink, width: state_text(row.level, row.why, ink, width),
        12,
        2.0,
    ),
)
