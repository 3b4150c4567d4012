"""Batches at the leader of a stream: what waits for the rest of them, and what it becomes."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.batches.atomic import AtomicBatch, AtomicBatches, Member
from jsctl.broker.jetstream.batches.fast import FastBatches
from jsctl.broker.jetstream.batches.member_checks import MemberChecks
from jsctl.broker.jetstream.batches.words import BatchEnd
from jsctl.broker.jetstream.streams.checks import Scheduling
from jsctl.broker.jetstream.streams.publish_room import PublishRoom
from jsctl.broker.jetstream.streams.sequencer import Admitted, Sequencer
from jsctl.broker.jetstream.streams.stream import Stream

if TYPE_CHECKING:
    from jsctl.broker.jetstream.streams.counters import Counting


class BatchPublishing:
    """Batches of one stream, from one win of its group's leadership to the loss of it."""

    def __init__(
        self,
        stream: Stream,
        sequencer: Sequencer,
        room: PublishRoom,
        ends: list[BatchEnd],
        interested: Callable[[bytes], bool],
        scheduling: Callable[[], Scheduling],
        counting: "Counting | None" = None,
    ) -> None:
        self._stream = stream
        self._sequencer = sequencer
        self._interested = interested
        self._scheduling = scheduling
        self._counting = counting
        self._atomic = AtomicBatches(room, ends)
        self.fast = FastBatches(stream, sequencer, room)
        self._checks: MemberChecks

    def configure(self, config: StreamConfig) -> None:
        """What comes from now on is judged by this."""
        self._checks = MemberChecks(
            self._stream,
            config,
            self._sequencer.in_flight,
            self._interested,
            self._scheduling,
            self._counting,
        )
        if not config.allow_atomic:
            self._atomic.end()
        self.fast.quiet = config.no_ack
        if not config.allow_batched:
            self.fast.end()

    def take(
        self,
        publish: tuple[bytes, bytes, bytes],
        fields: Mapping[bytes, bytes],
        reply: bytes,
        time_ns: int,
        made: Admitted,
    ) -> AtomicBatch | None:
        """A message of an atomic batch: it waits for the others, or is refused. If it completes
        its batch, that is returned."""
        found = self._atomic.take(Member(*publish), fields, time_ns)
        if isinstance(found, AtomicBatch):
            return found
        if reply:
            answer = b"" if found is None else self._sequencer.acks.refusal(found)
            made.rejects.append((reply, answer))
        return None

    def commit(self, batch: AtomicBatch, reply: bytes, time_ns: int, made: Admitted) -> None:
        """Make all messages of a batch one entry, or refuse it."""
        sequencer, checks = self._sequencer, self._checks
        building = sequencer.begin()
        checks.begin(sequencer.next_seq, building.rows)
        for member in batch.members:
            outcome = checks.check_member(member, time_ns)
            if isinstance(outcome, ApiError):
                sequencer.take_back(building)
                if reply:
                    made.rejects.append((reply, sequencer.acks.refusal(outcome)))
                return
            sequencer.take(building, outcome, b"", time_ns)
        if reply:
            ack = sequencer.acks.batch(sequencer.next_seq - 1, batch.id, len(batch.members))
            building.acks.append((reply, ack))
        sequencer.close(building, made)

    def next_due_ns(self) -> int | None:
        """When `expire` has something to do."""
        due = self._atomic.next_due_ns(), self.fast.next_due_ns()
        return min([at for at in due if at is not None], default=None)

    def expire(self, now_ns: int) -> None:
        """Give up what waited for too long."""
        self._atomic.expire(now_ns)
        self.fast.expire(now_ns)

    def end(self) -> None:
        """Give up everything, and tell nobody."""
        self._atomic.end()
        self.fast.end()
