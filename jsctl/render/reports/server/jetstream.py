"""JetStream of all servers, and the group that administers it."""

from collections.abc import Sequence

from jsctl.api.account import ApiStats
from jsctl.api.cluster import ClusterInfo, PeerInfo
from jsctl.api.monitoring.jsz import Jsz, MetaClusterInfo
from jsctl.api.server import ServerInfo
from jsctl.dataclass import dataclass
from jsctl.render.column import Cell, Column, sort_rows
from jsctl.render.humanize import compact, duration, number, size


@dataclass(frozen=True, slots=True)
class JetStreamRow:
    """One server; counts are those of one account when the report is about one."""

    server: ServerInfo
    jsz: Jsz
    name: str
    streams: int
    consumers: int
    messages: int
    bytes: int
    memory: int
    storage: int
    api: ApiStats

    @property
    def meta_leader(self) -> bool:
        """Whether this server leads the meta group, as it says itself."""
        meta = self.jsz.meta_cluster
        return meta is not None and bool(meta.leader) and meta.leader == self.server.name

    @property
    def pending(self) -> int:
        """Meta entries not applied yet."""
        return self.jsz.meta_cluster.pending if self.jsz.meta_cluster else 0

    @property
    def quorum(self) -> int:
        """How many servers the meta group needs, as this server knows it."""
        return self.jsz.meta_cluster.quorum_needed if self.jsz.meta_cluster else 0

    @property
    def rescuing(self) -> bool:
        """Whether the meta group runs with a smaller quorum than its size asks for."""
        return self.jsz.meta_cluster is not None and self.jsz.meta_cluster.rescue


@dataclass(frozen=True, slots=True)
class MetaPeerRow:
    """A member of a meta group."""

    name: str
    peer: str
    leader: bool
    current: bool
    online: bool
    active_ns: int
    lag: int


Replies = Sequence[tuple[ServerInfo, Jsz]]


def jetstream_rows(
    replies: Replies, *, account: str = "", short: bool = True
) -> list[JetStreamRow]:
    """One row a server; with `account` only what that account has there."""
    names = [server.name for server, _ in replies]
    shown = compact(names) if short else names
    return [
        _row(server, jsz, name, account) for (server, jsz), name in zip(replies, shown, strict=True)
    ]


def _row(server: ServerInfo, jsz: Jsz, name: str, account: str) -> JetStreamRow:
    if not account:
        return JetStreamRow(
            server,
            jsz,
            name,
            jsz.streams,
            jsz.consumers,
            jsz.messages,
            jsz.bytes,
            jsz.stats.memory,
            jsz.stats.storage,
            jsz.stats.api,
        )
    found = next((one for one in jsz.account_details if account in (one.name, one.id)), None)
    if found is None:
        return JetStreamRow(server, jsz, name, 0, 0, 0, 0, 0, 0, ApiStats())
    details = found.stream_detail
    return JetStreamRow(
        server,
        jsz,
        name,
        len(details),
        sum(stream.state.consumer_count for stream in details),
        sum(stream.state.messages for stream in details),
        found.stats.memory + found.stats.storage,
        found.stats.memory,
        found.stats.storage,
        found.stats.api,
    )


Counts = dict[tuple[str, str], int]
"""By cluster and server."""


def leaders_of(replies: Replies, *, account: str = "") -> tuple[Counts, Counts]:
    """How many streams and consumers each server leads; with `account` how many of that one, of the
    servers that lead any."""
    streams: Counts = {}
    consumers: Counts = {}
    for server, jsz in replies:
        where = (server.cluster, server.name)
        if not account:
            streams[where], consumers[where] = jsz.streams_leader, jsz.consumers_leader
            continue
        details = [
            stream
            for one in jsz.account_details
            if account in (one.name, one.id)
            for stream in one.stream_detail
        ]
        streams[where] = sum(_led(stream.cluster, server) for stream in details)
        consumers[where] = sum(
            _led(consumer.cluster, server)
            for stream in details
            for consumer in stream.consumer_detail
        )
    if not account:
        return streams, consumers
    return _leading(streams), _leading(consumers)


