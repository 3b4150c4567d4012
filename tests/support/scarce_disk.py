"""A simulated disk that has no room at one moment: any change may need some, even a rename.

File systems that write elsewhere what is changed need room for that, and other programs come and
go: so a disk is full in the middle of something, and has room a moment later.
"""

from collections.abc import Sequence

from jsctl.broker.errors import DiskFull
from jsctl.broker.pieces import Piece
from tests.support.sim_disk import Inode, SimDisk, SimFile


class ScarceFile(SimFile):
    """An open file of a `ScarceDisk`."""

    def __init__(self, disk: "ScarceDisk", inode: Inode, path: str) -> None:
        super().__init__(disk, inode, path)
        self._scarce = disk

    def write(self, offset: int, parts: Sequence[Piece]) -> None:
        self._scarce.spend(self.path)
        super().write(offset, parts)

    def allocate(self, length: int) -> None:
        self._scarce.spend(self.path)
        super().allocate(length)

    def truncate(self, length: int) -> None:
        self._scarce.spend(self.path)
        super().truncate(length)


class ScarceDisk(SimDisk):
    """See the module."""

    full_in: int | None = None
    """There is no room for the change that comes after so many others."""

    def spend(self, path: str) -> None:
        """Something changes. Raises DiskFull."""
        if self.full_in is not None:
            self.full_in -= 1
            if self.full_in < 0:
                self.full_in = None
                raise DiskFull(f"{path}: no space left on device")

    def open(self, path: str, *, create: bool = False) -> SimFile:
        if create and path not in self._names:
            self.spend(path)
        super().open(path, create=create)
        return ScarceFile(self, self._names[path], path)

    def rename(self, old: str, new: str) -> None:
        self.spend(new)
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.spend(path)
        super().remove(path)
