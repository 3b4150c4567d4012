"""A disk that can lose power, fill up, fail and rot, for tests without a file system.

Writes go to a page cache. `sync` makes a file's content durable, `sync_directory` the names in a
directory. `crash()` keeps, drops or tears every unsynced 512-byte sector at random, drops names
that were not synced at random, and makes every open file unusable. Chance comes from the given
generator only.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from jsctl.broker.errors import DiskError, DiskFull, SyncFailed
from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Syncer

SECTOR = 512


@dataclass(slots=True)
class Inode:
    """One file's bytes: as written, as durable, and which sectors differ."""

    number: int
    cached: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    dirty: set[int] = field(default_factory=set)
    resized: bool = False


class SimFile:
    """An open file of a `SimDisk`."""

    def __init__(self, disk: "SimDisk", inode: Inode, path: str) -> None:
        self.path = path
        self._disk = disk
        self._inode = inode
        self._epoch = disk.epoch
        self._closed = False

    def _check(self) -> Inode:
        if self._closed or self._epoch != self._disk.epoch:
            raise DiskError(f"{self.path}: the file is closed")
        return self._inode

    def size(self) -> int:
        return len(self._check().cached)

    def read(self, offset: int, length: int) -> bytes:
        inode = self._check()
        self._disk.check_readable(self.path, offset, length)
        return bytes(memoryview(inode.cached)[offset : offset + length])

    def write(self, offset: int, parts: Sequence[Piece]) -> None:
        inode = self._check()
        data = b"".join(parts)
        end = offset + len(data)
        self._grow(inode, end)
        inode.cached[offset:end] = data
        if data:
            inode.dirty.update(range(offset // SECTOR, (end - 1) // SECTOR + 1))

    def _grow(self, inode: Inode, end: int) -> None:
        more = end - len(inode.cached)
        if more > 0:
            self._disk.take(more, self.path)
            inode.cached = grown(inode.cached, end)
            inode.resized = True

    def begin_sync(self, syncer: Syncer) -> None:
        raise AssertionError("there is no thread beside a simulated disk")

    def sync(self) -> None:
        inode = self._check()
        self._disk.count_down()
        if self._disk.fail_syncs > 0:
            self._disk.fail_syncs -= 1
            # As Linux does: the pages count as clean, and the next fsync "succeeds".
            inode.dirty.clear()
            raise SyncFailed(f"{self.path}: fsync failed: I/O error")
        self._disk.settle(inode)
        self._disk.syncs += 1

    def allocate(self, length: int) -> None:
        self._grow(self._check(), length)

    def truncate(self, length: int) -> None:
        inode = self._check()
        if length < len(inode.cached):
            self._disk.give(len(inode.cached) - length)
            del inode.cached[length:]
            inode.dirty = {s for s in inode.dirty if s * SECTOR < length}
            inode.resized = True
        else:
            self._grow(inode, length)

    def close(self) -> None:
        self._closed = True


def grown(image: bytearray, length: int) -> bytearray:
    """The same bytes, cut off or with zeros behind them. The files of a log are zeros, which cost
    nothing until they are touched: behind a little they are not written, as those of many small
    steps are."""
    if length > 2 * len(image):
        made = bytearray(length)
        made[: len(image)] = image
        return made
    del image[length:]
    image.extend(bytes(length - len(image)))
    return image


class SimDisk:
    """A whole simulated disk; paths are `/`-separated."""

    def __init__(self, rng: random.Random, capacity: int = 1 << 40) -> None:
        self.rng = rng
        self.capacity = capacity
        self.quota = 1 << 40
        """What may be used of it, which nobody is told."""
        self._shortage = ""
        self.epoch = 0
        self.syncs = 0
        self.fail_syncs = 0
        """So many of the next syncs fail."""
        self.power_fails_in: int | None = None
        """Power is lost instead of the sync that comes after so many others."""
        self.unreadable: list[tuple[str, int, int]] = []
        """(path, start, end) that cannot be read."""
        self.read_errors: dict[str, int] = {}
        """So many of the next reads of these paths fail."""
        self._used = 0
        self._numbers = 0
        self._names: dict[str, Inode] = {}
        self._durable_names: dict[str, Inode] = {}
        self._directories = {""}
        self._durable_directories = {""}
        self.directory_syncs = 0
        self.crowded = False
        """There are always too many files open."""

    def is_crowded(self, kept: int) -> bool:
        return self.crowded

    def copy(self) -> "SimDisk":
        """A disk of its own with the same bytes, names and chance; nothing is open on it."""
        other = SimDisk(random.Random(), self.capacity)
        other.rng.setstate(self.rng.getstate())
        other.syncs, other.directory_syncs = self.syncs, self.directory_syncs
        other.fail_syncs, other.power_fails_in = self.fail_syncs, self.power_fails_in
        other.unreadable = list(self.unreadable)
        other.crowded = self.crowded
        other.quota, other._shortage = self.quota, self._shortage
        other._used, other._numbers = self._used, self._numbers
        inodes = {
            one.number: Inode(
                one.number,
                bytearray(one.cached),
                bytearray(one.durable),
                set(one.dirty),
                one.resized,
            )
            for one in (*self._names.values(), *self._durable_names.values())
        }
        other._names = {name: inodes[one.number] for name, one in self._names.items()}
        other._durable_names = {
            name: inodes[one.number] for name, one in self._durable_names.items()
        }
        other._directories = set(self._directories)
        other._durable_directories = set(self._durable_directories)
        return other

    def paths(self) -> list[str]:
        """All files."""
        return sorted(self._names)

    # ports.Disk

    def open(self, path: str, *, create: bool = False) -> SimFile:
        inode = self._names.get(path)
        if inode is None:
            if not create:
                raise DiskError(f"{path}: cannot open: no such file")
            if _parent(path) not in self._directories:
                raise DiskError(f"{path}: cannot open: no such directory")
            self._numbers += 1
            inode = self._names[path] = Inode(self._numbers)
        return SimFile(self, inode, path)

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._directories

    def is_file(self, path: str) -> bool:
        return path in self._names

    def list(self, directory: str) -> list[str]:
        prefix = f"{directory}/" if directory else ""
        every = (*self._names, *self._directories)
        rest = {name[len(prefix) :] for name in every if name.startswith(prefix)}
        return sorted({name.split("/")[0] for name in rest if name})

    def make_directory(self, path: str, *, durable: bool = True) -> None:
        while path:
            self._directories.add(path)
            if durable and path not in self._durable_directories:
                self.count_down()
                self._durable_directories.add(path)
                self.directory_syncs += 1
            path = _parent(path)

    def rename(self, old: str, new: str) -> None:
        if old not in self._names:
            raise DiskError(f"{old}: cannot rename: no such file")
        if new in self._names:
            self.give(len(self._names[new].cached))
        self._names[new] = self._names.pop(old)

    def remove(self, path: str) -> None:
        inode = self._names.pop(path, None)
        if inode is not None:
            self.give(len(inode.cached))

    def remove_tree(self, path: str) -> None:
        for name in [name for name in self._names if name.startswith(f"{path}/")]:
            self.remove(name)
        gone = {d for d in self._directories if d == path or d.startswith(f"{path}/")}
        self._directories -= gone
        self._durable_directories -= gone

    def sync_directory(self, path: str) -> None:
        self.count_down()
        for name in {*self._names, *self._durable_names}:
            if _parent(name) == path:
                self._settle(name)
        self._durable_directories |= {one for one in self._directories if _parent(one) == path}
        self.directory_syncs += 1

    def hold_room(self) -> None:
        pass

    def take_shortage(self) -> str:
        found, self._shortage = self._shortage, ""
        return found

    def free_bytes(self) -> int:
        return self.capacity - self._used

    # Room

    def take(self, count: int, path: str) -> None:
        """Use room; raises DiskFull."""
        if self._used + count > min(self.capacity, self.quota):
            self._shortage = f"{path}: cannot write: no space left on device"
            raise DiskFull(self._shortage)
        self._used += count

    def give(self, count: int) -> None:
        """Give room back."""
        self._used -= count

    # Faults

    def check_readable(self, path: str, offset: int, length: int) -> None:
        """Raises DiskError where some of it is unreadable."""
        if self.read_errors.get(path):
            self.read_errors[path] -= 1
            raise DiskError(f"{path}: cannot read: I/O error")
        for bad, start, end in self.unreadable:
            if bad == path and offset < end and start < offset + length:
                raise DiskError(f"{path}: cannot read: I/O error")

    def keep(self, inode: Inode, start: int, data: bytes | bytearray) -> None:
        """Make bytes durable."""
        if len(inode.durable) < start:
            inode.durable = grown(inode.durable, start)
        inode.durable[start : start + len(data)] = data

    def crash(self) -> None:
        """Lose power: the page cache is gone, apart from what happened to be written."""
        self.epoch += 1
        for name in sorted({*self._names, *self._durable_names}):
            if self._names.get(name) is not self._durable_names.get(name) and self._coin():
                self._settle(name)
        self._lose_directories()
        self._names = dict(self._durable_names)
        for name in self._names:
            self.make_directory(_parent(name))
        for inode in {one.number: one for one in self._names.values()}.values():
            self._lose(inode)
        self._used = sum(len(inode.cached) for inode in self._names.values())

    def _lose_directories(self) -> None:
        """Those whose names were not synced may be gone, and all that was in them."""
        for path in sorted(self._directories - self._durable_directories):
            if path in self._directories and (
                _parent(path) not in self._directories or self._coin()
            ):
                for name in [one for one in self._durable_names if one.startswith(f"{path}/")]:
                    del self._durable_names[name]
                below = {one for one in self._directories if one.startswith(f"{path}/")}
                self._directories -= below | {path}
                self._durable_directories -= below
        self._durable_directories |= self._directories

    def count_down(self) -> None:
        """One sync less until the power fails; raises DiskError when it does."""
        if self.power_fails_in is None:
            return
        self.power_fails_in -= 1
        if self.power_fails_in < 0:
            self.power_fails_in = None
            self.crash()
            raise DiskError("the power has failed")

    def kill(self) -> None:
        """End the process only: the page cache stays, open files do not."""
        self.epoch += 1

    def _lose(self, inode: Inode) -> None:
        for sector in sorted(inode.dirty):
            start = sector * SECTOR
            data = inode.cached[start : start + SECTOR]
            fate = self.rng.randrange(3)
            if fate == 0:
                self.keep(inode, start, data)
            elif fate == 1:
                self.keep(inode, start, data[: self.rng.randrange(len(data) + 1)])
        if inode.resized and self._coin():
            length = len(inode.cached)
            inode.durable = grown(inode.durable, length)
        inode.dirty.clear()
        inode.resized = False
        inode.cached = bytearray(inode.durable)

    def write_back(self, path: str) -> None:
        """What the system does with a file by itself, after a while."""
        self.settle(self._names[path])

    def settle(self, inode: Inode) -> None:
        """What is cached of a file reaches the platter."""
        if inode.resized:
            inode.durable = grown(inode.durable, len(inode.cached))
            inode.resized = False
        if len(inode.dirty) * SECTOR >= len(inode.cached):
            self.keep(inode, 0, inode.cached)
        else:
            for sector in inode.dirty:
                start = sector * SECTOR
                self.keep(inode, start, inode.cached[start : start + SECTOR])
        inode.dirty.clear()

    def flip_bit(self, path: str, bit: int) -> None:
        """Bit rot, on the platter and in the cache."""
        inode = self._names[path]
        for image in (inode.cached, inode.durable):
            if bit // 8 < len(image):
                image[bit // 8] ^= 1 << (bit % 8)

    def overwrite(self, path: str, content: bytes) -> None:
        """Put other bytes in a file's place, durable at once."""
        inode = self._names[path]
        self._used += len(content) - len(inode.cached)
        inode.cached[:] = content
        inode.durable[:] = content
        inode.dirty.clear()
        inode.resized = False

    def content(self, path: str) -> bytes:
        """A file as the process sees it."""
        return bytes(self._names[path].cached)

    def durable_content(self, path: str) -> bytes:
        """A file as a power cut would leave it at worst; empty when its name is not durable."""
        inode = self._durable_names.get(path)
        return bytes(inode.durable) if inode else b""

    def _settle(self, name: str) -> None:
        if name in self._names:
            self._durable_names[name] = self._names[name]
        else:
            self._durable_names.pop(name, None)

    def _coin(self) -> bool:
        return self.rng.random() < 0.5


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
