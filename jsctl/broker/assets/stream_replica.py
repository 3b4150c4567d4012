"""A stream on this server: its replica, and while this server leads, admission and interest.

The leader's server subscribes to the stream's subjects; what is captured there is admitted once a
turn, proposed, and acknowledged when its entry is applied.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from jsctl.api.codec import dumps
from jsctl.api.stream import Republish
from jsctl.api.words import Retention
from jsctl.broker.assets import traced_publishes
from jsctl.broker.assets.facts import StreamServes
from jsctl.broker.assets.replica_context import (
    REFUSED_NS,
    ConsumerWatcher,
    PendingReply,
    ReplicaContext,
)
from jsctl.broker.errors import Damaged, ProtocolError
from jsctl.broker.interest.targets import Sink, Subscription
from jsctl.broker.jetstream.meta.assignments import StreamAssignment
from jsctl.broker.jetstream.streams.admission import Admitted, StreamLeader
from jsctl.broker.jetstream.streams.entries import Flags, StreamEntryKind, encode_config
from jsctl.broker.jetstream.streams.republish import Copy, Republisher, stored_records
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.broker.replication.disk_jobs import NothingToKeep, SaveStoreAndState
from jsctl.broker.replication.group import RaftGroup, SyncJob, Waiter
from jsctl.broker.replication.state_file import GroupState, WriteState
from jsctl.broker.replication.state_import import Joiner, pieces
from jsctl.broker.store.record import FRAME_HEADER_BYTES, columns
from jsctl.broker.store.stream_store import StreamStore
from jsctl.broker.turn import LogLevel

DIRECT_QUEUE = b"_sys_"
PLAIN_MESSAGES = bytes((StreamEntryKind.MESSAGES, Flags.NONE))
REMOVE_SEQS_MAX = 10_000
"""Consumed messages removed by one entry."""


_NUMBER = struct.Struct("<I")


class Stores(Protocol):
    """Opens and removes the message stores of one stream; each has a number."""

    def open(self, number: int) -> StreamStore:
        """The store of that number, made when there is none. Raises DiskError."""

    def path(self, number: int) -> str:
        """Where it lies."""


@dataclass(slots=True)
class StreamReplica:
    """Implements `group.Replica`."""

    env: ReplicaContext
    assignment: StreamAssignment
    stream: Stream
    directory: str
    stores: Stores
    store_number: int
    volatile: bool
    """Only memory holds the messages."""
    generation: int = 0
    group: RaftGroup = field(init=False)
    owed: PendingReply = field(default_factory=PendingReply)
    """Waits for an answer until this stream serves here what was asked for."""
    leader: StreamLeader | None = None
    sink: Sink = field(init=False)
    watchers: dict[str, ConsumerWatcher] = field(default_factory=dict)
    """Consumers with a replica here, by name."""
    _subscriptions: list[Subscription] = field(default_factory=list)
    _subjects: tuple[str, ...] = ()
    _acks: dict[int, list[tuple[bytes, bytes]]] = field(default_factory=dict)
    _ready: list[OutgoingMessage] = field(default_factory=list)
    _consumed: set[int] = field(default_factory=set)
    _behind_removal: list[OutgoingMessage] = field(default_factory=list)
    _after_removal: dict[int, list[OutgoingMessage]] = field(default_factory=dict)
    """Log index of a removal -> what is published when it is applied."""
    _config_refused: bool = False
    """The log did not take the newest config."""
    _retry_ns: int = 0
    """When to look again whether the log takes entries; 0: it does."""
    _checkpointed: int = 0
    _newest_number: int = 0
    _republisher: Republisher | None = None
    _republished: Republish | None = None

    def __post_init__(self) -> None:
        self.sink = Sink(self, stream=self.assignment.name)

    @property
    def key(self) -> tuple[str, str]:
        """Account and name."""
        return self.assignment.account, self.assignment.name

    @property
    def store(self) -> StreamStore:
        """The messages of this replica."""
        return self.stream.store

    # group.Replica

    def apply(self, index: int, data: bytes) -> int:
        """Take one committed entry and set its acknowledgements free."""
        before = self.store.messages if self.watchers else 0
        copies = self._copies(data) if self.stream.config.republish is not None else []
        ids = self.leader.in_flight.ids_of(index) if self.leader is not None else ()
        result = self.stream.apply(index, data, ids)
        if self.watchers:
            self._tell_watchers(data, before)
        if self._after_removal:
            self._ready.extend(self._after_removal.pop(index, ()))
        if copies:
            self._ready.extend([(to, b"", headers, body, b"") for to, headers, body in copies])
        acks = self._acks.pop(index, None)
        if acks:
            self._ready.extend([(reply, b"", b"", ack, b"") for reply, ack in acks])
        return result

    def _copies(self, data: bytes) -> list[Copy]:
        """What the leader republishes of an entry that is about to be applied."""
        config = self.stream.config
        if self.leader is None or config.republish is None:
            return []
        if self._republisher is None or self._republished != config.republish:
            self._republisher = Republisher(config.name, config.republish)
            self._republished = config.republish
        return self._republisher.copies(stored_records(data), self.store.last_for)

    def caught_up(self) -> None:
        """Publish the acknowledgements of what was applied, and tell the consumers."""
        if self._ready:
            ready, self._ready = self._ready, []
            self.env.traffic.deliver(self.assignment.account, ready)
        if self.leader is not None:
            self.leader.applied(self.group.raft.applied)
            if self.stream.config.subjects != self._subjects:
                self._subscribe()
            self._answer()
            if self.leader.next_due_ns() is not None:
                self.env.queue.wake(self.group.name, self)

    def _tell_watchers(self, data: bytes, before: int) -> None:
        leading = [watcher for watcher in self.watchers.values() if watcher.leading]
        if not leading:
            return
        stored: list[bytes] = []
        if data.startswith(PLAIN_MESSAGES):
            stored = columns(data, len(PLAIN_MESSAGES) + FRAME_HEADER_BYTES, len(data)).subjects
        for watcher in leading:
            if stored and self.store.messages == before + len(stored):
                watcher.stored(stored)
            else:
                watcher.stream_changed()

    def founded(self) -> None:
        """The config is the first entry."""
        entry = encode_config(self.assignment.revision, dumps(self.assignment.config))
        self.env.groups.propose(self.group, [entry], None)

    def lead(self, term: int) -> None:
        """Start to admit."""
        self.leader = StreamLeader(self.stream, interested=self._interested, domain=self.env.domain)
        self._subscribe()
        self._propose_config()
        self._answer()
        self.consumed_anew()
        self.env.queue.wake(self.group.name, self)

    def unlead(self) -> None:
        """Stop to admit; what is in flight is decided by the next leader."""
        self._unsubscribe()
        self.leader = None
        self.sink.take()
        self._acks.clear()
        self._consumed.clear()
        self._behind_removal.clear()
        self._after_removal.clear()

    def _subscribe(self) -> None:
        self._unsubscribe()
        self._subjects = self.stream.config.subjects
        for subject in self._subjects:
            made = self.env.traffic.listen(self.assignment.account, subject.encode(), self.sink)
            if made is not None:
                self._subscriptions.append(made)

    def _unsubscribe(self) -> None:
        for subscription in self._subscriptions:
            self.env.traffic.unlisten(subscription)
        self._subscriptions.clear()
        self._subjects = ()

    def _interested(self, subject: bytes) -> bool:
        if self.stream.config.retention is not Retention.INTEREST:
            return True
        return any(watcher.interested(subject) for watcher in self.watchers.values())

    # Once a turn

    def run(self) -> None:
        """Admit what was captured; expire what is due; remove what was consumed."""
        leader = self.leader
        if leader is None:
            self.sink.take()
            return
        leader.refusal = self.env.refusal(self.assignment.account, volatile=self.volatile)
        if self.sink.traced:
            traced_publishes.admit(leader, self.sink.take(), self.env.now_ns, self._propose)
        elif self.sink.messages:
            self._propose(leader.admit(self.sink.take(), self.env.now_ns))
        if not self.group.raft.accepting:
            self._retry_ns = self.env.now_ns + REFUSED_NS
            return
        self._retry_ns = 0
        if self._config_refused:
            self._propose_config()
        due = leader.next_due_ns()
        if due is not None and due <= self.env.now_ns:
            self._propose(leader.expire(self.env.now_ns))
        if self._consumed:
            self._propose_removals(leader)

    def _propose(self, admitted: Admitted) -> None:
        if admitted.entries:
            assert self.leader is not None
            first = self.env.groups.propose(self.group, admitted.entries, None)
            self.leader.proposed(first)
            if first is None:
                # Not in the log, so it is certain that it is not stored.
                admitted.rejects += self.leader.refused(admitted.acks)
            else:
                for index, acks in enumerate(admitted.acks, first):
                    self._acks[index] = acks
        if admitted.rejects:
            items = [(reply, b"", b"", body, b"") for reply, body in admitted.rejects]
            self.env.traffic.deliver(self.assignment.account, items)

    def propose(self, entry: bytes, waiter: Waiter) -> bool:
        """An entry of an API request; False when this server does not lead."""
        return self.env.groups.propose(self.group, [entry], waiter) is not None

    def next_due_ns(self) -> int | None:
        """When `run` has to be called even if nothing happens."""
        if self.leader is None:
            return None
        return self._retry_ns or self.leader.next_due_ns()

    # Configuration travels through the stream's own log

    def assigned(self, assignment: StreamAssignment) -> None:
        """The meta state has another assignment for this stream."""
        if assignment.request != self.assignment.request:
            self.env.owe(self.owed, assignment.request)
        self.assignment = assignment
        self.group.raft.expect(assignment.group.members)
        self._propose_config()
        self._answer()

    def _propose_config(self) -> None:
        self._config_refused = False
        if self.leader is None or self._is_current():
            return
        config = dumps(self.assignment.config)
        entry = self.leader.configure(self.assignment.revision, config)
        self._config_refused = self.env.groups.propose(self.group, [entry], None) is None
        if self._config_refused:
            self.env.queue.wake(self.group.name, self)

    def _answer(self) -> None:
        if self.leader is not None and self._is_current():
            owed = self.owed.take(self.env.now_ns)
            if owed is not None:
                self.env.facts.append(StreamServes(self.assignment, self.stream, owed))

    def _is_current(self) -> bool:
        # The first config is in the log as well: a replica that is made later starts with the
        # newest assignment, and must apply what comes before its config like all the others.
        return self.stream.revision > 0 and self.assignment.config == self.stream.config

    # Work-queue and interest streams

    @property
    def takes_away(self) -> bool:
        """Whether this server leads a stream that lets go of what was consumed."""
        return self.leader is not None and self.stream.config.retention is not Retention.LIMITS

    def consumed(self, seqs: list[int], said: list[OutgoingMessage]) -> None:
        """A consumer is done with these; they go when no other one needs them.

        `said` is published once they are gone.
        """
        self._consumed.update(seqs)
        self._behind_removal += said
        self.env.queue.wake(self.group.name, self)

    def consumed_anew(self) -> None:
        """Look at every message: after a change of leader, or of the set of consumers."""
        if not self.takes_away:
            return
        if self.stream.config.retention is Retention.WORK_QUEUE and not self.watchers:
            return
        state = self.store.state()
        self._consumed.update(range(state.first_seq, state.last_seq + 1))
        self.env.queue.wake(self.group.name, self)

    def _propose_removals(self, leader: StreamLeader) -> None:
        seqs = sorted(self._consumed)
        self._consumed.clear()
        gone = [seq for seq in seqs if self._done_with(seq)]
        last: int | None = None
        for at in range(0, len(gone), REMOVE_SEQS_MAX):
            entry = leader.remove(gone[at : at + REMOVE_SEQS_MAX])
            last = self.env.groups.propose(self.group, [entry], None)
        said, self._behind_removal = self._behind_removal, []
        if last is None:
            self.env.traffic.deliver(self.assignment.account, said)
        elif said:
            self._after_removal[last] = said

    def _done_with(self, seq: int) -> bool:
        if not self.store.is_live(seq):
            return False
        watchers = self.watchers.values()
        subject = b""
        if not all(watcher.takes_all for watcher in watchers):
            found = self._load(seq)
            if found is None:
                return False
            subject = found
        if self.stream.config.retention is Retention.WORK_QUEUE:
            mine = [watcher for watcher in watchers if watcher.interested(subject)]
            return bool(mine) and not any(watcher.needs(seq, subject) for watcher in mine)
        return not any(watcher.needs(seq, subject) for watcher in watchers)

    def _load(self, seq: int) -> bytes | None:
        """The subject of a message; None when its bytes cannot be read."""
        try:
            row = self.store.load(seq)
        except Damaged:
            return None
        return None if row is None else row[2]

    # Durability

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        """Sync the store and write the small state beside it."""
        if index <= self._checkpointed:
            return None
        self._checkpointed = index
        if self.volatile:
            return NothingToKeep(index)
        return self.state_job(self.stream, self.store_number, index, term, members)

    def state_job(
        self, stream: Stream, number: int, index: int, term: int, members: bytes
    ) -> SaveStoreAndState:
        """The job that makes a stream state and its store durable."""
        self.generation += 1
        snapshot = _NUMBER.pack(number) + stream.snapshot()
        state = GroupState(self.generation, index, term, members, snapshot)
        write = WriteState(self.env.disk, self.directory, state, ())
        return SaveStoreAndState(stream.store, stream.store.checkpoint(), write)

    def checkpointed(self, job: SyncJob) -> None:
        """The store may forget what it kept for the job, unless another one took its place."""
        if (
            isinstance(job, SaveStoreAndState)
            and job.store_job is not None
            and job.store is self.store
        ):
            self.store.done(job.store_job)

    def state_overtaken(self) -> None:
        """The state file does not speak of this state: write one with the next checkpoint."""
        self._checkpointed = -1

    def export(self) -> Iterator[bytes]:
        """The whole state: the small one first, then the store's chunks."""
        return pieces(self._blobs())

    def _blobs(self) -> Iterator[bytes]:
        yield self.stream.snapshot()
        yield from self.store.export_chunks()

    def importer(self) -> "StreamImporter":
        """Take the state of another replica into a store of its own."""
        self._newest_number = max(self._newest_number, self.store_number) + 1
        return StreamImporter(self, self._newest_number)

    def discard(self, number: int) -> None:
        """Delete a store that is not in use any more."""
        if not self.volatile:
            self.env.groups.removals.discard(self.env.disk, self.stores.path(number))

    def replace(self, stream: Stream, number: int) -> None:
        """Use a received state from now on."""
        old, old_number, self.stream, self.store_number = (
            self.store,
            self.store_number,
            stream,
            number,
        )
        old.close()
        self.discard(old_number)
        for watcher in self.watchers.values():
            watcher.stream_changed()

    def close(self) -> None:
        """Release files; keep the data."""
        self._unsubscribe()
        self.store.close()

    def delete(self) -> None:
        """Remove the data: the meta group decided so."""
        self._unsubscribe()
        self.store.close()
        self.env.groups.removals.discard(self.env.disk, self.directory)
        account, name = self.key
        self.env.log(LogLevel.INFO, f"Removed the replica of stream '{account} > {name}'")


