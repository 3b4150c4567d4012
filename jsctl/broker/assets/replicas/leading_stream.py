"""A stream while this server leads it: what is captured is admitted, proposed, acknowledged.

Made when this server begins to lead and dropped when it ends: what is under way then is decided by
the next leader. So it is the place of all that only a leader of a stream keeps: publishes that
wait for their entry, messages that consumers are done with, and in time the inbound consumer of a
mirror or source, a batch that is not complete, a snapshot that is being sent. What every replica
keeps, leading or not, is in `stream_replica`.
"""

from collections.abc import Callable

from jsctl.api.stream import Republish
from jsctl.api.words import Retention
from jsctl.broker.assets.replicas import traced_publishes
from jsctl.broker.assets.replicas.absent_consumer import AbsentConsumer
from jsctl.broker.assets.replicas.assigned import Assigned
from jsctl.broker.assets.replicas.consumed_messages import ConsumedMessages, FinishedWork
from jsctl.broker.assets.replicas.direct_consumers import DirectConsumers
from jsctl.broker.assets.replicas.facts import BatchesAbandoned
from jsctl.broker.assets.replicas.inbound import Inbound
from jsctl.broker.assets.replicas.interests import Interests, Watchers
from jsctl.broker.assets.replicas.listening import Listening
from jsctl.broker.assets.replicas.replica_context import REFUSED_NS, ReplicaContext
from jsctl.broker.deadlines import earliest
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.consumers.readers import Readers
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.entries import StreamEntry
from jsctl.broker.jetstream.streams.pub_acks import Acks
from jsctl.broker.jetstream.streams.publish_headers import without_request_info
from jsctl.broker.jetstream.streams.republish import Copy, Republisher, stored_records
from jsctl.broker.jetstream.streams.sequencer import Admitted
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.seqset import SeqSet

REMOVE_SEQS_MAX = 10_000
"""Consumed messages removed by one entry."""
LEAVING_NS = 30_000_000_000
"""So long is kept what is for other streams that have to ask anew."""


