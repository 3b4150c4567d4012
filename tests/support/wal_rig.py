"""A log on a simulated disk, written and opened as the edge does."""

import random

from jsctl.broker.errors import DiskFull
from jsctl.broker.store.wal.format import BLOCK, MIRROR_BYTES
from jsctl.broker.store.wal.log import Recovered, Wal, WalOptions
from tests.support.sim_disk import SimDisk

IDENTITY = b"incarnation-0001"
SMALL = WalOptions(IDENTITY, MIRROR_BYTES + 8 * BLOCK)
GROUP = b"S:one"


def disk_of(seed: int = 1) -> SimDisk:
    return SimDisk(random.Random(seed))


def commit(wal: Wal) -> None:
    """Write what is pending, as the edge does."""
    while batch := wal.take_batch():
        batch.run()
        wal.done(batch.ticket)
        if not wal.pending_bytes:
            return


def commit_tightly(wal: Wal) -> int:
    """As `commit`, for a disk that may have no room once; how often a batch ran once more."""
    again = 0
    while batch := wal.take_batch():
        try:
            batch.run()
        except DiskFull:
            again += 1
            batch.run()
        wal.done(batch.ticket)
        if not wal.pending_bytes:
            break
    return again


def reopen(disk: SimDisk, options: WalOptions = SMALL) -> tuple[Wal, Recovered]:
    return Wal.open(disk, "wal", options)


def entries(
    first: int, count: int, term: int = 1, size: int = 20
) -> list[tuple[int, int, int, bytes]]:
    return [(i, term, 0, b"%06d" % i + bytes(size)) for i in range(first, first + count)]
