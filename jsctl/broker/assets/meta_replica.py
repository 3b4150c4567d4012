"""The meta group on this server: every JetStream server has a replica of the meta state.

What applying changed is handed on, so that groups are built and dropped; the leader reconciles
the set of servers and answers management requests.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from jsctl.broker.assets.replica_context import ReplicaContext
from jsctl.broker.jetstream.meta.state import Meta
from jsctl.broker.replication.group import RaftGroup, SyncJob, Waiter
from jsctl.broker.replication.state_file import GroupState, WriteState
from jsctl.broker.replication.state_import import StateImporter, pieces

GROUP_NAME = "_meta_"
DIRECTORY = "meta"


@dataclass(slots=True)
class MetaReplica:
    """Implements `group.Replica`."""

    env: ReplicaContext
    meta: Meta
    follow: Callable[[], None]
    """Called after entries were applied, to take `meta.take_changes()`."""
    generation: int = 0
    group: RaftGroup = field(init=False)
    leading: bool = False
    newest: int = 0
    """Index of the last change that was applied from the log."""
    _checkpointed: int = 0

    def apply(self, index: int, data: bytes) -> int:
        """Take one committed entry."""
        self.newest = index
        return self.meta.apply(index, data)

    def caught_up(self) -> None:
        """Build and drop what the applied entries say."""
        self.follow()

    def founded(self) -> None:
        """An empty meta state needs nothing."""

    def lead(self, term: int) -> None:
        """Management requests are answered here from now on."""
        self.leading = True
        self.meta.drop_in_flight()

    def unlead(self) -> None:
        """Somebody else answers; what is in flight is for them to know."""
        self.leading = False
        self.meta.drop_in_flight()

    def propose(self, entries: list[bytes], waiter: Waiter | None) -> bool:
        """Put entries into the meta log; False when this server does not lead."""
        if self.env.groups.propose(self.group, entries, waiter) is None:
            return False
        self.meta.note_in_flight(entries)
        return True

    def checkpoint(self, index: int, term: int, members: bytes) -> SyncJob | None:
        """Write the state."""
        if index <= self._checkpointed:
            return None
        self._checkpointed = index
        state = GroupState(self._next(), index, term, members, self.meta.snapshot())
        return WriteState(self.env.disk, DIRECTORY, state, ())

    def checkpointed(self, job: SyncJob) -> None:
        """Nothing more to do."""

    def _next(self) -> int:
        self.generation += 1
        return self.generation

    def state_overtaken(self) -> None:
        """The state file does not speak of this state: write one with the next checkpoint."""
        self._checkpointed = -1

    def export(self) -> Iterator[bytes]:
        """The whole state."""
        return pieces([self.meta.snapshot()])

    def importer(self) -> StateImporter:
        """Take the state of another replica."""
        return StateImporter(self.env.disk, DIRECTORY, self._next, self.meta.restore)

    def close(self) -> None:
        """Nothing is held."""

    def delete(self) -> None:
        """This server was removed from the cluster: forget what it knew of it."""
        self.env.disk.remove_tree(DIRECTORY)
