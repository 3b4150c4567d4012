"""The columns of the dashboard's tables.

They are columns of reports (`jsctl.render.column`), with a drawing besides: the same keys, values
and sort keys that `--once -o json` prints.
"""

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, fitted, short, short_bytes, short_time
from jsctl.dashboard.model.snapshot import Consumer, Level, Server, Stream
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Align, Column

NAMES: dict[str, str] = {}
"""Filled anew with every snapshot: server names without what all share."""
RIGHT = Align.RIGHT
LEFT = Align.LEFT


def plain_text(found: str, ink: Ink, width: int, role: str = "") -> Text:
    """Foreign text, cut to a width."""
    colour = (ink.muted if role == "muted" else ink.colour(role)) if role else ink.text
    return Text(fitted(clean(found), width), colour, no_wrap=True, end="")


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


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _stream_size(row: Stream, ink: Ink, _width: int) -> Text:
    return Text(short_bytes(row.bytes), ink.text if row.bytes else ink.muted)


def _lag_level(lag: int) -> Level:
    return Level.BAD if lag >= 10_000 else Level.WARN if lag >= 1000 else Level.OK


def state_text(level: Level, why: str, ink: Ink, width: int) -> Text:
    """What is wrong, in the colour of how bad it is."""
    return Text(fitted(clean(why), width), ink.level(level) if level else ink.muted)


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
        lambda row, ink, width: cells.replicas(row.peers, NAMES, ink, width),
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
        lambda row, ink, width: cells.replicas(row.peers, NAMES, ink, width),
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


def _server_name(row: Server, ink: Ink, width: int) -> Text:
    star = 2 if row.meta_leader else 0
    cell = cells.named(row.level, NAMES.get(row.name, row.name), ink, width - star)
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
    cell.append(f"{_percent(share):>5}", ink.text)
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
