"""A stream on this server: a replica of its group's log.

The leader's server subscribes to the stream's subjects; what is captured there is admitted once a
turn, proposed, and acknowledged when its entry is committed or, where somebody waits for more than
that, applied: see `leading_stream`.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import InitVar, field

from jsctl.api.words import Retention
from jsctl.broker.assets.replicas.assigned import Assigned
from jsctl.broker.assets.replicas.consumed_messages import FinishedWork
from jsctl.broker.assets.replicas.facts import StreamServes
from jsctl.broker.assets.replicas.interests import Interests, Watchers
from jsctl.broker.assets.replicas.leading_stream import LeadingStream
from jsctl.broker.assets.replicas.replica_context import (
    ReplicaContext,
)
from jsctl.broker.assets.replicas.stored_stream import StoredStream, StreamImporter
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.config_texts import STREAMS
from jsctl.broker.jetstream.consumers.readers import Readers
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.streams.admission import StreamLeader
from jsctl.broker.jetstream.streams.entries import (
    Delete,
    Expire,
    Messages,
    Purge,
    RemoveMessages,
    Scheduled,
    Sourced,
    StreamEntry,
    decode,
    encode_config,
)
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Entry, EntryKind
from jsctl.broker.replication.disk_jobs import SaveStoreAndState
from jsctl.broker.replication.group import GroupKind, RaftGroup, SyncJob
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

BESIDE_MESSAGES = (Delete, Expire, RemoveMessages, Scheduled, Sourced)
"""Entries that change nothing for consumers where no message goes."""
DIGEST_EVERY = 16
DIGESTS_MAX = 64
"""A digest of the messages is kept for the last so many of each so many entries."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Another replica has other messages than this leader."""

    index: int
    """Behind which entry that was seen."""
    first: int = 0
    """The first messages that are not the same; 0: not known, or not yet."""
    last: int = 0


