"""Acknowledgements as they come in: parsed by the batch, folded to sequences.

The ack subject tells delivery count and sequences; the payload is one of a few words. Plain
acks, nearly all of them, take the short way and end as a list of stream sequences.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jsctl.api.jsontext import parse_object
from jsctl.api.times import parse_duration
from jsctl.broker.accel.choice import column_loops
from jsctl.broker.accel.columns import SEQ_TOKEN

Captured = tuple[bytes, bytes, bytes, bytes, object]
"""(subject, reply, headers, payload, where it came from)."""

NAK_DELAY_NS_MAX = 10 * 365 * 86400 * 1_000_000_000
"""A message that is put off longer will not come again anyway."""


def ack_prefix(stream: str, consumer: str) -> bytes:
    """What the ack subjects of a consumer start with."""
    return f"$JS.ACK.{stream}.{consumer}.".encode()


def ack_pattern(stream: str, consumer: str) -> bytes:
    """What a consumer's leader subscribes to for acks."""
    return ack_prefix(stream, consumer) + b">"


def flow_pattern(stream: str, consumer: str) -> bytes:
    """What a consumer's leader subscribes to for answers to flow control requests."""
    return f"$JS.FC.{stream}.{consumer}.>".encode()


def next_subject(stream: str, consumer: str, prefix: bytes = b"$JS.API.") -> bytes:
    """What a consumer's leader subscribes to for pull requests."""
    return prefix + f"CONSUMER.MSG.NEXT.{stream}.{consumer}".encode()


class Ack(NamedTuple):
    """One acknowledgement with its word. `deliveries` as the subject says."""

    seq: int
    cseq: int
    deliveries: int
    word: bytes
    reply: bytes


class Folded(NamedTuple):
    """A batch of acks of a consumer with policy explicit."""

    done: list[int]
    """Sequences acknowledged plainly that were not before; no duplicates."""
    answers: list[bytes]
    """Who wants to hear that their plain ack is safe."""
    others: list[Ack]
    """What is not a plain ack, in order."""


def parse(ack: Captured) -> Ack | None:
    """One ack; None when its subject is not one of ours."""
    tokens = ack[0].split(b".")
    try:
        deliveries, seq, cseq = int(tokens[4]), int(tokens[SEQ_TOKEN]), int(tokens[6])
    except (ValueError, IndexError):
        return None
    return Ack(seq, cseq, deliveries, ack[3], ack[1])


def fold(acks: Sequence[Captured], is_open: Callable[[int], bool], known_up_to: int) -> Folded:
    """Split a batch into plain acks, of those that `is_open` of, and others.

    A repeated ack is answered as well; one for a message that is not known is not.
    """
    seqs, replies, odd = column_loops().plain_acks([*acks])
    answers: list[bytes] = []
    if any(replies):
        known = zip(replies, seqs, strict=True)
        answers = [reply for reply, seq in known if reply and seq <= known_up_to]
    others = [found for found in map(parse, [acks[at] for at in odd]) if found is not None]
    return Folded(list(dict.fromkeys(filter(is_open, seqs))), answers, others)


def nak_delay(word: bytes) -> int | None:
    """The delay in ns that a `-NAK` names; None for none, or one that is not understood."""
    argument = word[len(b"-NAK") :].strip()
    if not argument:
        return None
    try:
        if argument.startswith(b"{"):
            delay = parse_object(argument).get("delay", 0)
        else:
            delay = parse_duration(argument.decode(), go_only=True)
    except ValueError:
        return None
    return min(max(delay, 0), NAK_DELAY_NS_MAX) if isinstance(delay, int) else None
