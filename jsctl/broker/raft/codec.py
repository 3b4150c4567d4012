"""Bytes of members and of one group's list of messages.

    messages  count u16, then each message
    message   kind u8, flags u8, to (u8 length + bytes), sender (the same), fields, all
              little endian and of fixed size by kind; an append ends with its entries
    entry     kind u8, term u64, length u32, data; the index follows from the append's
    members   voters u8, learners u8, then each name as u8 length + UTF-8 bytes

What does not decode, or has bytes left over, raises `CodecError`, and never anything else.
"""

import struct
from collections.abc import Callable, Sequence

from jsctl.broker.raft.types import (
    Append,
    AppendReply,
    Entry,
    EntryKind,
    Heartbeat,
    HeartbeatReply,
    Members,
    Message,
    PeerId,
    StandingKind,
    TimeoutNow,
    VoteReply,
    VoteRequest,
)


class CodecError(ValueError):
    """Bytes that are no members or messages."""


_COUNT = struct.Struct("<H")
_HEAD = struct.Struct("<BB")
_ENTRY = struct.Struct("<BQI")
_VOTE_REQUEST = struct.Struct("<QQQ")
_VOTE_REPLY = struct.Struct("<QQ")
_APPEND = struct.Struct("<QQQQI")
_APPEND_REPLY = struct.Struct("<QQQQ")
_HEARTBEAT = struct.Struct("<QQQQQ")
_HEARTBEAT_REPLY = struct.Struct("<QQQQ")
_TIMEOUT_NOW = struct.Struct("<Q")

_KINDS = {kind.value: kind for kind in EntryKind}
_STANDINGS = {kind.value: kind for kind in StandingKind}


def encode_members(members: Members) -> bytes:
    """Bytes of a CONFIG entry."""
    parts = [_HEAD.pack(len(members.voters), len(members.learners))]
    parts += [_name(peer) for peer in members.all()]
    return b"".join(parts)


def decode_members(data: bytes) -> Members:
    """Members of a CONFIG entry. Raises CodecError."""
    reader = _Reader(data)
    voters, learners = reader.unpack(_HEAD)
    names = [reader.name() for _ in range(voters + learners)]
    reader.finish()
    if len(set(names)) != len(names) or "" in names:
        raise CodecError("members are empty or named twice")
    return Members(tuple(names[:voters]), tuple(names[voters:]))


def encode_messages(messages: Sequence[Message]) -> list[bytes]:
    """Bytes of up to 65535 messages of one group, in pieces: entries are not copied."""
    parts = [_COUNT.pack(len(messages))]
    for message in messages:
        _ENCODERS[type(message)](message, parts)
    return parts


def decode_messages(data: bytes | memoryview) -> list[Message]:
    """Messages of one group; nothing of them refers to `data`. Raises CodecError."""
    reader = _Reader(data)
    (count,) = reader.unpack(_COUNT)
    messages: list[Message] = []
    for _ in range(count):
        kind, flags = reader.unpack(_HEAD)
        decoder = _DECODERS.get(kind)
        if decoder is None:
            raise CodecError(f"unknown message kind {kind}")
        messages.append(decoder(reader, flags, reader.name(), reader.name()))
    reader.finish()
    return messages


class _Reader:
    """A cursor over bytes; every short read raises CodecError."""

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = data
        self.offset = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """Fields of one fixed part."""
        offset = self.offset
        self.offset = offset + layout.size
        if self.offset > len(self.data):
            raise CodecError("message ends early")
        return layout.unpack_from(self.data, offset)

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        offset = self.offset
        self.offset = offset + length
        if self.offset > len(self.data):
            raise CodecError("message ends early")
        return bytes(self.data[offset : self.offset])

    def name(self) -> PeerId:
        """A peer's name."""
        if self.offset >= len(self.data):
            raise CodecError("message ends early")
        length = self.data[self.offset]
        self.offset += 1
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise CodecError("a peer's name is no UTF-8") from error

    def finish(self) -> None:
        """Nothing may be left."""
        if self.offset != len(self.data):
            raise CodecError("bytes left over")


def _name(peer: PeerId) -> bytes:
    raw = peer.encode()
    assert len(raw) < 256, "peer id too long"
    return bytes((len(raw),)) + raw


def _start(parts: list[bytes], kind: int, flags: int, message: Message) -> None:
    parts.append(_HEAD.pack(kind, flags) + _name(message.to) + _name(message.sender))


def _encode_vote_request(m: VoteRequest, parts: list[bytes]) -> None:
    _start(parts, 1, m.pre | m.transfer << 1 | m.poll << 2 | m.fresh << 3, m)
    parts.append(_VOTE_REQUEST.pack(m.term, m.last_index, m.last_term))


def _decode_vote_request(r: _Reader, flags: int, to: PeerId, sender: PeerId) -> Message:
    term, last_index, last_term = r.unpack(_VOTE_REQUEST)
    bits = _bits(flags, 4)
    return VoteRequest(to, sender, term, last_index, last_term, *bits)


