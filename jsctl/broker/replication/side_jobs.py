"""Work for the disk thread that no group waits for: it runs among checkpoints and deletions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import ClassVar

from jsctl.broker.turn import DiskBatch
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class SideJob:
    """A piece of work, shaped as a disk batch."""

    ticket: int
    work: Callable[[], None]
    then: Callable[[], None]
    is_reading: bool = False
    brief: ClassVar[None] = None

    def may_overtake(self, others: Sequence[DiskBatch]) -> bool:
        """Whether it needs no room, and nothing that these write."""
        return self.is_reading

    def run(self) -> None:
        """Do it; it keeps errors of the disk to itself."""
        self.work()


@dataclass(slots=True)
class SideJobs:
    """`tickets` numbers them."""

    tickets: Iterator[int]
    _new: list[SideJob] = field(default_factory=list)
    _running: dict[int, SideJob] = field(default_factory=dict)
    _after: list[Callable[[], None]] = field(default_factory=list)
    _behind: dict[int, list[Callable[[], None]]] = field(default_factory=dict)
    """Wait for the log's batch with that ticket."""

    def run(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Have the disk thread do something that raises nothing; `then` is called on the loop."""
        self._new.append(SideJob(next(self.tickets), work, then))

    def read(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """The same for what only reads, and does not wait for room on a full disk."""
        self._new.append(SideJob(next(self.tickets), work, then, is_reading=True))

    def after_log(self, then: Callable[[], None]) -> None:
        """Call `then` on the loop when all is durable that the log has collected: something it
        has to have collected, or nothing may come."""
        self._after.append(then)

    def sealed(self, ticket: int) -> None:
        """All that the log collected so far is in the batch with this ticket, or before it."""
        if self._after:
            self._behind[ticket], self._after = self._after, []

    def synced(self, ticket: int) -> None:
        """A batch of the log is durable."""
        for then in self._behind.pop(ticket, ()):
            then()

    def seal(self) -> list[SideJob]:
        """End of the turn: what the disk thread has to do now."""
        if not self._new:
            return []
        new, self._new = self._new, []
        self._running.update((one.ticket, one) for one in new)
        return new

    def done(self, ticket: int) -> bool:
        """A batch ran; whether it was one of these."""
        job = self._running.pop(ticket, None)
        if job is not None:
            job.then()
        return job is not None
