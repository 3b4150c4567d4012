"""A consumer on this server: its replica, and while this server leads, its deliveries.

The leader's server subscribes to the consumer's pull requests, acknowledgements and flow control
replies. Once a turn, when something happened, the leader says what to publish and what to log.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, field
from itertools import filterfalse

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.words import AckPolicy, Retention
from jsctl.broker.assets.replicas.assigned import Assigned, AwaitedAnswers
from jsctl.broker.assets.replicas.facts import ConsumerAdvisories, ConsumerServes
from jsctl.broker.assets.replicas.interests import concerns_of
from jsctl.broker.assets.replicas.listening import Listening
from jsctl.broker.assets.replicas.replica_context import REFUSED_NS, ReplicaContext
from jsctl.broker.assets.replicas.replica_files import ReplicaFiles
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.interest.targets import Sink
from jsctl.broker.jetstream.consumers.acks import ack_pattern, flow_pattern, next_subject
from jsctl.broker.jetstream.consumers.consumer import Consumer, config_entry, filters_of
from jsctl.broker.jetstream.consumers.entries import (
    ConsumerEntryKind,
    ConsumerProgress,
    encode_reset,
)
from jsctl.broker.jetstream.consumers.facts import ConsumerTurn
from jsctl.broker.jetstream.consumers.leader import (
    LEADERSHIP_CHANGE,
    ConsumerLeader,
    is_answer,
)
from jsctl.broker.jetstream.consumers.starting import begin, starts_alike, takes_long
from jsctl.broker.jetstream.meta.assignments import ConsumerAssignment
from jsctl.broker.jetstream.requests import ApiRequest
from jsctl.broker.protocol.deliveries import OutgoingMessage
from jsctl.broker.raft.core import Raft
from jsctl.broker.replication.group import GroupKind, RaftGroup, SyncJob
from jsctl.broker.replication.state_import import StateImporter, pieces
from jsctl.broker.store.stream_store import Removed
from jsctl.broker.subject.matching import Filters
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class ConsumerReplica:
    """Implements `group.Replica`, `Runner`, `Reader` and `ConsumerWatcher`."""

    context: ReplicaContext
    newest: InitVar[ConsumerAssignment]
    consumer: Consumer
    stream: StreamReplica
    files: ReplicaFiles
    new_id: Callable[[], str]
    raft: InitVar[Raft]
    account: str = field(init=False)
    group: RaftGroup = field(init=False)
    assigned: Assigned[ConsumerAssignment] = field(init=False)
    _awaited: AwaitedAnswers = field(init=False)
    leader: ConsumerLeader | None = None
    acks: Sink = field(init=False)
    pulls: Sink = field(init=False)
    flow: Sink = field(init=False)
    filed: Sink = field(init=False)
    """Answers to dead letters."""
    _due_ns: int | None = None
    _tickets: dict[int, int] = field(default_factory=dict)
    """Log index -> ticket of the leader's turn."""
    _listening: Listening = field(init=False)
    _applied: int = 0  # The last entry.
    _start_behind: tuple[int, int] | None = None
    """(term, index) that the stream's replica here has to have applied before a start is chosen."""
    _told_damage: tuple[int, int] | None = None
    _coming: ConsumerConfig | None = None
    """The newest config that the log took while this server leads."""
    _known_as: ConsumerAssignment | None = None
    """What the stream's leader said to know it as."""
    _coming_filters: Filters | None = None
    """Those that it is to have, while its log has others."""
    _said: list[OutgoingMessage] = field(default_factory=list)
    """To be published once the entries of this drain are applied."""

    def __post_init__(self, newest: ConsumerAssignment, raft: Raft) -> None:
        assert self.stream.key == (newest.account, newest.stream)
        name = newest.group.name
        self.account = newest.account
        self.group = RaftGroup(
            name, name.encode(), GroupKind.CONSUMER, raft, self, {}, patient=self._is_patient
        )
        self.assigned = Assigned(self.context, newest, self.group)
        self._awaited = AwaitedAnswers(self.assigned)
        self.acks, self.pulls, self.flow, self.filed = (Sink(self) for _ in range(4))
        self._listening = Listening(self.context, newest.account)
        self._compare_filters()

    @property
    def assignment(self) -> ConsumerAssignment:
        """What the meta group wants it to be."""
        return self.assigned.assignment

    def interest_changed(self) -> bool:
        """Whether somebody began to listen since the last turn, or nobody does any more."""
        push = None if self.leader is None else self.leader.push
        return push is not None and push.wanted() != push.active

    def _is_patient(self) -> bool:
        """Whether other servers only keep the progress: no stream lets go of what was consumed."""
        return self.stream.stream.config.retention is Retention.LIMITS

    # group.Replica

    def apply(self, index: int, data: bytes) -> int:
        """Take one committed entry; publish what waited for it."""
        assert index > self._applied, f"entry {index} after {self._applied}"
        self._applied = index
        # The stream may have begun to let go of what was consumed, or ceased to.
        self.consumer.state.acks_watched = not self._is_patient()
        before = self.consumer.config
        result = self.consumer.apply(index, data)
        if data[0] == ConsumerEntryKind.CONFIG:
            self._compare_filters()
            if filters_of(before) != filters_of(self.consumer.config):
                self.stream.interest_lost()
                self._read()
        if self.consumer.state.dead:
            self.stream.touched.add(self.consumer.name)
        if self.leader is not None:
            # Who asked for the entry, and whoever asks after him, sees what it did.
            self.leader.follow_log(self.context.now_ns)
        ticket = self._tickets.pop(index, None)
        if ticket is not None and self.leader is not None:
            self._said += self.leader.committed(ticket)
        return result

    def caught_up(self) -> None:
        """Tell the stream what was consumed; look for more to do."""
        acked = self.consumer.take_acked()
        said, self._said = self._said, []
        # Who is told that an ack counts finds the message gone; deliveries do not wait for it.
        if acked and self.stream.consumed(acked, list(filter(is_answer, said))):
            said = list(filterfalse(is_answer, said))
        self._publish(said)
        if self.leader is not None:
            self._answer()
            self.wake()

    def _answer(self) -> None:
        leader = self.leader
        if leader is None or not self._awaited.is_due(self._applied):
            return
        is_current = self.assignment.config == self.consumer.config
        if leader.ready and is_current and self._is_introduced():
            for request in self._awaited.take():
                serves = ConsumerServes(self.assignment, self.consumer, leader, request)
                self.context.facts.append(serves)

    def answered(self, request: ApiRequest) -> None:
        """Who made or changed it was told how much is pending: it may deliver."""
        self._awaited.answered(request)
        self.wake()

    def founded(self) -> bool:
        """Where it starts is the first entry, if this server surely knows the whole stream.

        Chosen once more after a crash, it is the same: messages that came later are in this
        server's log behind the choice, or gone with it. But others keep those of a replicated
        stream, and only some policies do not pass them over then.
        """
        if self.stream.leader is None or self._waits_for_repair() or not self._is_known():
            return False
        if takes_long(self.consumer, self.stream.store):
            return False  # Who leads chooses.
        progress = ConsumerProgress(self.consumer.state.copy())
        begin(progress, self.consumer, self.stream.store)
        entry = progress.take(self.consumer.epoch)
        if entry is not None:
            self.context.groups.propose(self.group, [entry], None)
        alone = self.stream.group.raft.members.voters == (self.context.me,)
        return alone or starts_alike(self.consumer.config)

    def lead(self, term: int) -> None:
        """Start to deliver."""
        assert self.leader is None, f"{self.group.name} led already when it began in {term}"
        self.leader = ConsumerLeader(
            self.consumer,
            self.stream.store,
            replicated=len(self.group.raft.members.voters) > 1,
            has_interest=lambda subject: self.context.traffic.reached(self.account, subject),
            jitter=self.context.jitter,
            new_id=self.new_id,
            now_ns=self.context.now_ns,
            hopeless=lambda: self.stream.hopeless,
        )
        self._read()
        stream, name, config = self.assignment.stream, self.assignment.name, self.consumer.config
        for prefix in self.context.api_prefixes:
            self._listening.to(next_subject(stream, name, prefix), self.pulls)
        # Where nothing is confirmed, who waits for an answer hears at once that nobody listens.
        if config.ack_policy is not AckPolicy.NONE:
            self._listening.to(ack_pattern(stream, name), self.acks)
        if config.flow_control:
            self._listening.to(flow_pattern(stream, name), self.flow)
        self._propose_config()
        self._answer()
        self.wake()

    def _read(self) -> None:
        """Hear of the stream's messages, those that are for it."""
        if self.leader is not None:
            wary = bool(self.leader.state.pending)
            self.stream.readers.add(self, self.consumer.filters, wary=wary)

    def listen_anew(self) -> None:
        """The account has come, or is gone, or its JetStream: without, nothing is heard or sent."""
        self._listening.anew()

    def unlead(self) -> None:
        """Stop to deliver; waiting pulls are told to ask the next leader."""
        self.end(LEADERSHIP_CHANGE)

    def end(self, reason: str, *, pending: bool = False) -> None:
        """It delivers no more: another leads, it is deleted, or the server goes."""
        self._listening.end()
        self.stream.readers.remove(self)
        leader, self.leader = self.leader, None
        self._start_behind = self._coming = self._due_ns = None
        self._awaited.forget()
        self._tickets.clear()
        self._said.clear()
        self.context.queue.searched(self.group.name)
        pulls = self.pulls.take()
        for sink in (self.acks, self.flow, self.filed):
            sink.take()
        if leader is not None:
            self._publish(leader.close(reason, pending=pending, pulls=pulls))

    def take_rest(self) -> None:
        """It is gone. Its log counts, committed or not: elsewhere acks may be confirmed."""
        is_queue = self.stream.stream.config.retention is Retention.WORK_QUEUE
        rest = list(self.group.unapplied()) if is_queue else []
        acked = self.consumer.take_acked() + (self.consumer.acked_by(rest) if rest else [])
        self.stream.consumed(acked, [])

    # Once a turn

    def run(self) -> None:
        """Take what came in, deliver, log the progress."""
        leader = self.leader
        if leader is None:
            return
        raft = self.group.raft
        self.stream.readers.hear(self)
        if raft.accepting and self.assigned.config_refused:
            self._propose_config()
        if not raft.accepting or not self._may_start(leader):
            # The leader's state is ahead of the log; what the log refuses, it would never learn.
            self._due_ns = self.context.now_ns + REFUSED_NS
            return
        leader.scale(len(raft.members.voters) > 1)
        if leader.lacks_letters:
            self._listening.to(leader.open_letters(f"_INBOX.{self.new_id()}".encode()), self.filed)
        turn = self._turn(leader)
        if turn.entry is not None:
            index = self.context.groups.propose(self.group, [turn.entry], None)
            if index is not None:
                self._tickets[index] = turn.ticket
        self._publish(turn.publish)
        self._publish(turn.letters)
        if turn.advisories:
            self.context.facts.append(ConsumerAdvisories(self.assignment, turn.advisories))
        self._tell_damage(turn)
        if turn.inactive:
            self.context.unused.append(self.assignment)
        self._due_ns = turn.next_due_ns
        if turn.again:
            self.context.queue.wake_again(self.group.name, self)

    def _turn(self, leader: ConsumerLeader) -> ConsumerTurn:
        choosing, begin = leader.delivery.choice is not None, leader.choose_start
        if leader.searches:
            if not self.context.queue.search(self.group.name, self, self.stream.store, begin):
                return ConsumerTurn()
            self.consumer.state.coming = leader.state.last_seqs.copy()
        elif not begin(self.context.now_ns):
            return ConsumerTurn(again=True)
        if choosing:
            return leader.begun()
        return leader.turn(
            self.context.now_ns,
            acks=self.acks.take(),
            pulls=self.pulls.take(),
            flow=self.flow.take(),
            stored=self.filed.take(),
            most=0 if self._awaited.hold(leader.state) else self.context.queue.deliveries,
        )

    def _tell_damage(self, turn: ConsumerTurn) -> None:
        """Have repaired what is waited for, and tell the operator of it."""
        name = f"Consumer '{self.account} > {self.assignment.stream} > {self.assignment.name}'"
        for first, last in turn.passed_over.ranges():
            text = f"{name} passes over messages {first} to {last}: no replica has them"
            self.context.log(LogLevel.ERROR, text)
        if turn.damaged is None:
            return
        first, last = turn.damaged
        self.stream.needs_message(first)
        if turn.damaged != self._told_damage:
            self._told_damage = turn.damaged
            text = f"{name} waits until messages {first} to {last} are repaired on this server"
            self.context.log(LogLevel.WARNING, text)

    def _may_start(self, leader: ConsumerLeader) -> bool:
        """Whether it started, or its start can be chosen: where "new" and "last" are cannot be told
        from a replica that lacks what the stream's leader had when it was heard first, or may not
        apply all that it has. The next leader may have less."""
        if leader.state.started:
            return True
        if self._waits_for_repair() or not self._is_introduced():
            return False
        if self.stream.leader is not None:
            return True
        raft = self.stream.group.raft
        if raft.leader_last is None:
            return False
        if self._start_behind is None or self._start_behind[0] != raft.term:
            self._start_behind = raft.term, max(raft.leader_last, raft.last_index)
            self.context.groups.ask(self.stream.group)
        return raft.applied >= self._start_behind[1]

    def _is_known(self) -> bool:
        """Whether the stream's leader surely keeps what is for this consumer, as it is wanted, and
        has let go of what others before it were done with in a work queue (decision 80)."""
        stream = self.stream
        wanted, applied = stream.assignment.config.retention, stream.stream.config.retention
        if wanted is applied is Retention.LIMITS or self._known_as is self.assignment:
            return True
        return stream.leader is not None and stream.group.raft.members.voters == (self.context.me,)

    def _is_introduced(self) -> bool:
        """The same; if not, the stream's leader is asked."""
        if not (known := self._is_known()):
            self.context.strangers[self.group.name] = None
        return known

    def introduced(self, assignment: ConsumerAssignment) -> None:
        """The stream's leader knows it as this."""
        self._known_as = assignment
        self._answer()
        self.wake()

    def _waits_for_repair(self) -> bool:
        """Whether a message that decides where to start may be damaged here, but not elsewhere."""
        lost, hopeless = self.stream.store.lost, self.stream.hopeless
        return len(lost) > len(hopeless) and self.stream.needs_message(lost.first)

    def next_due_ns(self) -> int | None:
        """When `run` has to be called even if nothing happens."""
        return self._due_ns

    def _publish(self, items: Sequence[OutgoingMessage]) -> None:
        if items:
            self.context.traffic.deliver(self.account, items)

    def wake(self) -> None:
        """Have a turn: something was changed from outside."""
        self.context.queue.wake(self.group.name, self)

    # Reader

    def stored(self, first: int, count: int, seqs: Sequence[int] | None) -> bool:
        """The stream took messages from a sequence on; so many are for it."""
        if self.leader is not None and self.leader.stored(first, count, seqs):
            self.wake()
        return self.leader is None or not self.leader.delivery.deaf

    def removed(self, gone: Sequence[Removed]) -> None:
        """The stream lost these messages, and no others that are for it."""
        if self.leader is not None and self.leader.removed(gone):
            self.wake()

    def stream_changed(self) -> None:
        """The stream lost messages, or was replaced by a received state."""
        if self.leader is not None:
            self.leader.stream_changed(self.stream.store)
            self.wake()

    def purged(self, pattern: bytes) -> None:
        """The stream was purged of a pattern; empty: of everything."""
        if self.leader is not None:
            self.leader.purged(pattern)
            self.wake()

    # ConsumerWatcher

    def needs(self, seq: int, subject: bytes) -> bool:
        """Whether this consumer still has to see a message, or waits for its ack."""
        if self.consumer.needs(seq, subject):
            return True
        coming, state = self._coming_filters, self.consumer.state
        new = not state.started or seq > state.delivered_stream
        return coming is not None and new and coming.match(subject)

    def interested(self, subject: bytes) -> bool:
        """Whether messages on a subject are for this consumer."""
        coming = self._coming_filters
        return self.consumer.filters.match(subject) or (
            coming is not None and coming.match(subject)
        )

    @property
    def takes_all(self) -> bool:
        """Whether every subject of the stream is for this consumer."""
        return self.consumer.filters.is_all and self._coming_filters is None

    @property
    def concerns(self) -> Sequence[bytes] | None:
        """Patterns of all that may be for it; None: that may be anything."""
        return concerns_of(self.consumer, self._coming_filters)

    @property
    def leading(self) -> bool:
        """Whether deliveries are made here."""
        return self.leader is not None

    # Configuration travels through the consumer's own log

    def assign(self, assignment: ConsumerAssignment) -> None:
        """The meta state has another assignment for this consumer."""
        assert assignment.account == self.account and assignment.name == self.consumer.name
        asked = assignment.request != self.assigned.assignment.request
        self.assigned.renew(assignment)
        self._compare_filters()
        self._propose_config()
        if asked and assignment.config.sourcing and self.leader is not None:
            # Another stream asks anew: what it did not acknowledge did not arrive.
            entry = encode_reset(self.leader.state.floor_stream + 1)
            self._awaited.behind(self.context.groups.propose(self.group, [entry], None))
        self._answer()

    def _compare_filters(self) -> None:
        """What is for it from now on counts at once; what was, until its log says otherwise."""
        wanted = filters_of(self.assignment.config)
        self.stream.touched.add(self.consumer.name)
        self._coming_filters = None
        if wanted != filters_of(self.consumer.config):
            self._coming_filters = Filters(one.encode() for one in wanted)

    def _propose_config(self) -> None:
        self.assigned.config_refused = False
        wanted = self.assignment.config
        # One that is on its way counts: it would undo what was wanted again meanwhile.
        if self.leader is not None and wanted != (self._coming or self.consumer.config):
            self.assigned.propose_config(config_entry(wanted), self)
            if not self.assigned.config_refused:
                self._coming = wanted

    # Durability

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        """Write the state."""
        due = self.files.is_due(index)
        return self.files.write(index, term, members, self.consumer.snapshot()) if due else None

    def checkpointed(self, job: SyncJob) -> None:
        """Nothing more to do."""

    def state_overtaken(self) -> None:
        """The state file does not speak of this state: write one with the next checkpoint."""
        self.files.overtaken()

    def export(self) -> Iterator[bytes]:
        """The whole state."""
        return pieces([self.consumer.snapshot()])

    def is_damaged(self) -> bool:
        """It is in memory, whole."""
        return False

    def importer(self) -> StateImporter:
        """Take the state of another replica."""
        files = self.files
        return StateImporter(self.context.disk, files.directory, files.next_generation, self._take)

    def _take(self, snapshot: bytes) -> None:
        assert self.leader is None, "a leader's state replaces that of others"
        self.consumer.restore(snapshot)
        self._compare_filters()
        # A state does not tell which acks are new.
        self.stream.consumed_anew()

    def close(self) -> None:
        """Release what is held outside; keep the data."""
        self.end(LEADERSHIP_CHANGE)

    def delete(self) -> None:
        """Remove the data: the meta group decided so."""
        self.acks = self.pulls = self.flow = self.filed = Sink()  # The former ones hold it.
        self.context.groups.removals.discard(self.context.disk, self.files.directory)
