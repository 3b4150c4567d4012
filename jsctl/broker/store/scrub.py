"""FileReading what rests on a disk, to find damage before somebody needs it: a portion at a time.

A check reads the next bytes of one file and verifies what is complete by then; it runs on the disk
thread, which clients wait for, so a portion is small. What does not check is `damage`, in words;
what it means for messages is found out by whoever owns the file. A check ends with the first
damage: its owner looks at the whole file then. A read that fails is no damage yet: the next step
tries it again.
"""

import struct
from collections.abc import Callable
from dataclasses import field
from typing import Protocol
from zlib import crc32

from jsctl.broker.errors import BrokerError, DiskError
from jsctl.broker.ports import Disk, File
from jsctl.broker.store.segments.segment import (
    HEAD_BYTES,
    SEAL,
    Envelope,
    Segment,
    belongs,
    envelope_length,
    home_of,
    walk,
)
from jsctl.broker.store.wal import format as fmt
from jsctl.dataclass import dataclass

READ_TRIES = 3
"""A read that failed may succeed in a moment, as when a way to the disk is lost and another one is
taken. One that fails as often as this finds damage."""
SMALL_BYTES_MAX = 64 * 1024 * 1024
"""A file that is read as a whole is not larger; what there is of it beyond is not looked at."""


class FileCheck(Protocol):
    """The check of one file."""

    path: str
    size: int
    damage: str
    """What does not check; empty as long as everything does."""
    done: bool
    read: int
    """Bytes read so far."""

    def step(self, disk: Disk, bytes_max: int) -> None:
        """Read and verify some more. Does not raise: a disk that cannot read, however often it is
        tried, is damage. `read` stays as it is when a step has to be made again, later."""


@dataclass(slots=True)
class FileReading:
    """Reads a file from begin to end; what `take` does not use is shown again, with more."""

    path: str
    size: int
    """Up to here, at most; below 0: as large as it is when it is opened."""
    damage: str = ""
    done: bool = False
    read: int = 0
    need: int = 0
    """So many bytes have to be there before `take` can do anything."""
    _failed: int = 0
    _file: File | None = None
    _left: bytearray = field(default_factory=bytearray)

    def portion(self, disk: Disk, bytes_max: int, take: Callable[[bytes], int]) -> None:
        """`take` is given the bytes that follow each other, and says how many it used."""
        try:
            if self._file is None:
                self._file = disk.open(self.path)
                if self.size < 0:
                    self.size = self._file.size()
            want = min(bytes_max, self.size - self.read)
            some = self._file.read(self.read, want)
            self.read += len(some)
            self._left += some
            self.done = not some or self.read >= self.size
            if self.done or len(self._left) >= self.need:
                self.need = 0
                del self._left[: take(bytes(self._left))]
            self._failed = 0
        except DiskError as error:
            self._failed += 1
            self._let_go()  # What failed may be the file as it was opened.
            self.damage = str(error) if self._failed == READ_TRIES else ""
        if self.damage or self.done:
            self.done = True
            self.close()

    def close(self) -> None:
        """Let go of the file, and of what was read of it."""
        self._let_go()
        self._left.clear()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass(slots=True)
class EnvelopeCheck:
    """Of a segment up to a size, or of a whole catalogue, which ends with a seal."""

    path: str
    size: int
    is_catalogue: bool = False
    """Where there is none, nothing is wrong."""
    of: Segment | None = None
    """Whose file it was when the check began: one that is written anew is another one."""
    damage: str = ""
    done: bool = False
    read: int = 0
    _reading: FileReading = field(init=False)
    _previous: int = 0
    _kind: int = 0
    _checked: int = 0

    def __post_init__(self) -> None:
        self._reading = FileReading(self.path, self.size)

    def step(self, disk: Disk, bytes_max: int) -> None:
        """See `FileCheck`."""
        reading = self._reading
        if self.is_catalogue and not self.read and not disk.exists(self.path):
            self.done = True
            return
        reading.portion(disk, bytes_max, self._take)
        self.read, self.size = reading.read, reading.size
        self.damage = self.damage or reading.damage
        if reading.done and not self.damage and self._checked < self.size:
            self.damage = f"{self.path}: ends at {self._checked} instead of {self.size}"
        elif reading.done and not self.damage and self.is_catalogue and self._kind != SEAL:
            self.damage = f"{self.path}: the end is missing"
        if self.damage:
            reading.close()
        self.done = reading.done or bool(self.damage)

    def _take(self, data: bytes) -> int:
        end = 0
        while len(data) - end >= HEAD_BYTES:
            length = envelope_length(data, end)
            if not length:
                self._bad(end)
                return end
            if end + length > len(data):
                # Its own size is told behind the first portion.
                if self._checked + end + length > self._reading.size:
                    self._bad(end)
                self._reading.need = length
                break
            end += length
        for one in walk(data[:end], 0, self._previous):
            if not isinstance(one, Envelope):
                self._bad(one.start)
                return end
            if not self._kind and not self._is_in_place(data, one):
                self.damage = f"{self.path}: it is that of another segment"
                return end
            self._previous, self._kind = one.crc, one.kind
        self._checked += end
        return end

    def _is_in_place(self, data: bytes, begin: Envelope) -> bool:
        home = home_of(self.path.rpartition("/")[0], self.of.number) if self.of else 0
        return not home or belongs(data, begin, home)

    def _bad(self, at: int) -> None:
        if not self.damage:
            self.damage = f"{self.path}: does not check from byte {self._checked + at} on"


