"""Directories that nobody uses any more: deleted by the disk thread, behind who works there."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from jsctl.broker.ports import Disk
from jsctl.broker.replication.disk_jobs import Removal


@dataclass(slots=True)
class DirectoryRemover:
    """`tickets` numbers the removals."""

    tickets: Iterator[int]
    _new: list[Removal] = field(default_factory=list)
    _running: dict[int, Removal] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether nothing is left to delete."""
        return not self._new and not self._running

    def discard(self, disk: Disk, directory: str) -> None:
        """Have a directory deleted that nobody uses any more, but perhaps a running job."""
        self._new.append(Removal(next(self.tickets), disk, directory))

    def discarding(self, directory: str) -> bool:
        """Whether a directory is still being deleted: nothing may be built there."""
        waiting = (*self._running.values(), *self._new)
        return any(one.directory == directory for one in waiting)

    def seal(self) -> list[Removal]:
        """End of the turn: what the disk thread has to do now."""
        new, self._new = self._new, []
        self._running.update((one.ticket, one) for one in new)
        return new

    def done(self, ticket: int) -> bool:
        """A batch ran; whether it was one of these."""
        return self._running.pop(ticket, None) is not None
