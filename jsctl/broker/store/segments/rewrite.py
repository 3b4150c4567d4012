"""Writing a segment anew: with what is left of it, or with what was damaged put back.

The new file is written beside the old one and takes its place by its name: a crash leaves one or
the other. Runs on the disk thread.
"""

from collections.abc import Iterable
from dataclasses import field
from typing import Protocol

from jsctl.broker.errors import DiskError, DiskFull
from jsctl.broker.ports import Disk
from jsctl.broker.store import record
from jsctl.broker.store.record import FRAME_HEADER_BYTES
from jsctl.broker.store.segments.catalogue import CatalogueWrite, catalogue_name, read_catalogue
from jsctl.broker.store.segments.salvage import columns_of, readable
from jsctl.broker.store.segments.segment import (
    FRAME,
    REMOVE,
    STATE,
    TRUNCATE,
    Envelope,
    Segment,
    UnsoundBytes,
    belongs,
    home_of,
    segment_name,
    walk,
)
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.transfer import TransferBounds
from jsctl.dataclass import dataclass

_FRAME_BYTES_AIMED = 256 * 1024


class SegmentFiller(Protocol):
    """What the new segment holds."""

    def fill(self, made: Segment, data: bytes, disk: Disk, directory: str) -> bool:
        """Write it, given the old one's bytes; False to leave that as it is. Raises DiskError."""


@dataclass(slots=True)
class SegmentRewrite:
    """A segment to be written anew; `made` is there after the run."""

    number: int
    size: int
    filler: SegmentFiller
    restored: tuple[int, ...] = ()
    """Sequences that are in the new file, and were not in the old one."""
    salvage: bool = False
    """Of the old one what can be read is taken, and it need not be there."""
    made: Segment | None = None

    def run(self, disk: Disk, directory: str) -> None:
        """Write the new file beside the old one and put it in its place. Raises DiskError."""
        if self.made is not None:
            return
        path = f"{directory}/{segment_name(self.number)}"
        data = self._old(disk, path)
        temporary = f"{path}.new"
        file = disk.open(temporary, create=True)
        file.truncate(0)
        made = Segment(self.number)
        made.file = file
        try:
            filled = self.filler.fill(made, data, disk, directory)
        except DiskError:
            file.close()
            disk.remove(temporary)
            raise
        if not filled:
            file.close()
            disk.remove(temporary)
            return
        file.sync()
        self._write_catalogue(made, disk, f"{directory}/{catalogue_name(self.number)}")
        disk.rename(temporary, path)
        made.table = None
        self.made = made

    def _old(self, disk: Disk, path: str) -> bytes:
        # What is gone or cannot be read is damage: it is made good, or left for reads to find.
        try:
            source = disk.open(path)
        except DiskError:
            return b""
        try:
            return source.read(0, self.size)
        except DiskError:
            return readable(source, self.size) if self.salvage else b""
        finally:
            source.close()

    def _write_catalogue(self, made: Segment, disk: Disk, path: str) -> None:
        """The old one goes on being true: it tells of more, all of which is removed."""
        write = CatalogueWrite(made, tuple(made.catalogue.unwritten), 0, 0)
        try:
            write.run(disk, f"{path}.new")
            disk.rename(f"{path}.new", path)
            write.landed()
        except DiskFull:
            disk.remove(f"{path}.new")
            made.catalogue.unwritten.clear()


@dataclass(frozen=True, slots=True)
class LiveRecords:
    """Of a sound segment what is live. One in which something does not check is left as it is."""

    live: list[int]

    def fill(self, made: Segment, data: bytes, disk: Disk, directory: str) -> bool:
        """Write live records, and what the old one says of others."""
        removed: list[SeqSet] = []
        cut, mark = 0, 0
        wanted = set(self.live)
        raws: list[bytes] = []
        walked = list(walk(data, 0, 0))
        home = home_of(directory, made.number)
        if _begin(data, home) is None or any(isinstance(one, UnsoundBytes) for one in walked):
            return False
        for one in (one for one in walked if isinstance(one, Envelope)):
            mark = max(mark, one.mark)
            content = data[one.start : one.end]
            if one.kind == STATE and not made.size:
                made.write(STATE, one.mark, content)
            elif one.kind == FRAME:
                raws += _chosen(content, wanted)
            elif one.kind == REMOVE:
                removed.append(SeqSet.decode(content))
            elif one.kind == TRUNCATE:
                cut = max(cut, int.from_bytes(content, "little"))
        if len(raws) != len(self.live):
            return False
        _write_raws(made, raws, mark)
        if cut:
            made.write(TRUNCATE, mark, cut.to_bytes(8, "little"))
        made.write(REMOVE, mark, SeqSet.union(removed).encode())
        made.seal()
        return True


