"""Work-queue and interest streams: messages that consumers are done with, on their way out.

The leader removes them by an entry of the stream's log. Who is told that an ack counts is told
when the message is gone.
"""

from collections.abc import Iterable
from dataclasses import field
from itertools import chain

from jsctl.api.words import Retention
from jsctl.broker.assets.replicas.interests import Interests
from jsctl.broker.assets.replicas.stored_stream import StoredStream
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.dataclass import dataclass

LOOKED_THROUGH = 1_024
"""So many finished messages are kept, or twice as many as were there still at the last look, before
it is looked which of them are gone."""


class FinishedWork:
    """What consumers of a work queue are done with, on each replica, until it is gone.

    A consumer may be deleted, and another one of its name be made, before the stream's log has the
    removal: its leader may die with it. Whoever leads next knows from here that it was done.
    """

    __slots__ = ("_look", "_stored", "seqs")

    def __init__(self, stored: StoredStream) -> None:
        self._stored = stored
        self._look = LOOKED_THROUGH
        self.seqs: set[int] = set()

    def add(self, seqs: Iterable[int]) -> None:
        """Some consumer is done with these."""
        stream = self._stored.stream
        if stream.config.retention is not Retention.WORK_QUEUE:
            return
        self.seqs.update(seqs)
        if len(self.seqs) >= self._look:
            self.look_through()

    def look_through(self) -> None:
        """Forget what is gone. What is not applied here yet may have been delivered by others."""
        store = self._stored.stream.store
        self._keep({seq for seq in self.seqs if seq > store.last_seq or store.is_live(seq)})

    def settle(self) -> None:
        """All is applied that others may have delivered: what is not there is gone, or was never
        stored, as others were lost with it."""
        self._keep(set(filter(self._stored.stream.store.is_live, self.seqs)))

    def _keep(self, left: set[int]) -> None:
        self.seqs = left
        self._look = max(LOOKED_THROUGH, 2 * len(left))

    def forget(self) -> None:
        """The state is that of another replica."""
        self._keep(set())


@dataclass(slots=True)
class ConsumedMessages:
    """Of a stream that this server leads."""

    stream: Stream
    interests: Interests
    """Of its consumers."""
    finished: FinishedWork
    seqs: set[int] = field(default_factory=set)
    """Those that some consumer is done with."""
    after_removal: dict[int, list[OutgoingMessage]] = field(default_factory=dict)
    """Log index of a removal -> what is published when it is applied."""
    _said: list[OutgoingMessage] = field(default_factory=list)
    """Published when `seqs` are gone."""

    def add(self, seqs: Iterable[int], said: list[OutgoingMessage]) -> None:
        """A consumer is done with these; they go when no other one needs them.

        `said` is published once they are gone.
        """
        self.seqs.update(seqs)
        self._said += said

    def add_all(self) -> bool:
        """Look at every message; False if that is of no use."""
        if self.stream.config.retention is Retention.WORK_QUEUE and not self.interests.watchers:
            self.seqs |= self.finished.seqs
            return bool(self.seqs)
        state = self.stream.store.state()
        self.seqs.update(range(state.first_seq, state.last_seq + 1))
        return True

    @property
    def is_due(self) -> bool:
        """Whether something of it may go by now."""
        return bool(self.seqs) and min(self.seqs) <= self.stream.store.last_seq

    def take(self) -> tuple[list[int], list[OutgoingMessage]]:
        """Those that nobody needs any more, in order, and what is published behind them."""
        if self.stream.config.retention is Retention.LIMITS:
            self.seqs.clear()  # It keeps all by now.
        seqs, last = sorted(self.seqs), self.stream.store.last_seq
        # A majority may have stored, delivered and acknowledged what is not applied here yet.
        self.seqs = {seq for seq in seqs if seq > last}
        said, self._said = self._said, []
        return [seq for seq in seqs if self._is_done_with(seq)], said

    def end(self) -> list[OutgoingMessage]:
        """Another server removes them. What is still to be published: the acks count all the same,
        and nobody there knows who waits to hear it."""
        waiting, self.after_removal = self.after_removal, {}
        said, self._said = self._said, []
        return [*chain.from_iterable(waiting.values()), *said]

    def _is_done_with(self, seq: int) -> bool:
        if not self.stream.store.is_live(seq):
            return False
        if seq in self.finished.seqs:
            return True
        subject = b""
        if not self.interests.all_take_all:
            found = self.stream.store.subject_of(seq)
            if found is None:
                return False
            subject = found
        watchers = self.interests.about(subject)
        if self.stream.config.retention is Retention.WORK_QUEUE:
            mine = [watcher for watcher in watchers if watcher.interested(subject)]
            return bool(mine) and not any(watcher.needs(seq, subject) for watcher in mine)
        return not any(watcher.needs(seq, subject) for watcher in watchers)
