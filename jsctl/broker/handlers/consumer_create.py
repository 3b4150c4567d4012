"""CONSUMER.CREATE in its forms: names, rules, limits, peers, and the assignment that follows.

The meta leader decides; the consumer's leader answers (`consumer_info.served_response`) once
the consumer stands. An update is the same assignment with another config and request.
"""

from collections.abc import Iterable

from jsctl.api.codec import DecodeError, loads
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import api_error
from jsctl.api.requests import ConsumerCreateRequest
from jsctl.api.subjects import ApiCall
from jsctl.api.times import format_time, parse_time
from jsctl.api.words import ConsumerAction, Retention, Storage
from jsctl.broker.handlers import sourcing_consumers
from jsctl.broker.handlers.answers import check_level
from jsctl.broker.handlers.decisions import Decision, ProposeMeta
from jsctl.broker.handlers.placing import incarnations, standings
from jsctl.broker.handlers.view import View
from jsctl.broker.jetstream.consumers import config as rules
from jsctl.broker.jetstream.consumers.defaults import ConsumerLimits, with_defaults
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    GroupAssignment,
    StreamAssignment,
)
from jsctl.broker.jetstream.meta.entries import assign_consumer
from jsctl.broker.jetstream.meta.placement import ServerFacts, scale_down
from jsctl.broker.jetstream.quotas import TierLimits
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.dataclass import replace

NAME_LENGTH = 8
_FREE = TierLimits()


def create(view: View, request: ApiRequest, call: ApiCall) -> Decision:
    """CONSUMER.CREATE and CONSUMER.DURABLE.CREATE. Raises ApiError."""
    try:
        asked = loads(ConsumerCreateRequest, request.payload, strict=True)
    except DecodeError as error:
        raise api_error("JSInvalidJSONErr", err=error) from None
    check_level(request)
    config = _named(asked, call)
    if not view.clustered and config.num_replicas > 1:
        raise api_error("JSStreamReplicasNotSupportedErr")
    stream = view.meta.stream(request.account, asked.stream_name)
    if stream is None:
        raise api_error("JSStreamNotFoundErr")
    tier = _tier(view, stream, config)
    limits = _limits(view, tier)
    config = sourcing_consumers.adapted(config, stream.config)
    sourcing_consumers.check_identity(request, config, stream)
    old = view.meta.consumer(request.account, stream.name, config.name) if config.name else None
    if old is not None:
        # A pause is changed by a request of its own.
        config = replace(config, pause_until=old.config.pause_until)
        config = sourcing_consumers.continued(old.config, config)
    if config.pause_until:
        config = replace(config, pause_until=format_time(parse_time(config.pause_until)))
    config = rules.with_level(config)
    previous = None if old is None else old.config
    config = with_defaults(
        config, stream.config, limits, pedantic=asked.pedantic, previous=previous
    )
    rules.check(config, stream.config, limits)
    if sourcing_consumers.is_direct(config, stream.config):
        return sourcing_consumers.create(view, request, stream, config)
    if old is not None:
        if asked.action is ConsumerAction.CREATE and _never_same(asked.config, stream):
            raise api_error("JSConsumerAlreadyExists")
        made = _updated(view, request, stream, old, config, asked.action)
    else:
        made = _created(view, request, stream, config, asked.action, tier)
    return ProposeMeta([assign_consumer(made)], None)


def _named(asked: ConsumerCreateRequest, call: ApiCall) -> ConsumerConfig:
    """The config with its name, as the subject and the body together have it."""
    config = asked.config
    durable = call.operation == "consumer_create_durable"
    legacy = not durable and not call.consumer
    name = config.name if legacy else call.consumer
    if call.stream != asked.stream_name:
        raise api_error("JSStreamMismatchErr")
    if "\\" in name or "/" in name:
        raise api_error("JSConsumerNameContainsPathSeparatorsErr")
    if durable and not config.durable_name:
        raise api_error("JSConsumerDurableNameNotSetErr")
    if not legacy and config.durable_name and name != config.durable_name:
        raise api_error("JSConsumerDurableNameNotMatchSubjectErr")
    if legacy and config.durable_name:
        raise api_error("JSConsumerEphemeralWithDurableNameErr")
    if call.rest and config.filter_subjects:
        raise api_error("JSConsumerMultipleFiltersNotAllowed")
    if call.rest and config.filter_subject != call.rest:
        raise api_error("JSConsumerCreateFilterSubjectMismatchErr")
    return config if name == config.name else replace(config, name=name)


