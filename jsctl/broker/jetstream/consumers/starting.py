"""Where a new consumer starts in its stream."""

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.times import parse_time
from jsctl.api.words import DeliverPolicy
from jsctl.broker.jetstream.consumers.chosen import Chosen
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.entries import ConsumerProgress
from jsctl.broker.store.contents import Contents
from jsctl.broker.store.views import newest
from jsctl.broker.store.views.newest import NewestOfEach
from jsctl.broker.subject.matching import Filters

_ALIKE = (DeliverPolicy.ALL, DeliverPolicy.BY_START_SEQUENCE, DeliverPolicy.BY_START_TIME)


class Choice:
    """Where a consumer starts: a choice that may take a while, as the newest message of each of
    very many subjects is looked for a portion at a time."""

    __slots__ = ("_config", "_filters", "gone", "search", "store")

    def __init__(self, consumer: Consumer, store: Contents) -> None:
        self.store = store
        self._config, self._filters = consumer.config, consumer.filters
        self.search: NewestOfEach | None = None
        if consumer.config.deliver_policy is DeliverPolicy.LAST_PER_SUBJECT:
            self.search = store.newest_of_each(consumer.filters)
        self.gone: set[int] = set()
        """What was removed since it began."""

    def step(self) -> bool:
        """Go on with it; whether it is made."""
        return self.search is None or self.search.step()

    def write(self, progress: ConsumerProgress) -> None:
        """Have the consumer start there."""
        search = self.search
        if search is not None:
            first = search.found[0] if search.found else max(search.up_to, self.store.first_seq)
            progress.start(max(1, first), search.up_to, Chosen(search.shared))
            return
        first = _first(self._config, self._filters, self.store)
        if self._config.opt_start_seq:
            first = max(first, self.store.first_seq, 1)
        else:
            first = max(1, self.store.first_seq, min(first, self.store.last_seq + 1))
        progress.start(first, 0, ())


def takes_long(consumer: Consumer, store: Contents) -> bool:
    """Whether the choice may take more than a step, or a step that takes long."""
    policy, filters = consumer.config.deliver_policy, consumer.filters
    each = policy is DeliverPolicy.LAST_PER_SUBJECT
    last = policy is DeliverPolicy.LAST and bool(filters.wildcards) and not filters.is_all
    return (each or last) and store.subject_count > newest.SHORT


def begin(progress: ConsumerProgress, consumer: Consumer, store: Contents) -> bool:
    """Choose where a consumer starts and write it down, if that was never done."""
    if progress.state.started:
        return False
    choice = Choice(consumer, store)
    while not choice.step():
        pass
    choice.write(progress)
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
        found = (store.last_for(pattern) for pattern in filters.patterns)
        return max((seq for seq in found if seq is not None), default=0)
    return store.first_seq
