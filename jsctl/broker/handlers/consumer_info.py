"""A consumer as clients see it, and the answers that carry it."""

from typing import Protocol

from jsctl.api.cluster import ClusterInfo, PeerInfo
from jsctl.api.codec import dumps
from jsctl.api.consumer import ConsumerConfig, ConsumerInfo, PriorityGroupState, SequenceInfo
from jsctl.api.errors import ApiError
from jsctl.api.fields import ZERO_TIME
from jsctl.api.responses import (
    ApiResponse,
    ConsumerInfoResponse,
    ConsumerPauseResponse,
    ConsumerResetResponse,
)
from jsctl.api.times import format_time
from jsctl.broker.handlers.view import GroupView, View
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.options import COMPATIBLE_API_LEVEL, COMPATIBLE_VERSION
from jsctl.dataclass import replace

TYPE_PREFIX = "io.nats.jetstream.api.v1."


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
    about = {"_nats.ver": COMPATIBLE_VERSION, "_nats.level": str(COMPATIBLE_API_LEVEL)}
    return replace(config, metadata=dict(sorted({**config.metadata, **about}.items())))


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
    view: View, consumer: Consumer, leader: ConsumerLeader | None, group: GroupView | None
) -> ConsumerInfo:
    """The consumer now. Waiting pulls and pending messages are known to the leader only, and
    so is what it did a moment ago: clients may have seen a delivery that is not committed."""
    state, config, now = consumer.state, consumer.config, view.now_ns
    paused = consumer.pause_until_ns > now
    waiting = pending = 0
    bound = False
    if leader is not None:
        state = leader.state
        pending = leader.delivery.num_pending
        waiting = 0 if leader.pull is None else leader.pull.prune()
        bound = leader.push is not None and leader.push.wanted()
    floor = state.floor_stream
    if group is not None and group.replicas and _is_untouched(consumer, state):
        floor = 0
    return ConsumerInfo(
        stream_name=consumer.stream,
        name=consumer.name,
        created=format_time(consumer.created_ns),
        config=shown_config(config),
        delivered=_position(state.delivered_seq, state.delivered_stream, state.delivered_last_ns),
        ack_floor=_position(state.floor_seq, floor, state.floor_last_ns),
        num_ack_pending=len(state.pending),
        num_redelivered=0 if config.max_deliver == 1 else len(state.redelivered),
        num_waiting=waiting,
        num_pending=pending,
        cluster=cluster_info(group, view.server_name) if view.clustered else None,
        push_bound=bound,
        paused=paused,
        pause_remaining=consumer.pause_until_ns - now if paused else 0,
        ts=format_time(now),
        priority_groups=_groups(config, leader),
    )


def _is_untouched(consumer: Consumer, state: ConsumerState) -> bool:
    """Whether nothing was ever acknowledged, or delivered where that is all: replicated consumers
    tell no place in the stream until then, whatever they start with."""
    return not state.floor_seq and not consumer.epoch


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
    info = consumer_info(view, consumer, leader, group)
    return dumps(ConsumerInfoResponse(head=head("consumer_create"), info=info))


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
    info = consumer_info(view, consumer, leader, group)
    return dumps(ConsumerInfoResponse(head=head("consumer_info"), info=info))


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
