"""The disk thread's side of the log: writing one frame, and making and reusing segments."""

from dataclasses import dataclass, field
from typing import NamedTuple

from jsctl.broker.errors import DiskError, DiskFull, SyncFailed
from jsctl.broker.pieces import gathered
from jsctl.broker.ports import Disk, File
from jsctl.broker.store.wal import format as fmt
from jsctl.broker.store.wal.format import Claim
from jsctl.broker.store.wal.recovery import segment_name

_TEMPORARY = "segment.new"


class NewSegment(NamedTuple):
    """A segment to be made."""

    number: int
    length: int


class WalWriter:
    """Open file and chain of hashes; touched by running batches only, once the log is open."""

    def __init__(self, disk: Disk, directory: str, identity: bytes, last_hash: bytes) -> None:
        self.identity = identity
        self.last_hash = last_hash
        self.broken = ""
        self._disk = disk
        self._directory = directory
        self._file: File | None = None
        self._name = ""

    def file(self, number: int, length: int) -> File:
        """The segment's file, kept open until another one is asked for."""
        name = segment_name(number, length)
        if self._file is None or self._name != name:
            self.close()
            self._file = self._disk.open(f"{self._directory}/{name}")
            self._name = name
        return self._file

    def create(self, wanted: NewSegment, spare: tuple[int, int] | None = None) -> None:
        """Make a segment, out of a spare one of the same length if there is one.

        It gets its name when it is complete and durable. Raises DiskFull, DiskError.
        """
        path = f"{self._directory}/{segment_name(*wanted)}"
        if spare is not None:
            self._disk.rename(f"{self._directory}/{segment_name(*spare)}", path)
        elif not self._disk.exists(path):
            temporary = f"{self._directory}/{_TEMPORARY}"
            self._disk.remove(temporary)
            file = self._disk.open(temporary, create=True)
            try:
                file.allocate(wanted.length)
                file.sync()
            except DiskError:
                file.close()
                self._disk.remove(temporary)
                raise
            file.close()
            self._disk.rename(temporary, path)
        self._disk.sync_directory(self._directory)

    def settle(self, segments: list[tuple[int, int]]) -> None:
        """Make what segments hold, and their names, durable."""
        for segment in segments:
            self.file(*segment).sync()
        self._disk.sync_directory(self._directory)

    def restate(self, segment: tuple[int, int], at: int, claim: Claim | None) -> None:
        """Write one copy of a segment's claims anew, empty without a claim, and durably.

        The frame is made durable first: a killed process may have left it in the page cache.
        """
        data = fmt.encode_mirror(self.identity, claim) if claim is not None else b""
        file = self.file(*segment)
        file.sync()
        file.write(at, (data.ljust(fmt.MIRROR_SLOT, b"\0"),))
        file.sync()

    def remove(self, segments: list[tuple[int, int]]) -> None:
        """Delete segments that nobody needs."""
        for number, length in segments:
            self._disk.remove(f"{self._directory}/{segment_name(number, length)}")
        if segments:
            self._disk.sync_directory(self._directory)

    def close(self) -> None:
        """Close the open file."""
        if self._file is not None:
            self._file.close()
            self._file = None


BRIEF_BYTES_MAX = 16 * 1024
"""What is larger is no single message, and is written while the next turn runs."""


@dataclass(slots=True)
class WalBatch:
    """One frame, and the housekeeping that goes with it. `claim` is read after `run`."""

    ticket: int
    writer: WalWriter
    number: int
    oldest: int
    segment: tuple[int, int]
    offset: int
    claims: bytes
    parts: list[bytes]
    size: int
    """Bytes of claims and parts."""
    count: int
    claim: Claim
    create: list[NewSegment]
    reserve: NewSegment | None
    retired: list[tuple[int, int]] = field(default_factory=list)
    reserve_error: str = ""

    @property
    def is_brief(self) -> bool:
        """Whether `run` is one small write and its sync: no segment begins or goes."""
        housekeeping = self.create or self.reserve is not None or self.retired
        return not housekeeping and self.size <= BRIEF_BYTES_MAX

    def run(self) -> None:
        """Write and sync. Raises DiskFull (may be run again), SyncFailed (final), DiskError."""
        writer = self.writer
        if writer.broken:
            raise SyncFailed(writer.broken)
        for one in self.create:
            writer.create(one)
        body = gathered((self.claims, *self.parts))
        header, own = fmt.encode_header(
            writer.identity,
            self.number,
            writer.last_hash,
            len(self.claims),
            body,
            self.count,
            self.oldest,
        )
        file = writer.file(*self.segment)
        file.write(self.offset, (header, *body))
        try:
            file.sync()
        except SyncFailed as error:
            writer.broken = str(error)
            raise
        writer.last_hash = own
        self.claim.hash = own
        self._mirror(file)
        self._keep_house()

    def _mirror(self, file: File) -> None:
        """Say in the segment that the frame is durable; the next sync covers this."""
        end = self.segment[1] - fmt.MIRROR_BYTES
        slot = end + fmt.MIRROR_SLOT * (self.number % 2)
        file.write(slot, (fmt.encode_mirror(self.writer.identity, self.claim),))

    def _keep_house(self) -> None:
        spare = None
        if self.reserve is not None and self.retired and self.retired[0][1] == self.reserve.length:
            spare = self.retired[0]
        if self.reserve is not None:
            try:
                self.writer.create(self.reserve, spare)
            except DiskFull as error:
                self.reserve_error = str(error)
        self.writer.remove(self.retired[1:] if spare else self.retired)
