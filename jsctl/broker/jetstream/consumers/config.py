"""What a consumer's config may be: validation, what may change, who may overlap.

Every check raises `ApiError` with the code of the real server; the order is its order, so that
a config with two mistakes is refused for the same one.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig
from jsctl.api.times import format_duration, parse_time
from jsctl.api.words import AckPolicy, DeliverPolicy, PriorityPolicy, Retention
from jsctl.broker.jetstream.consumers.consumer import filters_of
from jsctl.broker.jetstream.consumers.dead_letters import check_target
from jsctl.broker.jetstream.consumers.defaults import (
    FLOW_CONTROL_HEARTBEAT_NS,
    NO_LIMITS,
    NUMBER_MAX,
    ConsumerLimits,
    sample_percent,
)
from jsctl.broker.subject.matching import subset
from jsctl.broker.subject.patterns import Budget, PatternSet, Tangled
from jsctl.broker.subject.validity import SUBJECT_BYTES_MAX, is_too_long, is_valid_subject
from jsctl.dataclass import replace

HEARTBEAT_NS_MIN = 100_000_000
EXPIRES_NS_MIN = 1_000_000
NAME_LENGTH_MAX = 255
DESCRIPTION_LENGTH_MAX = 4096
METADATA_BYTES_MAX = 128 * 1024
_NAME = re.compile(r"[^\s.*>\\/]+")
GROUP_NAME = re.compile(r"[a-zA-Z0-9/_=-]{1,16}")
_TOLD_KEYS = ("_nats.ver", "_nats.level")
LEVEL_KEY = "_nats.req.level"
TANGLED = "filter subjects have too many wildcards to be compared"
Check = Callable[[ConsumerConfig, StreamConfig, ConsumerLimits], None]


def is_valid_name(name: str) -> bool:
    """Whether a consumer may be called so; how long it may be is another question."""
    return _NAME.fullmatch(name) is not None


def check_length(name: str) -> None:
    """Refuse a name that is too long for a new consumer. Raises ApiError."""
    if len(name.encode()) > NAME_LENGTH_MAX:
        raise api_error("JSConsumerNameTooLongErrF", max=NAME_LENGTH_MAX)


def replicas_of(config: ConsumerConfig, stream: StreamConfig) -> int:
    """How many peers a consumer has; no more than its stream, whatever it asks for."""
    if config.num_replicas:
        return min(config.num_replicas, max(1, stream.num_replicas))
    shared = stream.retention is not Retention.LIMITS
    if config.durable_name or shared:
        return max(1, stream.num_replicas)
    return 1


def required_level(config: ConsumerConfig) -> int:
    """The API level that a server needs to run this consumer."""
    if config.ack_policy is AckPolicy.FLOW_CONTROL:
        return 4
    shared = config.priority_policy is not PriorityPolicy.NONE or config.priority_groups
    # A pause until the zero time is none.
    return 1 if shared or config.priority_timeout or parse_time(config.pause_until) else 0


def with_level(config: ConsumerConfig) -> ConsumerConfig:
    """Note the API level that the config needs, as it was asked for: without its defaults. What
    the server tells is not kept."""
    kept = {key: text for key, text in config.metadata.items() if key not in _TOLD_KEYS}
    return replace(config, metadata={**kept, LEVEL_KEY: str(required_level(config))})


# Validation.


def check(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits = NO_LIMITS) -> None:
    """Refuse a config (with defaults) that cannot be. Raises ApiError."""
    for one in _CHECKS:
        one(config, stream, limits)


def _bad(text: str) -> ApiError:
    return api_error("JSStreamInvalidConfigF", err=text)


def _check_names(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    if config.name and not is_valid_name(config.name):
        raise _bad("consumer name can not contain '.', '*', '>', '\\', '/'")
    if config.durable_name and not is_valid_name(config.durable_name):
        raise _bad("consumer durable name can not contain '.', '*', '>', '\\', '/'")


def _check_replicas(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    has = max(1, stream.num_replicas)
    if config.num_replicas > has:
        raise api_error("JSConsumerReplicasExceedsStream")
    if config.num_replicas < 0:
        raise api_error("JSReplicasCountCannotBeNegative")
    shared = stream.retention is not Retention.LIMITS
    if shared and config.num_replicas not in (0, has):
        raise api_error("JSConsumerReplicasShouldMatchStream")


def _check_waits(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    if any(wait < 0 for wait in config.backoff):
        raise api_error("JSConsumerBackOffNegativeErr")
    if config.ack_wait < 0:
        raise api_error("JSConsumerAckWaitNegativeErr")


def _check_flow_acks(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    if config.ack_policy is not AckPolicy.FLOW_CONTROL:
        return
    if not config.deliver_subject:
        raise api_error("JSConsumerAckFCRequiresPushErr")
    if not config.flow_control:
        raise api_error("JSConsumerAckFCRequiresFCErr")
    if config.idle_heartbeat != FLOW_CONTROL_HEARTBEAT_NS:
        raise _bad("flow control ack policy heartbeat needs to be 1s")
    if config.max_ack_pending <= 0:
        raise api_error("JSConsumerAckFCRequiresMaxAckPendingErr")
    if config.ack_wait or config.backoff:
        raise api_error("JSConsumerAckFCRequiresNoAckWaitErr")
    if config.max_deliver > 0:
        raise api_error("JSConsumerAckFCRequiresNoMaxDeliverErr")


def _check_texts(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    if config.max_deliver != -1 and len(config.backoff) > config.max_deliver:
        raise api_error("JSConsumerMaxDeliverBackoffErr")
    if len(config.description.encode()) > DESCRIPTION_LENGTH_MAX:
        raise api_error("JSConsumerDescriptionTooLongErrF", max=DESCRIPTION_LENGTH_MAX)
    subjects = (config.deliver_subject, config.filter_subject, *config.filter_subjects)
    if is_too_long(*subjects, config.deliver_group):
        text = f"subject is too long, maximum allowed is {SUBJECT_BYTES_MAX} bytes"
        raise api_error("JSConsumerCreateErrF", err=text)


def _check_push(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    subject = config.deliver_subject.encode()
    if not subject:
        return
    if {b"*", b">"} & set(subject.split(b".")):  # Wherever they stand.
        raise api_error("JSConsumerDeliverToWildcardsErr")
    if not is_valid_subject(subject):
        raise api_error("JSConsumerInvalidDeliverSubject")
    if any(subset(subject, own.encode()) for own in stream.subjects):
        raise api_error("JSConsumerDeliverCycleErr")
    if config.max_waiting:
        raise api_error("JSConsumerPushMaxWaitingErr")
    if config.max_ack_pending > 0 and config.ack_policy is AckPolicy.NONE:
        raise api_error("JSConsumerMaxPendingAckPolicyRequiredErr")
    if 0 < config.idle_heartbeat < HEARTBEAT_NS_MIN:
        raise api_error("JSConsumerSmallHeartbeatErr")


def _check_pull(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    if config.deliver_subject:
        return
    if config.ack_policy is AckPolicy.NONE and stream.retention is Retention.WORK_QUEUE:
        raise api_error("JSConsumerPullRequiresAckErr")
    if config.rate_limit_bps:
        raise api_error("JSConsumerPullWithRateLimitErr")
    if config.idle_heartbeat:
        raise api_error("JSConsumerHBRequiresPushErr")
    if config.flow_control:
        raise api_error("JSConsumerFCRequiresPushErr")
    if 0 < config.max_expires < EXPIRES_NS_MIN:
        raise api_error("JSConsumerMaxRequestExpiresTooSmall")
    if 0 < limits.request_batch_max < config.max_batch:
        raise api_error("JSConsumerMaxRequestBatchExceededF", limit=limits.request_batch_max)


def _check_limits(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    most = (
        limits.server_ack_pending_max,
        limits.account_ack_pending_max,
        stream.consumer_limits.max_ack_pending,
    )
    for limit in most:
        if 0 < limit < config.max_ack_pending:
            raise api_error("JSConsumerMaxPendingAckExcessErrF", limit=limit)
    threshold = stream.consumer_limits.inactive_threshold
    if 0 < threshold < config.inactive_threshold:
        raise api_error("JSConsumerInactiveThresholdExcess", limit=format_duration(threshold))


def _check_direct(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    if config.direct and not config.deliver_subject:
        raise api_error("JSConsumerDirectRequiresPushErr")
    if config.direct and config.durable_name:
        raise api_error("JSConsumerDirectRequiresEphemeralErr")


def _check_filters(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    if config.filter_subject and config.filter_subjects:
        raise api_error("JSConsumerDuplicateFilterSubjects")
    if config.filter_subject and not is_valid_subject(config.filter_subject.encode()):
        raise _bad("invalid subject")
    if "" in config.filter_subjects:
        raise api_error("JSConsumerEmptyFilter")
    filters = [one.encode() for one in filters_of(config)]
    everything = PatternSet(one for one in filters if is_valid_subject(one))
    budget = Budget()
    times = Counter(filters)
    try:
        for one in filters:
            if not is_valid_subject(one):
                raise _bad("invalid subject")
            if times[one] > 1 or everything.covers(one, besides=True, budget=budget):
                raise api_error("JSConsumerOverlappingSubjectFilters")
    except Tangled:
        raise _bad(TANGLED) from None


_STARTS = {
    DeliverPolicy.ALL: "all",
    DeliverPolicy.LAST: "last",
    DeliverPolicy.LAST_PER_SUBJECT: "last per subject",
    DeliverPolicy.NEW: "new",
    DeliverPolicy.BY_START_SEQUENCE: "by start sequence",
    DeliverPolicy.BY_START_TIME: "by start time",
}


def _check_start(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    policy = config.deliver_policy
    by_seq = policy is DeliverPolicy.BY_START_SEQUENCE
    by_time = policy is DeliverPolicy.BY_START_TIME
    if by_seq and not config.opt_start_seq:
        raise _start(policy, "start sequence is not set")
    if by_time and not config.opt_start_time:
        raise _start(policy, "start time is not set")
    if config.opt_start_seq and not by_seq:
        name = "start start sequence" if by_time else "start sequence"
        raise _start(policy, f"{name} is also set")
    if config.opt_start_time and not by_time:
        raise _start(policy, "start time is also set")
    if policy is DeliverPolicy.LAST_PER_SUBJECT and not filters_of(config):
        raise _start(policy, "filter subject is not set")


def _start(policy: DeliverPolicy, what: str) -> ApiError:
    text = f"consumer delivery policy is deliver {_STARTS[policy]}, but optional {what}"
    return api_error("JSConsumerInvalidPolicyErrF", err=text)


def _check_rest(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    sample = config.sample_freq.removesuffix("%")
    if config.sample_freq and not re.fullmatch(r"\+?[0-9]+|-0+", sample):
        negative = re.fullmatch("-[0-9]+", sample)
        text = "<nil>" if negative else f'strconv.Atoi: parsing "{sample}": invalid syntax'
        raise api_error("JSConsumerInvalidSamplingErrF", err=text)
    if sample_percent(config) > NUMBER_MAX:
        text = f'strconv.Atoi: parsing "{sample}": value out of range'
        raise api_error("JSConsumerInvalidSamplingErrF", err=text)
    if config.flow_control and not config.idle_heartbeat:
        raise api_error("JSConsumerWithFlowControlNeedsHeartbeats")
    if config.durable_name and config.name and config.name != config.durable_name:
        raise api_error("JSConsumerCreateDurableAndNameMismatch")
    size = sum(len(k.encode()) + len(v.encode()) for k, v in config.metadata.items())
    if size > METADATA_BYTES_MAX:
        limit = f"{METADATA_BYTES_MAX // 1024}KB"
        raise api_error("JSConsumerMetadataLengthErrF", limit=limit)


def _check_priority(config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits) -> None:
    if config.priority_policy is PriorityPolicy.NONE:
        if config.priority_groups:
            raise api_error("JSConsumerPriorityGroupWithPolicyNone")
        if config.priority_timeout > 0:
            raise api_error("JSConsumerPinnedTTLWithoutPriorityPolicyNone")
        return
    if config.deliver_subject:
        raise api_error("JSConsumerPushWithPriorityGroupErr")
    if not config.priority_groups:
        raise api_error("JSConsumerPriorityPolicyWithoutGroup")
    for group in config.priority_groups:
        if not group:
            raise api_error("JSConsumerEmptyGroupName")
        if not GROUP_NAME.fullmatch(group):
            raise api_error("JSConsumerInvalidGroupNameErr")


_CHECKS: tuple[Check, ...] = (
    _check_names,
    _check_replicas,
    _check_waits,
    _check_flow_acks,
    _check_texts,
    _check_push,
    _check_pull,
    _check_limits,
    _check_direct,
    _check_filters,
    _check_start,
    _check_rest,
    _check_priority,
    check_target,
)


# What may change, and who may be beside whom.

_FIXED: tuple[tuple[str, str], ...] = (
    ("deliver_policy", "deliver policy can not be updated"),
    ("mem_storage", "storage type can not be updated"),
    ("direct", "direct can not be updated"),
    ("sourcing", "sourcing can not be updated"),
    ("opt_start_seq", "start sequence can not be updated"),
    ("opt_start_time", "start time can not be updated"),
    ("ack_policy", "ack policy can not be updated"),
    ("replay_policy", "replay policy can not be updated"),
    ("idle_heartbeat", "heart beats can not be updated"),
    ("flow_control", "flow control can not be updated"),
)


def check_update(old: ConsumerConfig, new: ConsumerConfig, *, bound: bool) -> None:
    """Refuse a change that cannot be. `bound`: somebody listens on the old deliver subject.

    Raises ApiError.
    """
    for name, text in _FIXED:
        before, after = getattr(old, name), getattr(new, name)
        if name == "opt_start_time":
            before, after = parse_time(before), parse_time(after)
        if before != after:
            raise api_error("JSConsumerCreateErrF", err=text)
    if old.deliver_subject != new.deliver_subject:
        if not old.deliver_subject:
            text = "can not update pull consumer to push based"
            raise api_error("JSConsumerCreateErrF", err=text)
        if not new.deliver_subject:
            text = "can not update push consumer to pull based"
            raise api_error("JSConsumerCreateErrF", err=text)
        if bound:
            raise api_error("JSConsumerNameExistErr")
    if old.max_waiting != new.max_waiting:
        raise api_error("JSConsumerCreateErrF", err="max waiting can not be updated")


def same(left: ConsumerConfig, right: ConsumerConfig) -> bool:
    """Whether two configs are equal, apart from metadata that the server adds."""
    return _stripped(left) == _stripped(right)


def _stripped(config: ConsumerConfig) -> ConsumerConfig:
    kept = {k: v for k, v in config.metadata.items() if not k.startswith("_nats.")}
    return replace(config, metadata=kept)


def _listened(filters: Iterable[str]) -> list[bytes]:
    return [one.encode() for one in filters] or [b">"]


class TakenSubjects:
    """What the consumers of a work queue take, each of them for itself. Direct and sourcing ones do
    not count."""

    __slots__ = ("_some", "_theirs")

    def __init__(self, others: Iterable[ConsumerConfig] = ()) -> None:
        self._some = False
        self._theirs = PatternSet()
        for other in others:
            self.add(other)

    def add(self, config: ConsumerConfig) -> None:
        """There is another consumer."""
        if config.direct or config.sourcing:
            return
        self._some = True
        for one in _listened(filters_of(config)):
            self._theirs.insert(one)

    def check(self, config: ConsumerConfig, *, exists: bool) -> None:
        """Refuse a consumer that would share messages with one of them. Raises ApiError."""
        if config.direct or config.sourcing:
            return
        filters = [one.encode() for one in filters_of(config)]
        if not exists:
            if config.ack_policy not in (AckPolicy.EXPLICIT, AckPolicy.FLOW_CONTROL):
                raise api_error("JSConsumerWQRequiresExplicitAckErr")
            if config.deliver_policy is not DeliverPolicy.ALL:
                raise api_error("JSConsumerWQConsumerNotDeliverAllErr")
            if self._some and not filters:
                raise api_error("JSConsumerWQMultipleUnfilteredErr")
        try:
            if PatternSet(filters or [b">"]).meets(self._theirs) is not None:
                raise api_error("JSConsumerWQConsumerNotUniqueErr")
        except Tangled:
            raise _bad(TANGLED) from None
