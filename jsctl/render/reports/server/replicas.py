"""Replicas of streams and consumers on all servers, compared with each other."""

from collections.abc import Mapping, Sequence

from jsctl.api.cluster import ClusterInfo
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.monitoring.jsz import AccountDetail, Jsz, StreamDetail
from jsctl.api.server import ServerInfo
from jsctl.dataclass import dataclass
from jsctl.render.column import Column

ACCOUNT_MAX = 10
PEER_WIDTH = 40
IN_SYNC = "IN SYNC"
EMPTY = "EMPTY"
"""Nothing was delivered and acknowledged yet; that is no fault."""
Replies = Sequence[tuple[ServerInfo, Jsz]]


@dataclass(frozen=True, slots=True)
class StreamReplica:
    """A stream as one server has it; `health` only where it was asked for."""

    server: ServerInfo
    account: AccountDetail
    stream: StreamDetail
    status: str = ""
    health: str = ""

    @property
    def cluster(self) -> ClusterInfo:
        """Its group as that server sees it."""
        return self.stream.cluster or ClusterInfo()

    @property
    def group(self) -> str:
        """The raft group's name."""
        return self.stream.stream_raft_group or self.cluster.raft_group

    @property
    def leads(self) -> bool:
        """Whether that server says that it leads."""
        return bool(self.cluster.leader) and self.cluster.leader == self.server.name


@dataclass(frozen=True, slots=True)
class ConsumerReplica:
    """A consumer as one server has it."""

    of: StreamReplica
    consumer: ConsumerInfo
    group: str
    statuses: tuple[str, ...] = ()
    health: str = ""

    @property
    def cluster(self) -> ClusterInfo:
        """Its group as that server sees it."""
        return self.consumer.cluster or ClusterInfo()

    @property
    def leads(self) -> bool:
        """Whether that server says that it leads."""
        return bool(self.cluster.leader) and self.cluster.leader == self.of.server.name


def stream_replicas(replies: Replies) -> list[StreamReplica]:
    """All of them, by account, group and server; those of servers without a group have none."""
    found = [
        StreamReplica(server, account, stream)
        for server, jsz in replies
        for account in jsz.account_details
        for stream in account.stream_detail
    ]
    return sorted(found, key=lambda one: (one.account.name, one.group, one.server.name))


def judged_streams(replicas: Sequence[StreamReplica]) -> list[StreamReplica]:
    """The same with what the comparison with the others of the group says."""
    groups: dict[tuple[str, str, str], list[StreamReplica]] = {}
    for one in replicas:
        groups.setdefault((one.account.name, one.group, one.stream.name), []).append(one)
    return [
        _with_status(one, groups[one.account.name, one.group, one.stream.name]) for one in replicas
    ]


def _with_status(one: StreamReplica, peers: Sequence[StreamReplica]) -> StreamReplica:
    mine, status = one.stream.state, IN_SYNC
    for peer in peers:
        state = peer.stream.state
        counts = state.messages != mine.messages and state.bytes != mine.bytes
        if counts or state.first_seq != mine.first_seq or state.last_seq != mine.last_seq:
            status = "UNSYNCED"
        leaders = {peer.cluster.leader, one.cluster.leader} - {""}
        if len(leaders) > 1:
            status = "MULTILEADER"
    if not one.leads and not one.cluster.leader and one.stream.cluster is not None:
        status = "LEADERLESS"
    elif not one.leads and not one.group:
        status = "MISSING_GROUP"
    if one.leads and any(peer.name == one.cluster.leader for peer in one.cluster.replicas):
        status = "LEADER_IS_FOLLOWER"
    return StreamReplica(one.server, one.account, one.stream, status)


def consumer_replicas(replies: Replies) -> list[ConsumerReplica]:
    """All of them, by account, group and server, with what the comparison says."""
    found: list[ConsumerReplica] = []
    for of in stream_replicas(replies):
        groups = {one.name: one.raft_group for one in of.stream.consumer_raft_groups}
        for consumer in of.stream.consumer_detail:
            cluster = consumer.cluster or ClusterInfo()
            group = groups.get(consumer.name) or cluster.raft_group
            found.append(ConsumerReplica(of, consumer, group))
    found.sort(key=lambda one: (one.of.account.name, one.group, one.of.server.name))
    peers: dict[tuple[str, str, str, str], list[ConsumerReplica]] = {}
    for one in found:
        peers.setdefault(_key(one), []).append(one)
    return [
        ConsumerReplica(one.of, one.consumer, one.group, _statuses(one, peers[_key(one)]))
        for one in found
    ]


def _key(one: ConsumerReplica) -> tuple[str, str, str, str]:
    return one.of.account.name, one.group, one.of.stream.name, one.consumer.name


def _statuses(one: ConsumerReplica, peers: Sequence[ConsumerReplica]) -> tuple[str, ...]:
    """What is wrong, in alphabetical order."""
    if one.consumer.cluster is None:
        return ("NO_CLUSTER",)
    if not one.cluster.leader:
        return ("LEADERLESS",)
    if not one.leads and not one.group:
        return ("MISSING_GROUP",)
    mine = one.consumer
    places = (*_place(mine, "delivered"), *_place(mine, "ack_floor"))
    found = _ahead_of_stream(one) | {EMPTY} if not all(places) else _ahead_of_stream(one)
    for peer in peers:
        if _place(peer.consumer, "delivered") != _place(mine, "delivered"):
            found.add("UNSYNCED:DELIVERED")
        if _place(peer.consumer, "ack_floor") != _place(mine, "ack_floor"):
            found.add("UNSYNCED:ACK_FLOOR")
        if len({peer.cluster.leader, one.cluster.leader} - {""}) > 1:
            found.add("MULTILEADER")
    return tuple(sorted(found))


