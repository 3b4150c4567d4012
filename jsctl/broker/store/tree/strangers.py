"""Before a store is opened: what is no file in the place of a file, and the other way round.

A directory, a pipe, a socket or a device in the place of a file holds nothing of what should be
there: a disk that was repaired leaves such things, or an accident does. It is set aside, beside
its place, and the place gets an empty file, which is damage for whoever reads it: nothing may take
it for a file that was never made. Files of the log get none: there it shows that one is missing.

A symbolic link may lead to the very file, moved elsewhere by an operator, or to a disk that is not
mounted yet: nothing is given up for that, the start is refused. Directories may be links.
"""

import re
from collections.abc import Iterator

from jsctl.broker.errors import DiskError
from jsctl.broker.store.disk import ASIDE, DIRECTORY, FILE, LINK, RealDisk

_STATE = r"state\.[01]"
_STORE = r"(?:\d{10}\.(?:seg|cat)|durable|index|erase)"
_FILES = re.compile(
    r"identity\.[01]|held-room|log/[0-9a-f]{10}-[0-9a-f]{8}\.wal|assigned/\d+"
    rf"|(?:meta|founding|evicted|log-lost)/{_STATE}"
    rf"|(?:streams|consumers)/[^/]+/(?:{_STATE}|assigned|restoring)"
    rf"|streams/[^/]+/store\.\d+/{_STORE}"
)
_DIRECTORIES = re.compile(
    r"log|assigned|meta|founding|streams|consumers"
    r"|(?:streams|consumers)/[^/]+|streams/[^/]+/store\.\d+"
)
_NEVER_EMPTY = re.compile(r"held-room|.*\.(?:wal|new)|.*/restoring")
"""A file of these that is missing says more than an empty one, or as much."""


def settle(disk: RealDisk) -> list[str]:
    """Set them aside; what was done, a line each. Raises DiskError where that is refused."""
    return list(_settled(disk, ""))


def _settled(disk: RealDisk, directory: str) -> Iterator[str]:
    for name, kind in disk.entries(directory):
        path = f"{directory}/{name}" if directory else name
        if _FILES.fullmatch(path.removesuffix(".new")):
            if kind == LINK:
                raise DiskError(
                    f"{disk.root}/{path}: is a {LINK}, and files of a store are no links;"
                    " put the file in its place, or remove the link to have it repaired as a lost"
                    " file"
                )
            if kind != FILE:
                yield _aside(disk, path, kind, FILE)
                if not _NEVER_EMPTY.fullmatch(path):
                    disk.open(path, create=True).close()
                    disk.sync_directory(directory)
        elif _DIRECTORIES.fullmatch(path) and ASIDE not in name:
            if kind == DIRECTORY or (kind == LINK and disk.is_directory(path)):
                yield from _settled(disk, path)
            elif kind == LINK:
                raise DiskError(
                    f"{disk.root}/{path}: is a {LINK} that leads to no directory;"
                    " have it lead to where the directory is, or remove it"
                )
            else:
                yield _aside(disk, path, kind, DIRECTORY)


def _aside(disk: RealDisk, path: str, kind: str, wanted: str) -> str:
    name = disk.set_aside(path)
    return (
        f"{disk.root}/{path} is a {kind}, not a {wanted}: it is called {name} now, and what should"
        " be there is damaged"
    )
