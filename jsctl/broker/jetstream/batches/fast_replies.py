"""The control channel of fast batches: what publishers say by their replies, and what they hear.

<prefix>.<id>.<flow>.<fail|ok>.<sequence>.<operation>.$FI
"""

from enum import IntEnum
from typing import NamedTuple

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError

FLOW_DEFAULT = 10
FLOW_MAX = 0xFFFF
SEQ_END = (1 << 64) - 1
"""The last sequence that is none: one behind it would be 0."""
_TOKENS = 7
_GAPS = {b"fail": False, b"ok": True}
_DIGITS_MAX = 20


class FastOperation(IntEnum):
    """What a message is to its batch."""

    START = 0
    APPEND = 1
    COMMIT = 2
    """It is stored, and the last one."""
    END = 3
    """The batch ends before it; it is not stored."""
    PING = 4
    """It is not stored: its publisher asks how far the batch is."""


class FastReply(NamedTuple):
    """A reply, understood."""

    id: bytes
    flow: int
    gap_ok: bool
    seq: int
    operation: FastOperation


def read_reply(reply: bytes) -> FastReply | None:
    """What a publisher says; None if it cannot be understood."""
    tokens = reply.rsplit(b".", _TOKENS - 1)
    if len(tokens) != _TOKENS:
        return None
    _, name, flow, gaps, text, operation, _ = tokens
    gap_ok, seq = _GAPS.get(gaps), _number(text)
    number = _number(operation)
    if gap_ok is None or not 0 < seq < SEQ_END or not 0 <= number <= FastOperation.PING:
        return None
    made = FastReply(name, _flow(flow), gap_ok, seq, FastOperation(number))
    return made if _is_in_place(made.operation, seq) else None


def _is_in_place(operation: FastOperation, seq: int) -> bool:
    if operation is FastOperation.START:
        return seq == 1
    return seq > 1 or operation in (FastOperation.COMMIT, FastOperation.PING)


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() and len(text) <= _DIGITS_MAX else -1


def _flow(text: bytes) -> int:
    number = _number(text)
    return min(number, FLOW_MAX) if number > 0 else FLOW_DEFAULT


def flow_ack(seq: int, every: int) -> bytes:
    """All up to a message are stored; what is told next is told after so many more."""
    return b'{"type":"ack","seq":%d,"msgs":%d}' % (seq, every)


def flow_gap(expected: int, seq: int) -> bytes:
    """Messages from the expected one up to another one did not come."""
    return b'{"type":"gap","last_seq":%d,"seq":%d}' % (expected, seq)


def flow_error(seq: int, error: ApiError) -> bytes:
    """A message is not stored."""
    return b'{"type":"err","seq":%d,"error":%b}' % (seq, dumps(error.body()))
