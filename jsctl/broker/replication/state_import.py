"""State as pieces on the wire: cutting, joining, and receiving a state that is one snapshot.

A state is a sequence of blobs, each sent as its length (u32) and its bytes; the byte stream is cut
to pieces without regard to the blobs. Consumers and the meta group have one blob, streams one
for the small state and then those of their store.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from jsctl.broker.errors import ProtocolError
from jsctl.broker.ports import Disk
from jsctl.broker.replication.group import SyncJob
from jsctl.broker.replication.state_file import GroupState, WriteState
from jsctl.dataclass import dataclass

PIECE_BYTES = 512 * 1024
BLOB_BYTES_MAX = 1 << 30
_LENGTH = struct.Struct("<I")


def pieces(blobs: Iterable[bytes]) -> Iterator[bytes]:
    """Blobs cut for a transfer."""
    waiting = bytearray()
    for blob in blobs:
        waiting += _LENGTH.pack(len(blob))
        waiting += blob
        while len(waiting) >= PIECE_BYTES:
            yield bytes(waiting[:PIECE_BYTES])
            del waiting[:PIECE_BYTES]
    if waiting:
        yield bytes(waiting)


@dataclass(slots=True)
class Joiner:
    """Puts pieces together to blobs again."""

    _waiting: bytearray = field(default_factory=bytearray)

    def feed(self, piece: bytes) -> list[bytes]:
        """The blobs that are complete with this piece. Raises ProtocolError."""
        self._waiting += piece
        done: list[bytes] = []
        while len(self._waiting) >= _LENGTH.size:
            length = _LENGTH.unpack_from(self._waiting)[0]
            if length > BLOB_BYTES_MAX:
                raise ProtocolError(f"a part of {length} bytes in a state transfer")
            end = _LENGTH.size + length
            if len(self._waiting) < end:
                break
            done.append(bytes(self._waiting[_LENGTH.size : end]))
            del self._waiting[:end]
        return done

    def finish(self) -> None:
        """Nothing may be left over. Raises ProtocolError."""
        if self._waiting:
            raise ProtocolError("a state transfer ended within a part")


@dataclass(slots=True)
class StateImporter:
    """Implements `group.Importer`: gathers, writes the state file, then switches."""

    disk: Disk
    directory: str
    next_generation: Callable[[], int]
    take: Callable[[bytes], None]
    """Replaces the state in memory."""
    _joiner: Joiner = field(default_factory=Joiner)
    _parts: list[bytes] = field(default_factory=list)

    def feed(self, chunk: bytes) -> None:
        """Take the next piece."""
        self._parts += self._joiner.feed(chunk)

    def finish(self, index: int, term: int, members: bytes) -> SyncJob:
        """The job that writes the state file."""
        self._joiner.finish()
        if len(self._parts) != 1:
            raise ProtocolError(f"a state of {len(self._parts)} parts instead of one")
        snapshot = self._parts[0]
        state = GroupState(self.next_generation(), index, term, members, snapshot)
        return WriteState(self.disk, self.directory, state, ())

    def switch(self) -> None:
        """Use it."""
        self.take(self._parts[0])

    def abandon(self) -> None:
        """Forget it."""
        self._parts.clear()
