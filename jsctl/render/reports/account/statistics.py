"""Traffic of an account on each server."""

from collections.abc import Sequence

from jsctl.api.monitoring.accountz import AccountStat
from jsctl.api.server import ServerInfo
from jsctl.dataclass import dataclass
from jsctl.render.column import Column
from jsctl.render.humanize import number, size


@dataclass(frozen=True, slots=True)
class StatRow:
    """One server's figures."""

    server: ServerInfo
    stat: AccountStat


STATISTICS_COLUMNS: tuple[Column[StatRow], ...] = (
    Column("server", "Server", lambda row: row.server.host),
    Column("cluster", "Cluster", lambda row: row.server.cluster),
    Column("version", "Version", lambda row: row.server.ver),
    Column("tags", "Tags", lambda row: ", ".join(row.server.tags)),
    Column(
        "connections",
        "Connections",
        lambda row: row.stat.conns,
        text=lambda row: number(row.stat.conns),
    ),
    Column(
        "subscriptions",
        "Subscriptions",
        lambda row: row.stat.num_subscriptions,
        text=lambda row: number(row.stat.num_subscriptions),
    ),
    Column(
        "leafnodes",
        "Leafnodes",
        lambda row: row.stat.leafnodes,
        text=lambda row: number(row.stat.leafnodes),
    ),
    Column(
        "sent_bytes",
        "Sent Bytes",
        lambda row: row.stat.sent.bytes,
        text=lambda row: size(row.stat.sent.bytes),
    ),
    Column(
        "sent_messages",
        "Sent Messages",
        lambda row: row.stat.sent.msgs,
        text=lambda row: number(row.stat.sent.msgs),
    ),
    Column(
        "received_bytes",
        "Received Bytes",
        lambda row: row.stat.received.bytes,
        text=lambda row: size(row.stat.received.bytes),
    ),
    Column(
        "received_messages",
        "Received Messages",
        lambda row: row.stat.received.msgs,
        text=lambda row: number(row.stat.received.msgs),
    ),
    Column(
        "slow_consumers",
        "Slow Consumers",
        lambda row: row.stat.slow_consumers,
        text=lambda row: number(row.stat.slow_consumers),
    ),
)


def statistics_footer(rows: Sequence[StatRow]) -> list[str | int]:
    """How many servers, and the sums, each below its own column."""
    stats = [row.stat for row in rows]
    return [
        len(rows),
        *("", "", ""),
        number(sum(stat.conns for stat in stats)),
        number(sum(stat.num_subscriptions for stat in stats)),
        number(sum(stat.leafnodes for stat in stats)),
        size(sum(stat.sent.bytes for stat in stats)),
        number(sum(stat.sent.msgs for stat in stats)),
        size(sum(stat.received.bytes for stat in stats)),
        number(sum(stat.received.msgs for stat in stats)),
        number(sum(stat.slow_consumers for stat in stats)),
    ]
