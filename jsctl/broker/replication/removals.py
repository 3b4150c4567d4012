"""Directories that nobody uses any more: deleted by the disk thread, behind who works there.

The log says that a group is gone before its files are: a restart that finds the group's records,
but not the state that they follow, has to take that for damage. So a removal waits until what the
log collected up to its turn is durable, which goes along with what is synced next.
"""

from collections.abc import Iterator
from dataclasses import field
from itertools import chain

from jsctl.broker.ports import Disk
from jsctl.broker.replication.disk_jobs import Removal
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class DirectoryRemover:
    """`tickets` numbers the removals."""

    tickets: Iterator[int]
    _new: list[Removal] = field(default_factory=list)
    _behind: dict[int, list[Removal]] = field(default_factory=dict)
    """Wait for the log's batch with that ticket."""
    _ready: list[Removal] = field(default_factory=list)
    _running: dict[int, Removal] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether nothing is left to delete."""
        return not (self._new or self._behind or self._ready or self._running)

    @property
    def waiting(self) -> bool:
        """Whether the batch of the log that collects is waited for."""
        return bool(self._new)

    def discard(self, disk: Disk, directory: str) -> None:
        """Have a directory deleted that nobody uses any more, but perhaps a running job."""
        self._new.append(Removal(next(self.tickets), disk, directory))

    def discarding(self, directory: str) -> bool:
        """Whether a directory is still being deleted: nothing may be built there."""
        waiting = (self._running.values(), self._ready, self._new, *self._behind.values())
        return any(one.directory == directory for one in chain.from_iterable(waiting))

    def sealed(self, ticket: int) -> None:
        """All that the log collected so far is in the batch with this ticket, or before it."""
        if self._new:
            self._behind[ticket], self._new = self._new, []

    def synced(self, ticket: int) -> None:
        """A batch of the log is durable."""
        self._ready += self._behind.pop(ticket, ())

    def seal(self, *, log_idle: bool) -> list[Removal]:
        """End of the turn: what the disk thread has to do now. `log_idle`: the log has nothing to
        write and nothing with the disk."""
        if log_idle:
            self._ready += self._new
            self._new = []
        if not self._ready:
            return []
        ready, self._ready = self._ready, []
        self._running.update((one.ticket, one) for one in ready)
        return ready

    def done(self, ticket: int) -> bool:
        """A batch ran; whether it was one of these."""
        return self._running.pop(ticket, None) is not None
