"""STREAM.CREATE, UPDATE, DELETE and INFO.

The meta leader validates, places and logs an assignment; the stream's leader answers the request
named in it, as only it knows the stream's state.
"""

from jsctl.api.cluster import Placement
from jsctl.api.codec import dumps
from jsctl.api.errors import api_error
from jsctl.api.requests import StreamConfigRequest, StreamInfoRequest
from jsctl.api.responses import ApiPaged, StreamInfoResponse
from jsctl.api.stream import StreamAlternate, StreamConfig, StreamInfo
from jsctl.api.times import format_time
from jsctl.api.words import Storage
from jsctl.broker.handlers import placing
from jsctl.broker.handlers.answers import (
    cluster_info,
    expect_empty,
    group_text,
    head,
    kind_type,
    parsed,
    parsed_maybe,
    shown_metadata,
    success,
)
from jsctl.broker.handlers.decisions import Decision, ProposeMeta, Reply, Silent
from jsctl.broker.handlers.told.stream_texts import begun, info_text
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.chains.chain_key import check_chain
from jsctl.broker.jetstream.config_texts import STREAMS
from jsctl.broker.jetstream.meta.assignments import FIRST_REVISION, StreamAssignment
from jsctl.broker.jetstream.meta.entries import assign_stream, remove_stream
from jsctl.broker.jetstream.quotas import AccountQuota, TierLimits
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.jetstream.sourcing.rules import invalid
from jsctl.broker.jetstream.streams.config import (
    TANGLED,
    checked,
    same,
    updated,
)
from jsctl.broker.jetstream.streams.stream import SUBJECTS_PER_PAGE, Stream
from jsctl.broker.subject.patterns import PatternSet, Tangled
from jsctl.broker.subject.validity import has_wildcard
from jsctl.dataclass import replace

_NAME_HAS_PATH = "/\\"
_NAMES_STORAGE = b'"storage"'
_EXCEEDED = {True: "JSMemoryResourcesExceededErr", False: "JSStorageResourcesExceededErr"}
"""By whether the stream is in memory."""


def existing(view: View, account: str, name: str) -> StreamAssignment:
    """The assignment of a stream. Raises ApiError if there is none."""
    found = view.meta.stream(account, name)
    if found is None:
        raise api_error("JSStreamNotFoundErr")
    return found


def _checked(view: View, request: ApiRequest, body: StreamConfigRequest) -> StreamConfig:
    def lookup(other: str) -> StreamConfig | None:
        found = view.meta.stream(request.account, other)
        return None if found is None else found.config

    config = checked(body.config, pedantic=body.pedantic, limits=view.config_limits, lookup=lookup)
    check_size(view, request, config)
    return config


