"""Infos of consumers as text; see the package."""

from collections.abc import Sequence

from jsctl.api.consumer import PriorityGroupState
from jsctl.api.times import format_time
from jsctl.broker.handlers.told.words import moment, text_of
from jsctl.broker.handlers.view import GroupView
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class ConsumerStanding:
    """How far a consumer is."""

    state: ConsumerState
    floor_stream: int
    waiting: int
    pending: int
    bound: bool


def standing(
    consumer: Consumer, leader: ConsumerLeader | None, group: GroupView | None
) -> ConsumerStanding:
    """Waiting pulls and pending messages are known to the leader only, and so is what it did a
    moment ago: clients may have seen a delivery that is not committed."""
    state, waiting, pending, bound = consumer.state, 0, 0, False
    if leader is not None:
        state, pending = leader.state, leader.delivery.num_pending
        waiting = 0 if leader.pull is None else leader.pull.prune()
        bound = leader.push is not None and leader.push.wanted()
    floor = state.floor_stream
    if group is not None and group.replicas and _is_untouched(consumer, state):
        floor = 0
    return ConsumerStanding(state, floor, waiting, pending, bound)


def _is_untouched(consumer: Consumer, state: ConsumerState) -> bool:
    """Whether nothing was ever acknowledged, or delivered where that is all: replicated consumers
    tell no place in the stream until then, whatever they start with."""
    return not state.floor_seq and not consumer.epoch


def begun(consumer: Consumer, config: bytes) -> str:
    """What an info begins with, and what of it stays as it is."""
    return (
        f'{{"stream_name":{text_of(consumer.stream)},"name":{text_of(consumer.name)}'
        f',"created":"{format_time(consumer.created_ns)}","config":{config.decode()},"delivered":'
    )


def info_text(
    consumer: Consumer,
    found: ConsumerStanding,
    begins: str,
    now_ns: int,
    *,
    cluster: str,
    groups: Sequence[PriorityGroupState],
) -> str:
    """The whole info; `cluster` is a member of it, see `words`."""
    state, left_ns = found.state, consumer.pause_until_ns - now_ns
    redelivered = 0 if consumer.config.max_deliver == 1 else len(state.redelivered)
    more = f'{cluster},"push_bound":true' if found.bound else cluster
    if left_ns > 0:
        more += f',"paused":true,"pause_remaining":{left_ns}'
    end = f',"priority_groups":[{",".join(map(text_of, groups))}]' if groups else ""
    return (
        f"{begins}{_place(state.delivered_seq, state.delivered_stream, state.delivered_last_ns)}"
        f',"ack_floor":{_place(state.floor_seq, found.floor_stream, state.floor_last_ns)}'
        f',"num_ack_pending":{len(state.pending)},"num_redelivered":{redelivered}'
        f',"num_waiting":{found.waiting},"num_pending":{found.pending}{more}'
        f',"ts":"{moment(now_ns)}"{end}}}'
    )


def _place(seq: int, stream_seq: int, last_ns: int) -> str:
    last = f',"last_active":"{format_time(last_ns)}"' if last_ns else ""
    return f'{{"consumer_seq":{seq},"stream_seq":{stream_seq}{last}}}'
