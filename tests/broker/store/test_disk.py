"""Real files, and the simulated disk that stands in for them."""

import errno
import os
import random
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from jsctl.broker.errors import DiskError, DiskFull, SyncFailed
from jsctl.broker.options import MIB
from jsctl.broker.ports import Disk
from jsctl.broker.store.disk import HELD_BYTES, HELD_NAME, RealDisk, RealFile
from tests.support.sim_disk import SECTOR, SimDisk


@pytest.fixture(params=["real", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    if request.param == "real":
        return RealDisk(tmp_path / "store")
    return SimDisk(random.Random(1))


def test_files_keep_what_is_written(disk: Disk) -> None:
    disk.make_directory("a/b")
    with pytest.raises(DiskError):
        disk.open("a/b/file")
    file = disk.open("a/b/file", create=True)
    file.write(0, [b"one", b"", b"two"])
    file.write(10, [b"x"] * 1500)
    assert file.size() == 1510
    assert file.read(0, 12) == b"onetwo\0\0\0\0xx"
    assert file.read(1505, 100) == b"xxxxx"
    file.allocate(3000)
    assert (file.size(), file.read(2990, 100)) == (3000, bytes(10))
    file.allocate(10)
    file.truncate(4)
    assert (file.size(), file.read(0, 9)) == (4, b"onet")
    file.sync()
    file.close()
    disk.sync_directory("a/b")


def test_names_can_be_listed_moved_and_removed(disk: Disk) -> None:
    assert disk.list("none") == []
    disk.make_directory("a/b")
    disk.make_directory("a/b")
    for name in ("a/y", "a/x"):
        disk.open(name, create=True).close()
    assert disk.list("a") == ["b", "x", "y"]
    assert disk.list("") == ["a"]
    disk.rename("a/x", "a/y")
    disk.remove("a/none")
    assert disk.list("a") == ["b", "y"]
    assert disk.exists("a/y") and disk.exists("a/b") and not disk.exists("a/x")
    with pytest.raises(DiskError):
        disk.rename("a/none", "a/x")
    disk.remove("a/y")
    disk.remove_tree("a")
    disk.remove_tree("a")
    assert disk.list("") == []
    assert disk.free_bytes() > 0


def test_a_second_owner_is_told_who_the_first_is(tmp_path: Path) -> None:
    first, second = RealDisk(tmp_path), RealDisk(tmp_path)
    first.lock()
    with pytest.raises(DiskError, match=r"in use by process \d+; stop that process"):
        second.lock()
    first.unlock()
    second.lock()
    second.unlock()


def test_a_full_disk_and_a_failed_sync_have_errors_of_their_own() -> None:
    file = RealFile(os.open("/dev/full", os.O_RDWR), "/dev/full")
    with pytest.raises(DiskFull):
        file.write(0, [b"x"])
    file.close()
    simulated = SimDisk(random.Random(1), capacity=100)
    some = simulated.open("f", create=True)
    with pytest.raises(DiskFull):
        some.write(0, [bytes(101)])
    simulated.fail_syncs = 1
    with pytest.raises(SyncFailed):
        some.sync()
    simulated.unreadable = [("f", 0, 10)]
    some.write(0, [b"abc"])
    with pytest.raises(DiskError):
        some.read(0, 3)


def test_a_crash_keeps_what_was_synced_and_tears_the_rest() -> None:
    fates = set()
    for seed in range(40):
        disk = SimDisk(random.Random(seed))
        file = disk.open("f", create=True)
        file.write(0, [b"a" * SECTOR * 4])
        file.sync()
        disk.sync_directory("")
        file.write(SECTOR, [b"b" * SECTOR * 2])
        disk.open("unsynced", create=True)
        disk.crash()
        with pytest.raises(DiskError):
            file.read(0, 1)
        image = disk.content("f")
        assert image[:SECTOR] == b"a" * SECTOR == image[3 * SECTOR :]
        fates.add((image[SECTOR], image[3 * SECTOR - 1], disk.exists("unsynced")))
    assert len(fates) >= 6


def test_a_killed_process_leaves_the_page_cache() -> None:
    disk = SimDisk(random.Random(1))
    disk.open("f", create=True).write(0, [b"abc"])
    disk.kill()
    assert disk.content("f") == b"abc"
    assert disk.durable_content("f") == b""


def test_room_that_was_set_aside_is_used_before_a_write_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(tmp_path)
    disk.hold_room()
    held = tmp_path / HELD_NAME
    assert held.stat().st_size == HELD_BYTES
    file = disk.open("file", create=True)
    write = os.pwritev

    def only_with_room(fd: int, parts: Sequence[bytes], offset: int) -> int:
        if held.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, parts, offset)

    monkeypatch.setattr(os, "pwritev", only_with_room)
    file.write(0, [b"one", b"two"])
    assert file.read(0, 6) == b"onetwo" and not held.exists()
    disk.hold_room()
    assert held.exists()
    held_again = RealDisk(tmp_path)
    with pytest.raises(DiskFull):
        held_again.open("file").write(0, [b"x"])


@pytest.fixture
def small_files() -> Iterator[None]:
    """Files may have one MiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("how", ["write", "allocate"])
def test_a_file_that_may_not_be_larger_is_a_full_disk_that_says_why(
    tmp_path: Path, how: str
) -> None:
    disk = RealDisk(tmp_path)
    file = disk.open("file", create=True)
    assert disk.take_shortage() == ""
    with pytest.raises(DiskFull, match=r"File too large.*ulimit -f") as refused:
        if how == "write":
            file.write(MIB - 1, [b"one", b"two"])
        else:
            file.allocate(MIB + 1)
    assert disk.take_shortage() == str(refused.value)
    assert disk.take_shortage() == ""
    file.write(MIB - 3, [b"one"])
    assert disk.take_shortage() == ""


def test_a_directory_of_a_killed_process_is_made_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RealDisk(tmp_path).make_directory("a/b", durable=False)
    synced: list[str] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    disk = RealDisk(tmp_path)
    disk.make_directory("a/b", durable=False)
    assert synced == []
    disk.make_directory("a/b")
    assert synced == [str(tmp_path), str(tmp_path / "a")]
    disk.make_directory("a/b")
    assert len(synced) == 2, "once is enough"
    disk.remove_tree("a/b")
    disk.make_directory("a/b")
    assert synced[2:] == [str(tmp_path / "a")]


def test_what_is_below_a_removed_directory_is_made_durable_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RealDisk(tmp_path)
    disk.make_directory("a/b/c")
    disk.make_directory("a/d")
    disk.remove_tree("a/b")
    synced: list[str] = []
    fsync = os.fsync

    def noted(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", noted)
    disk.make_directory("a/b/c", durable=False)
    disk.make_directory("a/b/c")
    disk.make_directory("a/d")
    assert synced == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]


def test_a_removal_does_not_look_at_what_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    disk = RealDisk(tmp_path)
    disk.make_directory("first")
    disk.remove_tree("first")  # That loads what removes.
    calls: list[int] = []
    for count in (10, 1_000):
        for number in range(count):
            disk.make_directory(f"{count}/{number}")
        made = 0

        def note(*_: object) -> None:
            nonlocal made
            made += 1

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            disk.remove_tree(f"{count}/5")
        finally:
            sys.setprofile(before)
        calls.append(made)
    assert calls[1] < 2 * calls[0]
