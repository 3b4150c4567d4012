"""What happens to files of a server whose disk goes bad."""

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path

Way = Callable[[Path, random.Random], str]

CLASSES: dict[str, Callable[[Path], bool]] = {
    "segment": lambda path: path.suffix == ".seg",
    "catalogue": lambda path: path.suffix == ".cat",
    "state": lambda path: path.name.startswith("state."),
    "durable": lambda path: path.name == "durable",
    "index": lambda path: path.name == "index",
    "log": lambda path: path.suffix == ".wal",
    "identity": lambda path: path.name.startswith("identity."),
}
"""Kinds of files, by how they are known."""


def flip(path: Path, rng: random.Random) -> str:
    """A bit, where something is written."""
    data = bytearray(path.read_bytes())
    end = len(bytes(data).rstrip(b"\0")) or 1
    at = rng.randrange(end)
    data[at] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return f"flipped a bit of byte {at}"


def zero(path: Path, rng: random.Random) -> str:
    """A page."""
    size = path.stat().st_size
    at = rng.randrange(max(1, size // 4096)) * 4096
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(min(4096, size - at)))
    return f"zeroed the page at {at}"


def cut(path: Path, rng: random.Random) -> str:
    """The end."""
    size = path.stat().st_size
    left = rng.randrange(size)
    with path.open("r+b") as file:
        file.truncate(left)
    return f"cut at {left} of {size}"


def remove(path: Path, rng: random.Random) -> str:
    """All of it."""
    path.unlink()
    return "removed"


def wipe(path: Path, rng: random.Random) -> str:
    """All of it, but for its length."""
    path.write_bytes(bytes(path.stat().st_size))
    return "zeroed"


def become_directory(path: Path, rng: random.Random) -> str:
    """A directory is in its place, with something in it."""
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("what somebody else has")
    return "a directory"


def become_pipe(path: Path, rng: random.Random) -> str:
    """A pipe is in its place: who opens it to read waits for a writer."""
    path.unlink()
    os.mkfifo(path)
    return "a pipe"


STRANGERS = (become_directory, become_pipe)
WAYS = (flip, zero, cut, remove, *STRANGERS)
WAYS_OF_LOGS = (*WAYS, wipe)
"""A log is read by its files, one behind the other: one of zeros must not be taken for new."""


def files(store: Path, kind: str) -> list[Path]:
    """Files of a kind that hold something."""
    is_kind = CLASSES[kind]
    found = (path for path in sorted(store.rglob("*")) if path.is_file() and is_kind(path))
    return [path for path in found if path.stat().st_size]


def damage(store: Path, kind: str, rng: random.Random, ways: Sequence[Way] | None = None) -> str:
    """Do something to a file of a kind; what, for the log. Empty if there is none."""
    found = files(store, kind)
    if not found:
        return ""
    path = rng.choice(found)
    way = rng.choice(ways or (WAYS_OF_LOGS if kind == "log" else WAYS))
    return f"{path.relative_to(store)}: {way(path, rng)}"
