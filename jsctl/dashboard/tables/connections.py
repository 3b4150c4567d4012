"""Columns of a server's connections."""

from rich.text import Text

from jsctl.api.monitoring.connz import ConnInfo
from jsctl.dashboard.look import cells
from jsctl.dashboard.look.words import short_bytes
from jsctl.dashboard.model.snapshot import Level
from jsctl.dashboard.tables.columns import RIGHT, plain_text
from jsctl.dashboard.widgets.grid import GridColumn
from jsctl.render.column import Column

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