def _leading(counts: Counts) -> Counts:
    return {where: count for where, count in counts.items() if count}


def _led(cluster: ClusterInfo | None, server: ServerInfo) -> bool:
    return cluster is not None and cluster.leader == server.name


def _marked(row: JetStreamRow) -> str:
    return row.name + ("*" if row.meta_leader else "")


def _quorum(row: JetStreamRow) -> str:
    return number(row.quorum) if row.jsz.meta_cluster else ""


def _rescuing(row: JetStreamRow) -> str:
    return _truth(row.rescuing) if row.jsz.meta_cluster else ""


_DOMAIN: Column[JetStreamRow] = Column("domain", "Domain", lambda row: row.jsz.config.domain)
_FIRST: tuple[Column[JetStreamRow], ...] = (
    Column("name", "Server", lambda row: row.server.name, _marked),
    Column("cluster", "Cluster", lambda row: row.server.cluster, priority=2),
)
_REST: tuple[Column[JetStreamRow], ...] = (
    Column("streams", "Streams", lambda row: row.streams, lambda row: number(row.streams)),
    Column("consumers", "Consumers", lambda row: row.consumers, lambda row: number(row.consumers)),
    Column("msgs", "Messages", lambda row: row.messages, lambda row: number(row.messages)),
    Column("bytes", "Bytes", lambda row: row.bytes, lambda row: size(row.bytes)),
    Column("memory", "Memory", lambda row: row.memory, lambda row: size(row.memory), priority=1),
    Column("file", "File", lambda row: row.storage, lambda row: size(row.storage), priority=1),
    Column(
        "api",
        "API Req",
        lambda row: row.api.total,
        lambda row: number(row.api.total),
    ),
    Column("pending", "Pending", lambda row: row.pending),
    Column("quorum", "Quorum Sz", lambda row: row.quorum, _quorum, priority=3),
    Column("rescuing", "Rescuing", lambda row: row.rescuing, _rescuing, priority=3),
)
_ONLY_DATA: tuple[Column[JetStreamRow], ...] = (
    Column("api_errors", "API Err", lambda row: row.api.errors),
    Column("ha_assets", "HA Assets", lambda row: row.jsz.stats.ha_assets),
    Column("meta_leader", "Meta Leader", lambda row: row.meta_leader),
)


def jetstream_columns(
    rows: Sequence[JetStreamRow], *, data: bool = False
) -> tuple[Column[JetStreamRow], ...]:
    """Columns for these rows; `data` adds what only programs get."""
    domain = (_DOMAIN,) if data or any(row.jsz.config.domain for row in rows) else ()
    return (*_FIRST, *domain, *_REST, *(_ONLY_DATA if data else ()))


_SORT_KEYS = {
    "mbytes": "bytes",
    "mem": "memory",
    "store": "file",
    "err": "cluster",
}


def sort_jetstream(
    rows: Sequence[JetStreamRow], key: str, *, reverse: bool = False
) -> list[JetStreamRow]:
    """By a key of `server report jetstream --sort`, smallest first unless `reverse`."""
    columns = (*_FIRST, *_REST)
    ordered = sort_rows(rows, columns, "name")
    ordered = sort_rows(ordered, columns, _SORT_KEYS.get(key, key))
    return ordered[::-1] if reverse else ordered


def jetstream_footer(
    rows: Sequence[JetStreamRow], columns: Sequence[Column[JetStreamRow]]
) -> list[Cell]:
    """Sums below the counts."""
    sums: dict[str, Cell] = {
        "streams": number(sum(row.streams for row in rows)),
        "consumers": number(sum(row.consumers for row in rows)),
        "msgs": number(sum(row.messages for row in rows)),
        "bytes": size(sum(row.bytes for row in rows)),
        "memory": size(sum(row.memory for row in rows)),
        "file": size(sum(row.storage for row in rows)),
        "api": number(sum(row.api.total for row in rows)),
        "pending": sum(row.pending for row in rows),
    }
    return [sums.get(column.key, "") for column in columns]


