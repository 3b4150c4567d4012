"""The operating system's files: the only module of the broker that calls `os.*`.

Foreign errors are mapped here and nowhere else: ENOSPC, EDQUOT and EFBIG to DiskFull, a failed
fsync to SyncFailed, everything else to DiskError. Directories are 0700, files 0600.

Only files are opened: a pipe or a device might wait, or do something, and a link leads to what is
not the store's. What is in the way of a file that is made, or gets its name, is set aside.
"""

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, takewhile
from pathlib import Path

from jsctl.broker.errors import DiskError, DiskFull, NotAFile, SyncFailed
from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Syncer

_VECTORS_MAX = 512
_KEPT_PART = 4
"""Files that somebody keeps open are to be no more than this part of all."""
_ZEROS = bytes(1 << 20)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OTHERS = (errno.EISDIR, errno.ELOOP, errno.ENXIO)
"""What opening a directory, a link and a socket ends with."""
_FORBIDDEN = "; let the server's user read and write it"
_REMEDIES = {
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.EFBIG: "; let the server write larger files (ulimit -f)",
    errno.EDQUOT: "; raise the quota of the server's user",
}
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
ASIDE = ".set-aside"
"""What the name of something ends with that was in the way."""
FILE, DIRECTORY, LINK = "file", "directory", "symbolic link"
_KINDS = {
    stat.S_IFREG: FILE,
    stat.S_IFDIR: DIRECTORY,
    stat.S_IFLNK: LINK,
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
LOCK_NAME = "lock"
HELD_NAME = "held-room"
HELD_BYTES = 16 * 1024 * 1024
"""What a server that is refusing new work may still need for what it has taken already."""


@contextmanager
def _mapped(what: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _as_ours(error, what, path) from error


def _as_ours(error: OSError, what: str, path: str) -> DiskError:
    kind = DiskFull if error.errno in _FULL else DiskError
    remedy = _REMEDIES.get(error.errno or 0, "")
    return kind(f"{path}: cannot {what}: {error.strerror or error}{remedy}")


class HeldRoom:
    """A file that only takes room, to be given up when the disk is full.

    New work is refused long before that, but another program may fill the disk at any moment,
    and an entry that is committed has to be applied.
    """

    __slots__ = ("_held", "_path", "shortage")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = False
        self.shortage = ""
        """What found no room last; only the system knows of quotas, and of limits of one file."""

    def take(self) -> None:
        """Set it aside; without effect if there is none to be had."""
        if self._held:
            return
        try:
            fd = os.open(self._path, _FLAGS | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(fd, 0, HELD_BYTES)
                self._held = True
            finally:
                os.close(fd)
        except OSError:
            self.give()

    def give(self) -> bool:
        """Give it up; whether there was any."""
        held, self._held = self._held, False
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        return held


class RealFile:
    """A file descriptor. `write` and `read` are positional; no offset is shared."""

    __slots__ = ("_fd", "_held", "_syncer", "path")

    def __init__(self, fd: int, path: str, held: HeldRoom | None = None) -> None:
        self._fd = fd
        self._held = held
        self._syncer: Syncer | None = None
        """What has a sync of this file under way."""
        self.path = path

    def size(self) -> int:
        with _mapped("look at", self.path):
            return os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        # Without `_mapped`, which takes half as long as the read of a message.
        try:
            data = os.pread(self._fd, length, offset)
            if len(data) == length or not data:
                return data
            parts = [data]
            got = len(data)
            while got < length and (data := os.pread(self._fd, length - got, offset + got)):
                parts.append(data)
                got += len(data)
            return b"".join(parts)
        except OSError as error:
            raise _as_ours(error, "read", self.path) from error

    def write(self, offset: int, parts: Sequence[Piece]) -> None:
        try:
            self._write(offset, parts)
        except DiskFull as error:
            self._fell_short(error)
            if self._held is None or not self._held.give():
                raise
            self._write(offset, parts)

    def _write(self, offset: int, parts: Sequence[Piece]) -> None:
        try:
            for start in range(0, len(parts), _VECTORS_MAX):
                some = parts[start : start + _VECTORS_MAX]
                total = sum(map(len, some))
                wrote = os.pwritev(self._fd, some, offset)
                if wrote < total:
                    self._write_rest(offset + wrote, b"".join(some)[wrote:])
                offset += total
        except OSError as error:
            raise _as_ours(error, "write", self.path) from error

    def _write_rest(self, offset: int, rest: bytes) -> None:
        """Finish a short write; what stops it is raised by the next call."""
        while rest:
            wrote = os.pwrite(self._fd, rest, offset)
            offset += wrote
            rest = rest[wrote:]

    def begin_sync(self, syncer: Syncer) -> None:
        syncer.begin(self._fd)
        self._syncer = syncer

    def sync(self) -> None:
        syncer, self._syncer = self._syncer, None
        if syncer is not None:
            failure = syncer.end()
            if failure:
                raise SyncFailed(f"{self.path}: fsync failed: {os.strerror(failure)}")
            return
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise SyncFailed(f"{self.path}: fsync failed: {error.strerror}") from error

    def _fell_short(self, error: DiskFull) -> None:
        if self._held is not None:
            self._held.shortage = str(error)

    def allocate(self, length: int) -> None:
        try:
            self._allocate(length)
        except DiskFull as error:
            self._fell_short(error)
            raise

    def _allocate(self, length: int) -> None:
        with _mapped("reserve room for", self.path):
            size = os.fstat(self._fd).st_size
            if length <= size:
                return
            os.posix_fallocate(self._fd, 0, length)
            # Blocks that were only reserved are converted at their first write, which makes
            # every fdatasync write metadata; zeros written once avoid that.
            for offset in range(size, length, len(_ZEROS)):
                os.pwrite(self._fd, _ZEROS[: length - offset], offset)

    def truncate(self, length: int) -> None:
        with _mapped("cut", self.path):
            os.ftruncate(self._fd, length)

    def close(self) -> None:
        if self._fd >= 0:
            if self._syncer is not None:
                self._syncer.end()  # Whoever closes the file waits for no promise any more.
                self._syncer = None
            fd, self._fd = self._fd, -1
            with _mapped("close", self.path):
                os.close(fd)


class RealDisk:
    """A directory of the file system. `lock` keeps a second process out."""

    def __init__(self, root: str | Path, crowded_from: int = sys.maxsize) -> None:
        """From the file descriptor `crowded_from` on there are too many files; who keeps some open
        may have a part of them, as connections have numbers behind those."""
        self._crowded_from = crowded_from
        self._newest = 0
        """The descriptor of the file that was opened last."""
        self._root = self.root = Path(root)
        self._text = f"{self._root}/"
        self._lock: int | None = None
        self._held = HeldRoom(self._root / HELD_NAME)
        self._settled: set[Path] = set()
        """Directories whose names are durable, as far as this process has seen to it."""
        self._settled_in: dict[Path, set[Path]] = {}
        """Those of them that are in each: a removal looks at what goes, and at nothing else."""
        self._make(self._root)

    def lock(self) -> None:
        """Own this directory until `unlock` or the end of the process. Raises DiskError."""
        fd = _open_file(f"{self._text}{LOCK_NAME}", os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise DiskError(
                f"{self._root}: in use by process {owner}; "
                "stop that process or choose another store directory"
            ) from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self._lock = fd

    def unlock(self) -> None:
        """Let another process have the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def open(self, path: str, *, create: bool = False) -> RealFile:
        full = self._text + path
        try:
            fd = _open_file(full, os.O_CREAT if create else 0)
        except NotAFile:
            if not create:
                raise
            self.set_aside(path)
            fd = _open_file(full, os.O_CREAT)
        self._newest = fd
        return RealFile(fd, full, self._held)

    def is_crowded(self, kept: int) -> bool:
        return self._newest >= self._crowded_from or kept > self._crowded_from // _KEPT_PART

    def exists(self, path: str) -> bool:
        return os.path.exists(self._text + path)  # noqa: PTH110 (asked for each file at a start)

    def is_file(self, path: str) -> bool:
        with suppress(OSError):
            return stat.S_ISREG(os.lstat(self._text + path).st_mode)
        return False

    def list(self, directory: str) -> list[str]:
        full = self._text + directory
        # A group that is made looks into two that are not there yet: without contexts.
        try:
            return sorted(os.listdir(full))  # noqa: PTH208 (the same)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _as_ours(error, "list", full) from error

    def make_directory(self, path: str, *, durable: bool = True) -> None:
        full = self._path(path)
        self._make(full, durable=durable)
        if not durable:
            return
        # One that is there may be from a process that was killed before it synced the name.
        chain = [one for one in (full, *full.parents) if one.is_relative_to(self._root)]
        for one in reversed(chain):
            if one != self._root and one not in self._settled:
                self._settle(one)

    def _settle(self, one: Path) -> None:
        _sync_directory(one.parent)
        self._settled.add(one)
        self._settled_in.setdefault(one.parent, set()).add(one)

    def _make(self, full: Path, *, durable: bool = True) -> None:
        missing = list(takewhile(lambda one: not one.exists(), (full, *full.parents)))
        with _mapped("create", str(full)):
            for one in reversed(missing):
                one.mkdir(mode=0o700, exist_ok=True)
                if durable:
                    self._settle(one)

    def rename(self, old: str, new: str) -> None:
        source, target = self._path(old), self._path(new)
        with _mapped("rename", str(source)):
            try:
                source.replace(target)
            except IsADirectoryError:
                self.set_aside(new)
                source.replace(target)

    def set_aside(self, path: str) -> str:
        """Give what is there another name, which is durable; that name."""
        full = self._path(path)
        name = full.name + ASIDE
        taken = set(self.list(path.rpartition("/")[0]))
        free = next(one for n in count(1) if (one := f"{name}.{n}" if n > 1 else name) not in taken)
        with _mapped("rename", str(full)):
            full.rename(full.with_name(free))
        _sync_directory(full.parent)
        return free

    def is_directory(self, path: str) -> bool:
        """Whether that is where a path leads."""
        return self._path(path).is_dir()

    def entries(self, directory: str) -> Sequence[tuple[str, str]]:
        """Names in a directory, and what each is: in words, of which `FILE`, `LINK` and
        `DIRECTORY` are some."""
        full = self._text + directory
        with _mapped("list", full), os.scandir(full) as found:
            return sorted((one.name, _kind(one)) for one in found)

    def remove(self, path: str) -> None:
        with _mapped("remove", str(self._path(path))):
            try:
                self._path(path).unlink(missing_ok=True)
            except IsADirectoryError:
                self.set_aside(path)

    def remove_tree(self, path: str) -> None:
        import shutil  # loaded late, as few servers begin with it: it brings compression along

        full = self._path(path)
        with _mapped("remove", str(full)), suppress(FileNotFoundError):
            shutil.rmtree(full)
        self._settled_in.get(full.parent, set()).discard(full)
        gone = [full]
        while gone:
            one = gone.pop()
            self._settled.discard(one)
            gone += self._settled_in.pop(one, ())

    def sync_directory(self, path: str) -> None:
        _sync_directory(self._path(path))

    def free_bytes(self) -> int:
        with _mapped("look at", str(self._root)):
            facts = os.statvfs(self._root)
            return facts.f_bavail * facts.f_frsize

    def take_shortage(self) -> str:
        found, self._held.shortage = self._held.shortage, ""
        return found

    def hold_room(self) -> None:
        self._held.take()

    def _path(self, path: str) -> Path:
        return self._root / path


def _open_file(path: str, more: int) -> int:
    """Raises NotAFile, DiskError."""
    with _mapped("open", path):
        try:
            fd = os.open(path, _FLAGS | more, 0o600)
        except OSError as error:
            if error.errno in _OTHERS:
                raise _not_a_file(path) from error
            raise
        if stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
    raise _not_a_file(path)


def _not_a_file(path: str) -> NotAFile:
    kind = _KINDS.get(stat.S_IFMT(os.lstat(path).st_mode), "unknown")
    return NotAFile(f"{path}: is a {kind}, not a file; remove it")


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_file(follow_symlinks=False):
        return FILE
    if entry.is_dir(follow_symlinks=False):
        return DIRECTORY
    return _KINDS.get(stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode), "unknown")


def _sync_directory(path: Path) -> None:
    with _mapped("open", str(path)):
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        raise SyncFailed(f"{path}: fsync failed: {error.strerror}") from error
    finally:
        os.close(fd)
