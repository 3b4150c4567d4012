"""The bytes of the log that all raft groups of a server share. Layouts: `docs/formats.md`.

A frame is one group commit: header, claims, records. It begins on a 4 KiB boundary, so that a
torn write damages only itself. Its claims tell which earlier frames have been synced, and what
they held of each group: what start-up needs to tell a torn tail from damage.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import field
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

from jsctl.broker.pieces import Piece, total
from jsctl.dataclass import dataclass

BLOCK = 4096
MAGIC = 0x4C574A01
MAGIC_BYTES = MAGIC.to_bytes(4, "little")
VERSION = 1
HASH_BYTES = 16
NO_HASH = bytes(HASH_BYTES)
MIRROR_SLOT = 32 * 1024
MIRROR_BYTES = 2 * MIRROR_SLOT
"""The end of each segment: two slots with the newest claims, written after a sync returned. A
segment is made with blank ones, so that zeros are never what belongs there."""

ENTRY, TRUNCATE, VOTE, BASE = range(1, 5)
DROP, STANDING, EXAMINED = range(6, 9)

_HEADER = struct.Struct("<IHH16sQ16sIIIQ16s")
_U32 = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + 4
_RECORD = struct.Struct("<BBHQQI")
RECORD_BYTES = _RECORD.size
pack_record = _RECORD.pack
_BASE = struct.Struct("<QQ")
_CLAIM = struct.Struct("<Q16sI")
_CLAIMED = struct.Struct("<HHBQQQ")
_MIRROR = struct.Struct("<II16s")
_INCOMPLETE = 0xFFFFFFFF
CLAIM_FLAG_UNSURE = 1
"""The frame held something of the group that a claim does not repeat: a base, a drop, or doubt."""


class Header(NamedTuple):
    """A frame's header, once its checksum held."""

    number: int
    previous: bytes
    claims_length: int
    body_length: int
    records: int
    oldest: int
    """Number of the oldest frame that the log still needs."""
    body_hash: bytes
    hash: bytes

    @property
    def span(self) -> int:
        """Bytes that the frame occupies, padding included."""
        return aligned(HEADER_BYTES + self.body_length)


class WalRecord(NamedTuple):
    """One record of a frame. `entry_kind` is the caller's kind of an entry, else 0."""

    kind: int
    entry_kind: int
    group: bytes
    term: int
    log_index: int
    data: bytes


@dataclass(slots=True)
class Claimed:
    """What a synced frame held of one group. `voted`: whether term and vote are among it."""

    last_term: int = 0
    last_index: int = 0
    voted: bool = False
    vote_term: int = 0
    vote: bytes = b""
    unsure: bool = False


@dataclass(slots=True)
class Claim:
    """A frame whose sync has returned. `complete`: all its groups are named."""

    number: int
    hash: bytes
    groups: dict[bytes, Claimed] = field(default_factory=dict)
    complete: bool = True


