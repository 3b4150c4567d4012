"""States that take long to word: a portion a turn, so that nobody waits for all of one."""

from collections.abc import Iterator

from jsctl.broker.pieces import Piece
from jsctl.broker.raft.types import Index
from jsctl.broker.replication.state_file import WriteState
from jsctl.dataclass import dataclass


@dataclass(slots=True)
class Draft:
    """Implements `group.SyncJob`, for the disk when it is whole.

    `portions` are of the state as it was when this was made, whatever changes meanwhile; those that
    are worded are in `worded`, from where `write` takes them.
    """

    write: WriteState
    worded: list[Piece]
    portions: Iterator[bytes]

    def go_on(self) -> bool:
        """Word the next portion; whether there was none left."""
        portion = next(self.portions, None)
        if portion is not None:
            self.worded.append(portion)
        return portion is None

    @property
    def index(self) -> Index:
        """Up to here the log is not needed once this ran."""
        return self.write.index

    def run(self) -> None:
        """Write and sync. Raises DiskError."""
        self.write.run()
