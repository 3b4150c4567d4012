"""Stream configs: defaults, what is valid, what an update may change.

Pure. The checks run in the order of the real server and refuse in its words, so that the first
of several mistakes named is the same one.
"""

from collections.abc import Callable

from jsctl.api.cluster import Placement
from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import Republish, StreamConfig
from jsctl.api.times import MINUTE_NS, SECOND_NS, format_duration
from jsctl.api.words import Discard, PersistMode, Retention, Storage
from jsctl.broker.errors import ConfigError
from jsctl.broker.jetstream.sourcing.rules import (
    Lookup,
    checked_upstreams,
    invalid,
    is_valid_name,
    nobody,
)
from jsctl.broker.jetstream.streams.entries import SKIPPED_TO_MAX
from jsctl.broker.subject.matching import overlaps, subset
from jsctl.broker.subject.patterns import Tangled, first_meeting
from jsctl.broker.subject.transforms import compile_transform
from jsctl.broker.subject.validity import SUBJECT_BYTES_MAX, is_too_long, is_valid_subject
from jsctl.dataclass import dataclass, replace

NAME_LENGTH_MAX = 255
DESCRIPTION_BYTES_MAX = 4096
METADATA_BYTES_MAX = 128 << 10
REPLICAS_MAX = 5
DUPLICATE_WINDOW_NS = 2 * MINUTE_NS
_SHORTEST_NS = SECOND_NS // 10
_API_SPACES = (b"$JS.>", b"$JSC.>", b"$NRG.>")
_MAY_MEET_SPACES = (b"$", b"*", b">")
"""What begins with something else overlaps with none of them, nor with `$SYS.>`."""
LEVEL_KEY = "_nats.req.level"
TANGLED = "subjects have too many wildcards to be compared"
_RESERVED_KEYS = (LEVEL_KEY, "_nats.ver", "_nats.level")


@dataclass(frozen=True, slots=True)
class ConfigLimits:
    """What the server adds to the rules of streams and consumers. -1 or 0: unlimited."""

    duplicate_window_max_ns: int = 0
    ack_pending_max: int = 0
    request_batch_max: int = 0
    consumers_default_max: int = 1000
    """Of streams that have no limit, in accounts that have none either."""


def checked(
    config: StreamConfig,
    *,
    pedantic: bool = False,
    limits: ConfigLimits | None = None,
    lookup: Lookup = nobody,
) -> StreamConfig:
    """The config with its defaults filled in. `lookup` knows the account's other streams.

    Raises ApiError.
    """
    _check_texts(config)
    _check_lengths(config)
    config = _with_defaults(config, pedantic, limits or ConfigLimits())
    if config.deny_purge and config.allow_rollup_hdrs:
        raise invalid("roll-ups require the purge permission")
    if config.allow_msg_counter:
        _check_features(config, _COUNTER_RULES)
    _check_discards(config)
    config = _with_markers(config, pedantic)
    config = _with_schedules(config, pedantic)
    if config.persist_mode is PersistMode.ASYNC:
        _check_features(config, _PERSIST_RULES)
    config = checked_upstreams(config, lookup, pedantic)
    config = _with_subjects(config)
    config = _with_mapping(config, pedantic)
    if config.placement == Placement():
        config = replace(config, placement=None)
    if config.placement is not None and config.placement.preferred:
        raise invalid("preferred server not permitted in placement")
    return config


def _check_lengths(config: StreamConfig) -> None:
    """What has to find room in a line between servers."""
    transform, republish = config.subject_transform, config.republish
    if is_too_long(*config.subjects):
        raise invalid(f"subject is too long, maximum allowed is {SUBJECT_BYTES_MAX} bytes")
    for each in (transform, republish):
        if each is not None and is_too_long(each.src, each.dest):
            maximum = SUBJECT_BYTES_MAX
            raise invalid(f"transform is too long, maximum allowed is {maximum} bytes")


def _check_texts(config: StreamConfig) -> None:
    if not is_valid_name(config.name):
        raise invalid(r"stream name is required and can not contain '.', '*', '>', '\', '/'")
    if len(config.name.encode()) > NAME_LENGTH_MAX:
        raise invalid(f"stream name is too long, maximum allowed is {NAME_LENGTH_MAX}")
    if len(config.description.encode()) > DESCRIPTION_BYTES_MAX:
        maximum = DESCRIPTION_BYTES_MAX
        raise invalid(f"stream description is too long, maximum allowed is {maximum}")
    size = sum(len(k.encode()) + len(v.encode()) for k, v in config.metadata.items())
    if size > METADATA_BYTES_MAX:
        raise invalid(f"stream metadata exceeds maximum size of {METADATA_BYTES_MAX} bytes")


