"""`jsctl broker` with bugs in it that a test sets off: parts are doubled, nothing is patched.

Run as a program. The node's chance fails when a message is mapped by weights while the file
`session` is in the store's parent, a handler of the API while `handler` is there, and what tells
the room on the disk, in the middle of the server's own work, while `store` is there.
"""

import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

from jsctl.broker.app import main, open_disk
from jsctl.broker.node import Node
from jsctl.broker.options import Options
from jsctl.broker.ports import Disk, DiskFile
from jsctl.broker.server.turns import NodeLike

MAPPED = 100
"""What the weights of a mapping are drawn below."""


class InjectedBug(Exception):
    """No error that anybody has foreseen."""


@dataclass(frozen=True)
class FaultyDisk:
    """A disk whose room cannot be told."""

    disk: Disk
    trigger: Path

    def is_crowded(self, kept: int) -> bool:
        return self.disk.is_crowded(kept)

    def free_bytes(self) -> int:
        if self.trigger.exists():
            raise InjectedBug("in the store")
        return self.disk.free_bytes()

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        return self.disk.open(path, create=create)

    def exists(self, path: str) -> bool:
        return self.disk.exists(path)

    def is_file(self, path: str) -> bool:
        return self.disk.is_file(path)

    def list(self, directory: str) -> list[str]:
        return self.disk.list(directory)

    def make_directory(self, path: str, *, durable: bool = True) -> None:
        self.disk.make_directory(path, durable=durable)

    def rename(self, old: str, new: str) -> None:
        self.disk.rename(old, new)

    def remove(self, path: str) -> None:
        self.disk.remove(path)

    def remove_tree(self, path: str) -> None:
        self.disk.remove_tree(path)

    def sync_directory(self, path: str) -> None:
        self.disk.sync_directory(path)

    def take_shortage(self) -> str:
        return self.disk.take_shortage()

    def hold_room(self) -> None:
        self.disk.hold_room()


def faulty_node(options: Options, server_id: str, store: Path | None) -> NodeLike:
    """The broker's node, its chance and its disk doubled."""
    assert store is not None
    place = store.parent.parent

    def jitter(below: int) -> int:
        if below == MAPPED and (place / "session").exists():
            raise InjectedBug("in a session")
        return secrets.randbelow(below)

    return Node(
        options,
        disk=FaultyDisk(open_disk(store), place / "store-bug"),
        jitter=jitter,
        server_id=server_id,
        incarnation=secrets.token_hex(16),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], faulty_node))