def _tier(view: View, stream: StreamAssignment, config: ConsumerConfig) -> TierLimits:
    """What the account may have of consumers with as many replicas. Raises ApiError."""
    quota = view.account(stream.account)
    if quota is None:
        return _FREE
    return quota.limits(rules.replicas_of(config, stream.config))


def _limits(view: View, tier: TierLimits) -> ConsumerLimits:
    return ConsumerLimits(
        server_ack_pending_max=view.config_limits.ack_pending_max,
        account_ack_pending_max=tier.ack_pending_max,
        request_batch_max=view.config_limits.request_batch_max,
    )


def _never_same(asked: ConsumerConfig, stream: StreamAssignment) -> bool:
    """Whether no consumer that exists is the one that is to be created.

    nats-server compares before it fills in how long an ephemeral one may be unused. Clients that
    create one by its name count on it: who comes second is told.
    """
    given = asked.inactive_threshold > 0 or stream.config.consumer_limits.inactive_threshold > 0
    return not (asked.durable_name or given)


def _updated(
    view: View,
    request: ApiRequest,
    stream: StreamAssignment,
    old: ConsumerAssignment,
    config: ConsumerConfig,
    action: ConsumerAction,
) -> ConsumerAssignment:
    if action is ConsumerAction.CREATE and not rules.same(old.config, config):
        raise api_error("JSConsumerAlreadyExists")
    if stream.config.retention is Retention.WORK_QUEUE:
        others = view.meta.consumers(request.account, stream.name).values()
        beside = [other.config for other in others if other.name != old.name]
        rules.TakenSubjects(beside).check(config, exists=True)
    subject = old.config.deliver_subject.encode()
    bound = bool(subject) and view.has_interest(request.account, subject)
    rules.check_update(old.config, config, bound=bound)
    return replace(
        old,
        config=config,
        group=_regrouped(view, stream, old.group, rules.replicas_of(config, stream.config)),
        client=request.client,
        request=request,
        revision=old.revision + (old.config != config),
    )


def _created(
    view: View,
    request: ApiRequest,
    stream: StreamAssignment,
    config: ConsumerConfig,
    action: ConsumerAction,
    tier: TierLimits,
) -> ConsumerAssignment:
    if action is ConsumerAction.UPDATE:
        raise api_error("JSConsumerDoesNotExist")
    meta, work_queue = view.meta, stream.config.retention is Retention.WORK_QUEUE
    default = view.config_limits.consumers_default_max
    most = consumers_max(stream, tier, default)
    if work_queue or 0 <= most <= meta.consumer_count(request.account, stream.name):
        others = [other.config for other in meta.consumers(request.account, stream.name).values()]
        counted = [other for other in others if not other.direct and not other.sourcing]
        if _is_full(stream, tier, default, counted):
            raise api_error("JSMaximumConsumersLimitErr")
        if work_queue:
            rules.TakenSubjects(counted).check(config, exists=False)
    rules.check_length(config.name)
    name = config.name
    while not name or (not config.name and meta.consumer(request.account, stream.name, name)):
        name = view.new_name(NAME_LENGTH)
    return ConsumerAssignment(
        account=request.account,
        stream=stream.name,
        name=name,
        config=config,
        group=_group(view, stream, config),
        created_ns=view.now_ns,
        client=request.client,
        request=request,
    )


def _is_full(
    stream: StreamAssignment, tier: TierLimits, default: int, counted: list[ConsumerConfig]
) -> bool:
    """Whether there may be no more beside `counted`: a stream has one limit for all of them, an
    account one for those in the same tier."""
    alike = [one for one in counted if tier.covers(rules.replicas_of(one, stream.config))]
    if 0 < tier.consumers_max <= len(alike):
        return True
    return 0 <= own_consumers_max(stream, tier, default) <= len(counted)


def consumers_max(stream: StreamAssignment, tier: TierLimits, default: int) -> int:
    """The lowest limit that a stream's next consumer may meet; below 0: there is none."""
    own = own_consumers_max(stream, tier, default)
    if tier.consumers_max <= 0:
        return own
    return tier.consumers_max if own < 0 else min(own, tier.consumers_max)


def own_consumers_max(stream: StreamAssignment, tier: TierLimits, default: int) -> int:
    """How many consumers a stream may have itself, `default` if nobody says; below 0: any
    number."""
    if stream.config.max_consumers > 0:
        return stream.config.max_consumers
    return -1 if tier.consumers_max > 0 else default