_COUNTS = ("max_msgs", "max_msgs_per_subject", "max_bytes", "max_msg_size", "max_consumers")


def _with_defaults(config: StreamConfig, pedantic: bool, limits: ConfigLimits) -> StreamConfig:
    if config.num_replicas > REPLICAS_MAX:
        raise invalid(f"maximum replicas is {REPLICAS_MAX}")
    if config.num_replicas < 0:
        raise api_error("JSReplicasCountCannotBeNegative")
    if config.first_seq > SKIPPED_TO_MAX:
        raise invalid(f"first sequence is too large, maximum allowed is {SKIPPED_TO_MAX}")
    for name in _COUNTS if pedantic else ():
        if getattr(config, name) < -1:
            raise api_error("JSPedanticErrF", err=f"{name} must be set to -1")
    _check_age(config.max_age)
    config = replace(
        config,
        duplicate_window=_window(config, pedantic, limits.duplicate_window_max_ns),
        metadata=_with_level(config),
        num_replicas=config.num_replicas or 1,
        max_msgs=_or_unlimited(config.max_msgs),
        max_msgs_per_subject=_or_unlimited(config.max_msgs_per_subject),
        max_bytes=_or_unlimited(config.max_bytes),
        max_msg_size=_or_unlimited(config.max_msg_size),
        max_consumers=_or_unlimited(config.max_consumers),
    )
    _check_window(config, limits.duplicate_window_max_ns)
    return config


def _or_unlimited(number: int) -> int:
    return number if number > 0 else -1


def _window(config: StreamConfig, pedantic: bool, maximum: int) -> int:
    window = config.duplicate_window
    if window or config.mirror is not None or config.sources:
        return window
    window = DUPLICATE_WINDOW_NS
    if 0 < maximum < window:
        if pedantic:
            text = "duplicate window limits are higher than current limits"
            raise api_error("JSPedanticErrF", err=text)
        window = maximum
    if 0 < config.max_age < window:
        if pedantic:
            text = "duplicate window cannot be bigger than max age"
            raise api_error("JSPedanticErrF", err=text)
        window = config.max_age
    return window


def _check_age(age: int) -> None:
    if age < 0:
        raise invalid("max age can not be negative")
    if 0 < age < _SHORTEST_NS:
        raise invalid("max age needs to be >= 100ms")


def _check_window(config: StreamConfig, window_max_ns: int) -> None:
    window, age = config.duplicate_window, config.max_age
    if window < 0:
        raise invalid("duplicates window can not be negative")
    if age and window > age:
        raise invalid("duplicates window can not be larger then max age")
    if 0 < window_max_ns < window:
        shown = format_duration(window_max_ns)
        raise invalid(f"duplicates window can not be larger then server limit of {shown}")
    if 0 < window < _SHORTEST_NS:
        raise invalid("duplicates window needs to be >= 100ms")


def _check_discards(config: StreamConfig) -> None:
    if config.discard_new_per_subject:
        if config.discard is not Discard.NEW:
            raise invalid("discard new per subject requires discard new policy to be set")
        if config.max_msgs_per_subject <= 0:
            raise invalid("discard new per subject requires max msgs per subject > 0")


def _with_markers(config: StreamConfig, pedantic: bool) -> StreamConfig:
    ttl = config.subject_delete_marker_ttl
    if ttl < 0:
        raise invalid("subject delete marker TTL must not be negative")
    if not ttl:
        return config
    if ttl < SECOND_NS:
        raise invalid("subject delete marker TTL must be at least 1 second")
    if pedantic and not config.allow_msg_ttl:
        raise invalid("subject delete marker cannot be set if message TTLs are disabled")
    if pedantic and not config.allow_rollup_hdrs:
        raise invalid("subject delete marker cannot be set if roll-ups are disabled")
    return replace(config, allow_msg_ttl=True, allow_rollup_hdrs=True, deny_purge=False)


