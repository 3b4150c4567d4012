"""Work-queue and interest streams: messages that consumers are done with, on their way out.

The leader removes them by an entry of the stream's log. Who is told that an ack counts is told
when the message is gone.
"""

from collections.abc import Iterable
from dataclasses import field
from itertools import chain

from jsctl.api.words import Retention
from jsctl.broker.assets.replicas.interests import Interests
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class ConsumedMessages:
    """Of a stream that this server leads."""

    stream: Stream
    interests: Interests
    """Of its consumers."""
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
            return False
        state = self.stream.store.state()
        self.seqs.update(range(state.first_seq, state.last_seq + 1))
        return True

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
