"""Connections of all servers, one by one, per server and per account."""

from collections.abc import Sequence
from dataclasses import field

from jsctl.api.monitoring.connz import ConnInfo
from jsctl.api.server import ServerInfo
from jsctl.api.times import parse_duration, parse_time
from jsctl.dataclass import dataclass
from jsctl.render.column import Cell, Column, sort_rows
from jsctl.render.humanize import counted, number, size

NAME_MAX = 40
ACCOUNT_MAX = 46
ACCOUNT_SHORT = 12


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A connection and the server it is on."""

    server: ServerInfo
    info: ConnInfo

    @property
    def subs(self) -> int:
        """Subscriptions; of closed connections the list is gone and so are they."""
        return len(self.info.subscriptions_list) or self.info.subscriptions

    @property
    def uptime_ns(self) -> int:
        """How long it has been, or was, open."""
        try:
            return parse_duration(self.info.uptime)
        except ValueError:
            return max(0, parse_time(self.server.time) - parse_time(self.info.start))


@dataclass(frozen=True, slots=True)
class ServerCountRow:
    """How many of the connections are on a server."""

    server: ServerInfo
    count: int


@dataclass(slots=True)
class AccountRow:
    """Sums of an account's connections."""

    account: str
    connections: int = 0
    in_msgs: int = 0
    out_msgs: int = 0
    in_bytes: int = 0
    out_bytes: int = 0
    subs: int = 0
    servers: dict[str, ServerInfo] = field(default_factory=dict)


def _cid(row: ConnectionRow) -> str:
    kind = row.info.kind
    letter = kind[0] if kind and kind != "Client" else ""
    return f"{letter}{row.info.cid}"


def _name(row: ConnectionRow) -> str:
    name = row.info.name or row.info.mqtt_client
    return name if len(name) <= NAME_MAX else f"{name[:NAME_MAX]} .."


def _account(row: ConnectionRow) -> str:
    account = row.info.account
    return account if len(account) <= ACCOUNT_MAX else f"{account[:ACCOUNT_SHORT]} .."


def _ip(row: ConnectionRow) -> str:
    return f"{row.info.ip}:{row.info.port}" if row.info.ip else ""


CONNECTION_COLUMNS: tuple[Column[ConnectionRow], ...] = (
    Column("cid", "CID", lambda row: row.info.cid, _cid),
    Column("name", "Name", lambda row: row.info.name, _name),
    Column("server", "Server", lambda row: row.server.name),
    Column("cluster", "Cluster", lambda row: row.server.cluster, priority=2),
    Column("ip", "IP", _ip, priority=2),
    Column("account", "Account", lambda row: row.info.account, _account, priority=1),
    Column("uptime", "Uptime", lambda row: row.uptime_ns, lambda row: row.info.uptime),
    Column(
        "in-msgs", "In Msgs", lambda row: row.info.in_msgs, lambda row: number(row.info.in_msgs)
    ),
    Column(
        "out-msgs",
        "Out Msgs",
        lambda row: row.info.out_msgs,
        lambda row: number(row.info.out_msgs),
    ),
    Column(
        "in-bytes", "In Bytes", lambda row: row.info.in_bytes, lambda row: size(row.info.in_bytes)
    ),
    Column(
        "out-bytes",
        "Out Bytes",
        lambda row: row.info.out_bytes,
        lambda row: size(row.info.out_bytes),
    ),
    Column("subs", "Subs", lambda row: row.subs, lambda row: number(row.subs)),
)
REASON: Column[ConnectionRow] = Column("reason", "Reason", lambda row: row.info.reason)

COUNT_COLUMNS: tuple[Column[ServerCountRow], ...] = (
    Column("server", "Server", lambda row: row.server.name),
    Column("cluster", "Cluster", lambda row: row.server.cluster),
    Column("connections", "Connections", lambda row: row.count),
)

ACCOUNT_COLUMNS: tuple[Column[AccountRow], ...] = (
    Column("account", "Account", lambda row: row.account),
    Column(
        "conns", "Connections", lambda row: row.connections, lambda row: number(row.connections)
    ),
    Column("in-msgs", "In Msgs", lambda row: row.in_msgs, lambda row: number(row.in_msgs)),
    Column("out-msgs", "Out Msgs", lambda row: row.out_msgs, lambda row: number(row.out_msgs)),
    Column("in-bytes", "In Bytes", lambda row: row.in_bytes, lambda row: size(row.in_bytes)),
    Column("out-bytes", "Out Bytes", lambda row: row.out_bytes, lambda row: size(row.out_bytes)),
    Column("subs", "Subs", lambda row: row.subs, lambda row: number(row.subs)),
)


def top_connections(
    rows: Sequence[ConnectionRow], key: str, count: int, *, reverse: bool = False
) -> list[ConnectionRow]:
    """The `count` largest by that key, largest last, or first with `reverse`; all of them for 0."""
    ordered = sort_rows(sort_rows(rows, CONNECTION_COLUMNS, "cid"), CONNECTION_COLUMNS, key)
    top = ordered[-count:] if count > 0 else ordered
    return top[::-1] if reverse else top


def connection_footer(
    rows: Sequence[ConnectionRow], columns: Sequence[Column[ConnectionRow]]
) -> list[Cell]:
    """Sums of all connections; nothing for a single one."""
    if len(rows) < 2:
        return []
    sums: dict[str, Cell] = {
        "name": f"Totals for {counted(len(rows), 'connection')}",
        "in-msgs": number(sum(row.info.in_msgs for row in rows)),
        "out-msgs": number(sum(row.info.out_msgs for row in rows)),
        "in-bytes": size(sum(row.info.in_bytes for row in rows)),
        "out-bytes": size(sum(row.info.out_bytes for row in rows)),
        "subs": number(sum(row.subs for row in rows)),
    }
    return [sums.get(column.key, "") for column in columns]


def count_rows(rows: Sequence[ConnectionRow]) -> list[ServerCountRow]:
    """Connections per server, fewest first."""
    servers = {row.server.id: row.server for row in rows}
    counts = dict.fromkeys(servers, 0)
    for row in rows:
        counts[row.server.id] += 1
    found = [ServerCountRow(servers[server], count) for server, count in counts.items()]
    return sort_rows(sort_rows(found, COUNT_COLUMNS, "server"), COUNT_COLUMNS, "connections")


def account_rows(rows: Sequence[ConnectionRow]) -> list[AccountRow]:
    """Connections summed per account, by its name."""
    found: dict[str, AccountRow] = {}
    for row in rows:
        sums = found.setdefault(row.info.account, AccountRow(row.info.account))
        sums.connections += 1
        sums.in_msgs += row.info.in_msgs
        sums.out_msgs += row.info.out_msgs
        sums.in_bytes += row.info.in_bytes
        sums.out_bytes += row.info.out_bytes
        sums.subs += row.subs
        sums.servers[row.server.id] = row.server
    return sort_rows(list(found.values()), ACCOUNT_COLUMNS, "account")


def top_accounts(
    rows: Sequence[AccountRow], key: str, count: int, *, reverse: bool = False
) -> list[AccountRow]:
    """The `count` largest by that key, largest last, or first with `reverse`; all of them for 0."""
    ordered = sort_rows(rows, ACCOUNT_COLUMNS, key)
    top = ordered[-count:] if count > 0 else ordered
    return top[::-1] if reverse else top