_Rule = tuple[Callable[[StreamConfig], object], str]
_COUNTER_RULES: tuple[_Rule, ...] = (
    (
        lambda c: c.discard is Discard.NEW,
        "counter stream cannot use discard new",
    ),
    (
        lambda c: c.allow_msg_ttl,
        "counter stream cannot use message TTLs",
    ),
    (
        lambda c: c.allow_msg_schedules,
        "counter stream cannot use message schedules",
    ),
    (
        lambda c: c.retention is not Retention.LIMITS,
        "counter stream can only use limits retention",
    ),
)
_PERSIST_RULES: tuple[_Rule, ...] = (
    (
        lambda c: c.storage is not Storage.FILE,
        "async persist mode is only supported on file storage",
    ),
    (
        lambda c: c.num_replicas > 1,
        "async persist mode is not supported on replicated streams",
    ),
    (
        lambda c: c.allow_atomic,
        "async persist mode is not supported with atomic batch publish",
    ),
)


def _check_features(config: StreamConfig, rules: tuple[_Rule, ...]) -> None:
    for broken, text in rules:
        if broken(config):
            raise invalid(text)


def _with_schedules(config: StreamConfig, pedantic: bool) -> StreamConfig:
    if not config.allow_msg_schedules:
        return config
    if config.discard is Discard.NEW:
        raise invalid("message scheduling cannot use discard new")
    if config.allow_rollup_hdrs:
        return config
    if pedantic:
        raise invalid("message scheduling cannot be set if roll-ups are disabled")
    return replace(config, allow_rollup_hdrs=True, deny_purge=False)


def _with_subjects(config: StreamConfig) -> StreamConfig:
    if not config.subjects:
        if config.mirror is not None or config.sources:
            return config
        return replace(config, subjects=(config.name,))
    subjects = [text.encode() for text in config.subjects]
    wrong: ApiError | None = None
    good = len(subjects)
    for at, subject in enumerate(subjects):
        try:
            _check_subject(config, subject)
        except ApiError as error:
            wrong, good = error, at
            break
    _check_meeting([one for one in subjects if is_valid_subject(one)], set(subjects[:good]))
    if wrong is not None:
        raise wrong
    return config


def _check_meeting(subjects: list[bytes], counted: set[bytes]) -> None:
    """Refuse subjects of which one of those counted meets a later one."""
    try:
        met = first_meeting(subjects)
    except Tangled:
        raise invalid(TANGLED) from None
    if met is not None and met[0] in counted:
        raise invalid(f'subject "{met[0].decode()}" overlaps with "{met[1].decode()}"')


def _check_subject(config: StreamConfig, subject: bytes) -> None:
    if not is_valid_subject(subject):
        raise invalid("invalid subject")
    _check_capture(config, subject)


def _check_capture(config: StreamConfig, subject: bytes) -> None:
    if subject == b">":
        if not config.no_ack:
            raise invalid("capturing all subjects requires no-ack to be true")
        if config.num_replicas != 1:
            raise invalid("capturing all subjects requires replicas of 1")
    if config.no_ack or not subject.startswith(_MAY_MEET_SPACES):
        return
    for space in _API_SPACES:
        if overlaps(subject, space) and not subset(subject, b"$JS.EVENT.>"):
            raise invalid("subjects that overlap with jetstream api require no-ack to be true")
    if overlaps(subject, b"$SYS.>") and not subset(subject, b"$SYS.ACCOUNT.>"):
        raise invalid("subjects that overlap with system api require no-ack to be true")


def _with_mapping(config: StreamConfig, pedantic: bool) -> StreamConfig:
    transform = config.subject_transform
    if transform is not None:
        if transform.src and not is_valid_subject(transform.src.encode()):
            raise api_error(
                "JSStreamTransformInvalidSource", err=f"invalid subject {transform.src}"
            )
        try:
            compile_transform(transform.src.encode(), transform.dest.encode())
        except ConfigError as error:
            raise api_error("JSStreamTransformInvalidDestination", err=error.reason) from None
    republish = config.republish
    if republish is None:
        return config
    republish = _whole_republish(config, republish, pedantic)
    target = republish.dest.encode()
    if any(overlaps(target, subject.encode()) for subject in config.subjects):
        raise invalid("stream configuration for republish destination forms a cycle")
    try:
        compile_transform(republish.src.encode(), target)
    except ConfigError:
        text = f"stream configuration for republish with transform from '{republish.src}'"
        raise invalid(f"{text} to '{republish.dest}' not valid") from None
    return replace(config, republish=republish)


