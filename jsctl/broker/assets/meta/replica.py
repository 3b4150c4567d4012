"""The meta group on this server: every JetStream server has a replica of the meta state.

What applying changed is followed, so that groups are built and dropped; the leader reconciles
the set of servers and answers management requests.
"""

from collections.abc import Iterator, Sequence
from dataclasses import InitVar, field

from jsctl.broker.assets.assets import Assets
from jsctl.broker.assets.cluster_view import ClusterView
from jsctl.broker.assets.meta.group_file import META_DIRECTORY, META_GROUP
from jsctl.broker.assets.replicas.facts import MetaChanged
from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.replica_files import ReplicaFiles
from jsctl.broker.jetstream.meta.entries import Assignment
from jsctl.broker.jetstream.meta.state import ChangeKind, Meta, MetaChange
from jsctl.broker.raft.core import Raft
from jsctl.broker.raft.types import Entry
from jsctl.broker.replication.group import GroupKind, RaftGroup, SyncJob, Waiter
from jsctl.broker.replication.state_file import LoadedState
from jsctl.broker.replication.state_import import StateImporter, pieces
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class MetaReplica:
    """Implements `group.Replica`."""

    context: ReplicaContext
    meta: Meta
    assets: Assets
    raft: InitVar[Raft]
    loaded: InitVar[LoadedState]
    cluster: ClusterView
    group: RaftGroup = field(init=False)
    files: ReplicaFiles = field(init=False)
    told_to_go: bool = False
    """An operator removed this server, in its present life."""
    _history: int = field(init=False)
    """The log's end at the start: what comes up to here was decided before."""
    _newest: int = 0
    """Index of the last change that was applied from the log."""

    def __post_init__(self, raft: Raft, loaded: LoadedState) -> None:
        self.group = RaftGroup(
            META_GROUP, META_GROUP.encode(), GroupKind.META, raft, self, {}, passes=self._passes
        )
        self.files = ReplicaFiles.behind(self.context.disk, META_DIRECTORY, loaded.state)
        self._history = raft.last_index
        if loaded.state is not None:
            self.meta.restore(loaded.state.snapshot)
            self.group.checkpointed = loaded.state.index
            self.group.applied_term = loaded.state.term

    @property
    def leading(self) -> bool:
        """Whether management requests are decided on here."""
        return self.group.leading

    def apply(self, index: int, data: bytes) -> int:
        """Take one committed entry."""
        assert index > self._newest, f"entry {index} again, after {self._newest}"
        self._newest = index
        return self.meta.apply(index, data)

    @property
    def _rereads(self) -> bool:
        """Whether more is to come of what the log had at the start, as far as is known."""
        raft = self.group.raft
        return raft.applied < min(self._history, raft.last_index) and not raft.abreast

    def caught_up(self) -> None:
        """Build and drop what the applied entries say: all at once what is read anew at the start,
        so that nothing is given up by what was decided before it came back."""
        if self._newest and self._rereads:
            return
        context = self.context
        context.replaying = self._newest <= self._history
        changes = self.meta.take_changes()
        newest = {(one.account, one.stream, one.consumer): one.after for one in changes}
        for change in changes:
            if not self._comes_back(change, newest[change.account, change.stream, change.consumer]):
                self._follow(change)
            context.facts.append(MetaChanged(change, self.leading))
            before, after = change.before, change.after
            if before and (after is None or after.group.name != before.group.name):
                self.cluster.forget_group(before.group.name)
            server = change.server
            if server is not None and server.removed:
                if server.peer == context.me:
                    self.told_to_go = server.incarnation == context.incarnation
                elif self.cluster.is_life_of(server):
                    # It lives on and leads nothing any more: who sleeps in trust of it wakes up.
                    context.groups.peer_down(server.peer)

    def _comes_back(self, change: MetaChange, newest: Assignment | None) -> bool:
        """Whether a replica is to leave this server by a change, and by a later one to be here."""
        me, after = self.context.me, change.after
        if after is None or newest is None or me in after.group.members:
            return False
        return newest.group.name == after.group.name and me in newest.group.members

    def _follow(self, change: MetaChange) -> None:
        """A stream that is new on this server may have consumers whose assignments say nothing of
        it: it has to keep what is for them."""
        streams, key = self.assets.streams, (change.account, change.stream)
        before = streams.get(key)
        self.assets.follow(change)
        now = streams.get(key)
        if not change.consumer and now is not None and now is not before:
            for made in self.meta.applied_consumers(*key):
                if self.context.me not in made.group.members:
                    kind, name = ChangeKind.UPDATED, made.name
                    self.assets.follow(MetaChange(kind, *key, name, before=made, after=made))

    def founded(self) -> bool:
        """An empty meta state needs nothing; what it promises rests on this log alone."""
        return False

    def lead(self, term: int) -> None:
        """Management requests are answered here from now on."""
        self.meta.drop_in_flight()

    def unlead(self) -> None:
        """Somebody else answers; what is in flight is for them to know."""
        self.meta.drop_in_flight()

    def propose(self, entries: list[bytes], waiter: Waiter | None) -> bool:
        """Put entries into the meta log; False when this server does not lead."""
        if self.context.groups.propose(self.group, entries, waiter) is None:
            return False
        self.meta.note_in_flight(entries)
        return True

    def _passes(self, entries: Sequence[Entry]) -> bool:
        return all(self.meta.is_passing(entry.data) for entry in entries)

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        """Write the state."""
        if not self.files.is_due(index):
            return None
        return self.files.draft(index, term, members, self.meta.portions())

    def checkpointed(self, job: SyncJob) -> None:
        """Nothing more to do."""

    def state_overtaken(self) -> None:
        """The state file does not speak of this state: write one with the next checkpoint."""
        self.files.overtaken()

    def export(self) -> Iterator[bytes]:
        """The whole state."""
        return pieces([self.meta.snapshot()])

    def is_damaged(self) -> bool:
        """It is in memory, whole."""
        return False

    def importer(self) -> StateImporter:
        """Take the state of another replica."""
        files = self.files
        return StateImporter(
            self.context.disk, files.directory, files.next_generation, self.meta.restore
        )

    def close(self) -> None:
        """Nothing is held."""

    def delete(self) -> None:
        """This server was removed from the cluster: forget what it knew of it."""
        self.context.disk.remove_tree(self.files.directory)
