"""Columns of raft groups."""

from rich.text import Text

from jsctl.dashboard.look import cells
from jsctl.dashboard.look.ink import Ink
from jsctl.dashboard.look.words import clean, short_bytes
from jsctl.dashboard.model.snapshot import Level, RaftGroup
from jsctl.dashboard.tables.columns import RIGHT, plain_text, state_text
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
        cell.append(clean(ink.names.get(one.server, one.server)), ink.text if star else colour)
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
