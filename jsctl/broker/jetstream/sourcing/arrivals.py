"""Messages of an origin as they come in."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from jsctl.broker.jetstream.streams.publish_headers import STREAM_SOURCE
from jsctl.broker.protocol import headers as blocks

CONTROL = b"NATS/1.0 100 "
NUMBER_MAX = (1 << 63) - 1
"""More is no sequence or time that anybody lives to see."""
DIGITS_MAX = len(str(NUMBER_MAX))
MESSAGE_BYTES = 200
"""What one takes besides its texts."""
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
    plain: bool
    """It has no header but the one that says where it is from: all it asks for is to be stored."""


def memory_of(some: Sequence[Arrival]) -> int:
    """About how many bytes messages take."""
    _, _, subjects, headers, payloads, _, _ = zip(*some, strict=True) if some else ((),) * 7
    sizes = [sum(map(len, column)) for column in (subjects, headers, payloads)]
    return MESSAGE_BYTES * len(some) + sum(sizes)


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


class DeliveredColumns(NamedTuple):
    """What the replies of first deliveries say: sequences of the origin, numbers of deliveries,
    times in ns, and how many messages were pending."""

    seqs: list[int]
    numbers: list[int]
    times: list[int]
    pending: list[int]


def read_replies(replies: Sequence[bytes], consumer: bytes) -> DeliveredColumns | None:
    """As `read_reply`, of deliveries in a row that a consumer makes for the first time, at a fourth
    of its cost; None where the replies are not all alike in that."""
    found = _OLD_REPLY(replies[0]) or _REPLY(replies[0])
    if found is None or found[1] != consumer or found[2] != b"1":
        return None
    front = found.string[: found.start(3)]
    if not all([one.startswith(front) for one in replies]):
        return None
    tails = [one[len(front) :] for one in replies]
    dots = tails[0].count(b".")
    if not all([one.count(b".") == dots for one in tails]):
        return None
    words = b".".join(tails).split(b".")
    columns = [words[at :: dots + 1] for at in range(len(DeliveredColumns._fields))]
    if not all([_are_numbers(one) for one in columns]):
        return None
    made = DeliveredColumns(*[list(map(int, one)) for one in columns])
    largest = max(map(max, made[:3]))
    return made if largest <= NUMBER_MAX else None


def _are_numbers(words: Sequence[bytes]) -> bool:
    sizes = list(map(len, words))
    return min(sizes) > 0 and max(sizes) <= DIGITS_MAX and b"".join(words).isdigit()


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
