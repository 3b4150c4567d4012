"""What is told of streams and consumers counts what was published before it was asked for.

A publisher that wants no acknowledgements, and whose ping was answered, asks how many messages a
consumer has before it: they may be on their way to the disk yet. So an answer waits until the
streams that it is about, as far as this server leads them, have applied what they have by then.
In the same way the info of a stream that lets go of what was consumed waits for the consumers that
are led here, too: each acknowledgement is an entry of its consumer, and then one of the stream.
"""

from collections.abc import Callable, Iterable
from dataclasses import field

from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.jsapi.live_view import ApiView
from jsctl.broker.raft.types import Index
from jsctl.broker.replication.group import RaftGroup
from jsctl.dataclass import dataclass

WAIT_NS = 2_000_000_000
"""A stream that has not applied it by then is told of as it is."""
WAITING_MAX = 10_000
"""Answers that wait; more are given at once."""


@dataclass(slots=True)
class _Wait:
    """An answer, and how far which groups have to be for it."""

    then: Callable[[], None]
    behind: list[tuple[RaftGroup, Index]]
    until_ns: int

    def is_over(self, now_ns: int) -> bool:
        """Whether all have come so far, or lead no more: then nobody knows whether they will."""
        self.behind = [
            (group, index)
            for group, index in self.behind
            if group.leading and group.raft.applied < index
        ]
        return not self.behind or now_ns >= self.until_ns


@dataclass(slots=True)
class Settling:
    """See the module."""

    view: ApiView
    engine: Engine
    waiting: list[_Wait] = field(default_factory=list)
    """In the order in which they were asked for. Only changed here."""

    def behind(self, account: str, streams: Iterable[str], then: Callable[[], None]) -> None:
        """Call `then` as soon as these streams have applied what they have now; at once if they
        have, or are led elsewhere."""
        behind: list[tuple[RaftGroup, Index]] = []
        for name in streams:
            replica = self.view.stream_replica(account, name)
            if replica is None or replica.leading is None:
                continue
            if replica.leading.has_captured:
                replica.leading.admit()
            raft = replica.group.raft
            if raft.applied < raft.last_index:
                behind.append((replica.group, raft.last_index))
        if behind:
            self._wait(behind, then)
        else:
            then()

    def consumed(self, stream: StreamReplica, then: Callable[[], None]) -> None:
        """Call `then` as soon as the stream's log has the removal of what is acknowledged by now;
        at once if nothing is."""
        names = stream.watchers if stream.takes_away else ()
        consumers = [
            one
            for name in names
            if (one := self.view.consumer_replica(*stream.key, name)) and one.leader is not None
        ]
        if not any(map(_has_more, consumers)):
            then()
            return

        def taken() -> None:
            behind = [(one.group, one.group.raft.last_index) for one in consumers]
            self._wait(behind, applied)

        def applied() -> None:
            self._wait([], then)  # The stream has heard of it, and goes on before the next look.

        self._wait([], taken)

    def removed(self, account: str, name: str, then: Callable[[], None]) -> None:
        """Call `then` as soon as a stream has let go of what nobody wants of what it has now; at
        once if it lets go of nothing, or is led elsewhere."""
        stream = self.view.stream_replica(account, name)
        if stream is None or stream.leading is None or not stream.takes_away:
            then()
            return
        stream.leading.settle_consumed()
        self.behind(account, (name,), then)

    def _wait(self, behind: list[tuple[RaftGroup, Index]], then: Callable[[], None]) -> None:
        """Until the next look at least."""
        if len(self.waiting) < WAITING_MAX:
            self.waiting.append(_Wait(then, behind, self.view.now_ns + WAIT_NS))
        else:
            then()

    def look(self) -> bool:
        """Give the answers that need not wait any more; whether there were any."""
        now_ns, over = self.view.now_ns, list[_Wait]()
        asked, self.waiting = self.waiting, []
        for one in asked:
            (over if one.is_over(now_ns) else self.waiting).append(one)
        for one in over:
            one.then()
        return bool(over)

    def next_due_ns(self) -> int | None:
        """When the first one has waited long enough."""
        return self.waiting[0].until_ns if self.waiting else None


def _has_more(consumer: ConsumerReplica) -> bool:
    """Whether something is acknowledged that it has not applied."""
    raft = consumer.group.raft
    return bool(consumer.acks.messages) or raft.applied < raft.last_index
