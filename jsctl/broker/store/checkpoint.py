"""How far a stream's store is durable, and the work that makes it so.

`durable` holds two slots with the position up to which everything was synced: what does not
check below it is damage, what does not check behind it was never promised, and the caller's log
brings it back. An older position in the place of the newest would have damage cut off as never
promised, and a crash may well tear what is being written: so each slot is there twice.
"""

import struct
from dataclasses import field
from typing import NamedTuple
from zlib import crc32

from jsctl.broker.errors import DiskError, DiskFull
from jsctl.broker.ports import Disk, File
from jsctl.broker.store.segments.catalogue import CatalogueWrite, catalogue_name
from jsctl.broker.store.segments.erasures import write_erasures
from jsctl.broker.store.segments.rewrite import SegmentRewrite
from jsctl.broker.store.segments.segment import segment_name
from jsctl.dataclass import dataclass

DURABLE_NAME = "durable"
INDEX_NAME = "index"
_SLOT = struct.Struct("<IQIQQQQqI")
_SLOT_BYTES = 512
_COPY_BYTES = 2 * _SLOT_BYTES
"""How far behind a slot its second copy lies."""
_PLACES = range(0, 2 * _COPY_BYTES, _SLOT_BYTES)
_SLOT_MAGICS = (0x50434A01, 0x50434A02)
"""Of slots without and with the size of the newest segment's catalogue."""


class Durable(NamedTuple):
    """A position in the segments up to which everything is synced, and the bounds there."""

    generation: int
    segment: int
    offset: int
    mark: int
    first: int
    last: int
    last_time: int
    catalogue: int = 0
    """Bytes of the newest segment's catalogue; 0: it has none that is of use."""


class Witness(NamedTuple):
    """What its caller wrote behind a checkpoint of a store: there was one, with these bounds."""

    first: int
    last: int


def encode_slot(durable: Durable, directory: str) -> bytes:
    """One slot of the `durable` file of a store; that of another stream does not check there."""
    packed = _SLOT.pack(
        _SLOT_MAGICS[1],
        durable.generation,
        durable.segment,
        durable.offset,
        durable.mark,
        durable.first,
        durable.last,
        durable.last_time,
        durable.catalogue,
    )
    return packed + crc32(packed, _seed(directory)).to_bytes(4, "little")


def _seed(directory: str) -> int:
    return crc32((directory.rpartition("/")[0] or directory).encode())


def _checks(packed: bytes, crc: bytes, directory: str) -> bool:
    """Whether a slot is sound; those of a former version do not say whose they are."""
    return int.from_bytes(crc, "little") in (crc32(packed, _seed(directory)), crc32(packed))


def damage_of_slots(data: bytes, directory: str) -> str:
    """What is wrong with the content of a `durable` file; empty if nothing is."""
    for start in _PLACES:
        packed = data[start : start + _SLOT.size]
        crc = data[start + _SLOT.size : start + _SLOT.size + 4]
        if any(packed) and not _checks(packed, crc, directory):
            return f"the copy at byte {start} does not check"
    return ""


def read_durable(disk: Disk, directory: str) -> tuple[Durable | None, bool]:
    """The newest sound slot, and whether there is one, or no file that would have it."""
    path = f"{directory}/{DURABLE_NAME}"
    if not disk.exists(path):
        return None, True
    found: list[Durable] = []
    for start in _PLACES:
        file = disk.open(path)
        try:
            data = file.read(start, _SLOT_BYTES)
        except DiskError:
            continue
        finally:
            file.close()
        packed, crc = data[: _SLOT.size], data[_SLOT.size : _SLOT.size + 4]
        if len(packed) == _SLOT.size and _checks(packed, crc, directory):
            magic, *rest = _SLOT.unpack(packed)
            if magic == _SLOT_MAGICS[1] or (magic == _SLOT_MAGICS[0] and not rest[-1]):
                found.append(Durable(*rest))
    return max(found, default=None), bool(found)


