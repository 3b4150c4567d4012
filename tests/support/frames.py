"""Frames as plain bytes, and back again with everything verified: how tests look at them."""

from collections.abc import Sequence

from jsctl.broker.errors import Damaged
from jsctl.broker.store.frame import Frame, frame_of
from jsctl.broker.store.record import Record, RecordLike, frame_is_sound


def encode_frame(records: Sequence[RecordLike]) -> bytes:
    """A batch as one frame."""
    return frame_of(records).buffer


def decode_frame(frame: bytes) -> list[Record]:
    """The records of a frame. Raises Damaged if anything of it does not check."""
    if not frame_is_sound(frame):
        raise Damaged("a frame's checksum does not hold", path="frame")
    return Frame(frame).records
