"""What servers, their JetStream, accounts and API requests are at: rows of live views."""

from collections.abc import Callable, Mapping, Sequence

from jsctl.api.monitoring.accountz import AccountStat
from jsctl.api.monitoring.jsz import JetStreamStats, MetaClusterInfo
from jsctl.api.monitoring.statsz import Statsz
from jsctl.api.server import DataStats
from jsctl.api.times import parse_time
from jsctl.dataclass import dataclass
from jsctl.render.column import Cell, Column
from jsctl.render.humanize import duration, number, size
from jsctl.render.reports.server.network import short_account

CONSUMER_MAX = 20
CONSUMER_SHORT = 12


@dataclass(frozen=True, slots=True)
class ServerActivity:
    """A server as it told of itself last."""

    name: str
    stats: Statsz

    @property
    def jetstream(self) -> JetStreamStats:
        """Use of its JetStream."""
        found = self.stats.jetstream
        return found.stats if found and found.stats else JetStreamStats()

    @property
    def meta(self) -> MetaClusterInfo:
        """Its view of the meta group."""
        found = self.stats.jetstream
        return found.meta if found and found.meta else MetaClusterInfo()


@dataclass(frozen=True, slots=True)
class AccountActivity:
    """Sums of an account over the servers that told of it."""

    account: str
    servers: int
    stat: AccountStat


@dataclass(slots=True)
class RequestActivity:
    """One kind of API request; `moments` are those within the interval of the rate."""

    kind: str
    account: str
    stream: str = ""
    consumer: str = ""
    count: int = 0
    moments: int = 0


def _traffic(found: DataStats) -> str:
    return f"{number(found.msgs)} / {size(found.bytes)}"


SERVER_SORTS: Mapping[str, tuple[str, Callable[[ServerActivity], object]]] = {
    "conns": ("Connections", lambda row: row.stats.connections),
    "cpu": ("CPU", lambda row: row.stats.cpu),
    "gway": ("Gateways", lambda row: len(row.stats.gateways)),
    "mem": ("Memory", lambda row: row.stats.mem),
    "name": ("Server Name", lambda row: row.name),
    "recvb": ("Received Bytes", lambda row: row.stats.received.bytes),
    "recvm": ("Received Messages", lambda row: row.stats.received.msgs),
    "route": ("Routes", lambda row: len(row.stats.routes)),
    "sentb": ("Sent Bytes", lambda row: row.stats.sent.bytes),
    "sentm": ("Sent Messages", lambda row: row.stats.sent.msgs),
    "slow": ("Slow Consumers", lambda row: row.stats.slow_consumers),
    "subs": ("Subscriptions", lambda row: row.stats.subscriptions),
}
JETSTREAM_SORTS: Mapping[str, tuple[str, Callable[[ServerActivity], object]]] = {
    "api": ("API Requests", lambda row: row.jetstream.api.total),
    "assets": ("HA Asset", lambda row: row.jetstream.ha_assets),
    "file": ("File Storage", lambda row: row.jetstream.storage),
    "mem": ("Memory Used", lambda row: row.jetstream.memory),
}
ACCOUNT_SORTS: Mapping[str, tuple[str, Callable[[AccountActivity], object]]] = {
    "conns": ("Connections", lambda row: row.stat.conns),
    "recvb": ("Received Bytes", lambda row: row.stat.received.bytes),
    "recvm": ("Received Messages", lambda row: row.stat.received.msgs),
    "sentb": ("Sent Bytes", lambda row: row.stat.sent.bytes),
    "sentm": ("Sent Messages", lambda row: row.stat.sent.msgs),
    "slow": ("Slow Consumers", lambda row: row.stat.slow_consumers),
    "subs": ("Subscriptions", lambda row: row.stat.num_subscriptions),
}

SERVER_COLUMNS: tuple[Column[ServerActivity], ...] = (
    Column("server", "Server", lambda row: row.name),
    Column(
        "conns",
        "Connections",
        lambda row: row.stats.connections,
        lambda row: number(row.stats.connections),
    ),
    Column(
        "subs",
        "Subscription",
        lambda row: row.stats.subscriptions,
        lambda row: number(row.stats.subscriptions),
    ),
    Column(
        "slow",
        "Slow",
        lambda row: row.stats.slow_consumers,
        lambda row: number(row.stats.slow_consumers),
    ),
    Column("mem", "Memory", lambda row: row.stats.mem, lambda row: size(row.stats.mem)),
    Column("cpu", "CPU", lambda row: row.stats.cpu, lambda row: number(float(row.stats.cpu))),
    Column("cores", "Cores", lambda row: row.stats.cores, lambda row: number(row.stats.cores)),
    Column(
        "routes",
        "Routes",
        lambda row: len(row.stats.routes),
        lambda row: number(len(row.stats.routes)),
    ),
    Column(
        "gateways",
        "Gateways",
        lambda row: len(row.stats.gateways),
        lambda row: number(len(row.stats.gateways)),
    ),
    Column("sent", "Sent", lambda row: row.stats.sent.bytes, lambda r: _traffic(r.stats.sent)),
    Column(
        "received",
        "Received",
        lambda row: row.stats.received.bytes,
        lambda row: _traffic(row.stats.received),
    ),
)


