"""The first segment of a new store, as long as there is nothing in it: a few bytes in memory.

Many streams are made that take no message for a while, or never, and making directories and files
may wait for what else the disk does. It is no file of its own yet: nobody finds it by its path.
"""

from collections.abc import Sequence

from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Disk
from jsctl.broker.store.segments.patient_file import PatientFile


class LateFile:
    """Implements `ports.File` for what is written at once; `appear` makes a real one of it."""

    __slots__ = ("_disk", "_kept", "path")

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._kept = b""

    def appear(self) -> PatientFile:
        """The real file, as soon as there is room for it. Raises DiskError."""
        made = PatientFile(self._disk, self.path, None, self._kept)
        made.flush()
        return made

    def size(self) -> int:
        return len(self._kept)

    def read(self, offset: int, length: int) -> bytes:
        return self._kept[offset : offset + length]

    def write(self, offset: int, parts: Sequence[Piece]) -> None:
        assert offset == len(self._kept), "the real file is written to in any order"
        self._kept += b"".join(parts)

    def sync(self) -> None:
        raise AssertionError("what is in memory only cannot be made durable")

    def allocate(self, length: int) -> None:
        raise AssertionError("a segment grows with what is written")

    def truncate(self, length: int) -> None:
        self._kept = self._kept[:length]

    def close(self) -> None:
        """Nothing is held."""
