"""Records of frames and ranges of sequences, as answers of peers have them. Pure."""

from collections.abc import Iterable

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.record import FRAME_HEADER_BYTES
from jsctl.broker.store.seqset import SeqSet


def told_range(first: int, last: int) -> str:
    """A range of sequences, for people."""
    return str(first) if first == last else f"{first} to {last}"


def clipped(ranges: Iterable[tuple[int, int]], up_to: int) -> list[tuple[int, int]]:
    """Ascending ranges as far as they go up to a sequence."""
    return [(first, min(last, up_to)) for first, last in ranges if first <= up_to]


def records_of(frames: Iterable[bytes]) -> dict[int, bytes]:
    """Encoded records of frames, by sequence. Raises Damaged."""
    found: dict[int, bytes] = {}
    for frame in frames:
        if not record.frame_is_sound(frame):
            raise Damaged("a frame's checksum does not hold", path="answer")
        start = FRAME_HEADER_BYTES
        while start < len(frame):
            length = record.verify_record(frame, start)
            if not length:
                raise Damaged("a record's checksum does not hold", path="answer")
            found[record.raw_seq_at(frame, start)] = frame[start : start + length]
            start += length
    return found


def runs(seqs: Iterable[int]) -> list[tuple[int, int]]:
    """Sequences as ranges."""
    found = SeqSet()
    found.add_many(sorted(seqs))
    return list(found.ranges())
