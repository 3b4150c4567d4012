"""A consumer as clients see it, and the answers that carry it."""

from typing import Protocol

from jsctl.api.cluster import ClusterInfo, PeerInfo
from jsctl.api.codec import dumps
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo, PriorityGroupState, SequenceInfo
from jsctl.api.errors import ApiError
from jsctl.api.fields import ZERO_TIME
from jsctl.api.responses import (
    ApiResponse,
    ConsumerPauseResponse,
    ConsumerResetResponse,
)
from jsctl.api.times import format_time
from jsctl.broker.handlers.told.consumer_texts import begun, info_text, standing
from jsctl.broker.handlers.told.words import cluster_text, leader_text
from jsctl.broker.handlers.view import GroupView, View
from jsctl.broker.jetstream.config_texts import CONSUMERS
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.options import COMPATIBLE_API_LEVEL, COMPATIBLE_VERSION
from jsctl.dataclass import replace

TYPE_PREFIX = "io.nats.jetstream.api.v1."
_ABOUT = {"_nats.ver": COMPATIBLE_VERSION, "_nats.level": str(COMPATIBLE_API_LEVEL)}


class ConsumersView(View, Protocol):
    """What consumer handlers see beyond other handlers."""

    def consumer_leader(self, account: str, stream: str, name: str) -> ConsumerLeader | None:
        """The leading side, if this server leads the consumer."""

    def wake_consumer(self, account: str, stream: str, name: str) -> None:
        """Give the leading side a turn: somebody may wait for what was changed."""


def head(kind: str, error: ApiError | None = None) -> ApiResponse:
    """What an answer of a kind, e.g. `consumer_create`, starts with."""
    body = None if error is None else error.body()
    return ApiResponse(type=f"{TYPE_PREFIX}{kind}_response", error=body)


def shown_config(config: ConsumerConfig) -> ConsumerConfig:
    """The config with what the server tells about itself."""
    return replace(config, metadata=dict(sorted({**config.metadata, **_ABOUT}.items())))


def cluster_info(group: GroupView | None, me: str) -> ClusterInfo:
    """The group of a consumer; a server on its own is its leader."""
    if group is None:
        return ClusterInfo(leader=me)
    if not group.replicas:
        return ClusterInfo(name=group.cluster, leader=group.leader)
    return ClusterInfo(
        name=group.cluster,
        raft_group=group.name if group.cluster else "",
        leader=group.leader,
        leader_since=format_time(group.leader_since_ns) if group.leader_since_ns else "",
        system_account=bool(group.cluster),
        traffic_account=group.traffic_account if group.cluster else "",
        replicas=tuple(
            PeerInfo(
                name=one.name,
                current=one.current,
                offline=one.offline,
                active=one.active_ns,
                lag=one.lag,
                peer=one.peer,
                pending=one.pending,
            )
            for one in group.replicas
        ),
    )


def _position(seq: int, stream_seq: int, last_ns: int) -> SequenceInfo:
    last = format_time(last_ns) if last_ns else ""
    return SequenceInfo(consumer_seq=seq, stream_seq=stream_seq, last_active=last)


def _groups(
    config: ConsumerConfig, leader: ConsumerLeader | None
) -> tuple[PriorityGroupState, ...]:
    if not config.priority_groups:
        return ()
    pull = None if leader is None else leader.pull
    pin = "" if pull is None else pull.pin
    since = format_time(pull.pinned_ns) if pull is not None and pull.pinned_ns else ZERO_TIME
    group = config.priority_groups[0]
    return (PriorityGroupState(group=group, pinned_client_id=pin, pinned_ts=since),)


def consumer_info(
    view: View,
    consumer: Consumer,
    leader: ConsumerLeader | None,
    group: GroupView | None,
    *,
    bare: bool = False,
) -> ConsumerInfo:
    """The consumer now. `bare`: with the config as it is stored."""
    found, config, now = standing(consumer, leader, group), consumer.config, view.now_ns
    state, paused = found.state, consumer.pause_until_ns > now
    floor = found.floor_stream
    return ConsumerInfo(
        stream_name=consumer.stream,
        name=consumer.name,
        created=format_time(consumer.created_ns),
        config=config if bare else shown_config(config),
        delivered=_position(state.delivered_seq, state.delivered_stream, state.delivered_last_ns),
        ack_floor=_position(state.floor_seq, floor, state.floor_last_ns),
        num_ack_pending=len(state.pending),
        num_redelivered=0 if config.max_deliver == 1 else len(state.redelivered),
        num_waiting=found.waiting,
        num_pending=found.pending,
        cluster=cluster_info(group, view.server_name) if view.clustered else None,
        push_bound=found.bound,
        paused=paused,
        pause_remaining=consumer.pause_until_ns - now if paused else 0,
        ts=format_time(now),
        priority_groups=_groups(config, leader),
    )


def consumer_text(
    view: View,
    consumer: Consumer,
    leader: ConsumerLeader | None,
    group: GroupView | None,
    begins: str,
) -> str:
    """The same as JSON; see `told`. `begins` has the config."""
    cluster = ""
    if view.clustered:
        info = cluster_info(group, view.server_name)
        plain = not info.replicas
        cluster = leader_text(info.name, info.leader) if plain else cluster_text(info)
    return info_text(
        consumer,
        standing(consumer, leader, group),
        begins,
        view.now_ns,
        cluster=cluster,
        groups=_groups(consumer.config, leader),
    )


def shown_begin(consumer: Consumer) -> str:
    """What an answer about one consumer begins with: the server tells of itself."""
    config = consumer.config
    return begun(consumer, CONSUMERS.text_with(config, {**config.metadata, **_ABOUT}))


def _response(kind: str, info: str) -> bytes:
    return f'{{"type":"{TYPE_PREFIX}{kind}_response",{info[1:]}'.encode("utf-8", "replace")


def served_response(
    view: View,
    request: ApiRequest,
    consumer: Consumer,
    leader: ConsumerLeader | None,
    group: GroupView | None,
) -> bytes:
    """What the consumer's leader answers to the request that made or changed the consumer."""
    if b".CONSUMER.PAUSE." in request.subject:
        return _pause_response(view, consumer)
    info = consumer_text(view, consumer, leader, group, shown_begin(consumer))
    return _response("consumer_create", info)


def _pause_response(view: View, consumer: Consumer) -> bytes:
    left = max(0, consumer.pause_until_ns - view.now_ns)
    return dumps(
        ConsumerPauseResponse(
            head=head("consumer_pause"),
            paused=left > 0,
            pause_until=format_time(consumer.pause_until_ns),
            pause_remaining=left,
        )
    )


def info_response(
    view: View, consumer: Consumer, leader: ConsumerLeader | None, group: GroupView | None
) -> bytes:
    """The answer to `CONSUMER.INFO`."""
    info = consumer_text(view, consumer, leader, group, shown_begin(consumer))
    return _response("consumer_info", info)


def reset_response(
    view: View,
    consumer: Consumer,
    leader: ConsumerLeader | None,
    group: GroupView | None,
    first: int,
) -> bytes:
    """The answer to `CONSUMER.RESET`, once the reset is applied."""
    info = consumer_info(view, consumer, leader, group)
    return dumps(ConsumerResetResponse(head=head("consumer_reset"), info=info, reset_seq=first))
