"""Who a store belongs to: server name, cluster, and the incarnation of its files.

Two slot files with a generation and a checksum; the valid one with the higher generation counts.
An incarnation is drawn once, when the store is created: a server that comes back with an empty
disk has another one, and cannot be taken for the server that made promises.
"""

import struct
from zlib import crc32

from jsctl.broker.errors import Damaged, DiskError
from jsctl.broker.ports import Disk
from jsctl.broker.store.scrub import FileCheck, SmallCheck
from jsctl.dataclass import dataclass

INCARNATION_BYTES = 16
_MAGIC = 0x44494A01
_HEADER = struct.Struct("<IQ16sHHI")
_SLOTS = ("identity.0", "identity.1")
_HARMLESS = {"lock", *(f"{slot}.new" for slot in _SLOTS)}


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """`incarnation` has 16 bytes; `generation` counts the writes."""

    server: str
    cluster: str
    incarnation: bytes
    generation: int = 1


def encode(identity: StoreIdentity) -> bytes:
    """A slot's content."""
    server, cluster = identity.server.encode(), identity.cluster.encode()
    head = _HEADER.pack(
        _MAGIC,
        identity.generation,
        identity.incarnation,
        len(server),
        len(cluster),
        0,
    )
    body = head + server + cluster
    return body + crc32(body).to_bytes(4, "little")


def decode(data: bytes) -> StoreIdentity | None:
    """The identity in a slot, or None if the slot does not check."""
    if len(data) < _HEADER.size + 4:
        return None
    body = data[:-4]
    if crc32(body) != int.from_bytes(data[-4:], "little"):
        return None
    magic, generation, incarnation, server, cluster, zero = _HEADER.unpack_from(body)
    if magic != _MAGIC or zero or len(body) != _HEADER.size + server + cluster:
        return None
    names = body[_HEADER.size :]
    return StoreIdentity(names[:server].decode(), names[server:].decode(), incarnation, generation)


def read(disk: Disk) -> StoreIdentity | None:
    """The store's identity; None for a store that has none. Raises Damaged if no slot checks,
    or can be read."""
    found: list[StoreIdentity] = []
    seen = False
    for slot in _SLOTS:
        if not disk.exists(slot):
            continue
        seen = True
        file = disk.open(slot)
        try:
            identity = decode(file.read(0, file.size()))
        except DiskError:
            continue
        finally:
            file.close()
        if identity is not None:
            found.append(identity)
    if not found and seen:
        raise Damaged(
            f"no copy of the store's identity checks, nor does {_SLOTS[1]}; restore one of them, or"
            " empty the store to join again",
            path=_SLOTS[0],
        )
    return max(found, key=lambda one: one.generation, default=None)


def resting() -> list[FileCheck]:
    """Checks of the two copies."""

    def verify(data: bytes) -> str:
        return "" if decode(data) is not None else "does not check"

    return [SmallCheck(name, verify, required=True) for name in _SLOTS]


def write(disk: Disk, identity: StoreIdentity) -> None:
    """Write both slots, one after the other, each durable before the next. Raises DiskError."""
    disk.make_directory("")
    for slot in _SLOTS:
        temporary = f"{slot}.new"
        file = disk.open(temporary, create=True)
        file.truncate(0)
        file.write(0, [encode(identity)])
        file.sync()
        file.close()
        disk.rename(temporary, slot)
        disk.sync_directory("")


def has_content(disk: Disk) -> bool:
    """Whether there is more than what a start makes before it writes an identity."""
    return bool(set(disk.list("")) - _HARMLESS)


def read_or_create(disk: Disk, server: str, cluster: str, incarnation: bytes) -> StoreIdentity:
    """The store's identity; a store without one gets it now, with this incarnation.

    A new name of server or cluster is written as the next generation. Raises DiskError, and
    Damaged when the identity is lost and the data is not: the caller says what that means.
    """
    assert len(incarnation) == INCARNATION_BYTES, "an incarnation has 16 bytes"
    known = read(disk)
    rest = set(disk.list("")) - _HARMLESS
    if known is None and rest:
        raise Damaged(
            f"the identity is missing but there is data ({min(rest)}); "
            "restore the file, or move the data away to start as a new incarnation",
            path=_SLOTS[0],
        )
    if known is not None and (known.server, known.cluster) == (server, cluster):
        if rest == {_SLOTS[0]}:
            # The start that made it ended between the copies: nothing is damaged yet.
            write(disk, known)
        return known
    made = StoreIdentity(
        server,
        cluster,
        known.incarnation if known else incarnation,
        known.generation + 1 if known else 1,
    )
    write(disk, made)
    return made