def check_restored(view: View, stream: StreamAssignment, configs: Iterable[ConsumerConfig]) -> None:
    """Whether the account may have all consumers that come with a stream. Raises ApiError."""
    by_tier: dict[TierLimits, int] = {}
    for config in configs:
        tier = _tier(view, stream, config)
        by_tier[tier] = by_tier.get(tier, 0) + 1
    if any(0 < tier.consumers_max < count for tier, count in by_tier.items()):
        raise api_error("JSStreamRestoreErrF", err="the archive has too many consumers")


def restored(
    view: View,
    stream: StreamAssignment,
    name: str,
    config: ConsumerConfig,
    taken: rules.TakenSubjects,
) -> tuple[GroupAssignment, ConsumerConfig]:
    """Group and config of a consumer that comes with its stream, which is not assigned yet;
    `taken`: what those before it take, and now this one. Raises ApiError."""
    if "\\" in name or "/" in name:
        raise api_error("JSConsumerNameContainsPathSeparatorsErr")
    rules.check_length(name)
    config = replace(config, name=name)
    if not view.clustered and config.num_replicas > 1:
        raise api_error("JSStreamReplicasNotSupportedErr")
    limits = _limits(view, _tier(view, stream, config))
    config = with_defaults(config, stream.config, limits, pedantic=False)
    rules.check(config, stream.config, limits)
    if stream.config.retention is Retention.WORK_QUEUE:
        taken.check(config, exists=False)
        taken.add(config)
    group = _group(view, stream, config)
    if view.me not in group.peers:
        peers = (view.me, *group.peers[1:])
        lives = incarnations(view.servers(), peers, group.storage)
        group = replace(group, peers=peers, incarnations=lives)
    return group, rules.with_level(config)


# Peers.


def _online(servers: Iterable[ServerFacts], peers: Iterable[str]) -> list[str]:
    up = {server.peer for server in servers if server.online}
    return [peer for peer in peers if peer in up]


def _shuffled(view: View, peers: list[str]) -> list[str]:
    left, made = list(peers), []
    while left:
        made.append(left.pop(view.jitter(len(left))))
    return made


def _group(view: View, stream: StreamAssignment, config: ConsumerConfig) -> GroupAssignment:
    """Peers for a new consumer, from those of its stream. Raises ApiError."""
    peers = list(stream.group.peers)
    count = rules.replicas_of(config, stream.config)
    servers = view.servers()
    online = _online(servers, peers)
    if not peers or count // 2 + 1 > len(online) or config.num_replicas > len(peers):
        raise api_error("JSInsufficientResourcesErr")
    if count < len(peers):
        if len(online) < count:
            raise api_error("JSInsufficientResourcesErr")
        peers = _shuffled(view, online)[:count]
    memory = config.mem_storage or stream.config.storage is Storage.MEMORY
    leaders = [peer for peer in online if peer in peers]
    letter = "M" if memory else "F"
    return GroupAssignment(
        name=f"C-R{len(peers)}{letter}-{view.new_name(NAME_LENGTH)}",
        peers=tuple(peers),
        storage="memory" if memory else "file",
        cluster=stream.group.cluster,
        preferred=leaders[view.jitter(len(leaders))],
        incarnations=incarnations(servers, peers, "memory" if memory else "file"),
        founders=tuple(peers),
    )


def _regrouped(
    view: View, stream: StreamAssignment, group: GroupAssignment, count: int
) -> GroupAssignment:
    """The group with `count` peers: more from the stream's, or fewer around the leader, those that
    are there before others."""
    peers = list(group.peers)
    if count > len(peers):
        spare = [peer for peer in stream.group.peers if peer not in peers]
        if len(peers) + len(spare) < count:
            raise api_error("JSConsumerReplicasExceedsStream")
        online = _online(view.servers(), spare)
        ranked = _shuffled(view, online) + [peer for peer in spare if peer not in online]
        peers += ranked[: count - len(peers)]
    elif count < len(peers):
        leader, known = view.leader_of(group.name), standings(view, group.name)
        peers = list(scale_down(peers, count, known, leader))
    else:
        return group
    gone = tuple(peer for peer in group.peers if peer not in peers)
    fresh = [peer for peer in peers if peer not in group.members]
    return replace(
        group,
        peers=tuple(peers),
        former=(*group.former, *gone),
        incarnations={**group.incarnations, **incarnations(view.servers(), fresh, group.storage)},
    )
