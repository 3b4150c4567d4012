"""JetStream of a server, as `JSZ` and parts of `VARZ` and `STATSZ` tell it."""

from jsctl.api.account import ApiStats
from jsctl.api.cluster import ClusterInfo, PeerInfo
from jsctl.api.consumer import ConsumerInfo
from jsctl.api.fields import (
    ZERO_TIME,
    Int64,
    Json,
    Nanos,
    Time,
    Uint64,
    embed,
    omit,
    struct,
    unknown,
)
from jsctl.api.stream import ReplicaDamage, SequenceRange, SourceInfo, StreamConfig, StreamState
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JSzOptions:
    """What a `JSZ` request asks for."""

    account: str = omit("")
    accounts: bool = omit(False)
    streams: bool = omit(False)
    consumer: bool = omit(False)
    direct_consumer: bool = omit(False)
    config: bool = omit(False)
    leader_only: bool = omit(False)
    offset: int = omit(0)
    limit: int = omit(0)
    raft: bool = omit(False)
    stream_leader_only: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JetStreamConfig:
    """How JetStream is set up on a server."""

    max_memory: Int64 = 0
    max_storage: Int64 = 0
    store_dir: str = omit("")
    sync_interval: Nanos = omit(0)
    sync_always: bool = omit(False)
    domain: str = omit("")
    compress_ok: bool = omit(False)
    unique_tag: str = omit("")
    strict: bool = omit(False)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class JetStreamLimits:
    """Server-wide limits."""

    max_request_batch: int = omit(0)
    max_ack_pending: int = omit(0)
    max_ha_assets: int = omit(0)
    max_duplicate_window: Nanos = omit(0)
    max_batch_inflight_per_stream: int = omit(0)
    max_batch_inflight_total: int = omit(0)
    max_batch_size: int = omit(0)
    max_batch_timeout: Nanos = omit(0)
    default_max_consumers: int = omit(0)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class JetStreamStats:
    """Use of a server."""

    memory: Uint64 = 0
    storage: Uint64 = 0
    reserved_memory: Uint64 = 0
    reserved_storage: Uint64 = 0
    accounts: int = 0
    ha_assets: int = 0
    api: ApiStats = struct(ApiStats)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaSnapshotStats:
    """The meta log since its last snapshot."""

    pending_entries: Uint64 = 0
    pending_size: Uint64 = 0
    last_time: Time = ZERO_TIME
    last_duration: Nanos = omit(0)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaClusterInfo:
    """The meta group as one server sees it."""

    name: str = omit("")
    leader: str = omit("")
    peer: str = omit("")
    replicas: tuple[PeerInfo, ...] = omit(())
    cluster_size: int = 0
    quorum_needed: int = 0
    rescue: bool = omit(False)
    pending: int = 0
    pending_requests: int = 0
    pending_infos: int = 0
    snapshot: MetaSnapshotStats | None = None
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class JetStreamVarz:
    """JetStream in `VARZ` and `STATSZ`."""

    config: JetStreamConfig | None = omit(None)
    stats: JetStreamStats | None = omit(None)
    meta: MetaClusterInfo | None = omit(None)
    limits: JetStreamLimits | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftGroupDetail:
    """A consumer and its group."""

    name: str = ""
    raft_group: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDetail:
    """A replica of a stream."""

    name: str = ""
    created: Time = ZERO_TIME
    cluster: ClusterInfo | None = omit(None)
    config: StreamConfig | None = omit(None)
    state: StreamState = struct(StreamState)
    consumer_detail: tuple[ConsumerInfo, ...] = omit(())
    direct_consumer_detail: tuple[ConsumerInfo, ...] = omit(())
    mirror: SourceInfo | None = omit(None)
    sources: tuple[SourceInfo, ...] = omit(())
    damage: tuple[ReplicaDamage, ...] = omit((), key="jsctl_damage")
    stream_raft_group: str = omit("")
    consumer_raft_groups: tuple[RaftGroupDetail, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountDetail:
    """An account with its streams."""

    name: str = ""
    id: str = ""
    stats: JetStreamStats = embed(JetStreamStats)
    stream_detail: tuple[StreamDetail, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubFinding:
    """Damage that a scrub found; the names are empty for what belongs to the server itself."""

    time: Time = ZERO_TIME
    account: str = omit("")
    stream: str = omit("")
    consumer: str = omit("")
    text: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedStream:
    """A stream of which the server cannot read some messages in its replica."""

    account: str = ""
    stream: str = ""
    messages: Uint64 = 0
    lost: Uint64 = 0
    """Of these, those that no replica has; the others are being repaired."""
    ranges: tuple[SequenceRange, ...] = ()
    """The first of them."""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrub:
    """How far a server is with reading all that rests on its disks; the broker's own."""

    interval: Nanos = 0
    """How often a pass begins; 0: never."""
    rate: Int64 = 0
    """Bytes in a second, at most."""
    running: bool = False
    passes: int = 0
    """That ended since the start of the server."""
    began: Time = omit("")
    """Of the last pass."""
    ended: Time = omit("")
    """Of the last pass that ended."""
    bytes: Uint64 = 0
    """Read in the last pass, of `total`."""
    total: Uint64 = 0
    repaired: Uint64 = 0
    """Messages that came back since the start of the server."""
    found: Uint64 = 0
    """Findings since the start of the server."""
    findings: tuple[ScrubFinding, ...] = ()
    """The last of them, the newest first."""
    damaged: tuple[DamagedStream, ...] = ()
    """What is damaged now, by whomever it was found."""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Jsz:
    """What `JSZ` answers."""

    stats: JetStreamStats = embed(JetStreamStats)
    server_id: str = ""
    now: Time = ZERO_TIME
    disabled: bool = omit(False)
    config: JetStreamConfig = struct(JetStreamConfig)
    limits: JetStreamLimits | None = omit(None)
    streams: int = 0
    streams_leader: int = omit(0)
    consumers: int = 0
    consumers_leader: int = omit(0)
    messages: Uint64 = 0
    bytes: Uint64 = 0
    meta_cluster: MetaClusterInfo | None = omit(None)
    account_details: tuple[AccountDetail, ...] = omit(())
    total: int = 0
    scrub: Scrub | None = omit(None, key="jsctl_scrub")
    extra: dict[str, Json] = unknown()
