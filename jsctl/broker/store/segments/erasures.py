"""Which segments are still to be written anew for what is erased in them.

Bytes that are to go stay while a view keeps the segments as they are, or because other segments
come first. The log tells of an erasure no more once a checkpoint has been written behind it: from
then on this file does, so that a process that dies forgets none.

    erase    magic u32, crc u32, length u64, then: numbers of segments u32
"""

import struct
from array import array
from collections.abc import Collection
from zlib import crc32

from jsctl.broker.errors import DiskError
from jsctl.broker.ports import Disk

ERASE_NAME = "erase"
_HEAD = struct.Struct("<IIQ")
_MAGIC = 0x45534A01


def write_erasures(disk: Disk, directory: str, numbers: Collection[int]) -> None:
    """Note these segments; with none, nothing is noted. The caller syncs the directory. Raises
    DiskError, DiskFull."""
    path = f"{directory}/{ERASE_NAME}"
    if not numbers:
        if disk.exists(path):
            disk.remove(path)
        return
    body = array("I", numbers).tobytes()
    file = disk.open(f"{path}.new", create=True)
    try:
        file.truncate(0)
        file.write(0, (_HEAD.pack(_MAGIC, crc32(body), len(body)), body))
        file.sync()
    finally:
        file.close()
    disk.rename(f"{path}.new", path)


def read_erasures(disk: Disk, directory: str) -> list[int] | None:
    """The segments that are noted; None if that does not check: it may be any."""
    path = f"{directory}/{ERASE_NAME}"
    if not disk.exists(path):
        return []
    try:
        file = disk.open(path)
        try:
            data = file.read(0, file.size())
        finally:
            file.close()
    except DiskError:
        return None
    body, found = data[_HEAD.size :], array("I")
    if data[: _HEAD.size] != _HEAD.pack(_MAGIC, crc32(body), len(body)):
        return None
    found.frombytes(body)
    return list(found)
