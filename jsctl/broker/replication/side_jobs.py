"""Work for the disk thread that no group waits for: it runs among checkpoints and deletions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(slots=True)
class SideJob:
    """A piece of work, shaped as a disk batch."""

    ticket: int
    work: Callable[[], None]
    then: Callable[[], None]
    is_brief: ClassVar[bool] = False

    def run(self) -> None:
        """Do it; it keeps errors of the disk to itself."""
        self.work()


@dataclass(slots=True)
class SideJobs:
    """`tickets` numbers them."""

    tickets: Iterator[int]
    _new: list[SideJob] = field(default_factory=list)
    _running: dict[int, SideJob] = field(default_factory=dict)

    def run(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Have the disk thread do something that raises nothing; `then` is called on the loop."""
        self._new.append(SideJob(next(self.tickets), work, then))

    def seal(self) -> list[SideJob]:
        """End of the turn: what the disk thread has to do now."""
        new, self._new = self._new, []
        self._running.update((one.ticket, one) for one in new)
        return new

    def done(self, ticket: int) -> bool:
        """A batch ran; whether it was one of these."""
        job = self._running.pop(ticket, None)
        if job is not None:
            job.then()
        return job is not None
