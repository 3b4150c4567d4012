"""What can be had of a segment that is damaged, or that the disk does not read everywhere."""

from jsctl.broker.errors import DiskError
from jsctl.broker.ports import File
from jsctl.broker.store import record
from jsctl.broker.store.record import FRAME_HEADER_BYTES, Columns
from jsctl.broker.store.segments.segment import FRAME, Envelope, UnsoundBytes

_READ_STEP = 4096
"""How much of a file is given up where it cannot be read."""


def readable(file: File, size: int) -> bytes:
    """So many bytes of a file that cannot be read everywhere, or is shorter; other places are
    filled with what never checks."""
    parts: list[bytes] = []
    for start in range(0, size, _READ_STEP):
        length = min(_READ_STEP, size - start)
        try:
            part = file.read(start, length)
        except DiskError:
            part = b""
        parts.append(part.ljust(length, b"\xff"))
    return b"".join(parts)


def columns_of(data: bytes, one: Envelope | UnsoundBytes) -> list[tuple[Columns, int]]:
    """The sound records that a walk met, as columns with the offset behind each."""
    if isinstance(one, Envelope):
        if one.kind != FRAME:
            return []
        return [(record.read_columns(data, one.start + FRAME_HEADER_BYTES, one.end), one.end)]
    if one.frame is None:
        return []
    _, first, last, _ = record.peek(data, one.start)
    starts = record.salvage(data, one.start + FRAME_HEADER_BYTES, one.end, first, last)
    ends = [at + record.raw_length(data, at) for at in starts]
    return [(record.read_columns(data, a, b), b) for a, b in zip(starts, ends, strict=True)]
