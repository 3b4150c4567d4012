"""Names that tell sources of a stream apart, and the header that says where a message is from.

An index name is what the real server knows a source by: stream, filters and their destinations. It
is part of the header of each message that was sourced, so that it says which source it came by.
"""

import hashlib
import re
from collections.abc import Sequence

from jsctl.api.stream import StreamSource
from jsctl.api.times import format_time
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.publish_headers import STREAM_SOURCE
from jsctl.broker.protocol.headers import EMPTY

HASH_LENGTH = 8
SEQ_DIGITS_MAX = 18
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ALL = ">"
_FILTERS_BETWEEN = "\f"
_ACK = b"$JS.ACK."
_SPACES = re.compile(r"[\t\n\f\r ]+")
"""Destinations have them only within functions, where they say nothing."""


def short_hash(text: str) -> str:
    """A name of 8 letters for a text, as nats-server makes it."""
    digest = hashlib.sha256(text.encode()).digest()[:HASH_LENGTH]
    return "".join([_DIGITS[byte % len(_DIGITS)] for byte in digest])


def stream_identity(created_ns: int) -> str:
    """What tells a stream from an earlier one of the same name."""
    return short_hash(format_time(created_ns))


def origin_name(source: StreamSource) -> str:
    """The stream; streams of one name are told apart by how they are reached."""
    name = source.name
    return name if source.external is None else f"{name}:{short_hash(source.external.api)}"


def index_name(source: StreamSource) -> str:
    """What a source of a stream is known by."""
    name = origin_name(source)
    if source.consumer is not None:
        name += f":C={short_hash(source.consumer.name)}"
    taken, stored = source.filter_subject or _ALL, _ALL
    if source.subject_transforms:
        taken = _FILTERS_BETWEEN.join([one.src or _ALL for one in source.subject_transforms])
        stored = _FILTERS_BETWEEN.join([_named(one.dest) for one in source.subject_transforms])
    return f"{name} {taken} {stored}"


def _named(destination: str) -> str:
    """A destination as one word of a name, and of a header."""
    return _SPACES.sub("", destination) or _ALL


def durable_key(source: StreamSource) -> str:
    """What tells apart the consumers that somebody made for sources."""
    return f"{origin_name(source)} {source.consumer.name if source.consumer else ''}"


def _stable_id(stream: str, account: str, domain: str) -> str:
    parts = [stream, account, domain] if domain else [stream, account]
    return short_hash(" ".join(parts))


def mirror_consumer(stream: str, account: str, domain: str) -> str:
    """The consumer that a mirror reads its origin by."""
    return f"JS_MIRROR_{_stable_id(stream, account, domain)}"


def source_consumer(
    stream: str, account: str, domain: str, source: StreamSource, sources: Sequence[StreamSource]
) -> str:
    """The consumer that a source is read by; several from one stream have names of their own."""
    name = _stable_id(stream, account, domain)
    if sum([one.name == source.name for one in sources]) > 1:
        name = f"{name} {index_name(source)}"
    return f"JS_SRC_{short_hash(name)}"


def source_blocks(
    key: str,
    seqs: Sequence[int],
    subjects: Sequence[bytes],
    identity: str,
    headers: Sequence[bytes],
) -> list[bytes]:
    """Header blocks of messages that had these sequences and subjects at their origin: behind what
    they have comes a header that says so."""
    stream, taken, stored = key.split(" ")
    front = b"%b: %b " % (STREAM_SOURCE, stream.encode())
    middle = f" {taken} {stored} ".encode()
    end = f" {identity}\r\n\r\n".encode() if identity else b"\r\n\r\n"
    return [
        b"%b%b%d%b%b%b" % ((block or EMPTY)[:-2], front, seq, middle, subject, end)
        for seq, subject, block in zip(seqs, subjects, headers, strict=True)
    ]


def read_source_header(value: bytes) -> tuple[str, SourcePosition] | None:
    """Index name and position that a header tells; the name is only the stream where it is of a
    server before 2.10. None for what is no such header."""
    if value.startswith(_ACK):
        tokens = value.decode("utf-8", "replace").split(".")
        if len(tokens) != 9 and len(tokens) < 11:
            return None
        at = 2 if len(tokens) == 9 else 4
        name, seq, identity = tokens[at], tokens[at + 3], ""
    else:
        fields = value.decode("utf-8", "replace").split(" ")
        if len(fields) < 2 or len(fields) == 3:
            return None
        name, seq, identity = fields[0], fields[1], ""
        if len(fields) > 3:
            stored, *rest = fields[3:]
            while rest and stored.count("{{") > stored.count("}}"):
                stored += rest.pop(0)  # nats-server leaves spaces within functions.
            name = " ".join((fields[0], fields[2], stored))
            identity = rest[1] if len(rest) > 1 else ""
    sound = seq.isascii() and seq.isdigit() and len(seq) <= SEQ_DIGITS_MAX
    return (name, SourcePosition(int(seq), identity)) if sound else None