def create(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.CREATE.<stream>"""
    body = parsed(StreamConfigRequest, request)
    if body.config.name != names[0]:
        raise api_error("JSStreamMismatchErr")
    if any(mark in names[0] for mark in _NAME_HAS_PATH):
        raise api_error("JSStreamNameContainsPathSeparatorsErr")
    if body.config.sealed:
        raise invalid("stream configuration for create can not be sealed")
    if body.config.mirror_direct and body.config.mirror is None:
        raise invalid("stream has no mirror but does have mirror direct")
    old = view.meta.stream(request.account, names[0])
    if not view.clustered:
        # What names no storage is known to be a file only behind checks.
        names_storage = _NAMES_STORAGE in request.payload
        _check_limits(view, request, body.config, stored=names_storage)
        if names_storage:
            _check_room(view, body.config, old)
    config = _checked(view, request, body)
    if view.clustered:  # What was filled in has to go together, too, as for updates.
        config = _checked(view, request, replace(body, config=config))
    _check_replicas(view, config)
    if old is not None:
        if not same(old.config, config):
            raise api_error("JSStreamNameExistErr")
        return _answer_again(view, request, old)
    check(view, request, config)
    group = placing.new_group(view, config, request.client.cluster)
    made = StreamAssignment(
        account=request.account,
        name=config.name,
        config=config,
        group=group,
        created_ns=view.now_ns,
        client=request.client,
        request=request,
    )
    return ProposeMeta([assign_stream(made)], None)


def _answer_again(view: View, request: ApiRequest, old: StreamAssignment) -> Decision:
    """The same stream once more: its leader answers, which may be here."""
    stream = view.stream(old.account, old.name)
    group = view.group(old.group.name)
    again = replace(old, request=request, revision=old.revision + 1)
    if stream is not None and group is not None and group.is_leader:
        return Reply(create_response(view, again, stream))
    return ProposeMeta([assign_stream(again)], None)


def update(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.UPDATE.<stream>"""
    body = parsed(StreamConfigRequest, request)
    config = _checked(view, request, body)
    if config.name != names[0]:
        raise api_error("JSStreamMismatchErr")
    old = existing(view, request.account, config.name)
    # What was filled in has to go together, too: updates are looked at twice there.
    config = _checked(view, request, replace(body, config=config))
    _check_replicas(view, config)
    config = updated(old.config, config)
    check_change(view, request.account, config, old)
    _check_room(view, config, old)
    violating = _violating(view, config, old)
    if not view.clustered:
        _refuse_violating(violating)
    _check_overlap(view, request, config)
    check_chain(config)
    _refuse_violating(violating)
    group = old.group
    scales = config.num_replicas != old.config.num_replicas
    # Who drops a placement has nothing against where the stream is.
    moves = config.placement is not None and _where(config) != _where(old.config)
    if scales and moves:
        raise api_error("JSStreamMoveAndScaleErr")
    if scales:
        _check_scaling(view, request, config, grows=config.num_replicas > len(group.peers))
        group = placing.scaled(view, old, config)
    elif moves:
        group = placing.moved(view, old, config)
    made = replace(old, config=config, group=group, request=request, revision=old.revision + 1)
    entries = [assign_stream(made)]
    if group != old.group or config.retention is not old.config.retention:
        entries += placing.follow(view, made)
    return ProposeMeta(entries, None)


def _where(config: StreamConfig) -> tuple[str, tuple[str, ...]]:
    placement = config.placement or Placement()
    return placement.cluster, placement.tags


def check(view: View, request: ApiRequest, config: StreamConfig) -> None:
    """What of a new stream needs more than the config itself. Raises ApiError."""
    _check_replicas(view, config)
    _check_overlap(view, request, config)
    check_chain(config)
    _check_limits(view, request, config)


def _check_replicas(view: View, config: StreamConfig) -> None:
    if config.num_replicas > 1 and not view.clustered:
        raise api_error("JSStreamReplicasNotSupportedErr")


def _violating(view: View, config: StreamConfig, old: StreamAssignment) -> list[str]:
    """Consumers that a changed limit of the stream is too low for."""
    new, former = config.consumer_limits, old.config.consumer_limits
    if new == former:
        return []
    threshold, pending = new.inactive_threshold, new.max_ack_pending
    return [
        one.name
        for one in view.meta.consumers(old.account, old.name).values()
        if 0 < threshold < one.config.inactive_threshold or 0 < pending < one.config.max_ack_pending
    ]


def _refuse_violating(names: list[str]) -> None:
    if names:
        text = f"change to limits violates consumers: {', '.join(names)}"
        raise api_error("JSStreamUpdateErrF", err=text)


def _check_room(view: View, config: StreamConfig, old: StreamAssignment | None) -> None:
    """Servers that a stream stays on have to have room for what it reserves. Raises ApiError."""
    former = 0 if old is None else max(old.config.max_bytes, 0)
    if config.max_bytes <= former:
        return
    memory = _in_memory(config)
    for server in placing.loaded_servers(view, old):
        most = server.memory_max if memory else server.store_max
        reserved = server.memory_reserved if memory else server.store_reserved
        stays = old is None or server.peer in old.group.peers
        if stays and 0 <= most < reserved + config.max_bytes:
            raise api_error(_EXCEEDED[memory])


def _check_overlap(view: View, request: ApiRequest, config: StreamConfig) -> None:
    if len(config.subjects) == 1 and not has_wildcard(only := config.subjects[0].encode()):
        # As most streams have it: then two ways down what others listen on tell that.
        if not view.meta.listening(request.account, only) <= {config.name}:
            raise api_error("JSStreamSubjectOverlapErr")
        return
    subjects = PatternSet(subject.encode() for subject in config.subjects)
    try:
        if view.meta.is_taken(request.account, subjects, config.name):
            raise api_error("JSStreamSubjectOverlapErr")
    except Tangled:
        raise invalid(TANGLED) from None


def check_size(view: View, request: ApiRequest, config: StreamConfig) -> None:
    """A stream may have to name a maximum of bytes, and not too large a one. Raises ApiError."""
    quota = view.account(request.account)
    limits = None if quota is None else quota.maybe_limits(config.num_replicas)
    if limits is None:
        return
    if limits.bytes_required and config.max_bytes <= 0:
        raise api_error("JSStreamMaxBytesRequired")
    if 0 < limits.stream_bytes_max(memory=_in_memory(config)) < config.max_bytes:
        raise api_error("JSStreamMaxStreamBytesExceeded")


def _check_limits(
    view: View, request: ApiRequest, config: StreamConfig, *, stored: bool = True
) -> None:
    """Limits of the account, for a stream that is to be, or is to have more replicas; bytes only
    if it is known how they are `stored`. Raises ApiError."""
    quota = view.account(request.account)
    if quota is None:
        return
    limits = quota.limits(config.num_replicas)
    if 0 < limits.streams_max <= _others_count(view, quota, config):
        raise api_error("JSMaximumStreamsLimitErr")
    # Who names no maximum needs something all the same.
    _check_bytes(view, quota, limits, config, max(config.max_bytes, 1) if stored else -1)


def check_change(view: View, account: str, config: StreamConfig, old: StreamAssignment) -> None:
    """The same for a stream that is there. Raises ApiError."""
    quota = view.account(account)
    if quota is None:
        return
    # Whether it may have other replicas is looked at when all else is right.
    limits = quota.maybe_limits(config.num_replicas) or quota.limits(old.config.num_replicas)
    _check_bytes(view, quota, limits, config, max(config.max_bytes, 0))


def _check_scaling(view: View, request: ApiRequest, config: StreamConfig, *, grows: bool) -> None:
    """Whether a stream may have other replicas: more of them only as a new one. Raises ApiError."""
    quota = view.account(request.account)
    if grows:
        _check_limits(view, request, config)
    elif quota is not None:
        quota.limits(config.num_replicas)


def _check_bytes(
    view: View, quota: AccountQuota, limits: TierLimits, config: StreamConfig, size: int
) -> None:
    """Whether what counts against the same limits leaves room for `size`, and the stream wants no
    more consumers than the account may have. Limits may be lower than what others reserve since
    they were: then there is no room for anything, not even none. Below 0 nothing is looked at.
    Raises ApiError."""
    if 0 < limits.consumers_max < config.max_consumers:
        raise api_error("JSMaximumConsumersLimitErr")
    memory = _in_memory(config)
    most = limits.bytes_max(memory=memory)
    if most < 0 or size < 0:
        return
    reserved = sum(
        limits.reserved(other.max_bytes, other.num_replicas)
        for other in _others(view, quota, config)
        if other.storage is config.storage
    )
    if reserved + limits.reserved(size, config.num_replicas) > most:
        raise api_error(_EXCEEDED[memory])


def _others(view: View, quota: AccountQuota, config: StreamConfig) -> list[StreamConfig]:
    """Other streams of the account that count against the same limits as one with this config."""
    tier = quota.tier(config.num_replicas)
    return [
        other.config
        for other in view.meta.streams(quota.name).values()
        if other.name != config.name and quota.tier(other.config.num_replicas) == tier
    ]


def _others_count(view: View, quota: AccountQuota, config: StreamConfig) -> int:
    if quota.tiered:
        return len(_others(view, quota, config))
    known = view.meta.stream(quota.name, config.name)
    return view.meta.stream_count(quota.name) - (known is not None)


def _in_memory(config: StreamConfig) -> bool:
    return config.storage is Storage.MEMORY


def delete(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.DELETE.<stream>"""
    expect_empty(request)
    found = existing(view, request.account, names[0])
    consumers = view.meta.consumers(found.account, found.name).values()
    entry = remove_stream(found.account, found.name)
    return ProposeMeta([entry], success("stream_delete"), [found, *consumers])


def info(view: View, request: ApiRequest, names: tuple[str, ...]) -> Decision:
    """STREAM.INFO.<stream>"""
    body = parsed_maybe(StreamInfoRequest, request)
    found = existing(view, request.account, names[0])
    stream = view.stream(found.account, found.name)
    if stream is None:
        return Silent()
    subjects_filter, asked = body.subjects_filter.encode(), max(body.page.offset, 0)
    total, subjects = 0, dict[str, int]()
    if subjects_filter:
        total, subjects = stream.subjects_page(subjects_filter, asked)
    shown = stream_info(
        view,
        found,
        stream,
        subjects=subjects,
        deleted_details=body.deleted_details,
    )
    shown = replace(shown, alternates=_alternates(view, found))
    group = view.group(found.group.name)
    if shown.cluster is not None and group is not None:
        # A leaf node alone is a cluster of its own, of which only this answer tells.
        shown = replace(shown, cluster=replace(shown.cluster, name=group.cluster))
    page = ApiPaged()
    if total:
        page = ApiPaged(total=total, offset=asked, limit=SUBJECTS_PER_PAGE)
    return Reply(dumps(StreamInfoResponse(head=head("stream_info"), page=page, info=shown)))


def _alternates(view: View, found: StreamAssignment) -> tuple[StreamAlternate, ...]:
    """A stream and its mirrors, where clients may read the same; nothing if it has none."""
    names = view.meta.mirrors(found.account, found.name) if view.clustered else []
    streams = [found, *(view.meta.stream(found.account, name) for name in names)]
    return tuple(
        StreamAlternate(name=one.name, domain=view.domain, cluster=one.group.cluster)
        for one in streams
        if one is not None and names
    )


def stream_info(
    view: View,
    found: StreamAssignment,
    stream: Stream,
    *,
    subjects: dict[str, int] | None = None,
    deleted_details: bool = False,
    bare: bool = False,
) -> StreamInfo:
    """A stream as its own replica here tells it. `bare`: with the config as it is stored."""
    consumers = view.meta.consumer_count(found.account, found.name)
    config = found.config
    upstreams = view.upstreams(found.account, found.name)
    return StreamInfo(
        config=config if bare else replace(config, metadata=shown_metadata(config.metadata)),
        created=format_time(found.created_ns),
        state=stream.info_state(
            subjects=subjects,
            deleted_details=deleted_details,
            consumers=consumers,
        ),
        domain=view.domain,
        cluster=cluster_info(view, found.group),
        mirror=upstreams[0] if upstreams and config.mirror is not None else None,
        sources=() if config.mirror is not None else tuple(upstreams),
        ts=format_time(view.now_ns),
        damage=view.damage(found.group),
    )


def create_response(view: View, assignment: StreamAssignment, stream: Stream) -> bytes:
    """What the stream's leader answers to the request named in the assignment."""
    kind, config = _kind(assignment), assignment.config
    shown = STREAMS.text_with(config, shown_metadata(config.metadata))
    is_create, clustered = kind == "stream_create", view.clustered
    info = info_text(
        view,
        assignment,
        stream,
        begun(shown, assignment.created_ns),
        view.upstreams(assignment.account, assignment.name),
        # A server alone tells it of what is there already.
        domain="" if is_create or clustered else view.domain,
        cluster=group_text(view, assignment.group) if clustered else "",
    )
    # A server alone says so of a stream that it has already, too.
    is_new = assignment.revision == FIRST_REVISION or not clustered
    made = is_create and is_new and not _is_restored(assignment)
    did_create = ',"did_create":true' if made else ""
    return f'{{"type":"{kind_type(kind)}",{info[1:-1]}{did_create}}}'.encode("utf-8", "replace")


def _is_restored(assignment: StreamAssignment) -> bool:
    request = assignment.request
    return request is not None and b".STREAM.RESTORE." in request.subject


def _kind(assignment: StreamAssignment) -> str:
    """The type of the answer to the request that an assignment names."""
    request = assignment.request
    made_by = (b".STREAM.CREATE.", b".STREAM.RESTORE.")
    if request is None or any(words in request.subject for words in made_by):
        return "stream_create"
    return "stream_cancel_move" if b".STREAM.CANCEL_MOVE." in request.subject else "stream_update"
