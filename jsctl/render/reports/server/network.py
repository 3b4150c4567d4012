"""What connects servers: routes inside a cluster, gateways between them, leaf nodes."""

from collections.abc import Sequence
from dataclasses import replace

from jsctl.api.monitoring.connz import Gatewayz, LeafInfo, Leafz, RemoteGatewayz, RouteInfo, Routez
from jsctl.api.server import ServerInfo
from jsctl.api.times import parse_duration, parse_time
from jsctl.dataclass import dataclass
from jsctl.render.column import Cell, Column, sort_rows
from jsctl.render.humanize import boolean, duration, number, size

ACCOUNT_MAX = 23
ACCOUNT_END = 10


def short_account(name: str) -> str:
    """Both ends of a long name, as of a public key."""
    if len(name) <= ACCOUNT_MAX:
        return name
    return f"{name[:ACCOUNT_END]}...{name[-ACCOUNT_END:]}"


def _span(text: str) -> str:
    """A server's own length of time, as people read it; unchanged if it is none."""
    try:
        return duration(parse_duration(text))
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A route; `shown` are server, cluster and remote name where they differ from above."""

    server: ServerInfo
    route: RouteInfo
    shown: tuple[str, str, str] = ("", "", "")

    @property
    def uptime_ns(self) -> int:
        """How long it has been there."""
        return parse_time(self.server.time) - parse_time(self.route.start)


ROUTE_COLUMNS: tuple[Column[RouteRow], ...] = (
    Column("server", "Server", lambda row: row.server.name, lambda row: row.shown[0]),
    Column("cluster", "Cluster", lambda row: row.server.cluster, lambda row: row.shown[1]),
    Column("name", "Name", lambda row: row.route.remote_name, lambda row: row.shown[2]),
    Column(
        "account",
        "Account",
        lambda row: row.route.account,
        lambda row: short_account(row.route.account),
    ),
    Column("address", "Address", lambda row: f"{row.route.ip}:{row.route.port}"),
    Column("id", "ID", lambda row: row.route.rid, lambda row: f"rid:{row.route.rid}"),
    Column("uptime", "Uptime", lambda row: row.uptime_ns, lambda row: duration(row.uptime_ns)),
    Column("rtt", "RTT", lambda row: row.route.rtt, lambda row: _span(row.route.rtt)),
    Column(
        "subs",
        "Subs",
        lambda row: row.route.subscriptions,
        lambda row: number(row.route.subscriptions),
    ),
    Column(
        "in-bytes",
        "Bytes In",
        lambda row: row.route.in_bytes,
        lambda row: size(row.route.in_bytes),
    ),
    Column(
        "out-bytes",
        "Bytes Out",
        lambda row: row.route.out_bytes,
        lambda row: size(row.route.out_bytes),
    ),
)


def route_rows(
    replies: Sequence[tuple[ServerInfo, Routez]], key: str, *, reverse: bool = False
) -> list[RouteRow]:
    """All routes by a column, then server, cluster, remote server and account."""
    rows = [RouteRow(server, route) for server, routez in replies for route in routez.routes]
    for one in ("account", "name", "cluster", "server", key or "server"):
        rows = sort_rows(rows, ROUTE_COLUMNS, one)
    if reverse:
        rows.reverse()
    found: list[RouteRow] = []
    last = RouteRow(ServerInfo(), RouteInfo())
    for row in rows:
        names = (row.server.name, row.server.cluster, row.route.remote_name)
        above = (last.server.name, last.server.cluster, last.route.remote_name)
        same = names[0] == above[0]
        server, cluster, remote = (
            "" if same and name == over else name for name, over in zip(names, above, strict=True)
        )
        found.append(replace(row, shown=(server, cluster, remote)))
        last = row
    return found


def route_footer(rows: Sequence[RouteRow]) -> list[Cell]:
    """Servers, clusters, routes and sums."""
    return [
        number(len({row.server.name for row in rows})),
        number(len({row.server.cluster for row in rows})),
        *("", ""),
        number(len(rows)),
        *("", "", ""),
        number(sum(row.route.subscriptions for row in rows)),
        size(sum(row.route.in_bytes for row in rows)),
        size(sum(row.route.out_bytes for row in rows)),
    ]


@dataclass(frozen=True, slots=True)
class GatewayRow:
    """A connection to another cluster, or (`kind` empty) the server that its rows follow."""

    server: ServerInfo
    port: int
    kind: str = ""
    remote: str = ""
    gateway: RemoteGatewayz | None = None
    shown: tuple[str, str, str] = ("", "", "")
    """Server, cluster and kind where they differ from above."""

    @property
    def bytes(self) -> int:
        """What came in, or went out."""
        found = self.gateway.connection if self.gateway else None
        if found is None:
            return 0
        return found.in_bytes if self.kind == "Inbound" else found.out_bytes


def _of_connection(row: GatewayRow, name: str) -> str:
    found = row.gateway.connection if row.gateway else None
    return str(getattr(found, name)) if found is not None else ""


GATEWAY_COLUMNS: tuple[Column[GatewayRow], ...] = (
    Column("server", "Server", lambda row: row.server.name, lambda row: row.shown[0]),
    Column("cluster", "Name", lambda row: row.server.cluster, lambda row: row.shown[1]),
    Column("port", "Port", lambda row: row.port, lambda row: "" if row.kind else row.port),
    Column("kind", "Kind", lambda row: row.kind, lambda row: row.shown[2]),
    Column("connection", "Connection", lambda row: _place(row)),
    Column(
        "id",
        "ID",
        lambda row: _of_connection(row, "cid"),
        lambda row: f"gid:{_of_connection(row, 'cid')}" if row.gateway else "",
    ),
    Column(
        "uptime",
        "Uptime",
        lambda row: _of_connection(row, "uptime"),
        lambda row: _span(_of_connection(row, "uptime")),
    ),
    Column(
        "rtt",
        "RTT",
        lambda row: _of_connection(row, "rtt"),
        lambda row: _span(_of_connection(row, "rtt")),
    ),
    Column("bytes", "Bytes", lambda row: row.bytes, lambda row: size(row.bytes) * bool(row.kind)),
    Column(
        "accounts",
        "Accounts",
        lambda row: len(row.gateway.accounts) if row.gateway else 0,
        lambda row: number(len(row.gateway.accounts)) if row.gateway else "",
    ),
)


def _place(row: GatewayRow) -> str:
    if not row.kind:
        return ""
    return f"{row.remote} {_of_connection(row, 'ip')}:{_of_connection(row, 'port')}"


def gateway_rows(
    replies: Sequence[tuple[ServerInfo, Gatewayz]], key: str, *, reverse: bool = False
) -> list[GatewayRow]:
    """Servers with their connections below them, by cluster or by server."""

    def place(reply: tuple[ServerInfo, Gatewayz]) -> tuple[str, str]:
        server = reply[0]
        names = server.cluster, server.name
        return names if key == "cluster" else (names[1], names[0])

    rows: list[GatewayRow] = []
    last = ""
    for server, gatewayz in sorted(replies, key=place, reverse=reverse):
        name = "" if server.name == last else server.name
        rows.append(GatewayRow(server, gatewayz.port, shown=(name, server.cluster, "")))
        last = server.name
        found = [
            ("Inbound", remote, one)
            for remote, several in sorted(gatewayz.inbound_gateways.items())
            for one in several
        ]
        found += [
            ("Outbound", remote, one)
            for remote, one in sorted((gatewayz.outbound_gateways or {}).items())
        ]
        kind_above = ""
        for kind, remote, one in found:
            kind_shown = "" if kind == kind_above else kind
            kind_above = kind
            rows.append(
                GatewayRow(server, gatewayz.port, kind, remote, one, shown=("", "", kind_shown))
            )
    return rows


def gateway_footer(rows: Sequence[GatewayRow]) -> list[Cell]:
    """Servers, clusters, connections and bytes."""
    servers = [row for row in rows if not row.kind]
    return [
        number(len(servers)),
        len({row.server.cluster for row in servers}),
        *("", ""),
        number(len(rows) - len(servers)),
        *("", "", ""),
        size(sum(row.bytes for row in rows)),
        "",
    ]


@dataclass(frozen=True, slots=True)
class LeafRow:
    """A leaf node's connection."""

    server: ServerInfo
    leaf: LeafInfo