def _whole_republish(config: StreamConfig, republish: Republish, pedantic: bool) -> Republish:
    """With its source; one of everything follows the transform of the only subject."""
    if not republish.src:
        if pedantic:
            raise api_error("JSPedanticErrF", err="republish source can not be empty")
        republish = replace(republish, src=">")
    transform = config.subject_transform
    everything = republish.src == republish.dest == ">"
    if everything and transform is not None and config.subjects == (transform.src,):
        if pedantic:
            text = "implicit republish based on subject transform"
            raise api_error("JSPedanticErrF", err=text)
        republish = replace(republish, src=transform.dest, dest=transform.dest)
    return republish


def required_level(config: StreamConfig) -> int:
    """The API level that a server needs to run this stream."""
    if config.allow_batched:
        return 4
    modern = (config.allow_msg_counter, config.allow_atomic, config.allow_msg_schedules)
    if any(modern) or config.persist_mode is PersistMode.ASYNC:
        return 2
    return 1 if config.allow_msg_ttl or config.subject_delete_marker_ttl else 0


def _with_level(config: StreamConfig) -> dict[str, str]:
    """The metadata; what defaults change makes no other level of it."""
    metadata = {k: v for k, v in config.metadata.items() if k not in _RESERVED_KEYS}
    metadata[LEVEL_KEY] = str(required_level(config))
    return metadata


# Updates.


def _workqueue_changes(old: StreamConfig, new: StreamConfig) -> bool:
    changed = old.retention is not new.retention
    return changed and Retention.WORK_QUEUE in (old.retention, new.retention)


_UPDATE = "stream configuration update can not "
_Change = tuple[Callable[[StreamConfig, StreamConfig], bool], str]
_UPDATE_RULES: tuple[_Change, ...] = (
    (lambda a, b: a.name != b.name, "stream configuration name must match original"),
    (lambda a, b: a.storage is not b.storage, _UPDATE + "change storage type"),
    (_workqueue_changes, _UPDATE + "change retention policy to/from workqueue"),
    (lambda a, b: a.sealed and not b.sealed, _UPDATE + "unseal a sealed stream"),
    (
        lambda a, b: a.deny_delete and not b.deny_delete,
        _UPDATE + "cancel deny message deletes",
    ),
    (lambda a, b: a.deny_purge and not b.deny_purge, _UPDATE + "cancel deny purge"),
)
_LATER_RULES: tuple[_Change, ...] = (
    (
        lambda a, b: a.allow_msg_ttl and not b.allow_msg_ttl,
        "message TTL status can not be disabled",
    ),
    (
        lambda a, b: a.allow_msg_counter != b.allow_msg_counter,
        "stream configuration update can not change message counter setting",
    ),
    (
        lambda a, b: a.allow_msg_schedules and not b.allow_msg_schedules,
        "message schedules can not be disabled",
    ),
    (lambda a, b: a.persist_mode is not b.persist_mode, _UPDATE + "change persist mode"),
)


def updated(old: StreamConfig, new: StreamConfig) -> StreamConfig:
    """`new`, already checked, as the update of `old`. Raises ApiError."""
    _check_change(old, new, _UPDATE_RULES)
    if new.mirror != old.mirror and new.mirror is not None:
        raise api_error("JSStreamMirrorNotUpdatableErr")
    _check_change(old, new, _LATER_RULES)
    new = replace(new, first_seq=old.first_seq)
    if new.sealed:
        new = replace(
            new,
            max_age=0,
            discard=Discard.NEW,
            deny_delete=True,
            deny_purge=True,
            allow_rollup_hdrs=False,
        )
    return new


def _check_change(old: StreamConfig, new: StreamConfig, rules: tuple[_Change, ...]) -> None:
    for broken, text in rules:
        if broken(old, new):
            raise invalid(text)


def same(left: StreamConfig, right: StreamConfig) -> bool:
    """Whether two checked configs are equal, apart from the server's own metadata."""
    return _bare(left) == _bare(right)


def _bare(config: StreamConfig) -> StreamConfig:
    metadata = {k: v for k, v in config.metadata.items() if k not in _RESERVED_KEYS}
    return replace(config, metadata=metadata)
