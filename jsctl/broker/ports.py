"""Interfaces that the broker's parts share without knowing each other."""

from collections.abc import Sequence
from typing import Protocol

from jsctl.broker.pieces import Piece


class Syncer(Protocol):
    """Syncs a file beside whoever asks for it, one at a time."""

    @property
    def took_ns(self) -> int:
        """How long the last sync took."""

    def begin(self, file: int, /) -> None:
        """Begin to sync the file of a descriptor."""

    def end(self) -> int:
        """Wait until it is over; the system's number of an error, 0 for none."""

    def fileno(self) -> int:
        """What can be read when the sync that was begun is over."""

    def close(self) -> None:
        """Let go of the thread; waits for the sync that is under way."""


class File(Protocol):
    """An open file. Offsets and lengths in bytes."""

    path: str

    def size(self) -> int:
        """Current length."""

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes; shorter only at the end. Raises DiskError."""

    def write(self, offset: int, parts: Sequence[Piece]) -> None:
        """Write `parts` one behind the other. Raises DiskError, DiskFull."""

    def sync(self) -> None:
        """Make what was written durable (fdatasync). Raises SyncFailed, which is final."""

    def allocate(self, length: int) -> None:
        """Reserve and zero the file up to `length`, so that later syncs write no metadata."""

    def truncate(self, length: int) -> None:
        """Cut the file. Raises DiskError."""

    def close(self) -> None:
        """Release the descriptor; no sync."""


class DiskFile(File, Protocol):
    """One that is opened on a disk."""

    def begin_sync(self, syncer: Syncer) -> None:
        """Have the system make durable what was written, beside whatever comes next. It is when
        `sync` has returned, which is to follow before anything else is done with the file."""


class Disk(Protocol):
    """A directory tree. Paths are relative to its root, `/`-separated."""

    def is_crowded(self, kept: int) -> bool:
        """Whether somebody who keeps so many files open is to close some that he does not need:
        they are many of those that this process may have, or hardly any are left."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Open for reading and writing. Raises DiskError when missing and not `create`."""

    def exists(self, path: str) -> bool:
        """Whether anything is there that can be reached."""

    def is_file(self, path: str) -> bool:
        """Whether a file is there, and no directory, link or pipe in its place."""

    def list(self, directory: str) -> list[str]:
        """Sorted names in a directory; empty when there is none."""

    def make_directory(self, path: str, *, durable: bool = True) -> None:
        """Create with parents; no error when there. Their names are `durable` on return, also
        where somebody else made them, or may be lost with all below until they are made so."""

    def rename(self, old: str, new: str) -> None:
        """Atomic replace; durable after `sync_directory` of the parent."""

    def remove(self, path: str) -> None:
        """Delete a file; no error when missing."""

    def remove_tree(self, path: str) -> None:
        """Delete a directory with all in it; no error when missing."""

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in a directory durable."""

    def free_bytes(self) -> int:
        """Room left on the file system, which may not be all for this process: `take_shortage`."""

    def take_shortage(self) -> str:
        """What found no room since the last call, in words; empty: nothing did."""

    def hold_room(self) -> None:
        """Set some room aside, if it is not: it is used when a write finds no other."""


class ZoneOffset(Protocol):
    """What the clocks of time zones show."""

    def __call__(self, name: str, at: int, /) -> int | None:
        """Seconds that a zone is ahead of UTC at a Unix time in seconds, between the years 1 and
        9999; None if there is no zone of that name."""


def only_utc(name: str, at: int, /) -> int | None:
    """The zones of a server that knows none."""
    return 0 if name == "UTC" else None
