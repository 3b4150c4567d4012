"""Alters a message in the stopped store of one server, with all checksums right afterwards.

What is planted is not damage that a checksum finds, but another content: as a fault of memory or
of software would leave it.
"""

from pathlib import Path

from jsctl.broker.store.segments.segment import UnsoundBytes, encode_envelope, walk
from tests.support.frames import decode_frame, encode_frame

FRAME = 2


def alter(store: Path, needle: bytes, other: bytes) -> Path:
    """Replace the payload that contains `needle` by one of the same length; the file changed.

    Raises LookupError when no segment below `store` has such a message.
    """
    assert len(needle) == len(other)
    for path in sorted(store.rglob("*.seg")):
        altered = _altered(path.read_bytes(), needle, other)
        if altered is not None:
            path.write_bytes(altered)
            (path.parent / "index").unlink(missing_ok=True)
            return path
    raise LookupError(f"no message with {needle!r} below {store}")


def _altered(data: bytes, needle: bytes, other: bytes) -> bytes | None:
    out: list[bytes] = []
    previous, found = 0, False
    for envelope in walk(data, 0, 0):
        assert not isinstance(envelope, UnsoundBytes), "the store was not sound before"
        content = data[envelope.start : envelope.end]
        if envelope.kind == FRAME and needle in content:
            rows = [
                row._replace(payload=row.payload.replace(needle, other))
                for row in decode_frame(content)
            ]
            found = found or any(other in row.payload for row in rows)
            content = encode_frame(rows)
        head, previous = encode_envelope(envelope.kind, envelope.mark, previous, content)
        out += [head, content]
    return b"".join(out) if found else None
