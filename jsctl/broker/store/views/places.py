"""Where records are that a view shows: in memory, or in a row in one file."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from jsctl.broker.ports import Disk
from jsctl.broker.store import record
from jsctl.broker.store.record import Row
from jsctl.dataclass import dataclass


class RecordPlace(Protocol):
    """Some records that lie together."""

    def read(self) -> list[Row]:
        """The messages, verified: up to the first record that is not what it should be. Raises
        DiskError."""


@dataclass(frozen=True, slots=True)
class Held:
    """Records whose bytes are at hand."""

    seqs: Sequence[int]
    raws: list[bytes]

    def read(self) -> list[Row]:
        """As they are."""
        lengths = list(map(len, self.raws))
        offsets = list(accumulate(lengths[:-1], initial=0))
        data = b"".join(self.raws)
        return record.read_records(data, 0, self.seqs, offsets, lengths, len(data))


@dataclass(slots=True)
class FileRun:
    """Records of one file, ascending. The file is opened for each reading: it may have been
    written anew since, which is noticed as records are verified."""

    disk: Disk
    path: str
    seqs: Sequence[int]
    offsets: list[int]
    lengths: list[int]

    def read(self) -> list[Row]:
        """What is there now. Raises DiskError."""
        begin = self.offsets[0]
        size = self.offsets[-1] + self.lengths[-1] - begin
        file = self.disk.open(self.path)
        try:
            data = file.read(begin, size)
        finally:
            file.close()
        return record.read_records(data, begin, self.seqs, self.offsets, self.lengths, size)
