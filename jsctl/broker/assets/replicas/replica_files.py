"""The state file of a replica, in two copies that take turns: which one is next, and whether."""

from collections.abc import Iterator

from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Disk
from jsctl.broker.replication.drafts import Draft
from jsctl.broker.replication.state_file import GroupState, WriteState
from jsctl.dataclass import dataclass

NOTHING_WRITTEN = -1


@dataclass(slots=True)
class ReplicaFiles:
    """What every kind of replica has in its directory beside its data."""

    disk: Disk
    directory: str
    generation: int = 0
    """Of the newest file; the higher one counts."""
    _written: int = 0
    """Up to which entry of the log the newest file speaks."""

    @staticmethod
    def behind(disk: Disk, directory: str, state: GroupState | None) -> "ReplicaFiles":
        """The next file follows the one that was found, if one was."""
        return ReplicaFiles(disk, directory, 0 if state is None else state.generation)

    def is_due(self, index: int) -> bool:
        """Whether a file with this entry says more than the newest one; it counts as written."""
        if index <= self._written:
            return False
        self._written = index
        return True

    def next_generation(self) -> int:
        """The number of the next file."""
        self.generation += 1
        return self.generation

    def write(self, index: int, term: int, members: bytes, *snapshot: Piece) -> WriteState:
        """A job for the disk. The snapshot's pieces stay as they are until it ran."""
        assert index >= 0 and term >= 0
        state = GroupState(self.next_generation(), index, term, members, b"")
        return WriteState(self.disk, self.directory, state, (), snapshot)

    def draft(self, index: int, term: int, members: bytes, portions: Iterator[bytes]) -> Draft:
        """The same for a snapshot that is worded a portion a turn."""
        worded: list[Piece] = []
        state = GroupState(self.next_generation(), index, term, members, b"")
        return Draft(WriteState(self.disk, self.directory, state, (), worded), worded, portions)

    def overtaken(self) -> None:
        """The newest file speaks of another state: the next checkpoint writes one."""
        self._written = NOTHING_WRITTEN
