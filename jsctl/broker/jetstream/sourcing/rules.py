"""What mirrors and sources may be declared, in the order and the words of the real server."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations

from jsctl.api.errors import ApiError, api_error
from jsctl.api.stream import StreamConfig, StreamSource, SubjectTransform
from jsctl.broker.errors import ConfigError
from jsctl.broker.jetstream.sourcing.names import durable_key, index_name
from jsctl.broker.subject.matching import overlaps, subset
from jsctl.broker.subject.transforms import compile_transform
from jsctl.broker.subject.validity import is_valid_literal, is_valid_subject
from jsctl.dataclass import replace

Lookup = Callable[[str], StreamConfig | None]
"""The config of another stream of the account, if there is one."""
KEY_BYTES_MAX = 32 * 1024
"""Index name of a source: a header of each of its messages, and positions, have it."""
_FORBIDDEN_IN_NAMES = frozenset(" \t\r\n\f.*>\\/")
_API = b"$JS.API"


def is_valid_name(name: str) -> bool:
    """Whether streams and consumers may have this name."""
    return bool(name) and not _FORBIDDEN_IN_NAMES.intersection(name)


def nobody(name: str) -> StreamConfig | None:
    """Where no other stream is known."""
    return None


def invalid(text: str) -> ApiError:
    """The error for most mistakes in a stream config."""
    return api_error("JSStreamInvalidConfigF", err=text)


def checked_upstreams(config: StreamConfig, lookup: Lookup, pedantic: bool) -> StreamConfig:
    """The config with what a mirror inherits from its origin. Raises ApiError."""
    subjects: list[str] = []
    if config.mirror is not None:
        config = _checked_mirror(config, config.mirror, lookup, pedantic, subjects)
    if config.sources and config.allow_msg_schedules:
        raise api_error("JSSourceWithMsgSchedulesErr")
    _check_sources(config, lookup, subjects)
    _check_prefixes(config, subjects)
    _check_cycles(config, lookup)
    _check_filters(config)
    return config


_Rule = tuple[Callable[[StreamConfig], object], str]
_MIRROR_RULES: tuple[_Rule, ...] = (
    (lambda config: config.first_seq > 0, "JSMirrorWithFirstSeqErr"),
    (lambda config: config.subjects, "JSMirrorWithSubjectsErr"),
    (lambda config: config.sources, "JSMirrorWithSourcesErr"),
    (lambda config: config.allow_msg_counter, "JSMirrorWithCountersErr"),
    (lambda config: config.allow_atomic, "JSMirrorWithAtomicPublishErr"),
    (lambda config: config.allow_batched, "JSMirrorWithBatchPublishErr"),
    (lambda config: config.allow_msg_schedules, "JSMirrorWithMsgSchedulesErr"),
)


def _checked_mirror(
    config: StreamConfig,
    mirror: StreamSource,
    lookup: Lookup,
    pedantic: bool,
    subjects: list[str],
) -> StreamConfig:
    error = next((error for broken, error in _MIRROR_RULES if broken(config)), "")
    if error:
        raise api_error(error)
    _check_durable(mirror, "JSMirrorDurableConsumerCfgInvalid")
    if mirror.filter_subject and mirror.subject_transforms:
        raise api_error("JSMirrorMultipleFiltersNotAllowed")
    if config.subject_delete_marker_ttl:
        raise invalid("subject delete markers forbidden on mirrors")
    _check_transforms(mirror.subject_transforms, "JSMirror", overlaps)
    if mirror.opt_start_seq and mirror.opt_start_time:
        raise api_error("JSMirrorWithStartSeqAndTimeErr")
    if mirror.external is None:
        if not is_valid_name(mirror.name):
            raise api_error("JSMirrorInvalidStreamName")
        origin = lookup(mirror.name)
        if origin is not None:
            subjects += origin.subjects
            return _inherited(config, origin, pedantic)
    return config


def _inherited(config: StreamConfig, origin: StreamConfig, pedantic: bool) -> StreamConfig:
    """A mirror may answer direct gets for its origin if that does."""
    if 0 < config.max_msg_size < origin.max_msg_size:
        raise api_error("JSMirrorMaxMessageSizeTooBigErr")
    if pedantic and config.mirror_direct != origin.allow_direct:
        text = "origin stream has direct get set, mirror has it disabled"
        raise api_error("JSPedanticErrF", err=text)
    return replace(config, mirror_direct=origin.allow_direct)


def _check_durable(source: StreamSource, error: str) -> None:
    """A consumer that somebody made knows itself where it begins, and what it passes."""
    consumer = source.consumer
    if consumer is None:
        return
    sound = is_valid_name(consumer.name) and is_valid_literal(consumer.deliver_subject.encode())
    if not sound or source.opt_start_seq or source.opt_start_time or source.filter_subject:
        raise api_error(error)


def _check_transforms(
    transforms: Sequence[SubjectTransform], kind: str, meet: Callable[[bytes, bytes], bool]
) -> None:
    for one in transforms:
        if one.src and not is_valid_subject(one.src.encode()):
            raise api_error(f"{kind}InvalidSubjectFilter", err=f"invalid subject {one.src}")
        wrong = _wrong_mapping(one.src or ">", one.dest)
        if wrong:
            raise api_error(f"{kind}InvalidTransformDestination", err=wrong)
    sources = [(one.src or ">").encode() for one in transforms]
    if any(meet(left, right) for left, right in permutations(sources, 2)):
        raise api_error(f"{kind}OverlappingSubjectFilters")


def _wrong_mapping(source: str, destination: str) -> str:
    """What is wrong with a mapping; subjects stay as they are without a destination."""
    if not destination:
        return ""
    try:
        compile_transform(source.encode(), destination.encode())
    except ConfigError as error:
        return error.reason
    return ""


def _check_sources(config: StreamConfig, lookup: Lookup, subjects: list[str]) -> None:
    keys: set[str] = set()
    durables: set[str] = set()
    for source in config.sources:
        if not is_valid_name(source.name):
            raise api_error("JSSourceInvalidStreamName")
        key = index_name(source)
        if key in keys:
            raise api_error("JSSourceDuplicateDetected")
        keys.add(key)
        if source.filter_subject and source.subject_transforms:
            raise api_error("JSSourceMultipleFiltersNotAllowed")
        _check_transforms(source.subject_transforms, "JSSource", subset)
        if source.consumer is not None:
            _check_durable(source, "JSSourceDurableConsumerCfgInvalid")
            if durable_key(source) in durables:
                raise api_error("JSSourceDurableConsumerDuplicateDetected")
            durables.add(durable_key(source))
        if len(key.encode()) > KEY_BYTES_MAX:
            maximum = f"maximum allowed is {KEY_BYTES_MAX} bytes"
            raise invalid(f"filters and destinations of a source are too long, {maximum}")
        origin = None if source.external is not None else lookup(source.name)
        if origin is not None:
            subjects += origin.subjects
            if 0 < config.max_msg_size < origin.max_msg_size:
                raise api_error("JSSourceMaxMessageSizeTooBigErr")


def _check_filters(config: StreamConfig) -> None:
    """Last of all, as the real server looks at them when it makes the stream."""
    named = [(config.mirror, "the mirror")] if config.mirror is not None else []
    named += [(source, "the source:") for source in config.sources]
    for upstream, what in named:
        wanted = upstream.filter_subject
        if wanted and not is_valid_subject(wanted.encode()):
            text = f"subject filter '{wanted}' for {what} invalid subject"
            raise api_error("JSStreamCreateErrF", err=text)


def _upstreams(config: StreamConfig) -> Iterator[StreamSource]:
    if config.mirror is not None:
        yield config.mirror
    yield from config.sources


def _check_prefixes(config: StreamConfig, subjects: Iterable[str]) -> None:
    externals = [one.external for one in _upstreams(config) if one.external is not None]
    for prefix in [one.deliver for one in externals if one.deliver]:
        if not is_valid_literal(prefix.encode()):
            raise api_error("JSStreamInvalidExternalDeliverySubjErrF", prefix=prefix)
        for subject in subjects:
            if overlaps(subject.encode(), f"{prefix}.{subject}".encode()):
                name = "JSStreamExternalDelPrefixOverlapsErrF"
                raise api_error(name, prefix=prefix, subject=subject)
    for prefix in [one.api for one in externals if one.api]:
        if not is_valid_literal(prefix.encode()):
            text = (
                f'stream external api prefix "{prefix}" must be a valid subject without wildcards'
            )
            raise invalid(text)
        if overlaps(prefix.encode(), _API):
            name = "JSStreamExternalApiOverlapErrF"
            raise api_error(name, prefix=prefix, subject=_API.decode())


def _check_cycles(config: StreamConfig, lookup: Lookup) -> None:
    """Refuse streams that would take their own messages, over others as well."""
    waiting, visited = [config], set[str]()
    while waiting:
        one = waiting.pop(0)
        visited.add(one.name)
        for source in one.sources:
            if source.external is not None:
                continue
            if source.name in visited:
                if _meet(one.subjects, source.filter_subject):
                    raise invalid("detected cycle")
            elif (found := lookup(source.name)) is not None:
                waiting.append(found)
        mirror = one.mirror
        if mirror is not None and mirror.external is None:
            if mirror.name in visited:
                raise invalid("detected cycle")
            found = lookup(mirror.name)
            if found is not None:
                waiting.append(found)


def _meet(subjects: Sequence[str], filter_subject: str) -> bool:
    wanted = filter_subject.encode()
    return not wanted or any(overlaps(one.encode(), wanted) for one in subjects)
