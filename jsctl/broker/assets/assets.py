"""Streams and consumers on this server, built and dropped as the meta state says."""

from collections.abc import Callable, Iterable
from dataclasses import field

from jsctl.api.words import Retention
from jsctl.broker.assets import left_behind
from jsctl.broker.assets.assigned_files import AssignedFiles
from jsctl.broker.assets.lost_log import forget_loss
from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.assets.prepared import (
    TERM,
    Foundation,
    PreparedReplicas,
    PreparedStream,
    sweep,
)
from jsctl.broker.assets.replicas.absent_consumer import AbsentConsumer
from jsctl.broker.assets.replicas.consumer_replica import ConsumerReplica
from jsctl.broker.assets.replicas.pushers import Pushers
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.replica_files import ReplicaFiles
from jsctl.broker.assets.replicas.stored_stream import StoredStream
from jsctl.broker.assets.replicas.stream_replica import StreamReplica
from jsctl.broker.errors import Damaged
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.leader import CONSUMER_DELETED
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    GroupAssignment,
    StreamAssignment,
    ends_with_process,
)
from jsctl.broker.jetstream.meta.state import ChangeKind, MetaChange
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Timing
from jsctl.broker.replication import state_file
from jsctl.broker.replication.bootstrap import GroupBootstrap, consequence
from jsctl.broker.replication.group import RaftGroup
from jsctl.broker.replication.state_file import LoadedState
from jsctl.broker.turn import LogLevel
from jsctl.dataclass import dataclass

StreamKey = tuple[str, str]
ConsumerKey = tuple[str, str, str]


