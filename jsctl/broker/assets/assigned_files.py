"""Beside the data of each stream and consumer of a server that stands alone: what it is.

The meta state says that, and is made durable now and then; in between only the log has what was
made. If the log is lost, messages of such a stream are there and nobody knows whose: from these
files it is taken up again (decision 40). They are written within a second, by the disk thread,
and not synced: nothing else rests on them. In a cluster the other servers have the meta state.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace

from jsctl.api.jsontext import parse_object
from jsctl.broker.assets.prepared import MARK, ROOTS
from jsctl.broker.errors import Damaged, DiskError
from jsctl.broker.jetstream.meta.assignments import (
    ConsumerAssignment,
    StreamAssignment,
    consumer_document,
    consumer_from,
    ends_with_process,
    stream_document,
    stream_from,
)
from jsctl.broker.ports import Disk
from jsctl.broker.replication import state_file
from jsctl.broker.replication.side_jobs import SideJobs
from jsctl.broker.replication.state_file import GroupState
from jsctl.broker.store.scrub import FileCheck, SmallCheck
from jsctl.dataclass import dataclass

FILE = "assigned"
Assignment = StreamAssignment | ConsumerAssignment


def directory_of(made: Assignment) -> str:
    """Where the data is."""
    root = ROOTS[isinstance(made, ConsumerAssignment)]
    return f"{root}/{made.group.name}"


@dataclass(slots=True)
class AssignedFiles:
    """Those of this server. `alone`: only then there are any."""

    disk: Disk
    side_jobs: SideJobs
    alone: bool
    all_taken_up: bool = True
    """Nothing of what is on the disk waits to be assigned again."""
    _new: dict[str, tuple[Assignment, bool]] = field(default_factory=dict)
    """Directory -> what is to be written there, and whether it is no news."""
    _written: dict[str, tuple[Assignment, bool]] = field(default_factory=dict)
    """The same, with the disk thread."""

    def note(self, made: Assignment, *, known: bool) -> None:
        """This is assigned now; `known`: since before this process, so that it may be written."""
        if self._has_one(made):
            self._new[directory_of(made)] = made, known

    def _has_one(self, made: Assignment) -> bool:
        return self.alone and made.group.storage != "memory" and not ends_with_process(made)

    def forget(self, made: Assignment) -> None:
        """Its data goes, and this with it."""
        self._new.pop(directory_of(made), None)

    def write(self) -> None:
        """Have the disk thread write what was noted."""
        if self._new and not self._written:
            new, self._new = self._new, {}
            self._written = new
            self.side_jobs.run(lambda: _write_all(self.disk, new), self._written.clear)

    def resting(self, assigned: Iterable[Assignment]) -> Sequence[FileCheck]:
        """Checks of the files of all that is assigned, but for those about to be written."""
        directories = [directory_of(made) for made in assigned if self._has_one(made)]
        return [_check(one) for one in directories if not self._is_waited_for(one)]

    def found(self, check: FileCheck, assigned: Iterable[Assignment]) -> bool:
        """One is damaged, or gone: it is written anew. False if it changed since the check."""
        for made in assigned:
            directory = directory_of(made)
            if _path(directory) == check.path and not self._is_waited_for(directory):
                self.note(made, known=False)
                return True
        return False

    def _is_waited_for(self, directory: str) -> bool:
        return directory in self._new or directory in self._written


def is_one(path: str) -> bool:
    """Whether a file is one of these."""
    return path.rpartition("/")[2] == FILE


def _path(directory: str) -> str:
    return f"{directory}/{FILE}"


def _check(directory: str) -> SmallCheck:
    def verify(data: bytes) -> str:
        return "" if _decode(data, directory) else "it does not say what it is"

    return SmallCheck(_path(directory), verify, required=True)


def _write_all(disk: Disk, new: dict[str, tuple[Assignment, bool]]) -> None:
    for directory, (made, known) in new.items():
        path = _path(directory)
        try:
            if not known or not disk.exists(path):
                disk.make_directory(directory, durable=False)
                _write(disk, path, made)
        except DiskError:
            continue  # It would have been of use only if more than this goes wrong.


def _write(disk: Disk, path: str, made: Assignment) -> None:
    # Whoever asked for it has an answer.
    if isinstance(made, StreamAssignment):
        document = stream_document(replace(made, request=None))
    else:
        document = consumer_document(replace(made, request=None))
    data = state_file.encode(GroupState(0, 0, 0, b"", json.dumps(document).encode()))
    # In its place: who is killed here, and loses the log as well, is told that it cannot be read.
    file = disk.open(path, create=True)
    try:
        file.truncate(0)
        file.write(0, [data])
    finally:
        file.close()


def read_all(disk: Disk) -> Iterator[tuple[str, Assignment | None]]:
    """Directories, those of streams first, with what was written there; None: nothing that can be
    read. Those of unfinished restores are not among them. Raises DiskError."""
    for root in ROOTS:
        for name in disk.list(root):
            directory = f"{root}/{name}"
            if not disk.exists(f"{directory}/{MARK}"):
                yield directory, _read(disk, directory)


def _read(disk: Disk, directory: str) -> Assignment | None:
    path = _path(directory)
    if not disk.exists(path):
        return None
    file = disk.open(path)
    try:
        return _decode(file.read(0, file.size()), directory)
    except DiskError:
        return None
    finally:
        file.close()


def _decode(data: bytes, directory: str) -> Assignment | None:
    try:
        document = parse_object(state_file.decode(data, directory).snapshot)
        made = stream_from(document) if "stream" not in document else consumer_from(document)
    except (Damaged, ValueError, KeyError, TypeError, AssertionError):
        return None
    return made if directory_of(made) == directory else None
