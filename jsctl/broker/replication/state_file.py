"""The durable applied state of one group: two slots, written in turn.

A state says: everything up to `index` is in here (and, for a stream, in its store), so the log
may let go of it. The slot with the higher generation counts; a slot that does not check is
damage, never "no state".

    slot  magic 4s "JSST", version u8, generation u64, index u64, term u64,
          members length u32, snapshot length u64, members, snapshot, crc32 u32 over all before

The checksum begins with that of the directory's name: a state of another group is damage. Those of
former versions begin with zero.
"""

import struct
import zlib
from collections.abc import Sequence
from functools import partial

from jsctl.broker.errors import Damaged, DiskError
from jsctl.broker.pieces import Piece, gathered, total
from jsctl.broker.ports import Disk
from jsctl.broker.replication.group import SyncJob
from jsctl.broker.store.scrub import FileCheck, SmallCheck
from jsctl.dataclass import dataclass

_HEAD = struct.Struct("<4sBQQQIQ")
_CRC = struct.Struct("<I")
_MAGIC = b"JSST"
_VERSION = 1
_SLOTS = ("state.0", "state.1")


@dataclass(frozen=True, slots=True)
class GroupState:
    """Applied state as of `index`; `members` as encoded by raft."""

    generation: int
    index: int
    term: int
    members: bytes
    snapshot: bytes


def encode(state: GroupState, directory: str) -> bytes:
    """The bytes of a slot in a directory."""
    return b"".join(encode_pieces(state, (), directory))


def encode_pieces(state: GroupState, more: Sequence[Piece], directory: str) -> list[Piece]:
    """The same in pieces; `more` is the rest of the snapshot."""
    head = _HEAD.pack(
        _MAGIC,
        _VERSION,
        state.generation,
        state.index,
        state.term,
        len(state.members),
        len(state.snapshot) + total(more),
    )
    body = [head + state.members + state.snapshot, *more]
    crc = zlib.crc32(directory.encode())
    for piece in body:
        crc = zlib.crc32(piece, crc)
    return gathered([*body, _CRC.pack(crc)])


def decode(data: bytes, path: str) -> GroupState:
    """Inverse of `encode`. Raises Damaged for anything that does not check."""
    if len(data) < _HEAD.size + _CRC.size:
        raise Damaged(f"state of {len(data)} bytes is too short", path=path)
    magic, version, generation, index, term, members, snapshot = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise Damaged("not a state file of this version", path=path)
    end = _HEAD.size + members + snapshot
    if len(data) != end + _CRC.size:
        raise Damaged(f"state has {len(data)} bytes instead of {end + _CRC.size}", path=path)
    home = zlib.crc32(path.rpartition("/")[0].encode())
    if _CRC.unpack_from(data, end)[0] not in (
        zlib.crc32(memoryview(data)[:end], home),
        zlib.crc32(memoryview(data)[:end]),
    ):
        raise Damaged("state does not match its checksum", path=path)
    at = _HEAD.size + members
    return GroupState(generation, index, term, data[_HEAD.size : at], data[at:end])


def resting(directory: str) -> list[FileCheck]:
    """Checks of the copies of a state."""

    paths = [f"{directory}/{name}" for name in _SLOTS]
    return [SmallCheck(path, partial(_verify, path=path)) for path in paths]


def _verify(data: bytes, path: str) -> str:
    decode(data, path)
    return ""


@dataclass(frozen=True, slots=True)
class LoadedState:
    """What start-up found: the newest good state, and what of it is in doubt."""

    state: GroupState | None
    damage: tuple[Damaged, ...] = ()
    is_new: bool = False
    """Nothing at all is in the directory."""


def load(disk: Disk, directory: str) -> LoadedState:
    """The newest state in a directory; slots that are damaged, or cannot be read, are reported,
    not removed. Raises DiskError when one cannot be opened."""
    states: list[GroupState] = []
    damage: list[Damaged] = []
    for name in _SLOTS:
        path = f"{directory}/{name}"
        if not disk.exists(path):
            continue
        file = disk.open(path)
        try:
            states.append(decode(file.read(0, file.size()), path))
        except Damaged as found:
            damage.append(found)
        except DiskError as error:
            damage.append(Damaged(f"state cannot be read: {error}", path=path))
        finally:
            file.close()
    if states:
        # A process that was killed may have given a slot its name without making that durable.
        disk.sync_directory(directory)
    newest = max(states, key=lambda state: state.generation, default=None)
    return LoadedState(newest, tuple(damage))


@dataclass(slots=True)
class WriteState:
    """A job for the disk thread: first what the state relies on, then the state's slot."""

    disk: Disk
    directory: str
    state: GroupState
    before: Sequence[SyncJob]
    more: Sequence[Piece] = ()
    """The rest of the state's snapshot."""

    @property
    def state_bytes(self) -> int:
        """Size of the snapshot."""
        return len(self.state.snapshot) + total(self.more)

    @property
    def index(self) -> int:
        """Up to here the log is not needed once this ran."""
        return self.state.index

    def run(self) -> None:
        """Write and sync. Raises DiskError; the other slot stays as it was."""
        for job in self.before:
            job.run()
        self.disk.make_directory(self.directory)
        slot = _SLOTS[self.state.generation % 2]
        path = f"{self.directory}/{slot}"
        data = encode_pieces(self.state, self.more, self.directory)
        temporary = f"{path}.new"
        file = self.disk.open(temporary, create=True)
        try:
            file.truncate(0)
            file.write(0, data)
            file.sync()
        finally:
            file.close()
        self.disk.rename(temporary, path)
        self.disk.sync_directory(self.directory)
