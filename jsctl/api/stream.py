"""Streams: configuration, state, messages."""

# ruff: noqa: RUF009 - the calls in class bodies declare fields

from dataclasses import dataclass

from jsctl.api.cluster import ClusterInfo, Placement
from jsctl.api.errors import ApiErrorBody
from jsctl.api.fields import (
    ZERO_TIME,
    Int32,
    Int64,
    Json,
    Nanos,
    Time,
    Uint64,
    mapping,
    omit,
    struct,
    unknown,
)
from jsctl.api.words import Compression, Discard, PersistMode, Retention, Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLimits:
    """Limits that consumers of a stream inherit."""

    inactive_threshold: Nanos = omit(0)
    max_ack_pending: int = omit(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectTransform:
    """Rewrites subjects that match `src`."""

    src: str = ""
    dest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Republish:
    """Copies stored messages to another subject."""

    src: str = omit("")
    dest: str = ""
    headers_only: bool = omit(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalStream:
    """How to reach a stream of another account or domain."""

    api: str = ""
    deliver: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConsumerSource:
    """A durable consumer that feeds a mirror or source."""

    name: str = omit("")
    deliver_subject: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSource:
    """Where a mirror or sourced stream takes its messages from."""

    name: str = ""
    opt_start_seq: Uint64 = omit(0)
    opt_start_time: Time = omit("")
    filter_subject: str = omit("")
    subject_transforms: tuple[SubjectTransform, ...] = omit(())
    external: ExternalStream | None = omit(None)
    consumer: StreamConsumerSource | None = omit(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """Everything that can be set on a stream. Sizes in bytes, -1 means unlimited."""

    name: str = ""
    description: str = omit("")
    subjects: tuple[str, ...] = omit(())
    retention: Retention = Retention.LIMITS
    max_consumers: int = 0
    max_msgs: Int64 = 0
    max_bytes: Int64 = 0
    max_age: Nanos = 0
    max_msgs_per_subject: Int64 = 0
    max_msg_size: Int32 = omit(0)
    discard: Discard = Discard.OLD
    storage: Storage = Storage.FILE
    num_replicas: int = 0
    no_ack: bool = omit(False)
    duplicate_window: Nanos = omit(0)
    placement: Placement | None = omit(None)
    mirror: StreamSource | None = omit(None)
    sources: tuple[StreamSource, ...] = omit(())
    compression: Compression = Compression.NONE
    first_seq: Uint64 = omit(0)
    subject_transform: SubjectTransform | None = omit(None)
    republish: Republish | None = omit(None)
    allow_direct: bool = False
    mirror_direct: bool = False
    discard_new_per_subject: bool = omit(False)
    sealed: bool = False
    deny_delete: bool = False
    deny_purge: bool = False
    allow_rollup_hdrs: bool = False
    consumer_limits: ConsumerLimits = struct(ConsumerLimits)
    allow_msg_ttl: bool = False
    subject_delete_marker_ttl: Nanos = omit(0)
    allow_msg_counter: bool = omit(False)
    allow_atomic: bool = omit(False)
    allow_msg_schedules: bool = omit(False)
    persist_mode: PersistMode = omit(PersistMode.DEFAULT)
    allow_batched: bool = omit(False)
    metadata: dict[str, str] = mapping()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class LostData:
    """Messages found damaged and given up."""

    msgs: tuple[Uint64, ...] = ()
    bytes: Uint64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """What a stream holds."""

    messages: Uint64 = 0
    bytes: Uint64 = 0
    first_seq: Uint64 = 0
    first_ts: Time = ZERO_TIME
    last_seq: Uint64 = 0
    last_ts: Time = ZERO_TIME
    num_subjects: int = omit(0)
    subjects: dict[str, Uint64] = mapping()
    num_deleted: int = omit(0)
    deleted: tuple[Uint64, ...] = omit(())
    lost: LostData | None = omit(None)
    consumer_count: int = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAlternate:
    """A stream that can serve the same subjects."""

    name: str = ""
    domain: str = omit("")
    cluster: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """How far a mirror or source is."""

    name: str = ""
    external: ExternalStream | None = omit(None)
    lag: Uint64 = 0
    active: Nanos = 0
    error: ApiErrorBody | None = omit(None)
    filter_subject: str = omit("")
    subject_transforms: tuple[SubjectTransform, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamInfo:
    """A stream as `STREAM.INFO` and `STREAM.LIST` tell it."""

    config: StreamConfig = struct(StreamConfig)
    created: Time = ZERO_TIME
    state: StreamState = struct(StreamState)
    domain: str = omit("")
    cluster: ClusterInfo | None = omit(None)
    mirror: SourceInfo | None = omit(None)
    sources: tuple[SourceInfo, ...] = omit(())
    alternates: tuple[StreamAlternate, ...] = omit(())
    ts: Time = ZERO_TIME
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RawStreamMsg:
    """One stored message as `STREAM.MSG.GET` returns it."""

    subject: str = ""
    seq: Uint64 = 0
    hdrs: bytes = omit(b"")
    data: bytes = omit(b"")
    time: Time = ZERO_TIME
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class PubAck:
    """The answer to a stored publish."""

    stream: str = ""
    seq: Uint64 = 0
    domain: str = omit("")
    duplicate: bool = omit(False)
    val: str = omit("")
    batch: str = omit("")
    count: Uint64 = omit(0)
    extra: dict[str, Json] = unknown()
