"""Where records are that a view shows: in memory, or in a row in one file."""

from typing import Protocol

from jsctl.broker.ports import Disk
from jsctl.dataclass import dataclass


class RecordPlace(Protocol):
    """Some records that lie together."""

    def read(self) -> list[bytes]:
        """Their bytes, unverified. Raises DiskError."""


@dataclass(frozen=True, slots=True)
class Held:
    """Records whose bytes are at hand."""

    raws: list[bytes]

    def read(self) -> list[bytes]:
        """As they are."""
        return self.raws


@dataclass(slots=True)
class FileRun:
    """Records of one file, ascending. The file is opened for each reading: it may have been
    written anew since, which whoever verifies the records notices."""

    disk: Disk
    path: str
    offsets: list[int]
    lengths: list[int]

    def read(self) -> list[bytes]:
        """What is there now. Raises DiskError."""
        begin = self.offsets[0]
        file = self.disk.open(self.path)
        try:
            data = file.read(begin, self.offsets[-1] + self.lengths[-1] - begin)
        finally:
            file.close()
        ranges = zip(self.offsets, self.lengths, strict=True)
        return [data[at - begin : at - begin + length] for at, length in ranges]
