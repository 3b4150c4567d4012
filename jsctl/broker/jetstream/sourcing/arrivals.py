"""Messages of an origin as they come in."""

import re
from typing import NamedTuple

from jsctl.broker.jetstream.streams.publish_headers import STREAM_SOURCE
from jsctl.broker.protocol import headers as blocks

CONTROL = b"NATS/1.0 100 "
NUMBER_MAX = (1 << 63) - 1
"""More is no sequence or time that anybody lives to see."""
DIGITS_MAX = len(str(NUMBER_MAX))
_NUMBERS = rb"\.(\d{1,%d})" % DIGITS_MAX * 5
_OLD_REPLY = re.compile(rb"\$JS\.ACK\.[^.]*\.([^.]*)" + _NUMBERS).fullmatch
"""Behind the stream's name that of the consumer."""
_REPLY = re.compile(
    rb"\$JS\.ACK\.[^.]*\.[^.]*\.[^.]*\.([^.]*)" + _NUMBERS + rb"(?:\..*)?", re.DOTALL
).fullmatch
"""Domain and account come first, and something may follow."""
_UNWANTED = (b"Nats-Expected-", b"Nats-Batch-")
_UNWANTED_OF_SOURCES = (*_UNWANTED, STREAM_SOURCE + b":")


class Arrival(NamedTuple):
    """One message, as it is to be stored; `seq`, `time_ns` and `identity` are its origin's."""

    seq: int
    time_ns: int
    subject: bytes
    headers: bytes
    payload: bytes
    identity: str

    @property
    def size(self) -> int:
        """About how much memory it takes."""
        return 200 + len(self.subject) + len(self.headers) + len(self.payload)


class Delivered(NamedTuple):
    """What the reply of a delivery says."""

    consumer: bytes
    deliveries: int
    seq: int
    number: int
    time_ns: int
    pending: int


def read_reply(reply: bytes) -> Delivered | None:
    """The facts in a delivery's reply, in the old form or the one with a domain."""
    found = _OLD_REPLY(reply) or _REPLY(reply)
    if found is None:
        return None
    consumer, *numbers = found.groups()
    deliveries, seq, number, time_ns, pending = map(int, numbers)
    if max(seq, number, time_ns) > NUMBER_MAX:
        return None
    return Delivered(consumer, deliveries, seq, number, time_ns, pending)


def is_control(headers: bytes, payload: bytes) -> bool:
    """Whether it is a heartbeat or asks for flow control."""
    return not payload and headers.startswith(CONTROL)


def without_conditions(headers: bytes, *, of_source: bool) -> bytes:
    """A header block without what only its first publish was judged by."""
    if not headers:
        return headers
    unwanted = _UNWANTED_OF_SOURCES if of_source else _UNWANTED
    if not any([one in headers for one in unwanted]):
        return headers
    first, *lines = headers.split(b"\r\n")
    kept = [line for line in lines[:-1] if not line.startswith(unwanted)]
    made = b"\r\n".join([first, *kept, *lines[-1:]])
    return b"" if made == blocks.EMPTY else made


def number_of(headers: bytes, key: bytes) -> int:
    """The number that a header tells; 0 without one."""
    value = blocks.get(headers, key)
    return int(value) if value and value.isdigit() and len(value) <= DIGITS_MAX else 0
