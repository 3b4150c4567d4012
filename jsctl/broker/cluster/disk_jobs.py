"""Work for the disk thread besides the log: checkpoints and deletions, shaped as disk batches."""

from dataclasses import dataclass

from jsctl.broker.cluster.group import Group, SyncJob
from jsctl.broker.ports import Disk


@dataclass(slots=True)
class Job:
    """A checkpoint on the disk thread, shaped as a disk batch."""

    ticket: int
    group: Group
    work: SyncJob

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

    def run(self) -> None:
        """Delete. Raises DiskError."""
        self.disk.remove_tree(self.directory)
