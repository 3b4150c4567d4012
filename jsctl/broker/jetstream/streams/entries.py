"""What a stream's log holds, and its bytes.

Entries are decisions, not requests: sequences, times and bounds are fixed by the leader, so
that applying them can neither fail nor differ between replicas. Integers are little endian.

    MESSAGES  flags u8 [count u32, sequences u64 ...] [positions] [marks] [changes] frame
    EXPIRE    up_to u64, now i64
    DELETE    sequence u64, erase u8
    REMOVE    count u32, sequences u64 ...
    PURGE     up_to u64, keep u64, filter
    CONFIG    revision u64, stream config as JSON
    SOURCED   positions
    BEGIN     first u64
    SCHEDULES changes, found

Changes are of schedules: count u32, sequences u64 ..., due i64 ...; what was found of them is a
snapshot as `scheduling.schedules` has it, or nothing. Frames are as `store.record` has them,
positions as `streams.positions`, marks as `streams.batch_marks`.

The first byte is the kind. The flags of MESSAGES say what a replica has to look for in the
frame beyond storing it. An entry is decoded once on each server, and whoever has to do with it
there shares what was found (`Frame`).
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from typing import Final

from jsctl.broker.jetstream.streams.batch_marks import Marks, decode_marks, encode_marks
from jsctl.broker.jetstream.streams.positions import (
    SourcePosition,
    decode_positions,
    encode_positions,
)
from jsctl.broker.store.frame import Frame, frame_of, frame_of_publishes
from jsctl.broker.store.record import Publish, RecordLike
from jsctl.dataclass import dataclass

Changes = Mapping[int, int]
"""Sequence of a schedule -> when it is due, in ns, from 1 on. 0: it is over, -1: and its message is
to go."""
ALL_SUBJECTS: Final = (b"", b">")
"""What a purge of everything names."""
ENTRY_BYTES_MAX: Final = 4 << 20
"""A turn's messages are split into entries of about this size."""
SKIPPED_TO_MAX: Final = 1 << 62
"""A stream begins, or goes on behind a purge, with a sequence up to about this one; nobody stores
what is left."""


class StreamEntryKind(IntEnum):
    """The first byte of an entry."""

    MESSAGES = 1
    EXPIRE = 2
    DELETE = 3
    REMOVE = 4
    PURGE = 5
    CONFIG = 6
    SOURCED = 7
    BEGIN = 8
    SCHEDULES = 9


class Flags:
    """What the frame of a MESSAGES entry contains besides plain messages. Plain numbers: an enum's
    operators cost more than all else that is done with a message's flags."""

    NONE: Final = 0
    IDS: Final = 1
    """At least one message has a `Nats-Msg-Id`."""
    ROLLUPS: Final = 2
    """At least one message has a `Nats-Rollup`."""
    TTLS: Final = 4
    """At least one message has a `Nats-TTL`."""
    SKIPPED: Final = 8
    """Some sequences are used up without keeping their (empty) message."""
    SOURCED: Final = 16
    """It tells up to where the stream has its sources with these messages."""
    MARKED: Final = 32
    """It tells how far fast batches have come with these messages."""
    SCHEDULES: Final = 64
    """Some messages are schedules, were made by schedules, or end them."""
    NEVERS: Final = 128
    """At least one message has a `Nats-TTL: never`, in a stream without other times to live."""
    BESIDE: Final = SOURCED | MARKED
    """What says nothing of the messages themselves."""


@dataclass(slots=True)
class Messages:
    """Store a frame; `skipped` sequences are removed from it at once. `positions` are those of
    the sources that it comes from, `marks` those of fast batches, behind it. Of `changes` see
    `SCHEDULES`."""

    flags: int
    frame: Frame
    skipped: tuple[int, ...] = ()
    positions: Mapping[str, SourcePosition] = field(default_factory=dict)
    marks: Marks = field(default_factory=dict)
    changes: Changes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expire:
    """Remove what is at or below `up_to` (0: nothing); the log's time is now `now_ns`."""

    up_to: int
    now_ns: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove one message on an operator's request."""

    seq: int
    erase: bool


@dataclass(frozen=True, slots=True)
class RemoveMessages:
    """Remove messages that were consumed, or whose own time to live is over."""

    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Purge:
    """Remove messages at or below `up_to` that match `filter` (empty: all).

    `keep` newest matching ones stay (0: none). A stream of which all is purged, up to a sequence
    that it has not given yet, goes on behind that one.
    """

    filter: bytes
    up_to: int
    keep: int


