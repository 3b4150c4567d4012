"""Advisories and events, as published on `$JS.EVENT` and `$SYS`."""

from jsctl.api.cluster import PeerInfo
from jsctl.api.fields import ZERO_TIME, Int64, Json, Time, Uint64, embed, omit, struct, unknown
from jsctl.api.monitoring.accountz import AccountStat
from jsctl.api.server import ClientInfo, DataStats, ServerInfo
from jsctl.api.stream import SequenceRange, StreamState
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedEvent:
    """What every event starts with."""

    type: str = ""
    id: str = ""
    timestamp: Time = ZERO_TIME
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectEventMsg:
    """`client_connect`."""

    head: TypedEvent = embed(TypedEvent)
    server: ServerInfo = struct(ServerInfo)
    client: ClientInfo = struct(ClientInfo)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class DisconnectEventMsg:
    """`client_disconnect`."""

    head: TypedEvent = embed(TypedEvent)
    server: ServerInfo = struct(ServerInfo)
    client: ClientInfo = struct(ClientInfo)
    sent: DataStats = struct(DataStats)
    received: DataStats = struct(DataStats)
    reason: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountNumConns:
    """`account_connections`."""

    head: TypedEvent = embed(TypedEvent)
    server: ServerInfo = struct(ServerInfo)
    stat: AccountStat = embed(AccountStat)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class APIAudit:
    """`a_p_i`."""

    head: TypedEvent = embed(TypedEvent)
    server: str = ""
    client: ClientInfo | None = None
    subject: str = ""
    request: str = omit("")
    response: str = ""
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamActionAdvisory:
    """`stream_action`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    action: str = ""
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerActionAdvisory:
    """`consumer_action`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    consumer: str = ""
    action: str = ""
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPauseAdvisory:
    """`consumer_pause`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    consumer: str = ""
    paused: bool = False
    pause_until: Time = ZERO_TIME
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerAckMetric:
    """`consumer_ack`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    consumer: str = ""
    consumer_seq: Uint64 = 0
    stream_seq: Uint64 = 0
    ack_time: Int64 = 0
    deliveries: Uint64 = 0
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerDeliveryExceededAdvisory:
    """`consumer_delivery_exceeded`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    consumer: str = ""
    stream_seq: Uint64 = 0
    deliveries: Uint64 = 0
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerDeliveryNakAdvisory:
    """`consumer_delivery_nak`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    consumer: str = ""
    consumer_seq: Uint64 = 0
    stream_seq: Uint64 = 0
    deliveries: Uint64 = 0
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerDeliveryTerminatedAdvisory:
    """`consumer_delivery_terminated`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    consumer: str = ""
    consumer_seq: Uint64 = 0
    stream_seq: Uint64 = 0
    deliveries: Uint64 = 0
    reason: str = omit("")
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCreateAdvisory:
    """`snapshot_create`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    state: StreamState = struct(StreamState)
    client: ClientInfo | None = None
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCompleteAdvisory:
    """`snapshot_complete`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    start: Time = ZERO_TIME
    end: Time = ZERO_TIME
    client: ClientInfo | None = None
    domain: str = omit("")
    error: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreCreateAdvisory:
    """`restore_create`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    client: ClientInfo | None = None
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreCompleteAdvisory:
    """`restore_complete`."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    start: Time = ZERO_TIME
    end: Time = ZERO_TIME
    bytes: Int64 = 0
    client: ClientInfo | None = None
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainLeaderElectedAdvisory:
    """`domain_leader_elected`."""

    head: TypedEvent = embed(TypedEvent)
    leader: str = ""
    replicas: tuple[PeerInfo, ...] = ()
    cluster: str = ""
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLeaderElectedAdvisory:
    """`stream_leader_elected`."""

    head: TypedEvent = embed(TypedEvent)
    account: str = omit("")
    stream: str = ""
    leader: str = ""
    replicas: tuple[PeerInfo, ...] = ()
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDamageAdvisory:
    """`stream_damage`, the broker's own: messages of the replica on `server` are damaged."""

    head: TypedEvent = embed(TypedEvent)
    stream: str = ""
    server: str = ""
    action: str = ""
    """`found`, `lost` (no replica has them), `repaired`."""
    messages: Uint64 = 0
    ranges: tuple[SequenceRange, ...] = omit(())
    """The first of them."""
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamQuorumLostAdvisory:
    """`stream_quorum_lost`."""

    head: TypedEvent = embed(TypedEvent)
    account: str = omit("")
    stream: str = ""
    replicas: tuple[PeerInfo, ...] = ()
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatchAbandonedAdvisory:
    """`stream_batch_abandoned`."""

    head: TypedEvent = embed(TypedEvent)
    account: str = omit("")
    stream: str = ""
    domain: str = omit("")
    batch: str = ""
    reason: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLeaderElectedAdvisory:
    """`consumer_leader_elected`."""

    head: TypedEvent = embed(TypedEvent)
    account: str = omit("")
    stream: str = ""
    consumer: str = ""
    leader: str = ""
    replicas: tuple[PeerInfo, ...] = ()
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerQuorumLostAdvisory:
    """`consumer_quorum_lost`."""

    head: TypedEvent = embed(TypedEvent)
    account: str = omit("")
    stream: str = ""
    consumer: str = ""
    replicas: tuple[PeerInfo, ...] = ()
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPinnedAdvisory:
    """`consumer_group_pinned`."""

    head: TypedEvent = embed(TypedEvent)
    account: str = omit("")
    stream: str = ""
    consumer: str = ""
    domain: str = omit("")
    group: str = ""
    pinned_id: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupUnpinnedAdvisory:
    """`consumer_group_unpinned`."""

    head: TypedEvent = embed(TypedEvent)
    account: str = omit("")
    stream: str = ""
    consumer: str = ""
    domain: str = omit("")
    group: str = ""
    reason: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOutOfSpaceAdvisory:
    """`server_out_of_space`."""

    head: TypedEvent = embed(TypedEvent)
    server: str = ""
    server_id: str = ""
    stream: str = omit("")
    cluster: str = ""
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRemovedAdvisory:
    """`server_removed`."""

    head: TypedEvent = embed(TypedEvent)
    server: str = ""
    server_id: str = ""
    cluster: str = ""
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaRescueAdvisory:
    """`meta_rescue`."""

    head: TypedEvent = embed(TypedEvent)
    server: str = ""
    server_id: str = ""
    prev_quorum: int = 0
    new_quorum: int = 0
    cluster: str = ""
    domain: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class APILimitReachedAdvisory:
    """`a_p_i_limit_reached`."""

    head: TypedEvent = embed(TypedEvent)
    server: str = ""
    domain: str = omit("")
    dropped: Int64 = 0
    extra: dict[str, Json] = unknown()
