"""Consumers: configuration and state."""

# ruff: noqa: RUF009 - the calls in class bodies declare fields

from dataclasses import dataclass

from jsctl.api.cluster import ClusterInfo
from jsctl.api.fields import ZERO_TIME, Json, Nanos, Time, Uint64, mapping, omit, struct, unknown
from jsctl.api.words import AckPolicy, DeliverPolicy, PriorityPolicy, ReplayPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """Everything that can be set on a consumer."""

    durable_name: str = omit("")
    name: str = omit("")
    description: str = omit("")
    deliver_policy: DeliverPolicy = DeliverPolicy.ALL
    opt_start_seq: Uint64 = omit(0)
    opt_start_time: Time = omit("")
    ack_policy: AckPolicy = AckPolicy.NONE
    ack_wait: Nanos = omit(0)
    max_deliver: int = omit(0)
    backoff: tuple[Nanos, ...] = omit(())
    filter_subject: str = omit("")
    filter_subjects: tuple[str, ...] = omit(())
    replay_policy: ReplayPolicy = ReplayPolicy.INSTANT
    rate_limit_bps: Uint64 = omit(0)
    sample_freq: str = omit("")
    max_waiting: int = omit(0)
    max_ack_pending: int = omit(0)
    flow_control: bool = omit(False)
    headers_only: bool = omit(False)
    max_batch: int = omit(0)
    max_expires: Nanos = omit(0)
    max_bytes: int = omit(0)
    deliver_subject: str = omit("")
    deliver_group: str = omit("")
    idle_heartbeat: Nanos = omit(0)
    inactive_threshold: Nanos = omit(0)
    num_replicas: int = 0
    mem_storage: bool = omit(False)
    direct: bool = omit(False)
    sourcing: bool = omit(False)
    metadata: dict[str, str] = mapping()
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
