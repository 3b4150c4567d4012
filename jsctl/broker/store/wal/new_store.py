"""A store that this start made: its identity and its log, opened, for whoever goes on with them.

Making one takes some syncs and zeroes 32 MiB, which needs nothing but the disk: a process does it
while it loads the rest of the broker. What it leaves when it does not come to its end is what a
start that was interrupted leaves.
"""

import hashlib

from jsctl.broker.ports import Disk
from jsctl.broker.store.identity import (
    INCARNATION_BYTES,
    StoreIdentity,
    has_content,
    read,
    read_or_create,
)
from jsctl.broker.store.wal.log import Wal, WalOptions
from jsctl.broker.store.wal.recovery import Recovered
from jsctl.dataclass import dataclass

LOG_DIRECTORY = "log"


@dataclass(frozen=True, slots=True)
class NewStore:
    """Belongs to who gets it; nothing else of the process may use the log."""

    identity: StoreIdentity
    log: Wal
    recovered: Recovered


def incarnation_of(drawn: str) -> bytes:
    """The incarnation of a new store, from what was drawn at random for this start."""
    return hashlib.sha256(drawn.encode()).digest()[:INCARNATION_BYTES]


def make_store(
    disk: Disk, server: str, cluster: str, incarnation: bytes, segment_bytes: int
) -> NewStore | None:
    """Make one on an empty disk; None, and nothing done, on any other. Raises DiskError."""
    if read(disk) is not None or has_content(disk):
        return None
    identity = read_or_create(disk, server, cluster, incarnation)
    options = WalOptions(identity.incarnation, segment_bytes)
    return NewStore(identity, *Wal.open(disk, LOG_DIRECTORY, options))
