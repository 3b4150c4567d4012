"""A batch of the log in steps: written, made durable by whoever syncs, and noted."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from jsctl.broker.accel.choice import made_syncer
from jsctl.broker.errors import DiskFull, SyncFailed
from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Syncer
from jsctl.broker.store.disk import RealDisk
from jsctl.broker.store.wal.batch import WalBatch
from jsctl.broker.store.wal.log import Wal
from tests.support.sim_disk import SimDisk, SimFile
from tests.support.wal_rig import GROUP, SMALL, commit, disk_of, entries, reopen


def batch_of(wal: Wal, index: int) -> WalBatch:
    """A brief batch with one entry."""
    wal.add_entries(GROUP, entries(index, 1, index))
    batch = wal.take_batch()
    assert batch is not None and batch.brief is batch
    return batch


def log_of(disk: SimDisk) -> Wal:
    """A log with one frame."""
    wal, _ = reopen(disk)
    wal.add_entries(GROUP, entries(1, 1, 1))
    commit(wal)
    return wal


def kept(disk: SimDisk) -> int:
    """The last entry that a power cut leaves for certain."""
    after = disk.copy()
    for path in after.paths():
        after.overwrite(path, disk.durable_content(path))
    return reopen(after)[1].groups[GROUP].last_index


def test_what_is_begun_is_durable_when_it_is_promised() -> None:
    disk = disk_of()
    wal = log_of(disk)
    batch = batch_of(wal, 2)
    batch.begin(None)
    assert kept(disk) == 1
    syncs = disk.syncs
    batch.promise()
    assert kept(disk) == 2 and disk.syncs == syncs + 1
    batch.promise()
    batch.finish()
    assert disk.syncs == syncs + 1, "once"
    wal.done(batch.ticket)


def test_what_cannot_be_promised_is_final() -> None:
    disk = disk_of()
    wal = log_of(disk)
    batch = batch_of(wal, 2)
    batch.begin(None)
    disk.fail_syncs = 1
    for step in (batch.promise, batch.promise, batch.finish, batch.run):
        with pytest.raises(SyncFailed):
            step()


def test_one_that_finds_no_room_is_run_later(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = disk_of()
    batch = batch_of(log_of(disk), 2)

    def full(self: SimFile, offset: int, parts: Sequence[Piece]) -> None:
        raise DiskFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(SimFile, "write", full)
        with pytest.raises(DiskFull):
            batch.begin(None)
    assert kept(disk) == 1
    batch.run()
    assert kept(disk) == 2


def test_a_real_disk_and_who_syncs_beside(tmp_path: Path) -> None:
    """The log is read back; with the loops in Python the caller syncs."""
    syncer: Syncer | None = made_syncer()
    disk = RealDisk(tmp_path / "disk")
    wal, _ = Wal.open(disk, "wal", SMALL)
    wal.add_entries(GROUP, entries(1, 1, 1))
    commit(wal)
    for index in range(2, 6):
        batch = batch_of(wal, index)
        batch.begin(syncer)
        batch.promise()
        batch.finish()
        wal.done(batch.ticket)
    wal.close()
    _, found = Wal.open(RealDisk(tmp_path / "disk"), "wal", SMALL)
    assert found.groups[GROUP].last_index == 5
    if syncer is not None:
        syncer.close()