META_COLUMNS: tuple[Column[MetaPeerRow], ...] = (
    Column("name", "Connection Name", lambda row: row.name),
    Column("peer", "ID", lambda row: row.peer),
    Column("leader", "Leader", lambda row: row.leader, lambda row: "yes" if row.leader else ""),
    Column("current", "Current", lambda row: row.current, lambda row: _truth(row.current)),
    Column("online", "Online", lambda row: row.online, lambda row: _truth(row.online)),
    Column("active", "Active", lambda row: row.active_ns, lambda row: duration(row.active_ns)),
    Column("lag", "Lag", lambda row: row.lag, lambda row: number(row.lag)),
)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def meta_groups(replies: Replies) -> list[MetaClusterInfo]:
    """The meta groups as their leaders see them, one for each leader that answered."""
    return [
        jsz.meta_cluster
        for server, jsz in replies
        if jsz.meta_cluster is not None
        and jsz.meta_cluster.leader
        and jsz.meta_cluster.leader == server.name
    ]


def meta_rows(meta: MetaClusterInfo) -> list[MetaPeerRow]:
    """The members of a group, its leader among them, by name."""
    rows = [_peer_row(peer) for peer in meta.replicas]
    rows.append(MetaPeerRow(meta.leader, meta.peer, True, True, True, 0, 0))
    return sort_rows(rows, META_COLUMNS, "name")


def _peer_row(peer: PeerInfo) -> MetaPeerRow:
    return MetaPeerRow(
        peer.name, peer.peer, False, peer.current, not peer.offline, peer.active, peer.lag
    )


@dataclass(frozen=True, slots=True)
class MetaState:
    """A meta group as one of its servers sees it."""

    server: ServerInfo
    meta: MetaClusterInfo

    @property
    def name(self) -> str:
        """With a star for who leads."""
        return self.server.name + "*" * (self.server.name == self.meta.leader)

    @property
    def peers(self) -> int:
        """How many it knows, with itself: it lists itself only where nobody leads."""
        return len(self.meta.replicas) + bool(self.meta.leader)

    @property
    def online(self) -> int:
        """How many of them are there."""
        away = sum(peer.offline for peer in self.meta.replicas)
        return self.peers - away


STATE_COLUMNS: tuple[Column[MetaState], ...] = (
    Column("server", "Server", lambda row: row.name),
    Column("cluster", "Cluster", lambda row: row.server.cluster),
    Column("size", "Size", lambda row: number(row.meta.cluster_size)),
    Column("peers", "Peers", lambda row: f"{row.online} online / {row.peers} peers"),
    Column("quorum", "Quorum Requires", lambda row: number(row.meta.quorum_needed)),
    Column("rescue", "Rescuing", lambda row: row.meta.rescue, lambda row: _truth(row.meta.rescue)),
)


def state_rows(replies: Replies) -> list[MetaState]:
    """One row a server that is in a meta group."""
    metas = [(server, jsz.meta_cluster) for server, jsz in replies]
    rows = [MetaState(server, meta) for server, meta in metas if meta is not None]
    return sort_rows(rows, STATE_COLUMNS, "server")


def no_leader_warning(replies: Replies) -> str:
    """What to say when no meta leader answered; empty without clusters."""
    wanted = max(
        (jsz.meta_cluster.cluster_size for _, jsz in replies if jsz.meta_cluster), default=0
    )
    if not wanted:
        return ""
    return (
        f"WARNING: No cluster meta leader found. The cluster expects {wanted} nodes but only "
        f"{len(replies)} responded. JetStream operation requires at least "
        f"{wanted // 2 + 1} up nodes."
    )