@dataclass(slots=True)
class CheckpointJob:
    """Makes a store durable up to a position. Runs on the disk thread."""

    disk: Disk
    directory: str
    durable: Durable
    unsynced: list[int]
    rewrites: list[SegmentRewrite] = field(default_factory=list)
    catalogues: list[CatalogueWrite] = field(default_factory=list)
    index: bytes | None = None
    doomed: list[int] = field(default_factory=list)
    erase: list[int] = field(default_factory=list)
    """Segments of which something is to be erased."""
    noted: list[int] | None = field(default_factory=list)
    """Of which the disk says so; None: that is not known."""

    def run(self) -> None:
        """Sync segments first, then say so, then remove what is not needed. Raises DiskError."""
        self.disk.make_directory(self.directory)
        for number in self.unsynced:
            path = f"{self.directory}/{segment_name(number)}"
            if number != self.durable.segment and not self.disk.is_file(path):
                # Somebody removed it: that is damage, of which reads and scrub tell.
                continue
            file = self.disk.open(path)
            try:
                file.sync()
            finally:
                file.close()
        self._write_catalogues()
        for one in self.rewrites:
            one.run(self.disk, self.directory)
        if self.index is not None:
            try:
                self._write_index(self.index)
            except DiskFull:
                # It is only a shortcut, and what comes next may make room.
                self.disk.remove(f"{self.directory}/{INDEX_NAME}.new")
        self._note_erasures()
        self.disk.sync_directory(self.directory)
        self._write_slot()
        for number in self.doomed:
            catalogue = f"{self.directory}/{catalogue_name(number)}"
            if self.disk.exists(catalogue):
                self.disk.remove(catalogue)
            self.disk.remove(f"{self.directory}/{segment_name(number)}")
        if self.doomed:
            self.disk.sync_directory(self.directory)

    def _note_erasures(self) -> None:
        """Behind this checkpoint the log tells of none."""
        made = {one.number for one in self.rewrites if one.made is not None}
        left = [number for number in self.erase if number not in made]
        if left != self.noted:
            self.noted = None
            write_erasures(self.disk, self.directory, left)
            self.noted = left

    def _write_catalogues(self) -> None:
        newest = 0
        # A segment that is rewritten gets another catalogue, in the place of this one: when the
        # job runs once more for want of room, it may be there.
        rewritten = {one.number for one in self.rewrites if one.made is not None}
        for one in self.catalogues:
            if one.segment.number in rewritten:
                continue
            try:
                one.run(self.disk, f"{self.directory}/{catalogue_name(one.segment.number)}")
            except DiskFull:
                # It is a second copy; a later checkpoint tries again.
                continue
            if one.segment.number == self.durable.segment:
                newest = one.end
        if newest:
            self.durable = self.durable._replace(catalogue=newest)

    def _write_index(self, content: bytes) -> None:
        temporary = f"{self.directory}/{INDEX_NAME}.new"
        file = self.disk.open(temporary, create=True)
        try:
            file.truncate(0)
            file.write(0, (content,))
            file.sync()
        finally:
            file.close()
        self.disk.rename(temporary, f"{self.directory}/{INDEX_NAME}")

    def _write_slot(self) -> None:
        path = f"{self.directory}/{DURABLE_NAME}"
        start = _SLOT_BYTES * (self.durable.generation % 2)
        fresh = not self.disk.is_file(path)
        # A file that is there has a sound slot, so the first one gets its name when it is whole.
        file: File = self.disk.open(f"{path}.new" if fresh else path, create=fresh)
        try:
            slot = encode_slot(self.durable, self.directory)
            file.write(start, (slot,))
            file.write(start + _COPY_BYTES, (slot,))
            file.sync()
        finally:
            file.close()
        if fresh:
            self.disk.rename(f"{path}.new", path)
            self.disk.sync_directory(self.directory)
