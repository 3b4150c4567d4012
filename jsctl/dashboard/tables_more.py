"""Columns of raft groups, events, connections, buckets and object stores."""

from rich.text import Text

from jsctl.api.connz import ConnInfo
from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, fitted, short_bytes, short_time
from jsctl.dashboard.model.snapshot import Event, Level, RaftGroup, Stream
from jsctl.dashboard.tables import NAMES, RIGHT, STREAMS, plain_text, state_text
from jsctl.dashboard.widgets.bars import clock
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Column


def _members(row: RaftGroup, ink: Ink, width: int) -> Text:
    cell = Text(no_wrap=True, end="")
    for one in sorted(row.members, key=lambda one: (one.server != row.leader, one.server)):
        if cell:
            cell.append(" ")
        star = one.server == row.leader
        away = one.state in ("offline", "silent")
        mark = ink.glyphs.leader if star else ink.glyphs.bad if away else ""
        colour = ink.colour("star") if star else ink.level(Level.BAD) if away else ink.muted
        cell.append(mark, colour)
        cell.append(clean(NAMES.get(one.server, one.server)), ink.text if star else colour)
    cell.truncate(width, overflow="ellipsis")
    return cell


GROUPS: tuple[GridColumn[RaftGroup], ...] = (
    GridColumn(
        Column("name", "Group", lambda row: row.name),
        lambda row, ink, width: cells.named(row.level, row.name, ink, width),
        16,
    ),
    GridColumn(
        Column("asset", "Of", lambda row: row.asset),
        lambda row, ink, width: plain_text(row.asset, ink, width),
        14,
        2.0,
        44,
    ),
    GridColumn(
        Column("members", "Members", lambda row: row.leader),
        _members,
        12,
        1.0,
        30,
    ),
    GridColumn(
        Column("term", "Term", lambda row: row.term, align=RIGHT),
        lambda row, ink, _width: Text(str(row.term), ink.text),
        4,
        descending=True,
    ),
    GridColumn(
        Column("committed", "Committed", lambda row: row.committed, align=RIGHT),
        lambda row, ink, _width: Text(f"{row.committed:,}", ink.text),
        10,
        descending=True,
    ),
    GridColumn(
        Column("lag", "Behind", lambda row: row.lag, align=RIGHT),
        lambda row, ink, _width: cells.lag(row.lag, Level.OK, ink),
        6,
        descending=True,
    ),
    GridColumn(
        Column("log", "Log", lambda row: _log_bytes(row), align=RIGHT, priority=2),
        lambda row, ink, _width: Text(short_bytes(_log_bytes(row)), ink.muted),
        6,
        descending=True,
    ),
    GridColumn(
        Column("why", "State", lambda row: row.why, priority=3),
        lambda row, ink, width: state_text(row.level, row.why, ink, width),
        12,
        1.0,
    ),
)


def _log_bytes(row: RaftGroup) -> int:
    return max((one.log_bytes for one in row.members), default=0)


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

CONNECTIONS: tuple[GridColumn[ConnInfo], ...] = (
    GridColumn(
        Column("cid", "CID", lambda row: row.cid, align=RIGHT),
        lambda row, ink, _width: Text(str(row.cid), ink.muted),
        6,
    ),
    GridColumn(
        Column("name", "Name", lambda row: row.name),
        lambda row, ink, width: plain_text(row.name or ink.glyphs.none, ink, width),
        14,
        2.0,
        40,
    ),
    GridColumn(
        Column("account", "Account", lambda row: row.account, priority=3),
        lambda row, ink, width: plain_text(row.account, ink, width, "muted"),
        8,
        0.5,
        20,
    ),
    GridColumn(
        Column("host", "Host", lambda row: f"{row.ip}:{row.port}", priority=2),
        lambda row, ink, width: plain_text(f"{row.ip}:{row.port}", ink, width, "muted"),
        16,
        0.5,
        24,
    ),
    GridColumn(
        Column("in", "In", lambda row: row.in_msgs, align=RIGHT),
        lambda row, ink, _width: cells.number(row.in_msgs, ink),
        6,
        descending=True,
    ),
    GridColumn(
        Column("out", "Out", lambda row: row.out_msgs, align=RIGHT),
        lambda row, ink, _width: cells.number(row.out_msgs, ink),
        6,
        descending=True,
    ),
    GridColumn(
        Column("pending", "Pending", lambda row: row.pending_bytes, align=RIGHT),
        lambda row, ink, _width: Text(
            short_bytes(row.pending_bytes, none=ink.glyphs.none),
            ink.level(Level.WARN) if row.pending_bytes else ink.muted,
        ),
        7,
        descending=True,
    ),
    GridColumn(
        Column("subs", "Subs", lambda row: row.subscriptions, align=RIGHT),
        lambda row, ink, _width: cells.number(row.subscriptions, ink),
        5,
        descending=True,
    ),
    GridColumn(
        Column("rtt", "RTT", lambda row: row.rtt, align=RIGHT, priority=1),
        lambda row, ink, width: plain_text(row.rtt, ink, width, "muted"),
        9,
    ),
    GridColumn(
        Column("lang", "Client", lambda row: row.lang, priority=4),
        lambda row, ink, width: plain_text(
            f"{row.lang} {row.version}".strip(), ink, width, "muted"
        ),
        14,
    ),
)

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