def server_footer(rows: Sequence[ServerActivity]) -> list[Cell]:
    """Sums over all servers."""
    stats = [row.stats for row in rows]
    return [
        "Totals (All Servers)",
        number(sum(one.connections for one in stats)),
        number(sum(one.subscriptions for one in stats)),
        number(sum(one.slow_consumers for one in stats)),
        size(sum(one.mem for one in stats)),
        *("", "", "", ""),
        _traffic(_summed([one.sent for one in stats])),
        _traffic(_summed([one.received for one in stats])),
    ]


def _summed(several: Sequence[DataStats]) -> DataStats:
    return DataStats(msgs=sum(one.msgs for one in several), bytes=sum(one.bytes for one in several))


def _pending(several: Sequence[MetaClusterInfo]) -> str:
    text = number(sum(one.pending for one in several))
    if infos := sum(one.pending_infos for one in several):
        text += f" / {number(infos)} info"
    if requests := sum(one.pending_requests for one in several):
        text += f" / {number(requests)} req"
    return text


def jetstream_columns(now_ns: int) -> tuple[Column[ServerActivity], ...]:
    """Columns at a moment of Unix time."""

    def leads(row: ServerActivity) -> bool:
        return bool(row.meta.leader) and row.meta.leader == row.name

    def snapshot(row: ServerActivity) -> str:
        found = row.meta.snapshot if leads(row) else None
        when = parse_time(found.last_time) if found else 0
        if found is None or not when:
            return ""
        return f"{duration(now_ns - when)} ago ({duration(found.last_duration)})"

    return (
        Column("server", "Server", lambda row: row.name, lambda row: row.name + "*" * leads(row)),
        Column(
            "assets",
            "HA Assets",
            lambda row: row.jetstream.ha_assets,
            lambda row: number(row.jetstream.ha_assets),
        ),
        Column(
            "mem", "Memory", lambda row: row.jetstream.memory, lambda r: size(r.jetstream.memory)
        ),
        Column(
            "file", "File", lambda row: row.jetstream.storage, lambda r: size(r.jetstream.storage)
        ),
        Column(
            "api",
            "API",
            lambda row: row.jetstream.api.total,
            lambda row: number(row.jetstream.api.total),
        ),
        Column(
            "api_errors",
            "API Errors",
            lambda row: row.jetstream.api.errors,
            lambda row: number(row.jetstream.api.errors),
        ),
        Column(
            "pending", "Pending", lambda row: row.meta.pending, lambda row: _pending([row.meta])
        ),
        Column("snapshot", "Snapshot Time", snapshot),
    )


def jetstream_footer(rows: Sequence[ServerActivity]) -> list[Cell]:
    """Sums over all servers."""
    found = [row.jetstream for row in rows]
    return [
        f"Totals ({len(rows)} Servers)",
        number(sum(one.ha_assets for one in found)),
        size(sum(one.memory for one in found)),
        size(sum(one.storage for one in found)),
        number(sum(one.api.total for one in found)),
        number(sum(one.api.errors for one in found)),
        _pending([row.meta for row in rows]),
        "",
    ]


ACCOUNT_COLUMNS: tuple[Column[AccountActivity], ...] = (
    Column("account", "Account", lambda row: row.stat.name or row.account),
    Column("servers", "Servers", lambda row: row.servers),
    Column("conns", "Connections", lambda row: row.stat.conns, lambda r: number(r.stat.conns)),
    Column(
        "leafs", "Leafnodes", lambda row: row.stat.leafnodes, lambda r: number(r.stat.leafnodes)
    ),
    Column(
        "subs",
        "Subscriptions",
        lambda row: row.stat.num_subscriptions,
        lambda row: number(row.stat.num_subscriptions),
    ),
    Column(
        "slow",
        "Slow",
        lambda row: row.stat.slow_consumers,
        lambda row: number(row.stat.slow_consumers),
    ),
    Column("sent", "Sent", lambda row: row.stat.sent.bytes, lambda r: _traffic(r.stat.sent)),
    Column(
        "received",
        "Received",
        lambda row: row.stat.received.bytes,
        lambda row: _traffic(row.stat.received),
    ),
)


def account_sums(account: str, several: Sequence[AccountStat]) -> AccountActivity:
    """One row of what each server told."""
    stat = AccountStat(
        acc=account,
        name=several[-1].name if several else "",
        conns=sum(one.conns for one in several),
        leafnodes=sum(one.leafnodes for one in several),
        num_subscriptions=sum(one.num_subscriptions for one in several),
        slow_consumers=sum(one.slow_consumers for one in several),
        sent=_summed([one.sent for one in several]),
        received=_summed([one.received for one in several]),
    )
    return AccountActivity(account, len(several), stat)


def request_columns(interval: str, *, short: bool) -> tuple[Column[RequestActivity], ...]:
    """Columns for a rate over that interval."""

    def asset(row: RequestActivity) -> str:
        consumer = row.consumer
        if short and len(consumer) > CONSUMER_MAX:
            consumer = f"{consumer[:CONSUMER_SHORT]}..."
        return f"{row.stream} > {consumer}" if consumer else row.stream

    return (
        Column("type", "Type", lambda row: row.kind),
        Column(
            "account",
            "Account",
            lambda row: row.account,
            lambda row: short_account(row.account) if short else row.account,
        ),
        Column("count", "Count", lambda row: row.count),
        Column("rate", f"Event / {interval}", lambda row: row.moments, lambda r: number(r.moments)),
        Column("asset", "Asset", asset),
    )
