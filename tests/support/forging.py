"""Segments with other messages in which every checksum is right: what only a comparison finds."""

from collections.abc import Callable
from pathlib import Path

from jsctl.broker.store.record import Record
from jsctl.broker.store.segments.segment import UnsoundBytes, encode_envelope, walk
from tests.support.frames import decode_frame, encode_frame

FRAME = 2
Change = Callable[[list[Record]], list[Record]]
"""Other messages in the place of those of a frame."""


def forged(data: bytes, change: Change) -> bytes:
    """A segment with other messages; it has no table of them any more."""
    out, previous = [], 0
    for envelope in walk(data, 0, 0):
        assert not isinstance(envelope, UnsoundBytes)
        content = data[envelope.start : envelope.end]
        if envelope.kind == FRAME:
            content = encode_frame(change(list(decode_frame(content))))
        head, previous = encode_envelope(envelope.kind, envelope.mark, previous, content)
        out += [head, content]
    return b"".join(out)


def forge_directory(directory: Path, change: Change) -> int:
    """The same in all segments below a directory of a server that is stopped; how many."""
    segments = sorted(directory.rglob("*.seg"))
    for path in segments:
        path.write_bytes(forged(path.read_bytes(), change))
        path.with_suffix(".cat").unlink(missing_ok=True)
        path.with_name("index").unlink(missing_ok=True)
    return len(segments)