def _ahead_of_stream(one: ConsumerReplica) -> set[str]:
    last, found = one.of.stream.state.last_seq, set[str]()
    if last < one.consumer.delivered.stream_seq:
        found.add("UNSYNCED:DELIVERED_AHEAD_OF_STREAM_SEQ")
    if last < one.consumer.ack_floor.stream_seq:
        found.add("UNSYNCED:ACKFLOOR_AHEAD_OF_STREAM_SEQ")
    return found


def _place(info: ConsumerInfo, what: str) -> tuple[int, int]:
    found = info.delivered if what == "delivered" else info.ack_floor
    return found.stream_seq, found.consumer_seq


def _short(name: str) -> str:
    return name[:ACCOUNT_MAX].replace(" ", "_")


def _peers(cluster: ClusterInfo) -> str:
    """One beside the other, in columns; the last one first."""
    parts = (
        f"{peer.name}(current={str(peer.current).lower():<5},offline={str(peer.offline).lower()})"
        for peer in reversed(cluster.replicas)
    )
    return " ".join(f"{part:<{PEER_WIDTH}}" for part in parts).strip()


_STREAM_FIELDS: Mapping[str, tuple[str, str]] = {
    "messages": ("Messages", "messages"),
    "bytes": ("Bytes", "bytes"),
    "subjects": ("Subjects", "num_subjects"),
    "deleted": ("Deleted", "num_deleted"),
    "consumers": ("Consumers", "consumer_count"),
    "first": ("First", "first_seq"),
    "last": ("Last", "last_seq"),
}


def _field(key: str, title: str, name: str) -> Column[StreamReplica]:
    return Column(key, title, lambda row: int(getattr(row.stream.state, name)))


def stream_columns(*, health: bool) -> tuple[Column[StreamReplica], ...]:
    """With what each server says of it when `health` was asked for."""
    columns: tuple[Column[StreamReplica], ...] = (
        Column("stream", "Stream Replica", lambda row: row.stream.name),
        Column("raft", "Raft", lambda row: row.group),
        Column(
            "account", "Account", lambda row: row.account.name, lambda r: _short(r.account.name)
        ),
        Column("account_id", "Account ID", lambda row: row.account.id),
        Column(
            "node",
            "Node",
            lambda row: row.server.name,
            lambda row: row.server.name + "*" * row.leads,
        ),
        *(_field(key, title, name) for key, (title, name) in _STREAM_FIELDS.items()),
        Column("status", "Status", lambda row: row.status),
        Column("leader", "Leader", lambda row: row.cluster.leader),
        Column("peers", "Peers", lambda row: _peers(row.cluster)),
    )
    return (*columns, Column("health", "Health", lambda row: row.health)) if health else columns


def consumer_columns(*, health: bool) -> tuple[Column[ConsumerReplica], ...]:
    """With what each server says of it when `health` was asked for."""

    def floor(row: ConsumerReplica) -> str:
        stream, consumer = _place(row.consumer, "ack_floor")
        return f"{stream} | {consumer}"

    def delivered(row: ConsumerReplica) -> str:
        stream, consumer = _place(row.consumer, "delivered")
        state = row.of.stream.state
        percent = f"{stream / state.last_seq * 100 if state.last_seq else 0:.0f}%"
        return f"{stream} [{state.first_seq}, {state.last_seq}] {percent:<4} | {consumer}"

    def status(row: ConsumerReplica) -> str:
        text = ",".join(row.statuses) or IN_SYNC
        together = row.leads and row.cluster.leader == row.of.cluster.leader
        return f"{text} / INTERSECT" if together else text

    def counters(row: ConsumerReplica) -> str:
        info = row.consumer
        return (
            f"(ap:{info.num_ack_pending}, nr:{info.num_redelivered}, "
            f"nw:{info.num_waiting}, np:{info.num_pending})"
        )

    columns: tuple[Column[ConsumerReplica], ...] = (
        Column("consumer", "Consumer", lambda row: row.consumer.name),
        Column("stream", "Stream", lambda row: row.of.stream.name),
        Column("raft", "Raft", lambda row: row.group),
        Column(
            "account",
            "Account",
            lambda row: row.of.account.name,
            lambda r: _short(r.of.account.name),
        ),
        Column("account_id", "Account ID", lambda row: row.of.account.id),
        Column(
            "node",
            "Node",
            lambda row: row.of.server.name,
            lambda row: row.of.server.name + "*" * row.leads,
        ),
        Column("delivered", "Delivered (S,C)", delivered),
        Column("ack_floor", "ACK Floor (S,C)", floor),
        Column("counters", "Counters", counters),
        Column("status", "Status", status),
        Column("leader", "Leader", lambda row: row.cluster.leader),
        Column("stream_leader", "Stream Cluster Leader", lambda row: row.of.cluster.leader),
        Column("peers", "Peers", lambda row: _peers(row.cluster)),
    )
    return (*columns, Column("health", "Health", lambda row: row.health)) if health else columns
