"""Other things in the places of files of a store: set aside, refused, never waited for."""

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from jsctl.broker.errors import DiskError, NotAFile
from jsctl.broker.store.disk import RealDisk
from jsctl.broker.store.tree.strangers import settle

FILES = (
    "identity.0",
    "held-room",
    "log/0000000001-00100000.wal",
    "assigned/1",
    "meta/state.0",
    "founding/state.1",
    "streams/S-1/state.0",
    "streams/S-1/state.1.new",
    "streams/S-1/store.0/0000000001.seg",
    "streams/S-1/store.0/0000000001.cat",
    "streams/S-1/store.0/durable",
    "streams/S-1/store.0/index",
    "consumers/C-1/state.0",
)
NOBODY = 65534
DIRECTORIES = ("log", "meta", "streams", "streams/S-1", "streams/S-1/store.0", "assigned")
MISSING_TELLS_MORE = ("held-room", "log/0000000001-00100000.wal", "streams/S-1/state.1.new")


def directory(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("of somebody")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        # Names of sockets are short.
        fd = os.open(path.parent, os.O_RDONLY)
        made.bind(f"/proc/self/fd/{fd}/{path.name}")
        os.close(fd)


THINGS: dict[str, Callable[[Path], None]] = {
    "directory": directory,
    "pipe": lambda path: os.mkfifo(path),
    "socket": unix_socket,
}
LINKS: dict[str, str] = {"to a file": "/etc/passwd", "dangling": "/none/at/all", "itself": ""}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for path in FILES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    return tmp_path


def contents(store: Path) -> dict[str, str]:
    return {path: (store / path).read_text() for path in FILES if (store / path).is_file()}


def test_a_store_of_files_stays_as_it_is(store: Path) -> None:
    for other in ("streams/S-1/notes", "chains", "streams/S-1/store.0/0000000001.seg.set-aside"):
        (store / other).mkdir()
    before = sorted(store.rglob("*"))
    assert settle(RealDisk(store)) == []
    assert sorted(store.rglob("*")) == before


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("path", FILES)
def test_what_is_no_file_is_set_aside(store: Path, path: str, thing: str) -> None:
    place = store / path
    place.unlink()
    THINGS[thing](place)
    disk = RealDisk(store)
    (told,) = settle(disk)
    assert f"{place} is a {thing}, not a file" in told
    aside = place.with_name(place.name + ".set-aside")
    assert aside.name in told
    assert not aside.is_file() and os.path.lexists(aside)
    if thing == "directory":
        assert (aside / "inside").read_text() == "of somebody"
    left = contents(store)
    assert left.pop(path, None) == (None if path in MISSING_TELLS_MORE else "")
    assert left == {one: one for one in FILES if one != path}
    assert settle(disk) == [], "a second start finds nothing"


def test_what_was_set_aside_before_stays(store: Path) -> None:
    disk = RealDisk(store)
    place = store / FILES[0]
    for _ in range(3):
        place.unlink()
        place.mkdir()
        settle(disk)
    asides = sorted(one.name for one in store.iterdir() if "aside" in one.name)
    assert asides == ["identity.0.set-aside", "identity.0.set-aside.2", "identity.0.set-aside.3"]


@pytest.mark.parametrize("where", LINKS)
@pytest.mark.parametrize("path", FILES)
def test_a_link_is_refused_with_what_to_do(store: Path, path: str, where: str) -> None:
    place = store / path
    place.unlink()
    place.symlink_to(LINKS[where] or place)
    before = contents(store)
    with pytest.raises(DiskError, match=re.escape(str(place))) as refused:
        settle(RealDisk(store))
    assert "put the file in its place, or remove the link" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert contents(store) == before and place.is_symlink()


@pytest.mark.parametrize("path", DIRECTORIES)
def test_a_directory_may_be_a_link_and_nothing_else(store: Path, path: str) -> None:
    place = store / path
    moved = store / "moved"
    place.rename(moved)
    disk = RealDisk(store)
    place.symlink_to(moved)
    assert settle(disk) == []
    assert disk.entries(path)
    place.unlink()
    place.symlink_to("/none/at/all")
    with pytest.raises(DiskError, match="leads to no directory"):
        settle(disk)
    place.unlink()
    place.write_text("a file")
    (told,) = settle(disk)
    assert "is a file, not a directory" in told
    assert place.with_name(place.name + ".set-aside").read_text() == "a file"


@pytest.mark.parametrize("thing", [*THINGS, "link", "device"])
def test_nothing_but_a_file_is_opened(tmp_path: Path, thing: str) -> None:
    disk = RealDisk(tmp_path)
    place = tmp_path / "x"
    if thing == "device":
        disk = RealDisk("/dev")
        place = Path("/dev/null")
    elif thing == "link":
        (tmp_path / "precious").write_text("precious")
        place.symlink_to(tmp_path / "precious")
    else:
        THINGS[thing](place)
    with pytest.raises(NotAFile, match="not a file; remove it"):
        disk.open(place.name)
    if thing == "device":
        return
    file = disk.open(place.name, create=True)
    file.write(0, [b"new"])
    file.close()
    assert place.read_text() == "new" and not place.is_symlink()
    if thing == "link":
        assert (tmp_path / "precious").read_text() == "precious"


def test_a_directory_in_the_way_of_a_name_is_set_aside(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    directory(tmp_path / "x")
    disk.open("new", create=True).close()
    disk.rename("new", "x")
    assert (tmp_path / "x").is_file()
    assert (tmp_path / "x.set-aside" / "inside").exists()
    directory(tmp_path / "y")
    disk.remove("y")
    assert not (tmp_path / "y").exists()


@contextmanager
def without_privileges() -> Iterator[None]:
    """As root, who may read everything, be nobody for a while."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_file_that_may_not_be_read_names_the_remedy() -> None:
    # Not below pytest's directory, into which only its owner may look.
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        disk = RealDisk(Path(place))
        (Path(place) / "x").touch(mode=0)
        remedy = "x: cannot open: Permission denied; let the server's user"
        with without_privileges(), pytest.raises(DiskError, match=remedy):
            disk.open("x")


def test_a_lock_that_is_no_file_is_refused(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    (tmp_path / "lock").mkdir()
    with pytest.raises(NotAFile, match="lock: is a directory, not a file; remove it"):
        disk.lock()
