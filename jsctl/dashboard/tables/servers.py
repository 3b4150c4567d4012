"""Columns of servers."""

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import short_bytes, short_time
from jsctl.dashboard.model.snapshot import Level, Server
from jsctl.dashboard.tables.columns import RIGHT, plain_text, state_text
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Column


def _server_name(row: Server, ink: Ink, width: int) -> Text:
    star = 2 if row.meta_leader else 0
    cell = cells.named(row.level, ink.names.get(row.name, row.name), ink, width - star)
    if star:
        cell.append(f" {ink.glyphs.leader}", ink.colour("star"))
    return cell


def _cpu(row: Server, ink: Ink, width: int) -> Text:
    role = "warn" if row.level is Level.WARN else "accent"
    room = max(1, width - 6)
    cell = cells.spark(row.cpu_trend, room, ink, role, most=100.0 * max(1, row.cores))
    text = f"{row.cpu / max(1, row.cores):.0f}%" if row.up else ink.glyphs.none
    hot = row.cpu > 70 * max(1, row.cores)
    cell.append(f"{text:>6}", ink.colour("warn") if hot else ink.text)
    return cell


def _store(row: Server, ink: Ink, width: int) -> Text:
    share = row.store / row.store_max if row.store_max > 0 else 0.0
    colour = ink.colour("warn" if share > 0.6 else "accent")
    cell = cells.bar(share, max(1, width - 5), ink, colour)
    cell.append(f"{share:>5.0%}", ink.text)
    return cell


def _rtt(row: Server, ink: Ink, _width: int) -> Text:
    if not row.up:
        return Text(f"{short_time(row.age_ns)} ago", ink.level(Level.BAD))
    return Text(ink.glyphs.plain(short_time(row.rtt_ns)), ink.text)


def _up_number(row: Server, value: float, ink: Ink) -> Text:
    return cells.number(value, ink) if row.up else Text(ink.glyphs.none, ink.muted)


SERVERS: tuple[GridColumn[Server], ...] = (
    GridColumn(Column("name", "Server", lambda row: row.name), _server_name, 7, 2.0, 20),
    GridColumn(Column("cpu", "CPU", lambda row: row.cpu), _cpu, 12, 2.0, 30, descending=True),
    GridColumn(
        Column("mem", "Mem", lambda row: row.mem, align=RIGHT),
        lambda row, ink, _width: Text(short_bytes(row.mem), ink.text if row.up else ink.muted),
        5,
        descending=True,
    ),
    GridColumn(
        Column("connections", "Conn", lambda row: row.connections, align=RIGHT),
        lambda row, ink, _width: _up_number(row, row.connections, ink),
        4,
        descending=True,
    ),
    GridColumn(
        Column("in", "In/s", lambda row: row.in_msgs, align=RIGHT),
        lambda row, ink, _width: _up_number(row, row.in_msgs, ink),
        5,
        descending=True,
    ),
    GridColumn(
        Column("out", "Out/s", lambda row: row.out_msgs, align=RIGHT),
        lambda row, ink, _width: _up_number(row, row.out_msgs, ink),
        5,
        descending=True,
    ),
    GridColumn(
        Column("store", "Store", lambda row: row.store, priority=1),
        _store,
        9,
        1.0,
        20,
        descending=True,
    ),
    GridColumn(
        Column("leaders", "Ldr", lambda row: row.leaders, align=RIGHT),
        lambda row, ink, _width: _up_number(row, row.leaders, ink),
        3,
        descending=True,
    ),
    GridColumn(
        Column("rtt", "RTT", lambda row: row.rtt_ns, align=RIGHT),
        _rtt,
        7,
        descending=True,
    ),
)


SERVERS_WIDE: tuple[GridColumn[Server], ...] = (
    *SERVERS,
    GridColumn(
        Column("assets", "HA", lambda row: row.assets, align=RIGHT, priority=3),
        lambda row, ink, _width: cells.number(row.assets, ink),
        4,
        descending=True,
    ),
    GridColumn(
        Column("slow", "Slow", lambda row: row.slow_consumers, align=RIGHT, priority=3),
        lambda row, ink, _width: cells.lag(row.slow_consumers, Level.WARN, ink),
        4,
        descending=True,
    ),
    GridColumn(
        Column("version", "Version", lambda row: row.version, priority=4),
        lambda row, ink, width: plain_text(row.version, ink, width, "muted"),
        8,
    ),
    GridColumn(
        Column("uptime", "Uptime", lambda row: row.uptime_ns, align=RIGHT, priority=4),
        lambda row, ink, _width: Text(short_time(row.uptime_ns), ink.muted),
        7,
        descending=True,
    ),
    GridColumn(
        Column("why", "State", lambda row: row.why, priority=5),
        lambda row, ink, width: state_text(row.level, row.why, ink, width),
        12,
        2.0,
    ),
)
