"""Where a purge of the stream leaves a consumer: nothing that was purged is waited for."""

from jsctl.broker.jetstream.consumers.consumer import Consumer, filters_of
from jsctl.broker.jetstream.consumers.delivery import ConsumerDelivery
from jsctl.broker.store.contents import Contents
from jsctl.broker.subject.matching import Filters, subset


def left_before(consumer: Consumer, store: Contents, pattern: bytes) -> int | None:
    """Behind a purge of a pattern (empty: of all), the sequence up to which nothing is there for
    the consumer. None: it has nothing to do with what was purged."""
    wanted = [one.encode() for one in filters_of(consumer.config)]
    if not pattern:
        return store.first_seq - 1
    if wanted and all(subset(one, pattern) for one in wanted):
        first = store.first_matching(Filters((pattern,)))
        return store.last_seq if first is None else first - 1
    if not wanted or any(subset(pattern, one) for one in wanted):
        return store.first_seq - 1
    return None


def follow(delivery: ConsumerDelivery, up_to: int) -> None:
    """Move a consumer behind a purge."""
    state = delivery.progress.state
    if not state.started or state.last_seqs:
        return
    gone = [seq for seq in state.pending if seq > up_to and delivery.is_gone(seq)]
    if up_to > state.delivered_stream or state.floor_stream <= up_to:
        delivery.progress.move(up_to, gone)
        delivery.redelivery.trim(state)
        delivery.cursor = max(delivery.cursor, state.next_stream)
        delivery.forget_count()