@dataclass(slots=True)
class StreamReplica:
    """Implements `group.Replica` and `run_queue.Runner`."""

    context: ReplicaContext
    newest: InitVar[StreamAssignment]
    stored: StoredStream
    raft: InitVar[Raft]
    key: tuple[str, str] = field(init=False)
    """Account and name."""
    volatile: bool = field(init=False)
    """Only memory holds the messages."""
    group: RaftGroup = field(init=False)
    assigned: Assigned[StreamAssignment] = field(init=False)
    leading: LeadingStream | None = None
    """While this server leads."""
    sink: Sink = field(init=False)
    touched: set[str] = field(default_factory=set)
    """Names of consumers whose interest is, or may be, another one."""
    watchers: Watchers = field(init=False)
    """Consumers with a replica here, by name."""
    readers: Readers = field(default_factory=Readers)
    """Who delivers messages here: of these, and of the leader's for other streams."""
    absent: Watchers = field(init=False)
    """Consumers without one."""
    hopeless: SeqSet = field(default_factory=SeqSet)
    """Messages whose bytes are damaged on every voter."""
    different: dict[str, Difference] = field(default_factory=dict)
    """Peers whose messages were not those of this leader."""
    _digests: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=DIGESTS_MAX))
    _applied: int = 0
    """The last entry."""
    _ready: list[OutgoingMessage] = field(default_factory=list)
    """Published when all entries of this drain are applied."""
    _finished: FinishedWork = field(init=False)

    def __post_init__(self, newest: StreamAssignment, raft: Raft) -> None:
        name = newest.group.name
        self.key = newest.account, newest.name
        self.watchers, self.absent = Watchers(self.touched), Watchers(self.touched)
        self.volatile = self.stored.volatile
        self._finished = FinishedWork(self.stored)
        self.group = RaftGroup(
            name,
            name.encode(),
            GroupKind.STREAM,
            raft,
            self,
            {},
            foretell=self._foretell,
            patient=self._is_patient,
        )
        self.assigned = Assigned(self.context, newest, self.group)
        self.sink = Sink(self, stream=newest.name)

    @property
    def assignment(self) -> StreamAssignment:
        """What the meta group wants it to be."""
        return self.assigned.assignment

    @property
    def stream(self) -> Stream:
        """The state as applied here."""
        return self.stored.stream

    @property
    def store(self) -> StreamStore:
        """The messages of this replica."""
        return self.stored.stream.store

    @property
    def standing_index(self) -> int:
        """Up to which entry the messages speak."""
        return max(self.group.raft.applied, self.store.mark)

    @property
    def leader(self) -> StreamLeader | None:
        """The admission, while this server leads."""
        return None if self.leading is None else self.leading.admission

    def _is_patient(self) -> bool:
        """Whether no consumer at another server waits for messages; who gets one there asks."""
        return not (self.watchers or self.absent)

    def _foretell(self, entries: Sequence[Entry]) -> bool:
        """Say acknowledgements, which are certain, if nobody else hears of these messages."""
        leading = self.leading
        if self.readers or self._ready or self.context.crowds:
            return False
        if leading is None:
            return all([entry.kind is EntryKind.DATA for entry in entries])
        if self.stored.stream.config.republish is not None or leading.consumed.after_removal:
            return False
        in_flight = leading.admission.in_flight
        if not all([in_flight.is_plain(entry.index) for entry in entries]):
            return False
        said: list[OutgoingMessage] = []
        for entry in entries:
            said += leading.acks.pop(entry.index).said()
        self.context.traffic.deliver(self.key[0], said)
        return True

    # group.Replica

    def apply(self, index: int, data: bytes) -> int:
        """Take one committed entry and set its acknowledgements free."""
        assert index > self._applied, f"entry {index} after {self._applied}"
        self._applied = index
        stream, leading, ready = self.stored.stream, self.leading, self._ready
        watched = bool(self.readers)
        before = stream.store.messages if watched else 0
        if watched:
            stream.store.note_removals()
        if leading is None:
            entry = decode(data)
            result = stream.apply(index, entry)
        else:
            made = leading.admission.in_flight.at(index)
            entry = decode(data) if made is None or made.entry is None else made.entry
            # Invariant: the log gives back what was proposed, so nobody has to read it again.
            assert not isinstance(entry, Messages) or entry.frame.buffer is data, index
            republishes = stream.config.republish is not None
            copies = leading.copies(entry) if republishes else ()
            result = stream.apply(index, entry, None if made is None else made.ids)
        if not index % DIGEST_EVERY:
            self._note_digest(index)
        if watched:
            self._tell_readers(entry, before)
        if leading is not None:
            if leading.consumed.after_removal:
                ready.extend(leading.consumed.after_removal.pop(index, ()))
            if copies:
                ready.extend([(to, b"", headers, body, b"") for to, headers, body in copies])
            acks = leading.acks.pop(index, None)
            if acks is not None:
                ready.extend(acks.said())
        return result

    def caught_up(self) -> None:
        """Publish the acknowledgements of what was applied, and tell the consumers."""
        if self._ready:
            ready, self._ready = self._ready, []
            self.context.traffic.deliver(self.key[0], ready)
        store = self.store
        if store.erasing and not self.volatile:
            self.context.groups.checkpoints.later(self.group, store.may_erase)
        leading = self.leading
        if leading is not None:
            leading.admission.applied(self.group.raft.applied)
            leading.follow_config()
            leading.inbound.applied()
            self._answer()
            self._go_on_later(leading)

    def _go_on_later(self, leading: LeadingStream) -> None:
        """There may be more to do now, or when it is time."""
        queue, name = self.context.queue, self.group.name
        due_ns = leading.next_due_ns()
        if leading.consumed.seqs or (due_ns is not None and leading.is_eager):
            queue.wake(name, self)
        elif due_ns is not None:
            queue.sleep(name, self, due_ns)

    def _tell_readers(self, entry: StreamEntry, before: int) -> None:
        if isinstance(entry, Purge):
            self.readers.purged(entry.filter)
        elif isinstance(entry, Messages):
            self.readers.rolled_up(entry)
        stored = entry.frame.columns if isinstance(entry, Messages) else None
        count = 0 if stored is None else len(stored.subjects)
        gone = self.store.take_removals()
        left = before + count - sum([len(one.seqs) for one in gone])
        known = self.store.messages == left
        if known and (count or gone):
            if stored is not None and count:
                self.readers.stored(stored.seqs, stored.subjects)
            if gone:
                self.readers.removed(gone)
        elif not known or not isinstance(entry, BESIDE_MESSAGES):
            # Not all of it is known: an entry that the store had already, say, or damage.
            self.readers.stream_changed()

    def founded(self) -> bool:
        """The config is the first entry; nothing else is known of a stream without messages."""
        assert self.stream.revision == 0, "a group without a log has a stream"
        entry = encode_config(self.assignment.revision, STREAMS.text(self.assignment.config))
        return self.context.groups.propose(self.group, [entry], None) is not None

    def lead(self, term: int) -> None:
        """Start to admit."""
        assert self.leading is None, f"{self.group.name} led already when it began in {term}"
        leaving = Watchers(self.touched)
        self._finished.settle()
        leading = self.leading = LeadingStream(
            self.context,
            self.assigned,
            self.stream,
            Interests((self.watchers, self.absent, leaving), self.touched),
            self._finished,
            self.sink,
            leaving=leaving,
            readers=self.readers,
            volatile=self.volatile,
            hopeless=lambda: self.hopeless,
            needs=self.needs_message,
        )
        leading.subscribe()
        leading.inbound.follow()
        leading.go_on()
        self._propose_config()
        self._answer()
        self.consumed_anew()
        self.bereave()
        self.context.queue.wake(self.group.name, self)

    def unlead(self) -> None:
        """Stop to admit; what is in flight is decided by the next leader."""
        self._end_leading()
        self.different.clear()

    def listen_anew(self) -> None:
        """The account has come, or is gone; nothing is heard in one that is not there."""
        if self.leading is not None:
            self.leading.listen_anew()

    def _end_leading(self) -> None:
        leading, self.leading = self.leading, None
        if leading is not None:
            leading.end()

    # Once a turn

    def run(self) -> None:
        """Admit what was captured; expire what is due; remove what was consumed."""
        leading = self.leading
        if leading is None:
            self.sink.take()
            return
        if leading.admission.in_flight.rest:
            leading.admission.search_on()
        if not leading.admit():
            return
        if self.assigned.config_refused:
            self._propose_config()
        if leading.take_inbound() or leading.admission.in_flight.rest:
            self.context.queue.wake_again(self.group.name, self)
        leading.remove_due()

    def next_due_ns(self) -> int | None:
        """When `run` has to be called even if nothing happens."""
        return None if self.leading is None else self.leading.next_due_ns()

    # Configuration travels through the stream's own log

    def assign(self, assignment: StreamAssignment) -> None:
        """The meta state has another assignment for this stream."""
        assert (assignment.account, assignment.name) == self.key
        self.assigned.renew(assignment)
        self._propose_config()
        self._answer()

    def _propose_config(self) -> None:
        self.assigned.config_refused = False
        if self.leading is None:
            return
        admission, wanted = self.leading.admission, self.assignment
        # One that is on its way counts: it would undo what was wanted again meanwhile.
        if self.stream.revision == 0 or wanted.config != admission.config:
            self.assigned.propose_config(admission.configure(wanted.revision, wanted.config), self)
            if not self.assigned.config_refused:
                admission.configured(wanted.revision, wanted.config)

    def _answer(self) -> None:
        if self.leading is not None and self.assigned.is_owed and self._is_current():
            for made, request in self.assigned.take_requests():
                self.context.facts.append(StreamServes(made, self.stream, request))

    def _is_current(self) -> bool:
        # The first config is in the log as well: a replica that is made later starts with the
        # newest assignment, and must apply what comes before its config like all the others.
        stream = self.stored.stream
        return stream.revision > 0 and self.assigned.assignment.config == stream.config

    # Work-queue and interest streams

    @property
    def takes_away(self) -> bool:
        """Whether this server leads a stream that lets go of what was consumed."""
        return self.leading is not None and self.stream.config.retention is not Retention.LIMITS

    def consumed(self, seqs: list[int], said: list[OutgoingMessage]) -> bool:
        """A consumer is done with these; they go when no other one needs them.

        `said` is published once they are gone; False: it is not, as another server removes them.
        """
        self._finished.add(seqs)
        if self.leading is None or not self.takes_away:
            return False
        self.leading.consumed.add(seqs, said)
        self.context.queue.wake(self.group.name, self)
        return True

    def unwatch(self, consumer: str) -> None:
        """A consumer is to have no replica here any more."""
        if self.leading is not None:
            self.leading.settle_consumed()
        self.watchers.pop(consumer, None)
        self.bereave()

    def bereave(self) -> None:
        """Consumers may have gone that were done with more than is known here: others are asked."""
        if self.leading is not None and self.stream.config.retention is Retention.WORK_QUEUE:
            self.context.bereaved[self.group.name] = None

    def finished_work(self) -> SeqSet:
        """What consumers were done with and is not gone here, as far as known."""
        self._finished.look_through()
        left = SeqSet()
        left.add_many(sorted(self._finished.seqs))
        return left

    def finished(self, ranges: list[tuple[int, int]]) -> None:
        """Another replica knows that consumers were done with these."""
        state = self.store.state()
        for first, last in ranges:
            seqs = range(max(first, state.first_seq), min(last, state.last_seq) + 1)
            self.consumed(list(filter(self.store.is_live, seqs)), [])

    def finish_work(self) -> int | None:
        """Behind which entry all is gone that is known to be finished; None: the log does not take
        its removal now."""
        leading = self.leading
        if leading is None or not leading.settle_consumed():
            return None
        return self.group.raft.last_index

    def consumed_anew(self) -> None:
        """Look at every message: after a change of leader, or of the set of consumers."""
        if self.leading is not None and self.takes_away and self.leading.consumed.add_all():
            self.context.queue.wake(self.group.name, self)

    def interest_lost(self) -> None:
        """A consumer has other filters: look at what it may not want any more. In a work queue that
        waits for somebody else."""
        if self.stream.config.retention is Retention.INTEREST:
            self.consumed_anew()

    # Damage

    def _note_digest(self, index: int) -> None:
        """Remember what the messages are behind an entry, so that replicas can be compared."""
        store = self.store
        # Behind a restart the store may be ahead of the entries that are applied once more.
        if store.mark <= index and store.digest_is_whole:
            self._digests.append((index, store.digest()))

    def digests(self) -> list[tuple[int, int]]:
        """(index, digest) of some entries that were applied lately, the last one too if that is
        possible."""
        applied = self.group.raft.applied
        if self.store.mark <= applied and self.store.digest_is_whole:
            return [*self._digests, (applied, self.store.digest())]
        return list(self._digests)

    def needs_message(self, seq: int) -> bool:
        """Somebody waits for a message whose bytes are damaged here; False: it is lost for good,
        as far as known."""
        if seq in self.hopeless:
            return False
        self.context.damaged[self.group.name] = seq
        return True

    def mended(self) -> None:
        """Messages that were damaged are back, or gone."""
        self.readers.stream_changed()

    # Durability

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        """Sync the store and write the small state beside it."""
        work = self.stored.checkpoint(index, term, members)
        if isinstance(work, SaveStoreAndState):
            self.group.state_bytes = work.state.state_bytes
        return work

    def checkpointed(self, job: SyncJob) -> None:
        """The store may forget what it kept for the job."""
        self.stored.checkpointed(job)
        if self.store.has_more_to_erase:
            self.state_overtaken()
            self.context.groups.checkpoints.soon(self.group)

    def state_overtaken(self) -> None:
        """The state file does not speak of this state: write one with the next checkpoint."""
        self.stored.files.overtaken()

    def export(self) -> Iterator[bytes]:
        """The whole state."""
        return self.stored.export()

    def is_damaged(self) -> bool:
        """Whether some messages are known to be damaged here."""
        return self.store.is_damaged

    def importer(self) -> StreamImporter:
        """Take the state of another replica."""
        return self.stored.importer(self.assignment, self._replaced)

    def _replaced(self) -> None:
        assert self.leading is None, "a leader's state replaces that of others"
        self._finished.forget()
        self.readers.stream_changed()

    def close(self) -> None:
        """Release files; keep the data."""
        self._end_leading()
        self.stored.close()

    def leave(self) -> None:
        """The stream is about to be deleted, here and elsewhere."""
        if self.leading is not None:
            self.leading.inbound.leave()

    def delete(self) -> None:
        """Remove the data: the meta group decided so."""
        self._end_leading()
        self.sink = Sink()  # The former one holds this replica, and nobody needs it any more.
        self.stored.delete()
        account, name = self.key
        self.context.log(LogLevel.INFO, f"Removed the replica of stream '{account} > {name}'")
