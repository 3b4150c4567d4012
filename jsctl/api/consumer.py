"""Consumers: configuration and state."""

from jsctl.api.cluster import ClusterInfo
from jsctl.api.fields import (
    ZERO_TIME,
    About,
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
from jsctl.api.words import AckPolicy, DeliverPolicy, PriorityPolicy, ReplayPolicy
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """Everything that can be set on a consumer."""

    durable_name: str = omit("")
    name: str = omit("")
    description: str = omit(
        "",
        about=About(
            help="Sets a contextual description for the consumer", flag="description", unit="text"
        ),
    )
    deliver_policy: DeliverPolicy = DeliverPolicy.ALL
    opt_start_seq: Uint64 = omit(0)
    opt_start_time: Time = omit("")
    ack_policy: AckPolicy = always(
        AckPolicy.NONE,
        about=About(
            help="Acknowledgment policy",
            flag="ack",
            unit="choice",
            editable=False,
            choices=(
                ("none", "none"),
                ("all", "all"),
                ("explicit", "explicit"),
                ("flow_control", "flow_control"),
            ),
        ),
    )
    ack_wait: Nanos = omit(
        0, about=About(help="Acknowledgment waiting time", flag="wait", unit="duration")
    )
    max_deliver: int = omit(
        0,
        about=About(
            help="Maximum amount of times a message will be delivered",
            flag="max-deliver",
            unit="count",
        ),
    )
    backoff: tuple[Nanos, ...] = omit(())
    filter_subject: str = omit("")
    filter_subjects: tuple[str, ...] = omit(
        (), about=About(help="Filter Stream by subjects", flag="filter", unit="subjects")
    )
    replay_policy: ReplayPolicy = always(
        ReplayPolicy.INSTANT,
        about=About(
            help="Replay policy",
            flag="replay",
            unit="choice",
            editable=False,
            choices=(("instant", "instant"), ("original", "original")),
        ),
    )
    rate_limit_bps: Uint64 = omit(
        0,
        about=About(
            help="Restrict message delivery to a certain bits per second",
            flag="bps",
            unit="unsigned",
            editable=False,
        ),
    )
    sample_freq: str = omit(
        "",
        about=About(
            help="Percentage of requests to sample for monitoring purposes",
            flag="sample",
            unit="percent",
        ),
    )
    max_waiting: int = omit(
        0,
        about=About(
            help="Maximum number of outstanding pulls allowed",
            flag="max-waiting",
            unit="count",
            editable=False,
        ),
    )
    max_ack_pending: int = omit(
        0,
        about=About(
            help="Maximum pending Acks before consumers are paused",
            flag="max-pending",
            unit="count",
        ),
    )
    flow_control: bool = omit(
        False,
        about=About(
            help="Enable Push consumer flow control",
            flag="flow-control",
            unit="flag",
            editable=False,
        ),
    )
    headers_only: bool = omit(
        False,
        about=About(help="Deliver only headers and no bodies", flag="headers-only", unit="switch"),
    )
    max_batch: int = omit(
        0,
        about=About(
            help="Maximum size batch size for a pull request to accept",
            flag="max-pull-batch",
            unit="count",
        ),
    )
    max_expires: Nanos = omit(
        0,
        about=About(
            help="Maximum expire duration for a pull request to accept",
            flag="max-pull-expire",
            unit="duration",
        ),
    )
    max_bytes: int = omit(
        0,
        about=About(
            help="Maximum max bytes for a pull request to accept",
            flag="max-pull-bytes",
            unit="count",
        ),
    )
    deliver_subject: str = omit(
        "", about=About(help="Push based delivery target subject", flag="target", unit="text")
    )
    deliver_group: str = omit(
        "",
        about=About(
            help="Delivers push messages only to subscriptions matching this group",
            flag="deliver-group",
            unit="text",
            editable=False,
        ),
    )
    idle_heartbeat: Nanos = omit(
        0,
        about=About(
            help="Enable idle Push consumer heartbeats (-1 disable)",
            flag="heartbeat",
            unit="duration",
            editable=False,
        ),
    )
    inactive_threshold: Nanos = omit(
        0,
        about=About(
            help="How long to allow an ephemeral consumer to be idle before removing it",
            flag="inactive-threshold",
            unit="duration",
        ),
    )
    num_replicas: int = always(
        0,
        about=About(
            help="Sets a custom replica count rather than inherit from the stream",
            flag="replicas",
            unit="count",
        ),
    )
    mem_storage: bool = omit(
        False,
        about=About(
            help=(
                "Force the consumer state to be stored in memory rather "
                "than inherit from the stream"
            ),
            flag="memory",
            unit="flag",
            editable=False,
        ),
    )
    direct: bool = omit(False)
    sourcing: bool = omit(False)
    metadata: dict[str, str] = mapping(
        about=About(help="Adds metadata to the consumer", flag="metadata", unit="map")
    )
    pause_until: Time = omit("")
    priority_groups: tuple[str, ...] = omit(())
    priority_policy: PriorityPolicy = omit(PriorityPolicy.NONE)
    priority_timeout: Nanos = omit(0)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceInfo:
    """A position, in deliveries and in the stream."""

    consumer_seq: Uint64 = 0
    stream_seq: Uint64 = 0
    last_active: Time = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityGroupState:
    """Which client a priority group is pinned to."""

    group: str = ""
    pinned_client_id: str = omit("")
    pinned_ts: Time = ZERO_TIME
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerInfo:
    """A consumer as `CONSUMER.INFO` and `CONSUMER.LIST` tell it."""

    stream_name: str = ""
    name: str = ""
    created: Time = ZERO_TIME
    config: ConsumerConfig | None = omit(None)
    delivered: SequenceInfo = struct(SequenceInfo)
    ack_floor: SequenceInfo = struct(SequenceInfo)
    num_ack_pending: int = 0
    num_redelivered: int = 0
    num_waiting: int = 0
    num_pending: Uint64 = 0
    cluster: ClusterInfo | None = omit(None)
    push_bound: bool = omit(False)
    paused: bool = omit(False)
    pause_remaining: Nanos = omit(0)
    ts: Time = ZERO_TIME
    priority_groups: tuple[PriorityGroupState, ...] = omit(())
    extra: dict[str, Json] = unknown()
