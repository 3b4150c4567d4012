"""Work for the disk thread besides the log: checkpoints and deletions, shaped as disk batches."""

from collections.abc import Sequence
from typing import ClassVar

from jsctl.broker.ports import Disk
from jsctl.broker.replication.group import RaftGroup, SyncJob
from jsctl.broker.replication.state_file import WriteState
from jsctl.broker.store.stream_store import StoreJob, StreamStore
from jsctl.broker.turn import DiskBatch
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class DiskJob:
    """A checkpoint on the disk thread, shaped as a disk batch."""

    ticket: int
    group: RaftGroup
    work: SyncJob
    brief: ClassVar[None] = None

    def run(self) -> None:
        """Write and sync. Raises DiskError; a replica that was removed needs nothing any more."""
        if self.group.gone:
            return
        self.work.run()


@dataclass(slots=True)
class Removal:
    """Deletes a directory on the disk thread, behind whatever still works in it."""

    ticket: int
    disk: Disk
    directory: str
    brief: ClassVar[None] = None

    def may_overtake(self, others: Sequence[DiskBatch]) -> bool:
        """Whether no group works in the directory with one of these."""
        parts = self.directory.split("/")
        return not any(isinstance(one, DiskJob) and one.group.name in parts for one in others)

    def run(self) -> None:
        """Delete. Raises DiskError."""
        self.disk.remove_tree(self.directory)


@dataclass(slots=True)
class SaveStoreAndState:
    """A job: sync the message store, then write the state that relies on it."""

    store: StreamStore
    store_job: StoreJob | None
    state: WriteState
    stored: bool = False
    """The store's part is done; a second run only has to write the state."""

    @property
    def index(self) -> int:
        """Up to here the log is not needed once this ran."""
        return self.state.index

    def run(self) -> None:
        """Write and sync. Raises DiskError."""
        if self.store_job is not None and not self.stored:
            self.store_job.run()
        self.stored = True
        self.state.run()


@dataclass(frozen=True, slots=True)
class NothingToKeep:
    """The job of a memory stream: what a restart loses anyway needs no log."""

    index: int

    def run(self) -> None:
        """Nothing."""
