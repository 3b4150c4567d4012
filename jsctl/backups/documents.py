"""What the documents of a backup have to be, so that a server can read them. What is not known here
is passed over: a later server may have written it.
"""

from collections.abc import Mapping
from dataclasses import fields

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode
from jsctl.api.consumer import ConsumerConfig, SequenceInfo
from jsctl.api.stream import StreamConfig, StreamState

UINT64_MAX, INT64_MAX = (1 << 64) - 1, (1 << 63) - 1
_STREAM_KEYS = frozenset(one.name for one in fields(StreamState)) - {"extra"}
_PAIR_KEYS = ("consumer_seq", "stream_seq")
Document = Mapping[str, object]


def check_stream_state(state: dict[str, object]) -> None:
    """Raises DecodeError."""
    decode(StreamState, jsontext.only(state, _STREAM_KEYS), strict=True)


def check_stream_config(config: Document) -> None:
    """Raises DecodeError."""
    decode(StreamConfig, config)


def check_consumer(config: Document, state: Document) -> None:
    """Configuration and position of a consumer. Raises DecodeError."""
    decode(ConsumerConfig, config)
    for key in ("delivered", "ack_floor"):
        decode(SequenceInfo, jsontext.only(_object(state, key), _PAIR_KEYS), strict=True)
    for seq, one in _object(state, "pending").items():
        pending = _object({seq: one}, seq)
        _check_number("pending", seq, pending.get("Sequence"), 0, UINT64_MAX)
        _check_number("pending", seq, pending.get("Timestamp"), -INT64_MAX - 1, INT64_MAX)
    for seq, count in _object(state, "redelivered").items():
        _check_number("redelivered", seq, count, 0, UINT64_MAX)


def _object(document: Document, key: str) -> dict[str, object]:
    found = document.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise DecodeError(f"state.{key} is no object")
    return found


def _check_number(what: str, seq: str, value: object, low: int, high: int) -> None:
    """Of a message that is named by its sequence."""
    is_seq = seq.isascii() and seq.isdigit() and len(seq) <= len(str(UINT64_MAX))
    if not is_seq or int(seq) > UINT64_MAX:
        raise DecodeError(f"state.{what} names the sequence {seq[:30]!r}")
    number = 0 if value is None else value
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise DecodeError(f"state.{what}.{seq} has {str(value)[:30]!r} for a number")