LEAF_COLUMNS: tuple[Column[LeafRow], ...] = (
    Column("server", "Server", lambda row: row.server.name),
    Column("name", "Name", lambda row: row.leaf.name),
    Column(
        "account",
        "Account",
        lambda row: row.leaf.account,
        lambda row: short_account(row.leaf.account),
    ),
    Column("address", "Address", lambda row: f"{row.leaf.ip}:{row.leaf.port}"),
    Column("rtt", "RTT", lambda row: row.leaf.rtt),
    Column("in-msgs", "Msgs In", lambda row: row.leaf.in_msgs, lambda r: number(r.leaf.in_msgs)),
    Column(
        "out-msgs", "Msgs Out", lambda row: row.leaf.out_msgs, lambda r: number(r.leaf.out_msgs)
    ),
    Column("in-bytes", "Bytes In", lambda row: row.leaf.in_bytes, lambda r: size(r.leaf.in_bytes)),
    Column(
        "out-bytes", "Bytes Out", lambda row: row.leaf.out_bytes, lambda r: size(r.leaf.out_bytes)
    ),
    Column(
        "subs",
        "Subs",
        lambda row: row.leaf.subscriptions,
        lambda row: number(row.leaf.subscriptions),
    ),
    Column("compression", "Compressed", lambda row: row.leaf.compression),
    Column("spoke", "Spoke", lambda row: row.leaf.is_spoke, lambda row: boolean(row.leaf.is_spoke)),
)


def leaf_rows(
    replies: Sequence[tuple[ServerInfo, Leafz]], key: str, *, reverse: bool = False
) -> list[LeafRow]:
    """All leaf connections by a column."""
    rows = [LeafRow(server, leaf) for server, leafz in replies for leaf in leafz.leafs]
    return sort_rows(rows, LEAF_COLUMNS, key or "server", reverse=reverse)
