"""The disk thread's side of the log: writing one frame, and making and reusing segments."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import NamedTuple

from jsctl.broker.errors import DiskError, DiskFull, SyncFailed
from jsctl.broker.pieces import gathered
from jsctl.broker.ports import Disk, DiskFile, File, Syncer
from jsctl.broker.store.wal import format as fmt
from jsctl.broker.store.wal.format import Claim
from jsctl.broker.store.wal.recovery import FoundSegment, segment_name
from jsctl.dataclass import dataclass

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
        """Why a frame could not be written: none is written behind it."""
        self._disk = disk
        self._directory = directory
        self._file: DiskFile | None = None
        self._name = ""

    def file(self, number: int, length: int) -> DiskFile:
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
        old = f"{self._directory}/{segment_name(*spare)}" if spare is not None else ""
        if self._disk.is_file(path):
            pass  # It was made before the process, or the one before it, ended.
        elif old and self._disk.is_file(old):
            self._blank(old, wanted.length)
            self._disk.rename(old, path)
        else:
            self._make(path, wanted.length)
        self._disk.sync_directory(self._directory)

    def renew(self, segment: tuple[int, int]) -> None:
        """Put a new segment in the place of one in which nothing is. Raises DiskFull, DiskError."""
        self._make(f"{self._directory}/{segment_name(*segment)}", segment[1])
        self._disk.sync_directory(self._directory)

    def _make(self, path: str, length: int) -> None:
        temporary = f"{self._directory}/{_TEMPORARY}"
        self._disk.remove(temporary)
        try:
            self._blank(temporary, length, create=True)
        except DiskError:
            self._disk.remove(temporary)
            raise
        self._disk.rename(temporary, path)

    def _blank(self, path: str, length: int, *, create: bool = False) -> None:
        """Take claims out of a file, or room for a new one, durably: whoever finds neither a
        claim nor a blank at its end knows that what was there is gone."""
        file = self._disk.open(path, create=create)
        try:
            file.allocate(length)
            for at in range(length - fmt.MIRROR_BYTES, length, fmt.MIRROR_SLOT):
                file.write(at, (fmt.blank_mirror(self.identity),))
            file.sync()
        finally:
            file.close()

    def settle(self, segments: list[tuple[int, int]]) -> None:
        """Make what segments hold, and their names, durable."""
        for segment in segments:
            self.file(*segment).sync()
        self._disk.sync_directory(self._directory)

    def assure(self, found: FoundSegment) -> None:
        """Write the last frame anew where nothing says that its sync returned.

        One that failed has left it in the page cache, as if it were written: no sync would write it
        any more. The frames before it are durable, or it would not have been begun.
        """
        number, file = found.frames[-1], self.file(found.number, found.length)
        slot = file.read(fmt.slot_of(found.length, number), fmt.MIRROR_SLOT)
        claim, _ = fmt.decode_mirror(slot, self.identity)
        if claim is None or claim.number != number:
            start = max((end for one, end in found.ends.items() if one < number), default=0)
            with suppress(DiskFull):  # Its place is taken already, on most file systems.
                file.write(start, (file.read(start, found.end - start),))

    def restate(self, segment: tuple[int, int], at: int, claim: Claim | None) -> None:
        """Write one copy of a segment's claims anew, a blank without a claim, and durably.

        The frame is made durable first: a killed process may have left it in the page cache.
        """
        blank = fmt.blank_mirror(self.identity)
        data = fmt.encode_mirror(self.identity, claim) if claim is not None else blank
        file = self.file(*segment)
        file.sync()
        file.write(at, (data.ljust(fmt.MIRROR_SLOT, b"\0"),))
        file.sync()

    def tell(self, segment: tuple[int, int], claim: Claim) -> None:
        """Say in a segment, durably, that the frame behind its last one is in another file.

        It takes the place of the claim of that last one, which may not be durable yet and which
        the new frame repeats: so a crash tears one copy at most.
        """
        if not self._disk.is_file(f"{self._directory}/{segment_name(*segment)}"):
            return  # The next start finds that it is missing.
        file = self.file(*segment)
        notice = Claim(claim.number, claim.hash, complete=False)
        at = fmt.slot_of(segment[1], claim.number - 1)
        file.write(at, (fmt.encode_mirror(self.identity, notice),))
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
    begun_behind: tuple[int, int] | None = None
    """The segment that ended, where this frame is the first one of the next."""
    retired: list[tuple[int, int]] = field(default_factory=list)
    reserve_error: str = ""
    _own: bytes = b""
    """The frame's hash, once it is written."""

    @property
    def brief(self) -> "WalBatch | None":
        """If `run` is one small write and its sync: no segment begins or goes."""
        housekeeping = self.create or self.reserve is not None or self.retired
        return None if housekeeping or self.size > BRIEF_BYTES_MAX else self

    def run(self) -> None:
        """Write and sync. Raises DiskFull (may be run again), SyncFailed or DiskError (final)."""
        self._do(self._write)
        self.promise()
        self.finish()

    def begin(self, syncer: Syncer | None) -> None:
        """Write, and have the sync begin if there is who does it."""
        self._do(self._write)
        if syncer is not None:
            self.writer.file(*self.segment).begin_sync(syncer)

    def promise(self) -> None:
        """Until the frame is durable."""
        if not self.claim.hash:
            self._do(self._sync)

    def finish(self) -> None:
        """What says so, and the segments that are to be made or to go."""
        self._do(self._note)

    def _do(self, work: Callable[[], None]) -> None:
        if self.writer.broken:
            raise SyncFailed(self.writer.broken)
        try:
            work()
        except DiskFull:
            raise
        except DiskError as error:
            # What comes behind it would promise this frame, too.
            self.writer.broken = str(error)
            raise

    def _write(self) -> None:
        writer = self.writer
        for one in self.create:
            writer.create(one)
        if not self._own:
            self._write_frame(writer.file(*self.segment))

    def _sync(self) -> None:
        assert self._own, "what is not written is not promised"
        self.writer.file(*self.segment).sync()
        self.writer.last_hash = self.claim.hash = self._own

    def _note(self) -> None:
        self._mirror(self.writer.file(*self.segment))
        if self.reserve is not None or self.retired:
            self._keep_house()

    def _write_frame(self, file: File) -> None:
        """Once only, even if what follows finds no room: a frame names the hash of the last."""
        writer = self.writer
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
        file.write(self.offset, (header, *body))
        self._own = own

    def _mirror(self, file: File) -> None:
        """Say in the segment that the frame is durable; the next sync covers this."""
        slot = fmt.slot_of(self.segment[1], self.number)
        file.write(slot, (fmt.encode_mirror(self.writer.identity, self.claim),))
        if self.begun_behind is not None:
            # A file that is gone as a whole cannot tell that something was in it.
            self.writer.tell(self.begun_behind, self.claim)

    def _keep_house(self) -> None:
        spare = None
        self.reserve_error = ""
        if self.reserve is not None and self.retired and self.retired[0][1] == self.reserve.length:
            spare = self.retired[0]
        if self.reserve is not None:
            try:
                self.writer.create(self.reserve, spare)
            except DiskFull as error:
                self.reserve_error, spare = str(error), None
        self.writer.remove(self.retired[1:] if spare else self.retired)