@dataclass(slots=True)
class Assets:
    """Everything that this server hosts a replica of."""

    context: ReplicaContext
    starter: GroupBootstrap
    new_id: Callable[[], str]
    streams: dict[StreamKey, StreamReplica]
    """Given, as the quota counts what they hold."""
    alone: bool
    """No other server has the meta state."""
    consumers: dict[ConsumerKey, ConsumerReplica] = field(default_factory=dict)
    pushers: Pushers = field(init=False)
    written: AssignedFiles = field(init=False)
    prepared: PreparedReplicas = field(default_factory=PreparedReplicas)
    postponed: dict[tuple[str, ...], StreamAssignment | ConsumerAssignment] = field(
        default_factory=dict
    )
    """Assignments that wait until the place of an earlier replica is free."""
    unremembered: dict[tuple[str, ...], StreamAssignment | ConsumerAssignment] = field(
        default_factory=dict
    )
    """Those of memory replicas that this process has to get anew. They wait until it knows where
    the group is now: only then, when all of its members forgot it, may it start over."""
    unsettled: dict[str, "StreamReplica | ConsumerReplica"] = field(default_factory=dict)
    """Replicas whose group has to be brought to the wanted peers, by group name."""

    def __post_init__(self) -> None:
        context = self.context
        self.pushers = Pushers(context.traffic)
        nothing_waits = not self.alone or not self.starter.lost
        jobs = context.groups.side_jobs
        self.written = AssignedFiles(context.disk, jobs, self.alone, nothing_waits)

    def follow(self, change: MetaChange) -> None:
        """Do what one applied change of the meta state asks of this server."""
        after = change.after
        if isinstance(after, StreamAssignment):
            self._follow_stream(after)
        elif isinstance(after, ConsumerAssignment):
            self._follow_consumer(after)
        elif change.kind is ChangeKind.REMOVED and change.server is None:
            if change.consumer:
                self._end_consumer((change.account, change.stream, change.consumer))
            else:
                self._end_stream((change.account, change.stream))

    def listen_anew(self, account: str) -> None:
        """An account has come, or is gone, or its JetStream: what is led here hears its clients
        from now on, or does not."""
        for (owner, _), stream in self.streams.items():
            if owner == account:
                stream.listen_anew()
        for (owner, _, _), consumer in self.consumers.items():
            if owner == account:
                consumer.listen_anew()
                consumer.wake()

    def _follow_stream(self, assignment: StreamAssignment, newest: bool = False) -> None:
        key = (assignment.account, assignment.name)
        replica = self.streams.get(key)
        if replica is not None and replica.assignment.group.name != assignment.group.name:
            self._drop_stream(key)
            replica = None
        if self.context.me not in assignment.group.members:
            self._drop_stream(key)  # Also one that waits to be built.
            return
        if replica is None:
            if self._waits(key, f"streams/{assignment.group.name}", assignment, newest):
                return
            replica = self._build_stream(assignment)
        else:
            replica.assign(assignment)
        self.unsettled[replica.group.name] = replica
        self.written.note(assignment, known=self.context.replaying)

    def _follow_consumer(self, assignment: ConsumerAssignment, newest: bool = False) -> None:
        key = (assignment.account, assignment.stream, assignment.name)
        replica = self.consumers.get(key)
        if replica is not None and replica.assignment.group.name != assignment.group.name:
            self._drop_consumer(key)
            replica = None
        stream = self.streams.get(key[:2])
        if stream is None:
            assert replica is None, "a stream takes its consumers along"
            return
        if self.context.me not in assignment.group.members:
            # Noted first: without it nobody would need what it has not consumed yet.
            stream.absent[assignment.name] = AbsentConsumer.of(assignment)
            self._drop_consumer(key)  # Also one that waits to be built.
            return
        if replica is None:
            if self._waits(key, f"consumers/{assignment.group.name}", assignment, newest):
                stream.absent[assignment.name] = AbsentConsumer.of(assignment)
                return
            if self._is_over(assignment):
                self.unremembered[key] = assignment
                self.context.unused.append(assignment)
                return
            replica = self._build_consumer(assignment, stream)
        else:
            replica.assign(assignment)
            self.pushers.put(replica)
        self.unsettled[replica.group.name] = replica
        self.written.note(assignment, known=self.context.replaying)

    def _waits(
        self,
        key: tuple[str, ...],
        place: str,
        assignment: StreamAssignment | ConsumerAssignment,
        newest: bool,
    ) -> bool:
        """Whether a replica cannot be built yet; it is remembered then."""
        group = assignment.group
        self.postponed.pop(key, None)
        self.unremembered.pop(key, None)
        if self.context.groups.removals.discarding(place):
            self.postponed[key] = assignment
            return True
        made_here = group.incarnations.get(self.context.me) == self.starter.boot
        if group.storage == "memory" and not made_here and not newest:
            self.unremembered[key] = assignment
            return True
        return False

    def _is_over(self, assignment: ConsumerAssignment) -> bool:
        """Whether a consumer ended with the process before. Where this server alone is the meta
        group it is deleted; a cluster keeps the assignment, and the consumer begins anew."""
        if assignment.group.incarnations.get(self.context.me) == self.starter.boot:
            return False
        meta = self.context.groups.by_name.get(META_GROUP)
        alone = meta is not None and meta.raft.members.voters == (self.context.me,)
        return alone and ends_with_process(assignment)

    @property
    def knows_all(self) -> bool:
        """Whether all assignments are applied here that the meta leader has."""
        return self.context.knows_all

    @property
    def waiting(self) -> bool:
        """Whether `retry` may have something to do."""
        return bool(self.postponed) or (bool(self.unremembered) and self.knows_all)

    def retry(self, consumers_of: Callable[[str, str], Iterable[ConsumerAssignment]]) -> None:
        """Build what waited, as far as that is possible now."""
        postponed, self.postponed = self.postponed, {}
        newest = self.knows_all
        if newest:
            postponed |= self.unremembered
            self.unremembered = {}
        for assignment in postponed.values():
            if isinstance(assignment, ConsumerAssignment):
                self._follow_consumer(assignment, newest)
                continue
            self._follow_stream(assignment, newest)
            for consumer in consumers_of(assignment.account, assignment.name):
                self._follow_consumer(consumer, newest)

    # Building

    def _load(self, directory: str, name: str) -> LoadedState:
        # Most groups that are built in a running server are new: one look tells that.
        if not self.context.disk.list(directory):
            return LoadedState(None, is_new=True)
        if self.starter.left_over(name.encode()):
            self.context.disk.remove_tree(directory)
        return state_file.load(self.context.disk, directory)

    def _raft(
        self,
        group: GroupAssignment,
        loaded: LoadedState,
        *,
        doubt: bool = False,
        salvage: bool = False,
        reached: int = 0,
    ) -> Raft:
        raft = self.starter.start(
            group.name.encode(),
            loaded.state,
            peers=group.members,
            founders=group.founders,
            life=group.incarnations.get(self.context.me),
            volatile=group.storage == "memory",
            damaged=bool(loaded.damage),
            doubt=doubt,
            salvage=salvage,
            reached=reached,
        )
        where = consequence(raft, alone=len(group.members) == 1)
        for damage in loaded.damage:
            self.context.log(LogLevel.ERROR, f"Damaged state: {damage}; {where}")
        return raft

    def _build_stream(self, assignment: StreamAssignment) -> StreamReplica:
        group, key = assignment.group, (assignment.account, assignment.name)
        assert key not in self.streams
        prepared = self.prepared.streams.pop(group.name, None)
        if prepared is not None:
            return self._take_stream(assignment, prepared)
        directory = f"streams/{group.name}"
        loaded = self._load(directory, group.name)
        stored = StoredStream.load(self.context, directory, assignment, loaded)
        doubt = bool(loaded.damage) and stored.overtaken
        if stored.forgets_removals and len(group.members) > 1:
            # A removal is in no message that a peer could be asked for: all of it is fetched.
            stored = stored.anew(assignment)
            loaded = LoadedState(None, (Damaged("what was removed is lost", path=directory),))
            doubt = True
        reached = 0 if stored.volatile else stored.stream.store.mark
        raft = self._raft(group, loaded, doubt=doubt, salvage=True, reached=reached)
        replica = StreamReplica(self.context, assignment, stored, raft)
        self._add(replica.group, loaded)
        self.streams[key] = replica
        self._prefer(assignment.group, replica.group.raft)
        return replica

    def _build_consumer(
        self, assignment: ConsumerAssignment, stream: StreamReplica
    ) -> ConsumerReplica:
        group, key = assignment.group, (assignment.account, assignment.stream, assignment.name)
        assert key not in self.consumers
        prepared = self.prepared.consumers.pop(group.name, None)
        if prepared is not None:
            raft = self._begin(prepared.base)
            return self._put_consumer(
                assignment, prepared.consumer, stream, prepared.files, raft, prepared.base
            )
        directory = f"consumers/{group.name}"
        loaded = self._load(directory, group.name)
        consumer = Consumer(
            assignment.stream,
            assignment.name,
            assignment.config,
            created_ns=assignment.created_ns,
            acks_watched=stream.stream.config.retention is not Retention.LIMITS,
        )
        files = ReplicaFiles.behind(self.context.disk, directory, loaded.state)
        if loaded.state is not None and group.storage != "memory":
            consumer.restore(loaded.state.snapshot)
        return self._put_consumer(
            assignment, consumer, stream, files, self._raft(group, loaded), loaded
        )

    def _put_consumer(
        self,
        assignment: ConsumerAssignment,
        consumer: Consumer,
        stream: StreamReplica,
        files: ReplicaFiles,
        raft: Raft,
        origin: LoadedState | Foundation,
    ) -> ConsumerReplica:
        replica = ConsumerReplica(
            self.context, assignment, consumer, stream, files, self.new_id, raft
        )
        if isinstance(origin, Foundation):
            self._add_prepared(replica.group, origin)
        else:
            self._add(replica.group, origin)
        self.consumers[assignment.account, assignment.stream, assignment.name] = replica
        stream.watchers[assignment.name] = replica
        stream.absent.pop(assignment.name, None)
        self.pushers.put(replica)
        self._prefer(assignment.group, raft)
        return replica

    # What a restore has made

    def _take_stream(self, assignment: StreamAssignment, prepared: PreparedStream) -> StreamReplica:
        raft = self._begin(prepared.base)
        replica = StreamReplica(self.context, assignment, prepared.stored, raft)
        self._add_prepared(replica.group, prepared.base)
        self.streams[assignment.account, assignment.name] = replica
        return replica

    def _begin(self, base: Foundation) -> Raft:
        raft = self.starter.begin(
            base.group.name.encode(), base.members, base.index, TERM, base.volatile
        )
        raft.campaign()
        return raft

    def _add_prepared(self, group: RaftGroup, base: Foundation) -> None:
        group.checkpointed = 0 if base.volatile else base.index
        group.applied_term = TERM
        self.context.groups.add(group)

    def _here(self) -> set[str]:
        """Groups that are on this server, or are to be."""
        waiting = (*self.postponed.values(), *self.unremembered.values())
        return {*self.context.groups.by_name, *(one.group.name for one in waiting)}

    def _sweep(self) -> None:
        """Once it is known which groups are to be here: remove what unfinished restores of
        earlier processes left behind."""
        if self.prepared.swept or not self.knows_all:
            return
        self.prepared.swept = True
        alive = self._here()
        receiving = frozenset(self.prepared.receiving)
        disk, removed = self.context.disk, list[str]()

        def told() -> None:
            for directory in removed:
                text = f"Removed '{directory}', which an unfinished restore left behind"
                self.context.log(LogLevel.INFO, text)

        run = self.context.groups.side_jobs.run
        run(lambda: removed.extend(sweep(disk, alive, receiving)), told)

    def _add(self, group: RaftGroup, loaded: LoadedState) -> None:
        # A memory group begins anew, wherever it stood when its state was written.
        if loaded.state is not None and not group.raft.volatile:
            group.checkpointed = loaded.state.index
            group.applied_term = loaded.state.term
        self.context.groups.add(group)

    def _prefer(self, group: GroupAssignment, raft: Raft) -> None:
        """Stand for election at once, where the meta leader wants the first leader to be."""
        if group.preferred == self.context.me and raft.term == 0:
            raft.campaign()

    # Dropping

    def _end_stream(self, key: StreamKey) -> None:
        """It exists no more, here or elsewhere."""
        if key in self.streams:
            self.streams[key].leave()
        self._drop_stream(key)

    def _drop_stream(self, key: StreamKey) -> None:
        self.postponed.pop(key, None)
        self.unremembered.pop(key, None)
        replica = self.streams.pop(key, None)
        if replica is None:
            return
        for name in list(replica.watchers):
            self._drop_consumer((*key, name))
        self.unsettled.pop(replica.group.name, None)
        self.written.forget(replica.assignment)
        self._tombstone(replica.group)
        replica.delete()

    def _end_consumer(self, key: ConsumerKey) -> None:
        """It exists no more, here or elsewhere."""
        stream = self.streams.get(key[:2])
        if stream is not None and stream.absent.pop(key[2], None) is not None:
            stream.consumed_anew()
            stream.bereave()
        self._drop_consumer(key)

    def _drop_consumer(self, key: ConsumerKey) -> None:
        self.postponed.pop(key, None)
        self.unremembered.pop(key, None)
        replica = self.consumers.pop(key, None)
        if replica is None:
            return
        self.unsettled.pop(replica.group.name, None)
        replica.stream.unwatch(key[2])
        self.pushers.remove(replica)
        replica.end(CONSUMER_DELETED)
        self.written.forget(replica.assignment)
        self._tombstone(replica.group)
        replica.take_rest()
        replica.delete()
        replica.stream.consumed_anew()

    def _tombstone(self, group: RaftGroup) -> None:
        self.context.groups.remove(group)
        self.context.queue.forget(group.name)
        self.starter.tombstone(group.key, self.context.meta_applied)

    def _renew_superseded(self) -> None:
        """Replicas that the rest of their group went on without, with others in place of entries
        that were committed here: they begin as after the loss of what they held."""
        streams = [one for one in self.streams.values() if one.group.raft.superseded]
        gone: list[StreamReplica | ConsumerReplica] = [*streams]
        gone += [
            one
            for one in self.consumers.values()
            if one.group.raft.superseded or one.stream in streams
        ]
        for replica in gone:
            made = replica.assignment
            if isinstance(made, ConsumerAssignment):
                self._drop_consumer((made.account, made.stream, made.name))
        for replica in gone:
            made, group = replica.assignment, replica.group
            if isinstance(made, StreamAssignment):
                self._drop_stream((made.account, made.name))
            self.starter.remember(group.key, group.raft.term, group.raft.vote)
            self.context.log(
                LogLevel.ERROR,
                f"The servers of '{group.name}' went on without this one, and without what only"
                " it had: that is given up",
            )
        for replica in gone:
            made = replica.assignment
            if isinstance(made, StreamAssignment):
                self.postponed[(made.account, made.name)] = made
            elif replica not in streams and (made.account, made.stream) in self.streams:
                self.postponed[(made.account, made.stream, made.name)] = made

    def tidy(self, timing: Timing) -> None:
        """Now and then; `timing` is what groups are to keep time by."""
        if timing != self.starter.timing:
            self.starter.timing = timing
            for group in self.context.groups.by_name.values():
                group.raft.retime(timing)
        self._renew_superseded()
        left_behind.forget(self.context, self.starter, self._here)
        self._settle_loss()
        self._sweep()
        self.written.write(self._assigned)
        if not self.context.disk_full:
            self.context.disk.hold_room()

    def _assigned(self) -> list[StreamAssignment | ConsumerAssignment]:
        streams = [one.assignment for one in self.streams.values()]
        return [*streams, *(one.assignment for one in self.consumers.values())]

    def _settle_loss(self) -> None:
        """When all assignments are known, every group that was here has begun, in
        doubt if need be, and says so itself; what is assigned from now on is new."""
        starter, groups = self.starter, self.context.groups
        if starter.loss_marked and self.knows_all and self.written.all_taken_up:
            starter.begun()
            if groups.idle and not groups.wal.pending_bytes:
                starter.forget_mark()
                forget_loss(self.context.disk)

    def park(self) -> None:
        """This server was removed from the cluster: serve nothing, delete nothing."""
        self.close()
        self.streams.clear()
        self.consumers.clear()
        self.pushers.clear()
        self.unsettled.clear()
        self.context.queue.clear()

    def close(self) -> None:
        """Release files; keep all data."""
        for replica in self.streams.values():
            replica.close()