def split_snapshot(snapshot: bytes) -> tuple[int, bytes]:
    """(store number, stream snapshot) of a state file."""
    number: int = _NUMBER.unpack_from(snapshot)[0]
    return number, snapshot[_NUMBER.size :]


@dataclass(slots=True)
class StreamImporter:
    """Implements `group.Importer`: a new store beside the one in use."""

    replica: StreamReplica
    number: int
    _joiner: Joiner = field(default_factory=Joiner)
    _stream: Stream | None = None
    _job: SaveStoreAndState | None = None
    _complete: bool = False

    def feed(self, chunk: bytes) -> None:
        """Take the next piece. Raises Damaged, ProtocolError, DiskError."""
        for blob in self._joiner.feed(chunk):
            if self._stream is None:
                self._begin(blob)
            elif self._complete:
                raise ProtocolError("a state transfer goes on behind its end")
            else:
                self._complete = self._stream.store.import_chunk(blob)

    def _begin(self, snapshot: bytes) -> None:
        replica = self.replica
        store = replica.stores.open(self.number)
        assignment = replica.assignment
        self._stream = Stream(assignment.account, assignment.config, assignment.created_ns, store)
        self._stream.restore(snapshot)

    def finish(self, index: int, term: int, members: bytes) -> SyncJob:
        """The job that makes it durable. Raises ProtocolError when pieces are missing."""
        self._joiner.finish()
        if self._stream is None or not self._complete:
            raise ProtocolError("a state transfer ended before its last part")
        if self.replica.volatile:
            return NothingToKeep(index)
        self._job = self.replica.state_job(self._stream, self.number, index, term, members)
        return self._job

    def switch(self) -> None:
        """Use it."""
        assert self._stream is not None
        if self._job is not None and self._job.store_job is not None:
            # Else the store takes this job for running, and no checkpoint would sync it again.
            self._stream.store.done(self._job.store_job)
        self.replica.replace(self._stream, self.number)

    def abandon(self) -> None:
        """Remove what was built."""
        if self._stream is not None:
            self._stream.store.close()
        self.replica.discard(self.number)
