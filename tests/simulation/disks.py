"""What a server's disk durably holds of each raft group, told from what its batches wrote.

A `DurableLog` follows every batch whose sync returned, and is compared with the disk itself each
time the server starts: promises are checked against it without reading disks all the time.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jsctl.broker.errors import DiskError
from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Syncer
from jsctl.broker.store.wal import format as fmt
from jsctl.broker.store.wal.batch import WalBatch
from jsctl.broker.store.wal.format import WalRecord
from jsctl.broker.store.wal.recovery import Scan
from jsctl.broker.turn import DiskBatch
from tests.support.sim_disk import SimDisk, SimFile


class MachineDisk(SimDisk):
    """A disk whose process may be killed just before a sync, and whose files may not open."""

    killed_in: int | None = None
    """The process ends instead of the sync that comes after so many others."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.unopenable: set[str] = set()
        self.refused: set[str] = set()
        """Files that did not open once, or could not be read."""
        self.when_refused: Callable[[str], None] = lambda path: None
        """Told of each read that fails, and of each file that does not open."""

    def open(self, path: str, *, create: bool = False) -> SimFile:
        if path in self.unopenable:
            self.refused.add(path)
            self.when_refused(path)
            raise DiskError(f"{path}: cannot open: I/O error")
        return super().open(path, create=create)

    def check_readable(self, path: str, offset: int, length: int) -> None:
        try:
            super().check_readable(path, offset, length)
        except DiskError:
            self.refused.add(path)
            self.when_refused(path)
            raise

    def readable_again(self, place: tuple[str, int, int]) -> None:
        """What could not be read can be read."""
        if place in self.unreadable:
            self.unreadable.remove(place)

    def mend(self) -> None:
        """Everything can be read, and all syncs work."""
        self.unreadable.clear()
        self.unopenable.clear()
        self.fail_syncs = 0

    def count_down(self) -> None:
        if self.killed_in is not None:
            self.killed_in -= 1
            if self.killed_in < 0:
                self.killed_in = None
                self.kill()
                raise DiskError("the process was killed")
        super().count_down()


class _Image:
    """An open file of `DurableView`."""

    def __init__(self, path: str, data: bytes, unreadable: Sequence[tuple[str, int, int]]) -> None:
        self.path = path
        self._data = data
        self._unreadable = [(start, end) for bad, start, end in unreadable if bad == path]

    def size(self) -> int:
        return len(self._data)

    def read(self, offset: int, length: int) -> bytes:
        if any(offset < end and start < offset + length for start, end in self._unreadable):
            raise DiskError(f"{self.path}: cannot read: I/O error")
        return self._data[offset : offset + length]

    def close(self) -> None:
        pass

    def begin_sync(self, syncer: Syncer) -> None:
        raise AssertionError("a view is not written")

    def write(self, offset: int, parts: Sequence[Piece]) -> None:
        raise AssertionError("a view is not written")

    def sync(self) -> None:
        raise AssertionError("a view is not written")

    def allocate(self, length: int) -> None:
        raise AssertionError("a view is not written")

    def truncate(self, length: int) -> None:
        raise AssertionError("a view is not written")


class DurableView(SimDisk):
    """Reads a disk as the worst power cut would leave it."""

    def __init__(self, disk: SimDisk) -> None:
        super().__init__(disk.rng)
        self._real = disk

    def list(self, directory: str) -> list[str]:
        return [
            name
            for name in self._real.list(directory)
            if self._real.durable_content(f"{directory}/{name}")
        ]

    def open(self, path: str, *, create: bool = False) -> _Image:  # type: ignore[override]
        # Only for reading, so the other methods of a file are not needed.
        return _Image(path, self._real.durable_content(path), self._real.unreadable)


@dataclass
class DurableGroup:
    """Of one group: hard state, and the term of each entry that is safe."""

    term: int = 0
    vote: str = ""
    base: int = 0
    entries: dict[int, int] = field(default_factory=dict)
    peaks: dict[int, int] = field(default_factory=dict)
    """Term of the server -> how far its log ever went in it."""

    @property
    def last(self) -> int:
        """The last index that is safe."""
        return max(self.entries, default=self.base)

    def holds(self, index: int, term: int) -> bool:
        """Whether an entry is in here, or before its base."""
        return index <= self.base or self.entries.get(index) == term


