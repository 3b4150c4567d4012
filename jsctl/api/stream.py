"""Streams: configuration, state, messages."""

from typing import ClassVar

from jsctl.api.cluster import ClusterInfo, Placement
from jsctl.api.errors import ApiErrorBody
from jsctl.api.fields import (
    ZERO_TIME,
    About,
    Int32,
    Int64,
    Json,
    Nanos,
    Time,
    Uint64,
    always,
    mapping,
    omit,
    struct,
    unknown,
)
from jsctl.api.words import Compression, Discard, PersistMode, Retention, Storage
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLimits:
    """Limits that consumers of a stream inherit."""

    GO_NAME: ClassVar[str] = "StreamConsumerLimits"

    inactive_threshold: Nanos = omit(0)
    max_ack_pending: int = omit(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectTransform:
    """Rewrites subjects that match `src`."""

    GO_NAME: ClassVar[str] = "SubjectTransformConfig"

    src: str = ""
    dest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Republish:
    """Copies stored messages to another subject."""

    GO_NAME: ClassVar[str] = "RePublish"

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

    GO_POINTER: ClassVar[bool] = True

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
    description: str = omit(
        "",
        about=About(
            help="Sets a contextual description for the stream", flag="description", unit="text"
        ),
    )
    subjects: tuple[str, ...] = omit(
        (),
        about=About(
            help="Subjects that are consumed by the stream", flag="subjects", unit="subjects"
        ),
    )
    retention: Retention = always(
        Retention.LIMITS,
        about=About(
            help="Defines a retention policy",
            flag="retention",
            unit="choice",
            choices=(
                ("limits", "limits"),
                ("interest", "interest"),
                ("workq", "workqueue"),
                ("work", "workqueue"),
            ),
        ),
    )
    max_consumers: int = always(
        0,
        about=About(
            help="Maximum number of consumers to allow",
            flag="max-consumers",
            unit="count",
        ),
    )
    max_msgs: Int64 = always(
        0, about=About(help="Maximum amount of messages to keep", flag="max-msgs", unit="count")
    )
    max_bytes: Int64 = always(
        0, about=About(help="Maximum bytes to keep", flag="max-bytes", unit="bytes")
    )
    max_age: Nanos = always(
        0, about=About(help="Maximum age of messages to keep", flag="max-age", unit="duration")
    )
    max_msgs_per_subject: Int64 = always(
        0,
        about=About(
            help="Maximum amount of messages to keep per subject",
            flag="max-msgs-per-subject",
            unit="count",
        ),
    )
    max_msg_size: Int32 = omit(
        0,
        about=About(
            help="Maximum size any 1 message may be",
            flag="max-msg-size",
            unit="bytes",
            maximum=2147483647,
        ),
    )
    discard: Discard = always(
        Discard.OLD,
        about=About(
            help="Defines the discard policy",
            flag="discard",
            unit="choice",
            choices=(("new", "new"), ("old", "old")),
        ),
    )
    storage: Storage = always(
        Storage.FILE,
        about=About(
            help="Storage backend to use",
            flag="storage",
            unit="choice",
            editable=False,
            choices=(("file", "file"), ("f", "file"), ("memory", "memory"), ("m", "memory")),
        ),
    )
    num_replicas: int = always(
        0,
        about=About(
            help="When clustered, how many replicas of the data to create",
            flag="replicas",
            unit="count",
        ),
    )
    no_ack: bool = omit(
        False, about=About(help="Acknowledge publishes", flag="ack", unit="inverse")
    )
    duplicate_window: Nanos = omit(
        0,
        about=About(
            help="Duration of the duplicate message tracking window",
            flag="dupe-window",
            unit="duration",
        ),
    )
    placement: Placement | None = omit(None)
    mirror: StreamSource | None = omit(None)
    sources: tuple[StreamSource, ...] = omit(())
    compression: Compression = always(
        Compression.NONE,
        about=About(
            help="Compression algorithm to use (file storage only)",
            flag="compression",
            unit="choice",
            choices=(("none", "none"), ("s2", "s2")),
        ),
    )
    first_seq: Uint64 = omit(
        0,
        about=About(
            help="Sets the starting sequence",
            flag="first-sequence",
            unit="unsigned",
            editable=False,
        ),
    )
    subject_transform: SubjectTransform | None = omit(None)
    republish: Republish | None = omit(None)
    allow_direct: bool = always(
        False,
        about=About(
            help="Allows fast, direct, access to stream data via the direct get API",
            flag="allow-direct",
            unit="switch",
        ),
    )
    mirror_direct: bool = always(
        False,
        about=About(
            help="Allows fast, direct, access to stream data via the direct get API on mirrors",
            flag="allow-mirror-direct",
            unit="switch",
        ),
    )
    discard_new_per_subject: bool = omit(
        False,
        about=About(
            help=("Sets the 'new' discard policy and applies it to every subject in the stream"),
            flag="discard-per-subject",
            unit="switch",
        ),
    )
    sealed: bool = False
    deny_delete: bool = always(
        False,
        about=About(
            help="Deny messages from being deleted via the API", flag="deny-delete", unit="switch"
        ),
    )
    deny_purge: bool = always(
        False,
        about=About(
            help="Deny entire stream or subject purges via the API",
            flag="deny-purge",
            unit="switch",
        ),
    )
    allow_rollup_hdrs: bool = always(
        False,
        about=About(
            help="Allows roll-ups to be done by publishing messages with special headers",
            flag="allow-rollup",
            unit="switch",
        ),
    )
    consumer_limits: ConsumerLimits = struct(ConsumerLimits)
    allow_msg_ttl: bool = always(
        False,
        about=About(help="Allows per-message TTL handling", flag="allow-msg-ttl", unit="flag"),
    )
    subject_delete_marker_ttl: Nanos = omit(
        0,
        about=About(
            help="How long delete markers should persist in the stream",
            flag="subject-del-markers-ttl",
            unit="duration",
        ),
    )
    allow_msg_counter: bool = omit(
        False,
        about=About(
            help="Configures the stream as a distributed counter", flag="allow-counter", unit="flag"
        ),
    )
    allow_atomic: bool = omit(
        False, about=About(help="Allow atomic batch publishing", flag="allow-batch", unit="switch")
    )
    allow_msg_schedules: bool = omit(
        False, about=About(help="Allows message schedules", flag="allow-schedules", unit="switch")
    )
    persist_mode: PersistMode = omit(
        PersistMode.DEFAULT,
        about=About(
            help="Configures the persistence mode",
            flag="persist-mode",
            unit="choice",
            editable=False,
            choices=(("default", "default"), ("async", "async")),
        ),
    )
    allow_batched: bool = omit(
        False, about=About(help="Allow fast batch publishing", flag="allow-fast", unit="switch")
    )
    metadata: dict[str, str] = mapping(
        about=About(help="Adds metadata to the stream", flag="metadata", unit="map")
    )
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
    seq: Uint64 = omit(0)
    active: Nanos = 0
    error: ApiErrorBody | None = omit(None)
    filter_subject: str = omit("")
    subject_transforms: tuple[SubjectTransform, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceRange:
    """Both ends are included."""

    first: Uint64 = 0
    last: Uint64 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaDamage:
    """Messages that a server cannot read in its replica; the broker's own."""

    name: str = ""
    """The server."""
    messages: Uint64 = 0
    lost: Uint64 = omit(0)
    """Of these, those that no replica has; the others are being repaired."""
    ranges: tuple[SequenceRange, ...] = omit(())
    """The first of them."""


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
    damage: tuple[ReplicaDamage, ...] = omit((), key="jsctl_damage")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaCheck:
    """The check of one replica."""

    name: str = ""
    """The server."""
    done: bool = False
    offline: bool = omit(False)
    bytes: Int64 = 0
    """Read so far, of `total`."""
    total: Int64 = 0
    findings: Int64 = 0
    """Files in which something did not check."""
    repaired: Int64 = 0
    """Messages that came back since the check began."""
    damaged: tuple[SequenceRange, ...] = omit(())
    """Messages that cannot be read on this server."""
    lost: tuple[SequenceRange, ...] = omit(())
    """Of these, those that no replica has."""
    applied: Uint64 = 0
    """The entry of the stream's log up to which the replica stands."""
    digest: str = ""
    """Of all messages and their sequences then, in hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaDifference:
    """Where a replica differs from the leader's."""

    name: str = ""
    """The server."""
    entry: Uint64 = 0
    """The entry of the stream's log behind which that was seen."""
    first: Uint64 = omit(0)
    """The first messages that are not the same; left out where that was not found out."""
    last: Uint64 = omit(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCheck:
    """A check of a stream. `different`: servers whose messages are not the leader's."""

    id: Uint64 = 0
    started: str = ""
    done: bool = False
    replicas: tuple[ReplicaCheck, ...] = ()
    different: tuple[str, ...] = omit(())
    differences: tuple[ReplicaDifference, ...] = omit(())

    @property
    def is_whole(self) -> bool:
        """Whether every replica can be read and all are equal."""
        sound = all(one.done and not one.damaged for one in self.replicas)
        return self.done and sound and not self.different
