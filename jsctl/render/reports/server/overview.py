"""The overview of servers and clusters."""

from collections.abc import Sequence

from jsctl.api.monitoring.statsz import Statsz
from jsctl.api.server import ServerInfo
from jsctl.api.times import format_duration, parse_time
from jsctl.dataclass import dataclass
from jsctl.render.column import Cell, Column, sort_rows
from jsctl.render.humanize import compact, duration, number, size
from jsctl.render.table import safe

MILLISECOND_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server; `name` and `host` as shown, `rtt_ns` 0 when it was not measured."""

    server: ServerInfo
    stats: Statsz
    name: str
    host: str
    rtt_ns: int = 0

    @property
    def uptime_ns(self) -> int:
        """Since the start, by the server's own clock."""
        return max(0, parse_time(self.server.time) - parse_time(self.stats.start))

    @property
    def jetstream(self) -> str:
        """`no`, `yes` or the domain."""
        if not self.server.jetstream:
            return "no"
        return self.server.domain or "yes"


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """All servers of one cluster."""

    cluster: str
    nodes: int
    outgoing: int
    incoming: int
    connections: int


def server_rows(
    replies: Sequence[tuple[ServerInfo, Statsz, int]], *, short: bool = True
) -> list[ServerRow]:
    """Rows of (server, statistics, round trip); `short` cuts what all names share."""
    names = [server.name for server, _, _ in replies]
    hosts = [server.host for server, _, _ in replies]
    if short:
        names, hosts = compact(names), compact(hosts)
    return [
        ServerRow(server, stats, names[at], hosts[at], rtt_ns)
        for at, (server, stats, rtt_ns) in enumerate(replies)
    ]


def _slow(row: ServerRow) -> str:
    kinds = row.stats.slow_consumer_stats
    text = number(row.stats.slow_consumers)
    if kinds is None or not (kinds.routes or kinds.gateways or kinds.leafs):
        return text
    parts = (
        f"c: {number(kinds.clients)} r: {number(kinds.routes)} "
        f"g: {number(kinds.gateways)} l: {number(kinds.leafs)}"
    )
    return f"{text} ({parts})"


def _rtt(row: ServerRow) -> str:
    if row.rtt_ns < MILLISECOND_NS:
        return duration(row.rtt_ns) if row.rtt_ns else "-"
    return duration(round(row.rtt_ns / MILLISECOND_NS) * MILLISECOND_NS)


SERVER_COLUMNS: tuple[Column[ServerRow], ...] = (
    Column("name", "Name", lambda row: row.server.name, lambda row: row.name),
    Column("cluster", "Cluster", lambda row: row.server.cluster),
    Column("host", "Host", lambda row: row.server.host, lambda row: row.host, priority=3),
    Column("version", "Version", lambda row: row.server.ver, priority=2),
    Column("jetstream", "JS", lambda row: row.jetstream),
    Column(
        "conns",
        "Conns",
        lambda row: row.stats.connections,
        lambda row: number(row.stats.connections),
    ),
    Column(
        "subs",
        "Subs",
        lambda row: row.stats.subscriptions,
        lambda row: number(row.stats.subscriptions),
    ),
    Column("routes", "Routes", lambda row: len(row.stats.routes), priority=1),
    Column("gateways", "GWs", lambda row: len(row.stats.gateways), priority=1),
    Column("mem", "Mem", lambda row: row.stats.mem, lambda row: size(row.stats.mem)),
    Column("cpu", "CPU %", lambda row: row.stats.cpu, lambda row: f"{row.stats.cpu:.0f}"),
    Column("cores", "Cores", lambda row: row.stats.cores, priority=2),
    Column("slow", "Slow", lambda row: row.stats.slow_consumers, _slow),
    Column("uptime", "Uptime", lambda row: row.uptime_ns, lambda row: duration(row.uptime_ns)),
    Column("rtt", "RTT", lambda row: row.rtt_ns, _rtt),
)

CLUSTER_COLUMNS: tuple[Column[ClusterRow], ...] = (
    Column("cluster", "Cluster", lambda row: row.cluster),
    Column("nodes", "Node Count", lambda row: row.nodes),
    Column("outgoing", "Outgoing Gateways", lambda row: row.outgoing),
    Column("incoming", "Incoming Gateways", lambda row: row.incoming),
    Column("connections", "Connections", lambda row: row.connections),
)

_SORT_KEYS = {
    "conn": "conns",
    "sub": "subs",
    "route": "routes",
    "gw": "gateways",
}
_LARGEST_FIRST = frozenset({"conns", "subs", "routes", "gateways", "mem", "cpu", "slow", "uptime"})


def sort_servers(rows: Sequence[ServerRow], key: str, *, reverse: bool = False) -> list[ServerRow]:
    """By a key of `server list --sort`; `reverse` turns that key's natural order round."""
    key = _SORT_KEYS.get(key, key)
    ordered = list(rows)
    if key == "cluster":
        ordered = sort_rows(ordered, SERVER_COLUMNS, "name", reverse=True)
    ordered = sort_rows(ordered, SERVER_COLUMNS, key, reverse=key in _LARGEST_FIRST)
    return ordered[::-1] if reverse else ordered


def server_footer(rows: Sequence[ServerRow]) -> list[Cell]:
    """Totals; an `X` where versions, routes or gateways differ that should not."""
    clusters = {row.server.cluster for row in rows if row.server.cluster}
    versions = {row.server.ver for row in rows}
    return [
        "",
        number(len(clusters)),
        number(len(rows)),
        "X" if len(versions) > 1 else "",
        number(sum(row.server.jetstream for row in rows)),
        number(sum(row.stats.connections for row in rows)),
        number(sum(row.stats.subscriptions for row in rows)),
        "X" if _differs(rows, [len(row.stats.routes) for row in rows]) else "",
        "X" if _differs(rows, [len(row.stats.gateways) for row in rows]) else "",
        size(sum(row.stats.mem for row in rows)),
        "",
        "",
        number(sum(row.stats.slow_consumers for row in rows)),
        "",
        "",
    ]


def _differs(rows: Sequence[ServerRow], counts: Sequence[int]) -> bool:
    found: dict[str, set[int]] = {}
    for row, count in zip(rows, counts, strict=True):
        found.setdefault(row.server.cluster, set()).add(count)
    return any(len(values) > 1 for values in found.values())


def cluster_rows(rows: Sequence[ServerRow]) -> list[ClusterRow]:
    """One row a cluster, fewest connections first."""
    grouped: dict[str, list[ServerRow]] = {}
    for row in rows:
        if row.server.cluster:
            grouped.setdefault(row.server.cluster, []).append(row)
    found = [
        ClusterRow(
            cluster,
            len(members),
            sum(len(row.stats.gateways) for row in members),
            sum(gate.inbound_connections for row in members for gate in row.stats.gateways),
            sum(row.stats.connections for row in members),
        )
        for cluster, members in sorted(grouped.items())
    ]
    return sort_rows(found, CLUSTER_COLUMNS, "connections")


def cluster_footer(rows: Sequence[ClusterRow]) -> list[Cell]:
    """Sums."""
    return [
        "",
        sum(row.nodes for row in rows),
        sum(row.outgoing for row in rows),
        sum(row.incoming for row in rows),
        sum(row.connections for row in rows),
    ]


def ping_line(name: str, rtt_ns: int) -> str:
    """A server that answered, and how long it took."""
    return f"{safe(name):<60} rtt={format_duration(rtt_ns)}"
