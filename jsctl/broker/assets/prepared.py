"""What a restore has made for groups that do not exist yet: state on the disk, and in memory.

It stands as if its group had a log of which nothing is left but its end. The first member of the
group begins with it; the others get it by a transfer of state. As long as no stream is assigned,
its directory has a mark: what has one when the process starts, and is assigned to nobody, is what
an unfinished restore has left behind.
"""

from collections.abc import Callable, Container
from dataclasses import field
from typing import Protocol

from jsctl.broker.assets.replicas.replica_context import ReplicaContext
from jsctl.broker.assets.replicas.replica_files import ReplicaFiles
from jsctl.broker.assets.replicas.stored_stream import StoredStream
from jsctl.broker.errors import DiskError
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.meta.assignments import GroupAssignment
from jsctl.broker.ports import Disk
from jsctl.broker.raft import codec
from jsctl.broker.raft.types import Members
from jsctl.broker.replication.disk_jobs import SaveStoreAndState
from jsctl.broker.store.wal.log import Wal
from jsctl.dataclass import dataclass

MARK = "restoring"
TERM = 1
ROOTS = ("streams", "consumers")


@dataclass(slots=True)
class Foundation:
    """Where a group begins that does so with a state."""

    group: GroupAssignment
    directory: str
    disk: Disk
    index: int
    told: bool = False
    """The log knows of it."""

    @property
    def volatile(self) -> bool:
        """Only memory holds it: there is no directory."""
        return self.group.storage == "memory"

    @property
    def members(self) -> Members:
        """Its only member at first."""
        return Members(self.group.founders)

    def mark(self) -> None:
        """Tell a later start whose this is; durable. Raises SyncFailed; other errors come again
        when something is stored."""
        if self.volatile:
            return
        self.disk.make_directory(self.directory)
        file = self.disk.open(f"{self.directory}/{MARK}", create=True)
        try:
            file.sync()
        finally:
            file.close()
        self.disk.sync_directory(self.directory)

    def unmark(self) -> None:
        """It is a group's from now on. A mark that stays is removed by a later start."""
        if not self.volatile:
            _unmark(self.disk, self.directory)

    def tell_log(self, wal: Wal) -> None:
        """The group's log begins behind the state."""
        key, members = self.group.name.encode(), codec.encode_members(self.members)
        wal.add_vote(key, TERM, b"")
        wal.add_base(key, self.index, TERM, members)
        self.told = True

    def discard(self, context: ReplicaContext) -> None:
        """Nothing comes of it."""
        if self.told:
            context.groups.wal.add_drop(self.group.name.encode())
        if not self.volatile:
            context.groups.removals.discard(self.disk, self.directory)


class Prepared(Protocol):
    """A replica that waits to be assigned."""

    base: Foundation

    def job(self) -> Callable[[], None]:
        """What makes it durable, for the disk thread."""

    def discard(self, context: ReplicaContext) -> None:
        """Nothing comes of it."""


@dataclass(slots=True)
class PreparedStream:
    """A stream's replica that waits to be assigned."""

    base: Foundation
    stored: StoredStream
    _job: SaveStoreAndState | None = None

    def job(self) -> Callable[[], None]:
        """What makes it durable, for the disk thread."""
        if self.base.volatile:
            return lambda: None
        stored, base = self.stored, self.base
        members = codec.encode_members(base.members)
        self._job = stored.job(stored.stream, stored.number, base.index, TERM, members)
        return self._job.run

    def saved(self) -> None:
        """That ran."""
        if self._job is not None:
            self.stored.checkpointed(self._job)

    def discard(self, context: ReplicaContext) -> None:
        """Nothing comes of it."""
        self.stored.stream.store.close()
        self.base.discard(context)


@dataclass(slots=True)
class PreparedConsumer:
    """A consumer's replica that waits to be assigned."""

    base: Foundation
    consumer: Consumer
    files: ReplicaFiles

    def job(self) -> Callable[[], None]:
        """What makes it durable, for the disk thread."""
        if self.base.volatile:
            return lambda: None
        members = codec.encode_members(self.base.members)
        write = self.files.write(self.base.index, TERM, members, self.consumer.snapshot())

        def save() -> None:
            self.base.mark()
            write.run()

        return save

    def discard(self, context: ReplicaContext) -> None:
        """Nothing comes of it."""
        self.base.discard(context)


@dataclass(slots=True)
class PreparedReplicas:
    """Those of this server, by the names of their groups."""

    streams: dict[str, PreparedStream] = field(default_factory=dict)
    consumers: dict[str, PreparedConsumer] = field(default_factory=dict)
    receiving: set[str] = field(default_factory=set)
    """Groups of restores under way."""
    swept: bool = False
    """What unfinished restores of earlier processes left behind is gone."""


def sweep(disk: Disk, alive: Container[str], receiving: Container[str]) -> list[str]:
    """For the disk thread, once after the start: remove what unfinished restores left behind, and
    marks that are not needed any more. `alive`: groups that are here or are to be; `receiving`:
    those of restores that this process has begun already, which need their marks. Returns the
    directories that were removed. Raises nothing."""
    removed: list[str] = []
    for root in ROOTS:
        for name in disk.list(root):
            directory = f"{root}/{name}"
            if name in receiving or not disk.exists(f"{directory}/{MARK}"):
                continue
            try:
                if name in alive:
                    _unmark(disk, directory)
                else:
                    disk.remove_tree(directory)
                    removed.append(directory)
            except DiskError:
                continue  # The next start finds it again.
    return removed


def _unmark(disk: Disk, directory: str) -> None:
    try:
        disk.remove(f"{directory}/{MARK}")
    except DiskError:
        return