def _encode_vote_reply(m: VoteReply, parts: list[bytes]) -> None:
    _start(parts, 2, m.pre | m.granted << 1 | m.empty << 2, m)
    parts.append(_VOTE_REPLY.pack(m.term, m.voter_term))


def _decode_vote_reply(r: _Reader, flags: int, to: PeerId, sender: PeerId) -> Message:
    term, voter_term = r.unpack(_VOTE_REPLY)
    return VoteReply(to, sender, term, voter_term, *_bits(flags, 3))


def _encode_append(m: Append, parts: list[bytes]) -> None:
    _start(parts, 3, 0, m)
    entries = m.entries
    parts.append(_APPEND.pack(m.term, m.prev_index, m.prev_term, m.commit, len(entries)))
    for entry in entries:
        parts.append(_ENTRY.pack(entry.kind, entry.term, len(entry.data)))
        parts.append(entry.data)


def _decode_append(r: _Reader, flags: int, to: PeerId, sender: PeerId) -> Message:
    _bits(flags, 0)
    term, prev_index, prev_term, commit, count = r.unpack(_APPEND)
    if count * _ENTRY.size > len(r.data) - r.offset:
        raise CodecError("more entries than bytes")
    entries: list[Entry] = []
    for index in range(prev_index + 1, prev_index + 1 + count):
        kind, entry_term, length = r.unpack(_ENTRY)
        if kind not in _KINDS:
            raise CodecError(f"unknown entry kind {kind}")
        data = r.take(length)
        if kind == EntryKind.CONFIG:
            decode_members(data)
        floor = entries[-1].term if entries else prev_term
        if not floor <= entry_term <= term:
            raise CodecError("terms of entries fall or exceed the leader's")
        entries.append(Entry(index, entry_term, _KINDS[kind], data))
    return Append(to, sender, term, prev_index, prev_term, commit, entries)


def _encode_append_reply(m: AppendReply, parts: list[bytes]) -> None:
    _start(parts, 4, m.rejected | m.standing << 1, m)
    parts.append(_APPEND_REPLY.pack(m.term, m.index, m.hint_index, m.hint_term))


def _decode_append_reply(r: _Reader, flags: int, to: PeerId, sender: PeerId) -> Message:
    term, index, hint_index, hint_term = r.unpack(_APPEND_REPLY)
    standing = _standing(flags >> 1)
    return AppendReply(to, sender, term, index, bool(flags & 1), hint_index, hint_term, standing)


def _encode_heartbeat(m: Heartbeat, parts: list[bytes]) -> None:
    _start(parts, 5, int(m.quiet), m)
    parts.append(_HEARTBEAT.pack(m.term, m.commit, m.round, m.tick, m.last_index))


def _decode_heartbeat(r: _Reader, flags: int, to: PeerId, sender: PeerId) -> Message:
    term, commit, round_, tick, last_index = r.unpack(_HEARTBEAT)
    (quiet,) = _bits(flags, 1)
    return Heartbeat(to, sender, term, commit, round_, tick, quiet, last_index)


def _encode_heartbeat_reply(m: HeartbeatReply, parts: list[bytes]) -> None:
    _start(parts, 6, m.quiet | m.standing << 1, m)
    parts.append(_HEARTBEAT_REPLY.pack(m.term, m.round, m.tick, m.match))


def _decode_heartbeat_reply(r: _Reader, flags: int, to: PeerId, sender: PeerId) -> Message:
    term, round_, tick, match = r.unpack(_HEARTBEAT_REPLY)
    standing = _standing(flags >> 1)
    return HeartbeatReply(to, sender, term, round_, tick, match, bool(flags & 1), standing)


def _encode_timeout_now(m: TimeoutNow, parts: list[bytes]) -> None:
    _start(parts, 7, 0, m)
    parts.append(_TIMEOUT_NOW.pack(m.term))


def _decode_timeout_now(r: _Reader, flags: int, to: PeerId, sender: PeerId) -> Message:
    _bits(flags, 0)
    (term,) = r.unpack(_TIMEOUT_NOW)
    return TimeoutNow(to, sender, term)


def _bits(flags: int, count: int) -> list[bool]:
    if flags >> count:
        raise CodecError("unknown flags")
    return [bool(flags >> bit & 1) for bit in range(count)]


def _standing(value: int) -> StandingKind:
    if value not in _STANDINGS:
        raise CodecError("unknown standing")
    return _STANDINGS[value]


_ENCODERS: dict[type[Message], Callable[..., None]] = {
    VoteRequest: _encode_vote_request,
    VoteReply: _encode_vote_reply,
    Append: _encode_append,
    AppendReply: _encode_append_reply,
    Heartbeat: _encode_heartbeat,
    HeartbeatReply: _encode_heartbeat_reply,
    TimeoutNow: _encode_timeout_now,
}
_DECODERS: dict[int, Callable[[_Reader, int, PeerId, PeerId], Message]] = {
    1: _decode_vote_request,
    2: _decode_vote_reply,
    3: _decode_append,
    4: _decode_append_reply,
    5: _decode_heartbeat,
    6: _decode_heartbeat_reply,
    7: _decode_timeout_now,
}
