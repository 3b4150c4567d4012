"""A segment that is written to while the disk has no room: what finds none waits in memory.

A message that is applied is committed, and durable in the log; nobody may refuse it any more. Its
segment is only made durable by a checkpoint, and until then the log brings it back. So its bytes
may wait for room as long as they have to: the log lets go of nothing meanwhile. New messages are
refused long before (`Engine`); what waits here is what was on its way by then.
"""

from collections.abc import Sequence

from jsctl.broker.errors import DiskFull
from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Disk, File

WAITING_BYTES_MAX = 64 * 1024 * 1024
"""More is a bug or a disk that somebody else fills for good: the process ends then."""


class PatientFile:
    """Implements `ports.File` for a file that is appended to."""

    __slots__ = ("_disk", "_file", "_start", "_waiting", "path")

    def __init__(self, disk: Disk, path: str, file: File | None, kept: bytes = b"") -> None:
        """`file` None: it is not there yet, and is to begin with `kept`."""
        self.path = path
        self._disk = disk
        self._file = file
        self._waiting = bytearray(kept)
        self._start = 0
        """Where what waits is to be written."""

    @staticmethod
    def create(disk: Disk, path: str) -> "PatientFile":
        """An empty file, as soon as there is room for its name. Raises DiskError."""
        made = PatientFile(disk, path, None)
        made.flush()
        return made

    @property
    def is_waiting(self) -> bool:
        """Whether something found no room yet."""
        return bool(self._waiting) or self._file is None

    def flush(self) -> bool:
        """Write what waits; False if there is no room for it. Raises DiskError."""
        try:
            if self._file is None:
                self._disk.make_directory(self.path.rpartition("/")[0], durable=False)
                file = self._disk.open(self.path, create=True)
                try:
                    file.truncate(0)
                except BaseException:
                    file.close()
                    raise
                self._file = file
            if self._waiting:
                self._file.write(self._start, (bytes(self._waiting),))
        except DiskFull:
            return False
        self._waiting.clear()
        return True

    def size(self) -> int:
        if self._waiting or self._file is None:
            return self._start + len(self._waiting)
        return self._file.size()

    def read(self, offset: int, length: int) -> bytes:
        stop = offset + length
        if (self._waiting or self._file is None) and stop > self._start:
            front = b""
            if offset < self._start:
                assert self._file is not None, "what is not there begins at the front"
                front = self._file.read(offset, self._start - offset)
            return front + self._waiting[max(0, offset - self._start) : stop - self._start]
        assert self._file is not None
        return self._file.read(offset, length)

    def write(self, offset: int, parts: Sequence[Piece]) -> None:
        if not self.is_waiting or self.flush():
            assert self._file is not None
            try:
                self._file.write(offset, parts)
                return
            except DiskFull:
                self._start = offset
        assert offset == self._start + len(self._waiting), "a segment is written at its end"
        if len(self._waiting) + sum(map(len, parts)) > WAITING_BYTES_MAX:
            raise DiskFull(f"{self.path}: no room on the disk, and none left to wait in")
        for part in parts:
            self._waiting += part

    def sync(self) -> None:
        assert not self.is_waiting and self._file is not None, "what waits is not in the file"
        self._file.sync()

    def allocate(self, length: int) -> None:
        raise AssertionError("a segment grows with what is written")

    def truncate(self, length: int) -> None:
        assert not self.is_waiting and self._file is not None, "nothing is cut off while it waits"
        self._file.truncate(length)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