@dataclass(frozen=True, slots=True)
class Config:
    """The stream's config from here on."""

    revision: int
    config: bytes


@dataclass(frozen=True, slots=True)
class Sourced:
    """The stream has its sources up to here, without a message to be stored."""

    positions: Mapping[str, SourcePosition]


@dataclass(frozen=True, slots=True)
class Begin:
    """A stream that never held a message, or none any more, goes on with this sequence."""

    first: int


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Schedules are due then, or are over, without a message of theirs; others were found."""

    changes: Mapping[int, int]
    found: bytes = b""


StreamEntry = (
    Messages | Expire | Delete | RemoveMessages | Purge | Config | Sourced | Begin | Scheduled
)

_EXPIRE = struct.Struct("<BQq")
_DELETE = struct.Struct("<BQB")
_PURGE = struct.Struct("<BQQ")
_CONFIG = struct.Struct("<BQ")
_BEGIN = struct.Struct("<BQ")
_COUNT = struct.Struct("<I")


def _pack_seqs(seqs: Sequence[int]) -> bytes:
    return _COUNT.pack(len(seqs)) + struct.pack(f"<{len(seqs)}Q", *seqs)


def _unpack_seqs(entry: bytes, at: int) -> tuple[tuple[int, ...], int]:
    (count,) = _COUNT.unpack_from(entry, at)
    at += _COUNT.size
    return struct.unpack_from(f"<{count}Q", entry, at), at + 8 * count


def _pack_changes(changes: Changes) -> bytes:
    return _pack_seqs(list(changes)) + struct.pack(f"<{len(changes)}q", *changes.values())


def _unpack_changes(entry: bytes, at: int) -> tuple[Changes, int]:
    seqs, at = _unpack_seqs(entry, at)
    dues = struct.unpack_from(f"<{len(seqs)}q", entry, at)
    return dict(zip(seqs, dues, strict=True)), at + 8 * len(seqs)


def make_messages(
    records: Sequence[RecordLike],
    flags: int = 0,
    skipped: Sequence[int] = (),
    positions: Mapping[str, SourcePosition] | None = None,
    marks: Marks | None = None,
    changes: Changes | None = None,
) -> Messages:
    """A MESSAGES entry, its bytes in `frame.buffer`; `skipped`, `positions` and `marks` set their
    flags by themselves. Where `flags` tell of schedules there may be `changes`."""
    if not skipped and not positions and not marks and not flags & Flags.SCHEDULES:
        head = bytes((StreamEntryKind.MESSAGES, flags))
        return Messages(flags, frame_of(records, head))
    flags |= Flags.SKIPPED * bool(skipped) | Flags.SOURCED * bool(positions)
    flags |= Flags.MARKED * bool(marks)
    head = bytes((StreamEntryKind.MESSAGES, flags))
    if skipped:
        head += _pack_seqs(skipped)
    if positions:
        head += encode_positions(positions)
    if marks:
        head += encode_marks(marks)
    if flags & Flags.SCHEDULES:
        head += _pack_changes(changes or {})
    frame = frame_of(records, head)
    return Messages(flags, frame, tuple(skipped), positions or {}, marks or {}, changes or {})


def publishes_entry(
    batch: list[Publish],
    first_seq: int,
    time_ns: int,
    flags: int,
    size: int,
    marks: Marks | None = None,
) -> Messages:
    """A MESSAGES entry of publishes that get sequences from `first_seq` on, and one time. `size`
    is about what they take together."""
    if not marks:
        head = bytes((StreamEntryKind.MESSAGES, flags))
        return Messages(flags, frame_of_publishes(head, batch, first_seq, time_ns, size))
    flags |= Flags.MARKED
    head = bytes((StreamEntryKind.MESSAGES, flags)) + encode_marks(marks)
    frame = frame_of_publishes(head, batch, first_seq, time_ns, size)
    return Messages(flags, frame, marks=marks)


def encode_messages(
    records: Sequence[RecordLike], flags: int = 0, skipped: Sequence[int] = ()
) -> bytes:
    """The bytes of a MESSAGES entry."""
    return make_messages(records, flags, skipped).frame.buffer


def encode_expire(up_to: int, now_ns: int) -> bytes:
    """An EXPIRE entry."""
    return _EXPIRE.pack(StreamEntryKind.EXPIRE, up_to, now_ns)


def encode_delete(seq: int, erase: bool) -> bytes:
    """A DELETE entry."""
    return _DELETE.pack(StreamEntryKind.DELETE, seq, erase)


def encode_remove(seqs: Sequence[int]) -> bytes:
    """A REMOVE entry."""
    return bytes((StreamEntryKind.REMOVE,)) + _pack_seqs(seqs)


def encode_purge(subject_filter: bytes, up_to: int, keep: int) -> bytes:
    """A PURGE entry; `up_to` is a real bound, fixed by the leader."""
    return _PURGE.pack(StreamEntryKind.PURGE, up_to, keep) + subject_filter


def encode_config(revision: int, config: bytes) -> bytes:
    """A CONFIG entry."""
    return _CONFIG.pack(StreamEntryKind.CONFIG, revision) + config


def encode_sourced(positions: Mapping[str, SourcePosition]) -> bytes:
    """A SOURCED entry."""
    return bytes((StreamEntryKind.SOURCED,)) + encode_positions(positions)


def encode_begin(first: int) -> bytes:
    """A BEGIN entry."""
    return _BEGIN.pack(StreamEntryKind.BEGIN, first)


def encode_scheduled(changes: Changes, found: bytes = b"") -> bytes:
    """A SCHEDULES entry."""
    return bytes((StreamEntryKind.SCHEDULES,)) + _pack_changes(changes) + found


def _decode_messages(entry: bytes) -> Messages:
    flags, at = entry[1], 2
    skipped: tuple[int, ...] = ()
    positions: Mapping[str, SourcePosition] = {}
    if flags & Flags.SKIPPED:
        skipped, at = _unpack_seqs(entry, at)
    if flags & Flags.SOURCED:
        positions, at = decode_positions(entry, at)
    marks: Marks = {}
    if flags & Flags.MARKED:
        marks, at = decode_marks(entry, at)
    changes: Changes = {}
    if flags & Flags.SCHEDULES:
        changes, at = _unpack_changes(entry, at)
    return Messages(flags, Frame(entry, at), skipped, positions, marks, changes)


def _decode_expire(entry: bytes) -> Expire:
    _, up_to, now_ns = _EXPIRE.unpack(entry)
    return Expire(up_to, now_ns)


def _decode_delete(entry: bytes) -> Delete:
    _, seq, erase = _DELETE.unpack(entry)
    return Delete(seq, bool(erase))


def _decode_remove(entry: bytes) -> RemoveMessages:
    return RemoveMessages(_unpack_seqs(entry, 1)[0])


def _decode_purge(entry: bytes) -> Purge:
    _, up_to, keep = _PURGE.unpack_from(entry)
    return Purge(entry[_PURGE.size :], up_to, keep)


def _decode_config(entry: bytes) -> Config:
    _, revision = _CONFIG.unpack_from(entry)
    return Config(revision, entry[_CONFIG.size :])


def _decode_sourced(entry: bytes) -> Sourced:
    return Sourced(decode_positions(entry, 1)[0])


def _decode_begin(entry: bytes) -> Begin:
    return Begin(_BEGIN.unpack(entry)[1])


def _decode_scheduled(entry: bytes) -> Scheduled:
    changes, at = _unpack_changes(entry, 1)
    return Scheduled(changes, entry[at:])


_DECODERS: dict[int, Callable[[bytes], StreamEntry]] = {
    StreamEntryKind.MESSAGES: _decode_messages,
    StreamEntryKind.EXPIRE: _decode_expire,
    StreamEntryKind.DELETE: _decode_delete,
    StreamEntryKind.REMOVE: _decode_remove,
    StreamEntryKind.PURGE: _decode_purge,
    StreamEntryKind.CONFIG: _decode_config,
    StreamEntryKind.SOURCED: _decode_sourced,
    StreamEntryKind.BEGIN: _decode_begin,
    StreamEntryKind.SCHEDULES: _decode_scheduled,
}


def decode(entry: bytes) -> StreamEntry:
    """Inverse of the encoders. Entries are checksummed by the log: bad ones are our fault."""
    return _DECODERS[entry[0]](entry)