class LeadingStream:
    """See the module. `sink` captures what is published on the stream's subjects."""

    __slots__ = (
        "_assigned",
        "_context",
        "_interests",
        "_leaving",
        "_leaving_ns",
        "_listening",
        "_republished",
        "_republisher",
        "_retention",
        "_retry_ns",
        "_sink",
        "_stream",
        "_unsure",
        "_volatile",
        "acks",
        "admission",
        "consumed",
        "direct",
        "inbound",
        "subjects",
    )

    def __init__(
        self,
        context: ReplicaContext,
        assigned: Assigned[StreamAssignment],
        stream: Stream,
        interests: Interests,
        finished: FinishedWork,
        sink: Sink,
        *,
        leaving: Watchers,
        readers: Readers,
        volatile: bool,
        hopeless: Callable[[], SeqSet],
        needs: Callable[[int], bool],
    ) -> None:
        self._context = context
        self._assigned = assigned
        self._stream = stream
        self._interests = interests
        self._leaving = leaving
        """Of their consumers: that other streams had here, and will have again in another
        way."""
        self._leaving_ns = 0
        """When they are given up."""
        self._sink = sink
        self._volatile = volatile
        self.admission = StreamLeader(
            stream,
            interested=self._interested,
            domain=context.domain,
            room=context.room,
            needs=needs,
            zones=context.zones,
            unapplied=assigned.group.unapplied,
        )
        self.acks: dict[int, Acks] = {}
        """Log index -> acknowledgements that are published when it is committed, or applied."""
        self.consumed = ConsumedMessages(stream, interests, finished)
        self._retention = stream.config.retention
        self.subjects: tuple[str, ...] = ()
        """What is listened to."""
        account = assigned.assignment.account
        self.inbound = Inbound(context, account, stream, self.admission, sink.owner, self._propose)
        group = assigned.group.name
        self.direct = DirectConsumers(context, account, stream, group, readers, hopeless)
        """Consumers of other streams that take from this one."""
        self._listening = Listening(context, account)
        self._unsure = False
        """Messages were kept, as not all consumers may be known here."""
        self._retry_ns = 0
        """When to look again whether the log takes entries; 0: it does."""
        self._republisher: Republisher | None = None
        self._republished: Republish | None = None

    def _interested(self, subject: bytes) -> bool:
        if self._stream.config.retention is not Retention.INTEREST:
            return True
        if any(watcher.interested(subject) for watcher in self._interests.about(subject)):
            return True
        self._unsure = self._unsure or not self._context.knows_all
        return self._unsure

    def subscribe(self) -> None:
        """Listen to the stream's subjects as they are now, and to nothing else."""
        self._listening.end()
        self.subjects = self._stream.config.subjects
        for subject in self.subjects:
            self._listening.to(subject.encode(), self._sink)

    def go_on(self) -> None:
        """With batches that another leader had begun, or this one before a restart."""
        self._propose(self.admission.revive(self._context.now_ns))

    def follow_config(self) -> None:
        """The stream's config may have changed: listen to its subjects and origins as they are."""
        if self._stream.config.subjects != self.subjects:
            self.subscribe()
        self.inbound.follow()
        retention = self._stream.config.retention
        if retention is not self._retention:
            # What all consumers are done with was kept so far.
            if retention is not Retention.LIMITS:
                self._renew_direct()
                self.consumed.add_all()
            self._retention = retention

    def _renew_direct(self) -> None:
        """From now on is kept what consumers need that others know of, too: other streams ask for
        such when they do not hear of theirs any more. Until then all is kept that is for them."""
        for name, filters in self.direct.retire().items():
            self._leaving[name] = AbsentConsumer(filters)
        self._leaving_ns = self._context.now_ns + LEAVING_NS

    def listen_anew(self) -> None:
        """The account has come, or is gone; nothing is heard in one that is not there."""
        self._listening.anew()
        self.inbound.listen_anew()
        self.direct.listen_anew()

    def end(self) -> None:
        """Another server leads: capture nothing, and promise nothing for what was captured."""
        self._listening.end()
        self.inbound.end()
        self.direct.end()
        self.admission.end()
        self._sink.take()
        self._context.crowds.leave(self._assigned.group.name)
        if said := self.consumed.end():
            self._context.traffic.deliver(self._assigned.assignment.account, said)
        # They hold this one, and go with it if it does not hold them.
        del self.admission, self.inbound

    # Once a turn

    @property
    def has_captured(self) -> bool:
        """Whether there is something to admit."""
        return bool(self._sink.messages or self.admission.in_flight.rest)

    def admit(self) -> bool:
        """Propose what was captured, as far as it is in order and there is room.

        False: the log takes nothing now, and it is tried again soon.
        """
        context, sink, admission = self._context, self._sink, self.admission
        made = self._assigned.assignment
        replicas = made.config.num_replicas
        admission.refuse_all(context.refusal(made.account, replicas, volatile=self._volatile))
        if sink.messages or admission.in_flight.rest:
            traced, batch = sink.traced, without_request_info(sink.take())
            if traced:
                traced_publishes.admit(admission, batch, context.now_ns, self._propose)
            else:
                self._propose(admission.admit(batch, context.now_ns))
            context.crowds.look(self._assigned.group.name, admission.in_flight, batch)
        accepting = self._assigned.group.raft.accepting
        self._retry_ns = 0 if accepting else context.now_ns + REFUSED_NS
        return accepting

    def take_inbound(self) -> bool:
        """Take what other streams have for this one; whether there is more at once."""
        return self.inbound.run()

    def remove_due(self) -> None:
        """Propose what is to go because of its age, or because consumers are done with it."""
        due_ns, now_ns = self.admission.next_due_ns(), self._context.now_ns
        if due_ns is not None and due_ns <= now_ns:
            self._propose(self.admission.expire(now_ns))
        if self._leaving and self._leaving_ns <= now_ns:
            self._leaving.clear()
            self.consumed.add_all()
        if self.consumed.seqs or self._unsure:
            self._remove_consumed()

    def settle_consumed(self) -> bool:
        """Propose the removal of what consumers are done with by now: one of them is to go, and
        whoever comes in its place would need all of it once more. False: it has to wait."""
        if self.consumed.seqs and self._assigned.group.raft.accepting:
            self._remove_consumed()
        return not (self._unsure or self.consumed.is_due)

    def _remove_consumed(self) -> None:
        """Not before all consumers are known: after a restart a stream may lead when this server
        was not told yet of those that were made meanwhile, or not yet made their replicas."""
        if not self._context.knows_all:
            self._unsure = True
            return
        if self._unsure:
            self._unsure = False
            self.consumed.add_all()
        self._propose_removals()

    @property
    def is_eager(self) -> bool:
        """Whether what is applied may make room for more, of which time tells nothing."""
        return bool(self._unsure or self._retry_ns or self.inbound.is_open)

    def next_due_ns(self) -> int | None:
        """When there is something to do even if nothing happens."""
        if self._unsure:
            return self._context.now_ns + REFUSED_NS
        if self._retry_ns:
            return self._retry_ns  # Nothing comes of anything else before.
        due_ns = earliest(self.admission.next_due_ns(), self.inbound.next_due_ns())
        return earliest(due_ns, self._leaving_ns) if self._leaving else due_ns

    def _propose(self, admitted: Admitted) -> bool:
        """Whether the log took it."""
        first: int | None = 0
        group = self._assigned.group
        if admitted.entries:
            first = self._context.groups.propose(group, admitted.entries, None)
            self.admission.proposed(first)
            if first is None:
                # Not in the log, so it is certain that it is not stored.
                admitted.rejects += self.admission.refused(admitted.acks)
            else:
                for index, acks in enumerate(admitted.acks, first):
                    self.acks[index] = acks
        if self.admission.abandoned:
            self._tell_abandoned()
        if admitted.rejects:
            items = [(reply, b"", b"", body, b"") for reply, body in admitted.rejects]
            self._context.traffic.deliver(self._assigned.assignment.account, items)
        return first is not None

    def _tell_abandoned(self) -> None:
        ends = tuple(self.admission.abandoned)
        self.admission.abandoned.clear()
        account, stream = self._assigned.assignment.account, self._stream.name
        self._context.facts.append(BatchesAbandoned(account, stream, ends))

    def _propose_removals(self) -> None:
        gone, said = self.consumed.take()
        last: int | None = None
        for at in range(0, len(gone), REMOVE_SEQS_MAX):
            entry = self.admission.remove(gone[at : at + REMOVE_SEQS_MAX])
            last = self._context.groups.propose(self._assigned.group, [entry], None)
            if last is None:
                # What was proposed in this turn took the room that the log had.
                self.consumed.add(gone[at:], said)
                self._retry_ns = self._context.now_ns + REFUSED_NS
                return
        if last is None:
            self._context.traffic.deliver(self._assigned.assignment.account, said)
        elif said:
            self.consumed.after_removal[last] = said

    # As entries are applied

    def copies(self, entry: StreamEntry) -> list[Copy]:
        """What is republished of an entry that is about to be applied."""
        config = self._stream.config
        if config.republish is None:
            return []
        if self._republisher is None or self._republished != config.republish:
            self._republisher = Republisher(config.name, config.republish)
            self._republished = config.republish
        return self._republisher.copies(stored_records(entry), self._stream.store.last_for)
