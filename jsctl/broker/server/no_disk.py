"""The disk of a server without JetStream: nothing is there and nothing can be stored."""

from jsctl.broker.errors import DiskError
from jsctl.broker.ports import DiskFile

REASON = "JetStream is not enabled: there is no store"


class NoDisk:
    """A `Disk` that is empty for ever."""

    def is_crowded(self, kept: int) -> bool:
        """No file is open."""
        return False

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        """Raises DiskError."""
        raise DiskError(f"{path}: {REASON}")

    def exists(self, path: str) -> bool:
        """Nothing exists."""
        return False

    def is_file(self, path: str) -> bool:
        """Nothing is there."""
        return False

    def list(self, directory: str) -> list[str]:
        """Nothing is there."""
        return []

    def make_directory(self, path: str, *, durable: bool = True) -> None:
        """Raises DiskError."""
        raise DiskError(f"{path}: {REASON}")

    def rename(self, old: str, new: str) -> None:
        """Raises DiskError."""
        raise DiskError(f"{old}: {REASON}")

    def remove(self, path: str) -> None:
        """There is nothing to remove."""

    def remove_tree(self, path: str) -> None:
        """There is nothing to remove."""

    def sync_directory(self, path: str) -> None:
        """There is nothing to sync."""

    def hold_room(self) -> None:
        """There is none."""

    def free_bytes(self) -> int:
        """No room."""
        return 0

    def take_shortage(self) -> str:
        """Nothing is written."""
        return ""