@dataclass(frozen=True)
class Interrupted:
    """What a batch would have removed or replaced that was being written when a process ended:
    some of it may be written."""

    dropped: frozenset[str] = frozenset()
    replaced: dict[str, int] = field(default_factory=dict)
    """Group -> the first index that it writes: what was safe from there on may be gone."""

    @staticmethod
    def of(batch: DiskBatch) -> "Interrupted":
        """What this one says."""
        if not isinstance(batch, WalBatch):
            return Interrupted()
        dropped, replaced = set(), dict[str, int]()
        for record in fmt.decode_records(b"".join(batch.parts), 0, batch.count):
            name = record.group.decode()
            if record.kind == fmt.DROP:
                dropped.add(name)
            elif record.kind in (fmt.ENTRY, fmt.TRUNCATE, fmt.BASE):
                replaced[name] = min(record.log_index, replaced.get(name, record.log_index))
        return Interrupted(frozenset(dropped), replaced)


class DurableLog:
    """See the module."""

    def __init__(self) -> None:
        self.groups: dict[str, DurableGroup] = {}
        self.states: dict[str, int] = {}
        """Group -> index of the newest state file or checkpoint."""
        self.dropped: dict[str, list[DurableGroup]] = {}
        """What was safe of a group until it was removed here, or its memory was lost."""

    def held(self, name: str, index: int, term: int) -> bool:
        """Whether an entry is safe, or was until the group was dropped on purpose."""
        dropped = self.dropped.get(name, ())
        return self.holds(name, index, term) or any(one.holds(index, term) for one in dropped)

    def holds(self, name: str, index: int, term: int) -> bool:
        """Whether an entry, or a state that includes it, is safe."""
        if index <= self.states.get(name, 0):
            return True
        group = self.groups.get(name)
        if group is None:
            return False
        return group.holds(index, term)

    def reaches(self, name: str, index: int, term: int) -> bool:
        """Whether everything up to an index is safe, whatever it is, or was in a past term.

        What one batch writes and a later leader's entries replace again in the same batch was
        safe, too: the batch is durable as a whole.
        """
        group = self.groups.get(name, DurableGroup())
        known = max(group.last, group.base, self.states.get(name, 0))
        if term < group.term:
            known = max(known, group.peaks.get(term, 0))
        return index <= known

    def promised(self, name: str) -> tuple[int, str]:
        """Term and vote."""
        group = self.groups.get(name)
        return (0, "") if group is None else (group.term, group.vote)

    def checkpointed(self, name: str, index: int) -> None:
        """A job of this group ran."""
        self.states[name] = max(index, self.states.get(name, 0))

    def wrote(self, batch: WalBatch) -> None:
        """A batch is safe."""
        for record in fmt.decode_records(b"".join(batch.parts), 0, batch.count):
            self._take(record)

    def _take(self, record: WalRecord) -> None:
        name, index = record.group.decode(), record.log_index
        if record.kind == fmt.DROP:
            state = self.states.pop(name, 0)
            group = self.groups.pop(name, DurableGroup())
            group.base = max(group.base, state)
            self.dropped.setdefault(name, []).append(group)
            return
        if record.kind == fmt.EXAMINED:
            return
        group = self.groups.setdefault(name, DurableGroup())
        if record.kind == fmt.ENTRY:
            if index in group.entries:
                self._cut(group, index)
            group.entries[index] = record.term
            group.peaks[group.term] = max(group.peaks.get(group.term, 0), index)
        elif record.kind == fmt.TRUNCATE:
            self._cut(group, index)
        elif record.kind == fmt.VOTE:
            group.term, group.vote = record.term, record.data.decode()
        elif record.kind == fmt.BASE:
            self._rebase(group, index, fmt.decode_base(record.data)[0])

    @staticmethod
    def _cut(group: DurableGroup, index: int) -> None:
        for known in [one for one in group.entries if one >= index]:
            del group.entries[known]

    @staticmethod
    def _rebase(group: DurableGroup, index: int, term: int) -> None:
        if group.entries.get(index, term) != term or index > group.last:
            group.entries.clear()
        for known in [one for one in group.entries if one <= index]:
            del group.entries[known]
        group.base = index

    @staticmethod
    def read(disk: SimDisk, identity: bytes) -> "DurableLog":
        """What is on the platter."""
        scan = Scan(DurableView(disk), "log", identity)
        scan.run()
        found = DurableLog()
        for name, group in scan.recovered.groups.items():
            found.groups[name.decode()] = DurableGroup(
                group.term,
                group.vote.decode(),
                group.base_index,
                {index: term for index, term, _, _ in group.entries},
            )
        return found
