"""States that take long to word: a portion a turn, so that nobody waits for all of one."""

from collections.abc import Iterator

from jsctl.broker.pieces import Piece
from jsctl.broker.raft.types import Index
from jsctl.broker.replication.state_file import WriteState
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Draft:
    """Implements `group.SyncJob`, for the disk when it is whole.

    `portions`, of which there is one at least, are of the state as it was when this was made,
    whatever changes meanwhile. What is taken of them is in `worded`, from where `write` has it.
    """

    write: WriteState
    worded: list[Piece]
    portions: Iterator[bytes]
    _next: bytes | None = None

    def go_on(self) -> bool:
        """Take the next portion; whether it was the last one."""
        self.worded.append(next(self.portions) if self._next is None else self._next)
        self._next = next(self.portions, None)
        return self._next is None

    def finish(self) -> None:
        """All the rest at once, where somebody waits for it."""
        while not self.go_on():
            pass

    @property
    def index(self) -> Index:
        """Up to here the log is not needed once this ran."""
        return self.write.index

    def run(self) -> None:
        """Write and sync. Raises DiskError."""
        assert self.worded and self._next is None, "a state that is not whole"
        self.write.run()
