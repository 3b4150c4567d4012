"""A disk without room: one line that names the file, and nothing half-written is left."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands.conftest import Result

Run = Callable[..., Result]
STREAM, BODY = "LARGE", 4000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small file system can be mounted by root only, on Linux")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def stored(run: Run, tmp_path: Path) -> None:
    """A stream of more than that, which cannot be made smaller by compressing it."""
    assert run("stream", "add", STREAM, "--subjects", "large", "--defaults").code == 0
    for number in range(40):
        assert run("pub", "large", os.urandom(BODY // 2).hex(), "-J", "-q").code == 0, number


def left_in(place: Path) -> list[str]:
    return sorted(one.name for one in place.rglob("*"))


@pytest.mark.usefixtures("stored")
def test_a_backup_that_finds_no_room_leaves_nothing(run: Run, small_disk: Path) -> None:
    target = small_disk / "backed"
    for words in (("backup", "stream", STREAM), ("stream", "backup", STREAM)):
        done = run(*words, str(target), "--no-progress")
        assert done.code == 1
        error = done.err.splitlines()[-1]
        assert error == f"jsctl: error: write {target}/stream.arc.s2: no space left on device"
        assert left_in(small_disk) == []


@pytest.mark.usefixtures("stored")
def test_of_an_account_the_rest_is_backed_up(run: Run, small_disk: Path) -> None:
    assert run("stream", "add", "SMALL", "--subjects", "small", "--defaults").code == 0
    done = run("backup", "account", str(small_disk / "all"), "--force")
    assert done.code == 1
    assert done.err.splitlines()[-1] == "jsctl: error: backup failed"
    assert f"  {STREAM}: write " in done.out
    assert left_in(small_disk) == ["SMALL", "all", "backup.json", "stream.arc.s2"]


def test_other_files_that_find_no_room(run: Run, small_disk: Path) -> None:
    """What a bucket holds, and a page of figures."""
    large = small_disk.parent / "large"
    large.write_bytes(os.urandom(200_000))
    assert run("object", "add", "ROOM").code == 0
    assert run("object", "put", "ROOM", str(large), "--name", "large", "--no-progress").code == 0
    target = small_disk / "got"
    done = run("object", "get", "ROOM", "large", "-O", str(target), "--no-progress")
    assert done.code == 1
    assert done.err.splitlines()[-1].endswith("no space left on device")
    assert left_in(small_disk) == []
