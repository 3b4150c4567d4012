"""`jsctl broker` that syncs in its loop however slow the disk is, and writes down where it synced.

Run as a program. Its edge and its disk are doubled, nothing is patched. The file `synced` in the
store's parent has a letter for each sync of the log while turns ran: `m` for the loop's thread, `d`
for the disk's, `b` for one beside both. While the file `fail-sync` is there, syncs of the log fail
that the loop waits for, or is told of.
"""

import secrets
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from jsctl.broker import app, lifetime
from jsctl.broker.errors import SyncFailed
from jsctl.broker.node import Node
from jsctl.broker.options import Options
from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Disk, DiskFile, Syncer
from jsctl.broker.server.edge import Edge
from jsctl.broker.server.logfile import ServerLog
from jsctl.broker.server.looks import Looks
from jsctl.broker.server.turns import NodeLike
from jsctl.broker.turn import ClaimsChange
from tests.support.faulty_broker import FaultyDisk

FOR_EVER_NS = 3_600_000_000_000
LOG = "log/"


class PatientEdge(Edge):
    """However long syncs take, they count as quick."""

    def __init__(
        self,
        node: NodeLike,
        options: Options,
        log: ServerLog,
        reload: Callable[[], str],
        looks: Looks,
        change_accounts: Callable[[list[ClaimsChange]], None],
    ) -> None:
        limits = replace(options.edge, loop_sync_ns_max=FOR_EVER_NS)
        options = replace(options, edge=limits)
        super().__init__(node, options, log, reload, looks, change_accounts)


class NotingFile:
    """A file of the log."""

    def __init__(self, file: DiskFile, place: Path) -> None:
        self._file = file
        self._place = place
        self._beside = False
        """The sync under way is one beside the loop."""
        self.path = file.path

    def size(self) -> int:
        return self._file.size()

    def read(self, offset: int, length: int) -> bytes:
        return self._file.read(offset, length)

    def write(self, offset: int, parts: Sequence[Piece]) -> None:
        self._file.write(offset, parts)

    def begin_sync(self, syncer: Syncer) -> None:
        self._beside = True
        self._file.begin_sync(syncer)

    def sync(self) -> None:
        in_loop = threading.current_thread() is threading.main_thread()
        if in_loop and (self._place / "fail-sync").exists():
            raise SyncFailed(f"{self.path}: cannot sync: I/O error")
        self._file.sync()
        with (self._place / "synced").open("a") as out:
            out.write("b" if self._beside else "m" if in_loop else "d")
        self._beside = False

    def allocate(self, length: int) -> None:
        self._file.allocate(length)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def close(self) -> None:
        self._file.close()


class NotingDisk(FaultyDisk):
    """Notes the syncs of the log's files."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        file = super().open(path, create=create)
        return NotingFile(file, self.trigger.parent) if path.startswith(LOG) else file


def noting_node(options: Options, server_id: str, store: Path | None) -> NodeLike:
    """The broker's node on a disk that notes."""
    assert store is not None
    disk: Disk = NotingDisk(app.open_disk(store), store.parent.parent / "no-bug")
    return Node(
        options,
        disk=disk,
        jitter=secrets.randbelow,
        server_id=server_id,
        incarnation=secrets.token_hex(16),
    )


if __name__ == "__main__":
    vars(lifetime)["Edge"] = PatientEdge  # The edge is doubled where it is put together.
    sys.exit(app.main(sys.argv[1:], noting_node))
