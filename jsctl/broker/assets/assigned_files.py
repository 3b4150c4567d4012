"""Beside the data of a server that stands alone: what its streams and consumers are.

The meta state says that, and is made durable now and then; in between only the log has what was
made. If the log is lost, messages of such a stream are there and nobody knows whose: from these
files it is taken up again (decision 40). Changes are added within a second, by the disk thread,
all of a second at once (decision 57), and are not synced: nothing else rests on them. In a cluster
the other servers have the meta state.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
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
from jsctl.broker.store.scrub import FileCheck, SmallCheck
from jsctl.dataclass import dataclass

DIRECTORY = "assigned"
OLDER_FILE = "assigned"
"""In the directory of each asset, written by earlier versions."""
PORTION = 256
"""Assignments that are written anew at a time: the log waits for the disk thread meanwhile."""
SPARE_BYTES = 1 << 20
EACH_BYTES = 2048
"""What an assignment is taken to need. Files that have twice that, and the spare, begin anew."""
_HEAD = struct.Struct("<4sII")
"""Mark, checksum and length of a record: a directory, a line feed, and JSON or nothing."""
_MAGIC = b"JSA1"
Assignment = StreamAssignment | ConsumerAssignment
Change = Assignment | None
"""None: it is gone."""


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
    all_taken_up: bool
    """Nothing of what is on the disk waits to be assigned again."""
    _new: dict[str, Change] = field(default_factory=dict)
    _known: dict[str, Change] = field(default_factory=dict)
    """Since before this process: written where it lacks."""
    _sizes: dict[int, int] = field(default_factory=dict)
    """Of all files, by their numbers, as they were written last."""
    _damaged: bool = False
    _kept_bytes: int = 0
    """When they were last written anew."""
    _rest: list[Assignment] | None = None
    """What is still to be written anew."""
    _overtaken: set[str] = field(default_factory=set)
    """What changed since that began."""
    _busy: bool = False

    def note(self, made: Assignment, *, known: bool) -> None:
        """This is assigned now; `known`: since before this process, so that it may be written."""
        if self._concerns(made):
            (self._known if known else self._new)[directory_of(made)] = made

    def forget(self, made: Assignment) -> None:
        """Its data goes."""
        if self._concerns(made):
            self._known.pop(directory_of(made), None)
            self._new[directory_of(made)] = None

    def _concerns(self, made: Assignment) -> bool:
        return self.alone and made.group.storage != "memory" and not ends_with_process(made)

    def write(self, assigned: Callable[[], Sequence[Assignment]]) -> None:
        """Have the disk thread write what was noted, and some of all that is `assigned` where the
        files have too much that does not count any more."""
        if self._busy:
            return
        suspect = self._damaged or self._is_large()
        begins = self._rest is None and suspect and self._begin_anew(assigned())
        if self._rest is not None or self._new or self._known:
            self._run(begins)

    def _is_large(self) -> bool:
        return sum(self._sizes.values()) > SPARE_BYTES + 2 * self._kept_bytes

    def _begin_anew(self, everything: Sequence[Assignment]) -> bool:
        """Whether the files have much that does not count, or damage; then all is about to be
        written."""
        self._kept_bytes = max(self._kept_bytes, EACH_BYTES * len(everything))
        if self._damaged or self._is_large():
            self._rest, self._overtaken = list(filter(self._concerns, everything)), set()
            self._damaged = False
        return self._rest is not None

    def resting(self) -> Sequence[FileCheck]:
        """Checks of the files, as far as they are written; none while that goes on."""
        known = {} if self._busy or self._rest is not None else self._sizes
        return [_check(number, size) for number, size in known.items()]

    def found(self, check: FileCheck) -> bool:
        """A file is damaged, or gone: all is written anew. False if that was done meanwhile."""
        if check.path not in map(_path, self._sizes):
            return False
        self._damaged = True
        return True

    def _run(self, begins: bool) -> None:
        rest, ends = self._rest, False
        changes, self._new = self._new, {}
        known, self._known = self._known, {}
        if rest is not None:
            self._overtaken |= changes.keys()
            some, rest[:PORTION] = rest[:PORTION], []
            ends = not rest
            again = [one for one in some if directory_of(one) not in self._overtaken]
            changes |= {directory_of(one): one for one in again}
        sizes: list[dict[int, int]] = []

        def work() -> None:
            with suppress(DiskError):  # They would be of use only if more than this goes wrong.
                sizes.append(_append(self.disk, changes, known, begins=begins, ends=ends))

        def done() -> None:
            self._busy = False
            self._sizes = sizes[0] if sizes else {}
            self._damaged = self._damaged or not sizes  # There was no room, say.
            if ends and sizes:
                self._kept_bytes = sum(self._sizes.values())
            if ends or not sizes:
                self._rest = None

        self._busy = True
        self.side_jobs.run(work, done)


def _append(
    disk: Disk, changes: dict[str, Change], known: dict[str, Change], *, begins: bool, ends: bool
) -> dict[int, int]:
    """Add records to the newest file, or to a new one; what is `known` only where there is none.
    When all is written anew, older files go. The sizes of those that stay."""
    numbers = _numbers(disk)
    newest = max(1, (numbers[-1] if numbers else 0) + begins)
    records = list(map(_record, changes.items()))
    if known:
        there = _records(disk)
        records += [_record(one) for one in known.items() if one[0] not in there]
    disk.make_directory(DIRECTORY, durable=False)
    file = disk.open(_path(newest), create=True)
    try:
        if records:
            file.write(file.size(), [b"".join(records)])
        sizes = {newest: file.size()}
    except DiskError:
        if begins:
            disk.remove(_path(newest))  # It is begun again.
        raise
    finally:
        file.close()
    for number in numbers:
        if number < newest and ends:
            disk.remove(_path(number))
        elif number < newest:
            sizes[number] = _size(disk, number)
    return sizes


def is_one(path: str) -> bool:
    """Whether a file is one of these."""
    return path.startswith(f"{DIRECTORY}/")


def _path(number: int) -> str:
    return f"{DIRECTORY}/{number}"


def _check(number: int, size: int) -> SmallCheck:
    def verify(data: bytes) -> str:
        whole = sum(_HEAD.size + length for _, length in _whole_bodies(data[:size]))
        return "" if whole == size else "some of its records are damaged"

    return SmallCheck(_path(number), verify, required=True)


def _numbers(disk: Disk) -> list[int]:
    return sorted(int(name) for name in disk.list(DIRECTORY) if name.isdecimal())


def _size(disk: Disk, number: int) -> int:
    file = disk.open(_path(number))
    try:
        return file.size()
    finally:
        file.close()


def _record(change: tuple[str, Change]) -> bytes:
    # Whoever asked for it has an answer.
    directory, made = change
    text = ""
    if isinstance(made, StreamAssignment):
        text = json.dumps(stream_document(replace(made, request=None)))
    elif made is not None:
        text = json.dumps(consumer_document(replace(made, request=None)))
    body = f"{directory}\n{text}".encode()
    return _HEAD.pack(_MAGIC, zlib.crc32(body), len(body)) + body


# Reading


def read_all(disk: Disk) -> Iterator[tuple[str, Assignment | None]]:
    """Directories, those of streams first, with what was written of them; None: nothing that can
    be read. Those of unfinished restores are not among them. Raises DiskError."""
    records = _records(disk)
    for root in ROOTS:
        there = {f"{root}/{name}" for name in disk.list(root)}
        told = {name for name, text in records.items() if text and name.startswith(f"{root}/")}
        for directory in sorted(there | told):
            if not disk.exists(f"{directory}/{MARK}"):
                text = records.get(directory)
                older = _older(disk, directory) if text is None else text
                yield directory, _assignment(directory, older)


def _records(disk: Disk) -> dict[str, bytes]:
    """The newest record of each directory; what is damaged is passed over. Raises DiskError."""
    found: dict[str, bytes] = {}
    for number in _numbers(disk):
        file = disk.open(_path(number))
        try:
            for body, _ in _whole_bodies(file.read(0, file.size())):
                directory, _, text = body.partition(b"\n")
                found[directory.decode("utf-8", "replace")] = text
        except Damaged:
            continue
        finally:
            file.close()
    return found


def _whole_bodies(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The bodies of all sound records, with their lengths."""
    at = data.find(_MAGIC)
    while 0 <= at <= len(data) - _HEAD.size:
        _, checksum, length = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        body = data[at + _HEAD.size : end]
        if end > len(data) or zlib.crc32(body) != checksum:
            end = at + 1
        else:
            yield body, length
        at = data.find(_MAGIC, end)


def _older(disk: Disk, directory: str) -> bytes:
    """What an earlier version wrote into the directory itself; empty if nothing can be read."""
    path = f"{directory}/{OLDER_FILE}"
    if not disk.exists(path):
        return b""
    file = disk.open(path)
    try:
        return state_file.decode(file.read(0, file.size()), path).snapshot
    except (Damaged, DiskError):
        return b""
    finally:
        file.close()


def _assignment(directory: str, text: bytes) -> Assignment | None:
    try:
        document = parse_object(text)
        made = stream_from(document) if "stream" not in document else consumer_from(document)
    except (ValueError, KeyError, TypeError, AssertionError):
        return None
    return made if directory_of(made) == directory else None
