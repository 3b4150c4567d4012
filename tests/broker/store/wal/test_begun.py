"""A batch of the log that is begun ahead: nothing else changes on the disk before it is durable."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jsctl.broker.accel.choice import made_syncer
from jsctl.broker.errors import DiskFull, SyncFailed
from jsctl.broker.pieces import Piece
from jsctl.broker.ports import Disk, Syncer
from jsctl.broker.store.disk import RealDisk
from jsctl.broker.store.wal.batch import WalBatch
from jsctl.broker.store.wal.log import Wal
from tests.support.sim_disk import SimDisk, SimFile
from tests.support.wal_rig import GROUP, SMALL, commit, disk_of, entries, reopen

CHANGES: dict[str, Callable[[Disk], object]] = {
    "write": lambda disk: disk.open("other").write(0, (b"new",)),
    "truncate": lambda disk: disk.open("other").truncate(1),
    "allocate": lambda disk: disk.open("other").allocate(100),
    "create": lambda disk: disk.open("another", create=True),
    "rename": lambda disk: disk.rename("other", "renamed"),
    "remove": lambda disk: disk.remove("other"),
    "remove_tree": lambda disk: disk.remove_tree("directory"),
    "make_directory": lambda disk: disk.make_directory("new"),
}


def prepare(disk: Disk) -> None:
    """Something besides the log."""
    disk.open("other", create=True).write(0, (b"old",))
    disk.make_directory("directory")


def batch_of(wal: Wal, index: int) -> WalBatch:
    """A brief batch with one entry."""
    wal.add_entries(GROUP, entries(index, 1, index))
    batch = wal.take_batch()
    assert batch is not None and batch.brief is batch
    return batch


def begun(disk: SimDisk) -> tuple[Wal, WalBatch]:
    """A log whose second frame is written, and taken for durable."""
    prepare(disk)
    wal, _ = reopen(disk)
    wal.add_entries(GROUP, entries(1, 1, 1))
    commit(wal)
    batch = batch_of(wal, 2)
    batch.begin(None, taken=True)
    return wal, batch


def kept(disk: SimDisk) -> int:
    """The last entry that a power cut leaves for certain."""
    after = disk.copy()
    for path in after.paths():
        after.overwrite(path, disk.durable_content(path))
    return reopen(after)[1].groups[GROUP].last_index


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_taken_for_durable_is_so_before_anything_changes(change: str) -> None:
    disk = disk_of()
    wal, batch = begun(disk)
    assert kept(disk) == 1
    disk.open("other").read(0, 3)
    assert kept(disk) == 1, "reading changes nothing"
    syncs = disk.syncs
    CHANGES[change](disk)
    assert kept(disk) == 2 and disk.syncs == syncs + 1
    CHANGES["create"](disk)
    batch.promise()
    assert disk.syncs == syncs + 1, "once"
    batch.finish()
    wal.done(batch.ticket)


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_changes_when_it_cannot_be_durable(change: str) -> None:
    disk = disk_of()
    _, batch = begun(disk)
    before = disk.paths(), disk.content("other")
    disk.fail_syncs = 1
    with pytest.raises(SyncFailed):
        CHANGES[change](disk)
    assert (disk.paths(), disk.content("other")) == before
    with pytest.raises(SyncFailed):
        batch.promise()


def test_who_waits_makes_it_durable_without_a_change() -> None:
    disk = disk_of()
    wal, batch = begun(disk)
    batch.promise()
    assert kept(disk) == 2
    batch.finish()
    wal.done(batch.ticket)
    syncs = disk.syncs
    CHANGES["write"](disk)
    assert disk.syncs == syncs


def test_one_that_finds_no_room_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = disk_of()
    prepare(disk)
    wal, _ = reopen(disk)
    wal.add_entries(GROUP, entries(1, 1, 1))
    commit(wal)
    batch = batch_of(wal, 2)

    def full(self: SimFile, offset: int, parts: Sequence[Piece]) -> None:
        raise DiskFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(SimFile, "write", full)
        with pytest.raises(DiskFull):
            batch.begin(None, taken=True)
    CHANGES["write"](disk)
    assert kept(disk) == 1
    batch.run()
    assert kept(disk) == 2


@pytest.mark.parametrize("taken", [True, False])
def test_a_real_disk_and_who_syncs_beside(tmp_path: Path, taken: bool) -> None:
    """The log is read back; with the loops in Python the caller syncs."""
    syncer: Syncer | None = made_syncer()
    disk = RealDisk(tmp_path / "disk")
    prepare(disk)
    wal, _ = Wal.open(disk, "wal", SMALL)
    wal.add_entries(GROUP, entries(1, 1, 1))
    commit(wal)
    for index in range(2, 6):
        batch = batch_of(wal, index)
        batch.begin(syncer, taken=taken)
        if taken and index % 2:
            CHANGES["write"](disk)
        batch.promise()
        batch.finish()
        wal.done(batch.ticket)
    wal.close()
    _, found = Wal.open(RealDisk(tmp_path / "disk"), "wal", SMALL)
    assert found.groups[GROUP].last_index == 5
    if syncer is not None:
        syncer.close()
