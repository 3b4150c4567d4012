"""What a consumer's config becomes where it leaves something open: the real server's values."""

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig
from jsctl.api.words import AckPolicy, PriorityPolicy
from jsctl.dataclass import dataclass, replace

SECOND_NS = 1_000_000_000
ACK_WAIT_NS = 30 * SECOND_NS
INACTIVE_THRESHOLD_NS = 5 * SECOND_NS
"""For consumers without a durable name."""
PINNED_TTL_NS = 120 * SECOND_NS
FLOW_CONTROL_HEARTBEAT_NS = SECOND_NS
MAX_WAITING = 512
MAX_ACK_PENDING = 1000
NUMBER_MAX = (1 << 63) - 1
_DIGITS_MAX = len(str(NUMBER_MAX))
_NO_STREAM = StreamConfig()


@dataclass(frozen=True, slots=True)
class ConsumerLimits:
    """What server and account allow; 0 or below: no limit."""

    server_ack_pending_max: int = 0
    account_ack_pending_max: int = 0
    request_batch_max: int = 0


NO_LIMITS = ConsumerLimits()

_FLOORS: tuple[tuple[str, int, str], ...] = (
    ("max_waiting", 0, "max_waiting must not be negative"),
    ("max_ack_pending", -1, "max_ack_pending must be set to -1"),
    ("max_batch", 0, "max_batch must not be negative"),
    ("max_expires", 0, "max_expires must not be negative"),
    ("max_bytes", 0, "max_bytes must not be negative"),
    ("idle_heartbeat", 0, "idle_heartbeat must not be negative"),
    ("inactive_threshold", 0, "inactive_threshold must not be negative"),
    ("priority_timeout", 0, "priority_timeout must not be negative"),
)
"""Fields whose values below the floor become the floor."""


def with_defaults(
    config: ConsumerConfig,
    stream: StreamConfig = _NO_STREAM,
    limits: ConsumerLimits = NO_LIMITS,
    *,
    pedantic: bool = False,
    previous: ConsumerConfig | None = None,
) -> ConsumerConfig:
    """The config with everything set that was left open.

    `pedantic` refuses what would have to be changed. `previous` is what an update changes. Raises
    ApiError.
    """
    config = _floored(config, pedantic)
    changed: dict[str, int | bool] = {}
    if not config.deliver_subject and config.max_waiting == 0:
        changed["max_waiting"] = MAX_WAITING
    waits = config.ack_policy in (AckPolicy.EXPLICIT, AckPolicy.ALL)
    ack_wait = config.ack_wait or (ACK_WAIT_NS if waits else 0)
    if config.backoff:
        if pedantic and ack_wait != config.backoff[0]:
            raise _pedantic("first backoff value has to equal batch AckWait")
        ack_wait = config.backoff[0]
    changed["ack_wait"] = ack_wait
    changed["max_ack_pending"] = _ack_pending(config, stream, limits, pedantic)
    changed["inactive_threshold"] = _threshold(config, stream, pedantic, previous)
    if not config.deliver_subject and config.max_batch == 0 and limits.request_batch_max > 0:
        if pedantic:
            raise _pedantic("max_request_batch must be set if it's JetStream limits are set")
        changed["max_batch"] = limits.request_batch_max
    if config.priority_policy is PriorityPolicy.PINNED_CLIENT and not config.priority_timeout:
        changed["priority_timeout"] = PINNED_TTL_NS
    if config.ack_policy is AckPolicy.FLOW_CONTROL and not pedantic:
        changed["flow_control"] = True
        changed["idle_heartbeat"] = FLOW_CONTROL_HEARTBEAT_NS
    new = {name: value for name, value in changed.items() if getattr(config, name) != value}
    if not new:
        return config
    return replace(config, **new)  # type: ignore[arg-type]  # names of int and bool fields


def _pedantic(text: str) -> ApiError:
    return api_error("JSPedanticErrF", err=text)


def _floored(config: ConsumerConfig, pedantic: bool) -> ConsumerConfig:
    changed: dict[str, int] = {}
    if config.max_deliver == 0 or config.max_deliver < -1:
        if pedantic and config.max_deliver < -1:
            raise _pedantic("max_deliver must be set to -1")
        changed["max_deliver"] = -1
    for name, floor, text in _FLOORS:
        if getattr(config, name) < floor:
            if pedantic:
                raise _pedantic(text)
            changed[name] = floor
    if not changed:
        return config
    return replace(config, **changed)  # type: ignore[arg-type]  # names of int fields


def _ack_pending(
    config: ConsumerConfig, stream: StreamConfig, limits: ConsumerLimits, pedantic: bool
) -> int:
    if config.max_ack_pending:
        return config.max_ack_pending
    inherited = stream.consumer_limits.max_ack_pending
    if pedantic and inherited > 0:
        raise _pedantic("max_ack_pending must be set if it's configured in stream limits")
    if inherited or config.ack_policy is AckPolicy.NONE:
        return inherited
    most = (MAX_ACK_PENDING, limits.server_ack_pending_max, limits.account_ack_pending_max)
    return min(limit for limit in most if limit > 0)


def _threshold(
    config: ConsumerConfig, stream: StreamConfig, pedantic: bool, previous: ConsumerConfig | None
) -> int:
    if config.inactive_threshold:
        return config.inactive_threshold
    inherited = stream.consumer_limits.inactive_threshold
    if pedantic and inherited > 0:
        raise _pedantic("inactive_threshold must be set if it's configured in stream limits")
    if inherited or config.durable_name:
        return inherited
    if previous is not None and (previous.durable_name or not previous.inactive_threshold):
        # What was there to stay does not end because an update is silent about its durable name.
        return 0
    return INACTIVE_THRESHOLD_NS


def sample_percent(config: ConsumerConfig) -> int:
    """Of a hundred acks it is told how long they took. What no number holds is more than any."""
    digits = config.sample_freq.removesuffix("%").lstrip("+-").lstrip("0")
    return int(digits or 0) if len(digits) <= _DIGITS_MAX else NUMBER_MAX + 1