def aligned(length: int) -> int:
    """`length` rounded up to whole blocks."""
    return -(-length // BLOCK) * BLOCK


def content_hash(*parts: Piece) -> bytes:
    """The 16-byte hash of frames and bodies."""
    made = blake2b(digest_size=HASH_BYTES)
    for part in parts:
        made.update(part)
    return made.digest()


def encode_header(
    identity: bytes,
    number: int,
    previous: bytes,
    claims_length: int,
    body: Sequence[Piece],
    count: int,
    oldest: int,
) -> tuple[bytes, bytes]:
    """A frame's header and its hash; `body`, given in pieces, begins with the claims."""
    packed = _HEADER.pack(
        MAGIC,
        VERSION,
        0,
        identity,
        number,
        previous,
        claims_length,
        total(body),
        count,
        oldest,
        content_hash(*body),
    )
    header = packed + _U32.pack(crc32(packed))
    return header, content_hash(header)


def decode_header(data: bytes | memoryview, identity: bytes) -> Header | None:
    """The header at the start of `data`, if it checks and is of this log."""
    if len(data) < HEADER_BYTES:
        return None
    packed = bytes(data[: _HEADER.size])
    (crc,) = _U32.unpack_from(data, _HEADER.size)
    if crc32(packed) != crc:
        return None
    magic, version, flags, owner, number, previous, claims, body, count, oldest, body_hash = (
        _HEADER.unpack(packed)
    )
    if magic != MAGIC or version != VERSION or flags or owner != identity or claims > body:
        return None
    own = content_hash(bytes(data[:HEADER_BYTES]))
    return Header(number, previous, claims, body, count, oldest, body_hash, own)


def record_parts(
    kind: int, group: bytes, term: int, index: int, data: bytes = b"", entry_kind: int = 0
) -> tuple[bytes, bytes, bytes]:
    """One record, as parts to be joined."""
    head = pack_record(kind, entry_kind, len(group), term, index, len(data))
    return head, group, data


def decode_records(body: bytes, start: int, count: int) -> Iterator[WalRecord]:
    """The records of a verified frame body from `start` on."""
    unpack = _RECORD.unpack_from
    for _ in range(count):
        kind, entry_kind, group_length, term, index, length = unpack(body, start)
        start += RECORD_BYTES
        group = body[start : start + group_length]
        start += group_length
        yield WalRecord(kind, entry_kind, group, term, index, body[start : start + length])
        start += length
    assert start == len(body), "a frame ends with its last record"


def base_data(term: int, members: bytes) -> bytes:
    """Payload of a BASE record; its index is the record's."""
    return _BASE.pack(term, 0) + members


def decode_base(data: bytes) -> tuple[int, bytes]:
    """`(term, members)` of a BASE record."""
    return int(_BASE.unpack_from(data)[0]), data[_BASE.size :]


def encode_claim(claim: Claim) -> bytes:
    """One claim as bytes."""
    parts = [
        _CLAIM.pack(
            claim.number, claim.hash, len(claim.groups) if claim.complete else ~0 & 0xFFFFFFFF
        )
    ]
    if claim.complete:
        for group, one in claim.groups.items():
            flags = (CLAIM_FLAG_UNSURE if one.unsure else 0) | (2 if one.voted else 0)
            parts.append(
                _CLAIMED.pack(
                    len(group), len(one.vote), flags, one.last_term, one.last_index, one.vote_term
                )
            )
            parts += (group, one.vote)
    return b"".join(parts)


def decode_claims(data: bytes) -> list[Claim]:
    """Claims from verified bytes."""
    found: list[Claim] = []
    at = 0
    while at < len(data):
        number, own, count = _CLAIM.unpack_from(data, at)
        at += _CLAIM.size
        claim = Claim(number, own, complete=count != _INCOMPLETE)
        for _ in range(count if claim.complete else 0):
            group_length, vote_length, flags, term, index, vote_term = _CLAIMED.unpack_from(
                data, at
            )
            at += _CLAIMED.size
            group = data[at : at + group_length]
            at += group_length
            vote = data[at : at + vote_length]
            at += vote_length
            claim.groups[group] = Claimed(
                term, index, bool(flags & 2), vote_term, vote, bool(flags & CLAIM_FLAG_UNSURE)
            )
        found.append(claim)
    return found


def encode_mirror(identity: bytes, claim: Claim) -> bytes:
    """A claim for a mirror slot; one that does not fit is written without its groups."""
    data = encode_claim(claim)
    if len(data) > MIRROR_SLOT - _MIRROR.size:
        data = encode_claim(Claim(claim.number, claim.hash, complete=False))
    return _MIRROR.pack(crc32(data, crc32(identity)), len(data), identity) + data


def slot_of(length: int, number: int) -> int:
    """Where the claim of a frame is written in a segment of a length."""
    return length - MIRROR_BYTES + MIRROR_SLOT * (number % 2)


def blank_mirror(identity: bytes) -> bytes:
    """What is in a slot before there is a claim for it: that of no frame."""
    return encode_mirror(identity, Claim(0, NO_HASH))


def decode_mirror(slot: bytes, identity: bytes) -> tuple[Claim | None, bool]:
    """`(claim, sound)` of a slot; a slot of zeros is sound and has no claim, not even a blank."""
    head = slot[: _MIRROR.size]
    if head.count(0) == len(head):
        return None, slot.count(0) == len(slot)
    crc, length, owner = _MIRROR.unpack_from(slot)
    data = slot[_MIRROR.size : _MIRROR.size + length]
    if owner != identity or len(data) != length or crc32(data, crc32(identity)) != crc:
        return None, False
    return decode_claims(data)[0], True