@dataclass(frozen=True, slots=True)
class RestoredRecords:
    """Of a damaged segment what is live: from itself what checks, the rest as given."""

    live: list[int]
    raws: dict[int, bytes]
    mark: int
    """Of the last change that the old segment knew."""
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Where records lie, and how long they are, as the store knows: the envelope around a sound
    one may be damaged."""
    removed: SeqSet = field(default_factory=SeqSet)
    """All that is removed by now: it says more than any envelope that was damaged."""

    def fill(self, made: Segment, data: bytes, disk: Disk, directory: str) -> bool:
        """Write live records behind the bounds that the old one began with."""
        found = {**dict(self._sound(data)), **dict(self._known(data)), **self.raws}
        if any(seq not in found for seq in self.live):
            return False
        bounds, mark = self._bounds(made.number, data, disk, directory)
        made.write(STATE, mark, bounds.encode())
        _write_raws(made, [found[seq] for seq in self.live], self.mark)
        made.write(REMOVE, self.mark, self.removed.encode())
        made.seal()
        return True

    def _sound(self, data: bytes) -> Iterable[tuple[int, bytes]]:
        for one in walk(data, 0, 0):
            for some, end in columns_of(data, one):
                ends = [*some.offsets[1:], end]
                for seq, start, stop in zip(some.seqs, some.offsets, ends, strict=True):
                    yield seq, data[start:stop]

    def _known(self, data: bytes) -> Iterable[tuple[int, bytes]]:
        for seq, (start, length) in self.places.items():
            if (
                record.verify_record(data, start) == length
                and record.raw_seq_at(data, start) == seq
            ):
                yield seq, data[start : start + length]

    def _bounds(
        self, number: int, data: bytes, disk: Disk, directory: str
    ) -> tuple[TransferBounds, int]:
        """What the old segment, or its catalogue, begins with; or what can be said without."""
        first, home = self.live[0], home_of(directory, number)
        known = read_catalogue(disk, directory, number, None)
        begin = _begin(data, home)
        if begin is not None:
            content, mark = data[begin.start : begin.end], begin.mark
        elif known is not None:
            content, mark = known.content(known.envelopes[0]), known.envelopes[0].mark
        else:
            return TransferBounds(home, first, first - 1, 0, 0, 0, SeqSet()), 0
        told = TransferBounds.decode(content)
        last = min(told.last, first - 1)
        bounds = TransferBounds(
            home, told.first, last, told.last_time, told.mark, told.digest, told.deleted
        )
        return bounds, mark


def _begin(data: bytes, home: int) -> Envelope | None:
    """The bounds that a segment begins with, if it belongs there."""
    begin = next(walk(data, 0, 0), None)
    return begin if isinstance(begin, Envelope) and belongs(data, begin, home) else None


def _chosen(frame: bytes, wanted: set[int]) -> list[bytes]:
    found = record.read_columns(frame, FRAME_HEADER_BYTES, len(frame))
    ends = [*found.offsets[1:], len(frame)]
    return [
        frame[a:b]
        for seq, a, b in zip(found.seqs, found.offsets, ends, strict=True)
        if seq in wanted
    ]


def _write_raws(made: Segment, raws: list[bytes], mark: int) -> None:
    some: list[bytes] = []
    size = 0
    for at, raw in enumerate(raws):
        some.append(raw)
        size += len(raw)
        if size >= _FRAME_BYTES_AIMED or at == len(raws) - 1:
            frame = record.frame_of_raw(some)
            found = record.read_columns(frame, FRAME_HEADER_BYTES, len(frame))
            start = made.write(FRAME, mark, frame)
            made.add(found, len(frame), start)
            some, size = [], 0
