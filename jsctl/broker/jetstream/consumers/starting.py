"""Where a new consumer starts in its stream."""

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.times import parse_time
from jsctl.api.words import DeliverPolicy
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.entries import ConsumerProgress
from jsctl.broker.options import COMPATIBLE_API_LEVEL
from jsctl.broker.protocol.headers import get
from jsctl.broker.store.contents import Contents
from jsctl.broker.subject.matching import Filters

_ALIKE = (DeliverPolicy.ALL, DeliverPolicy.BY_START_SEQUENCE, DeliverPolicy.BY_START_TIME)


def choose(config: ConsumerConfig, filters: Filters, store: Contents) -> tuple[int, int, list[int]]:
    """The first sequence to deliver; for last per subject also where reading goes on, and
    the sequences that come before that."""
    policy = config.deliver_policy
    if policy is DeliverPolicy.LAST_PER_SUBJECT:
        seqs = store.multi_last(filters)
        first = seqs[0] if seqs else store.last_seq + 1
        return max(1, first), store.last_seq, seqs
    first = _first(config, filters, store)
    if config.opt_start_seq:
        return max(first, store.first_seq, 1), 0, []
    return max(1, store.first_seq, min(first, store.last_seq + 1)), 0, []


def begin(progress: ConsumerProgress, consumer: Consumer, store: Contents) -> bool:
    """Choose where a consumer starts and write it down, if that was never done."""
    if progress.state.started:
        return False
    progress.start(*choose(consumer.config, consumer.filters, store))
    return True


def starts_alike(config: ConsumerConfig) -> bool:
    """Whether messages that the stream took meanwhile change nothing about where to start."""
    return config.deliver_policy in _ALIKE


def _first(config: ConsumerConfig, filters: Filters, store: Contents) -> int:
    policy = config.deliver_policy
    if policy is DeliverPolicy.BY_START_SEQUENCE:
        return config.opt_start_seq
    if policy is DeliverPolicy.BY_START_TIME:
        return store.seq_at_time(parse_time(config.opt_start_time))
    if policy is DeliverPolicy.NEW:
        return store.last_seq + 1
    if policy is DeliverPolicy.LAST:
        if filters.is_all:
            return store.last_seq  # even if that message is gone
        newest = (store.last_for(pattern) for pattern in filters.patterns)
        return max((seq for seq in newest if seq is not None), default=0)
    return store.first_seq


def level_exceeded(headers: bytes) -> bool:
    """Whether a request needs an API level that this server does not have."""
    level = get(headers, b"Nats-Required-Api-Level")
    if level is None:
        return False
    return not level.isdigit() or int(level) > COMPATIBLE_API_LEVEL
