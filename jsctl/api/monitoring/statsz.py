"""What servers publish every few seconds and answer to `STATSZ`."""

from jsctl.api.fields import ZERO_TIME, Int64, Json, Time, Uint32, Uint64, omit, struct, unknown
from jsctl.api.monitoring.jsz import JetStreamVarz
from jsctl.api.server import (
    DataStats,
    GatewayStat,
    RouteStat,
    ServerInfo,
    SlowConsumersStats,
    StaleConnectionStats,
)
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskIOWaitStats:
    """How long the server waited for disks."""

    waiters: Int64 = 0
    waits: Uint64 = 0
    wait_time: Uint64 = 0
    max_wait_time: Uint64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statsz:
    """Totals of a server."""

    start: Time = ZERO_TIME
    mem: Int64 = 0
    cores: int = 0
    cpu: float = 0.0
    connections: int = 0
    total_connections: Uint64 = 0
    active_accounts: int = 0
    subscriptions: Uint32 = 0
    sent: DataStats = struct(DataStats)
    sent_to_clients: DataStats = struct(DataStats)
    received: DataStats = struct(DataStats)
    received_from_clients: DataStats = struct(DataStats)
    slow_consumers: Int64 = 0
    slow_consumer_stats: SlowConsumersStats | None = omit(None)
    stale_connections: Int64 = omit(0)
    stale_connection_stats: StaleConnectionStats | None = omit(None)
    stalled_clients: Int64 = omit(0)
    routes: tuple[RouteStat, ...] = omit(())
    gateways: tuple[GatewayStat, ...] = omit(())
    active_servers: int = omit(0)
    jetstream: JetStreamVarz | None = omit(None)
    gomemlimit: Int64 = omit(0)
    gomaxprocs: int = omit(0)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatsMsg:
    """The message around it."""

    server: ServerInfo = struct(ServerInfo)
    statsz: Statsz = struct(Statsz)
    extra: dict[str, Json] = unknown()