@dataclass(slots=True)
class SmallCheck:
    """Of a file that makes sense as a whole only. `verify` says what is wrong with it."""

    path: str
    verify: Callable[[bytes], str]
    required: bool = False
    """It is damage if it is not there."""
    size: int = 0
    damage: str = ""
    done: bool = False
    read: int = 0
    _failed: int = 0

    def step(self, disk: Disk, bytes_max: int) -> None:
        """See `FileCheck`."""
        self.done = True
        if not disk.exists(self.path):
            self.damage = f"{self.path}: is missing" if self.required else ""
            return
        try:
            file = disk.open(self.path)
            try:
                data = file.read(0, min(file.size(), SMALL_BYTES_MAX))
            finally:
                file.close()
            self.read = len(data)
            reason = self.verify(data)
        except DiskError as error:
            self._failed += 1
            self.done = self._failed == READ_TRIES
            reason = str(error) if self.done else ""
        except BrokerError as error:
            reason = str(error)
        if reason:
            self.damage = reason if self.path in reason else f"{self.path}: {reason}"


@dataclass(slots=True)
class SummedCheck:
    """Of a file with a checksum over all that follows its head: magic, checksum, length."""

    path: str
    size: int = -1
    damage: str = ""
    done: bool = False
    read: int = 0
    _reading: FileReading = field(init=False)
    _crc: int = 0
    _expected: tuple[int, int] | None = None
    _length: int = 0

    def __post_init__(self) -> None:
        self._reading = FileReading(self.path, self.size)

    def step(self, disk: Disk, bytes_max: int) -> None:
        """See `FileCheck`."""
        reading = self._reading
        if not self.read and not disk.exists(self.path):
            self.done = True
            return
        reading.portion(disk, bytes_max, self._take)
        self.read, self.done, self.damage = reading.read, reading.done, reading.damage
        if self.done and not self.damage and self._expected != (self._crc, self._length):
            self.damage = f"{self.path}: does not match its checksum"

    def _take(self, data: bytes) -> int:
        start = 0
        if self._expected is None:
            if len(data) < _SUM.size:
                return 0
            self._expected, start = _SUM.unpack_from(data), _SUM.size
        self._crc = crc32(data[start:], self._crc)
        self._length += len(data) - start
        return len(data)


_SUM = struct.Struct("<4xIQ")


@dataclass(slots=True)
class LogCheck:
    """Of one segment of the log: frames `first` to `last`, which are durable and still needed."""

    path: str
    size: int
    identity: bytes
    first: int
    last: int
    damage: str = ""
    done: bool = False
    read: int = 0
    next_frame: int = 0
    """The first one that was not verified yet."""
    _reading: FileReading = field(init=False)

    def __post_init__(self) -> None:
        self._reading = FileReading(self.path, max(0, self.size - fmt.MIRROR_BYTES))
        self.next_frame = self.first

    def step(self, disk: Disk, bytes_max: int) -> None:
        """See `FileCheck`."""
        if self.next_frame > self.last:
            self.done = True
        if self.done:
            self._reading.close()
            return
        reading = self._reading
        reading.portion(disk, bytes_max, self._take)
        self.read, self.damage = reading.read, self.damage or reading.damage
        if reading.done and not self.damage and self.next_frame <= self.last:
            self._bad()
        self.done = reading.done or bool(self.damage) or self.next_frame > self.last
        if self.done:
            reading.close()

    def _take(self, data: bytes) -> int:
        at = 0
        while len(data) - at >= fmt.HEADER_BYTES and self.next_frame <= self.last:
            header = fmt.decode_header(data[at : at + fmt.HEADER_BYTES], self.identity)
            if header is None or header.number != self.next_frame:
                self._bad()
                return at
            if at + header.span > len(data):
                self._reading.need = header.span
                break
            begin = at + fmt.HEADER_BYTES
            if fmt.content_hash(data[begin : begin + header.body_length]) != header.body_hash:
                self._bad()
                return at
            self.next_frame += 1
            at += header.span
        return at

    def _bad(self) -> None:
        self.damage = f"{self.path}: frame {self.next_frame} is damaged"
