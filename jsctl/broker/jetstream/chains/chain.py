"""The chain of hashes of one stream: what shows later that its messages are what they were.

    leaf = SHA-256(0x00 | record without its checksum)        of each message
    link = SHA-256(0x01 | link before | leaf)                 32 zero bytes before the first one

Theory of operation (decision 37). Leaves are made of the bytes of the log when an entry is applied,
and stay when their messages go; so the chain follows from the log alone. They lie in blocks of
sequences. A block whose messages are all below the stream's first one is dropped: the link behind
it, the anchor, stands for all that came before.

A start compares what the store has with what a snapshot said was removed, and with what the entries
that are applied once more could have removed: what is missing besides is a break.
"""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import field
from hashlib import sha256
from itertools import pairwise

from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.config_texts import STREAMS
from jsctl.broker.jetstream.streams.entries import (
    Config,
    Delete,
    Expire,
    Flags,
    Messages,
    Purge,
    RemoveMessages,
    Scheduled,
    StreamEntry,
)
from jsctl.broker.store.frame import Frame
from jsctl.broker.store.seqset import SeqSet
from jsctl.dataclass import dataclass

HASH_BYTES = 32
BEGIN = bytes(HASH_BYTES)
BLOCK_SEQS = 1024
BLOCKS_AT_ONCE = 4
"""Whose links are reckoned in one piece, which takes some 20 ms."""
LEAVES_MAX = 4 * 1024 * 1024
"""The oldest block is dropped when there are more, whatever its messages."""
EVERYTHING = (0, (1 << 63) - 1)
MISSING = "the message is missing"
BACK = "the message was removed, and is back"
_HEAD = struct.Struct("<QQ32sQ32sIIIII")
_BLOCK = struct.Struct("<Q32sI")
_U32 = struct.Struct("<I")


def leaf_of(raw: bytes | memoryview) -> bytes:
    """Of an encoded record."""
    return sha256(b"\0" + memoryview(raw)[4:]).digest()


def link_of(before: bytes, leaf: bytes) -> bytes:
    """The link behind a leaf."""
    return sha256(b"\1" + before + leaf).digest()


@dataclass(slots=True)
class Block:
    """Leaves of messages whose sequences have the same quotient by BLOCK_SEQS."""

    number: int
    before: bytes
    """The link before the first of them."""
    places: "array[int]" = field(default_factory=lambda: array("H"))
    """Their sequences, modulo BLOCK_SEQS; ascending."""
    leaves: bytearray | bytes = field(default_factory=bytearray)
    """Only the last block grows."""

    def seqs(self) -> list[int]:
        """Their sequences."""
        base = self.number * BLOCK_SEQS
        return [base + place for place in self.places]

    def leaf(self, at: int) -> bytes:
        """One of them by its place among them."""
        return bytes(self.leaves[at * HASH_BYTES : (at + 1) * HASH_BYTES])

    def link(self, count: int) -> bytes:
        """The link behind the first `count` of them."""
        found = self.before
        for at in range(count):
            found = link_of(found, self.leaf(at))
        return found


@dataclass(slots=True)
class Chain:
    """See the module. Messages up to `since` were stored before there was a chain."""

    since: int
    anchor_seq: int = 0
    """All up to here is one link; at least `since`."""
    anchor: bytes = BEGIN
    seq: int = 0
    """The last message; `since` where there is none."""
    link: bytes = BEGIN
    """Behind it."""
    blocks: list[Block] = field(default_factory=list)
    missing: SeqSet = field(default_factory=SeqSet)
    """Messages that were gone at a start, though nothing had removed them."""
    back: SeqSet = field(default_factory=SeqSet)
    """Removed messages that were there again at a start."""
    count: int = 0
    known: SeqSet = field(default_factory=SeqSet)
    """What was removed when the snapshot was made that this comes from."""
    _removed: SeqSet | None = None
    """While entries are applied once more: what was removed before, or may be since."""

    def __post_init__(self) -> None:
        self.anchor_seq = max(self.anchor_seq, self.since)
        self.seq = max(self.seq, self.since)

    # Building

    def add(self, frame: Frame) -> None:
        """Messages are stored; `frame` continues the stream."""
        view = memoryview(frame.buffer)
        for seq, start in zip(frame.columns.seqs, frame.columns.offsets, strict=True):
            (length,) = _U32.unpack_from(frame.buffer, start + 4)
            self.add_leaf(seq, leaf_of(view[start : start + length]))

    def add_leaf(self, seq: int, leaf: bytes) -> None:
        """One more message."""
        assert seq > self.seq, f"leaf {seq} behind {self.seq}"
        number, place = divmod(seq, BLOCK_SEQS)
        if not self.blocks or self.blocks[-1].number != number:
            if self.blocks:
                self.blocks[-1].leaves = bytes(self.blocks[-1].leaves)
            self.blocks.append(Block(number, self.link))
        block = self.blocks[-1]
        block.places.append(place)
        assert isinstance(block.leaves, bytearray)
        block.leaves += leaf
        self.seq, self.link = seq, link_of(self.link, leaf)
        self.count += 1

    def trim(self, first_seq: int) -> None:
        """Nothing below a sequence is there any more."""
        keep = 0
        while keep < len(self.blocks) and (
            (self.blocks[keep].number + 1) * BLOCK_SEQS <= first_seq or self.count > LEAVES_MAX
        ):
            block = self.blocks[keep]
            self.count -= len(block.places)
            keep += 1
            self.anchor_seq = block.seqs()[-1]
            self.anchor = self.blocks[keep].before if keep < len(self.blocks) else self.link
        del self.blocks[:keep]

    # Questions

    def link_at(self, seq: int) -> bytes:
        """The link behind the last message up to a sequence; empty if that is not known."""
        if seq < self.anchor_seq or seq > self.seq:
            return b""
        at = bisect_right(self.blocks, seq // BLOCK_SEQS, key=lambda one: one.number) - 1
        if at < 0:
            return self.anchor
        block = self.blocks[at]
        if block.number < seq // BLOCK_SEQS:
            return self.blocks[at + 1].before if at + 1 < len(self.blocks) else self.link
        return block.link(bisect_right(block.places, seq % BLOCK_SEQS))

    def link_behind(self, seq: int) -> bytes:
        """The same where the stream has come as far, perhaps without a message up to there."""
        return self.link if seq > self.seq else self.link_at(seq)

    def reach(self, first: int, last: int) -> int:
        """Up to where `breaks` looks at once, however few messages are left there. What has no
        leaf any more is apart from what has."""
        if first <= self.anchor_seq:
            return min(last, self.anchor_seq)
        end = self._place(first) + BLOCKS_AT_ONCE
        if end >= len(self.blocks):
            return last
        return min(last, self.blocks[end].number * BLOCK_SEQS - 1)

    def breaks(
        self, first: int, last: int, raws: Mapping[int, bytes], most: int
    ) -> list[tuple[int, str]]:
        """What does not fit between two sequences, the first of it, and why. `raws`: the records
        that are there."""
        found: list[tuple[int, str]] = []
        seen = set[int]()
        for block, behind in self._blocks(first, last):
            if block.link(len(block.places)) != behind:
                found.append((block.seqs()[0], "the chain's own hashes do not fit"))
            for at, seq in enumerate(block.seqs()):
                raw = raws.get(seq)
                seen.add(seq)
                if raw is not None and leaf_of(raw) != block.leaf(at):
                    found.append((seq, "the message was changed"))
        for some, why in ((self.missing, MISSING), (self.back, BACK)):
            for low, high in some.ranges():
                if low <= last and high >= first:
                    found.append((max(low, first), why))
        found += [
            (seq, "the message was put in")
            for seq in raws
            if seq > self.anchor_seq and seq not in seen
        ]
        return sorted(found)[:most]

    def _blocks(self, first: int, last: int) -> Iterable[tuple[Block, bytes]]:
        """Those that may have leaves in a range, with the links behind them."""
        for block, after in pairwise([*self.blocks[self._place(first) :], None]):
            if block is None or block.number > last // BLOCK_SEQS:
                return
            yield block, self.link if after is None else after.before

    def _place(self, seq: int) -> int:
        """That of the first block that has leaves of a sequence, or of later ones."""
        return bisect_right(self.blocks, seq // BLOCK_SEQS - 1, key=lambda one: one.number)

    def newest(self, gone: SeqSet, gone_max: int) -> tuple[int, bytes, list[Block]]:
        """The last blocks, with not many more of `gone` in them than `gone_max`; in front of them
        the sequence and the link from which they go on."""
        count, at = 0, len(self.blocks)
        while at and count <= gone_max:
            at -= 1
            first = self.blocks[at].number * BLOCK_SEQS
            count += gone.count_range(first, first + BLOCK_SEQS - 1)
        if not at:
            return self.anchor_seq, self.anchor, list(self.blocks)
        return self.blocks[at - 1].seqs()[-1], self.blocks[at].before, self.blocks[at:]

    # Starts

    def started(self) -> None:
        """The state comes from this server's disk, as the messages do."""
        self._removed = self.known.copy()

    @property
    def is_starting(self) -> bool:
        """Whether entries may be applied whose effects the store has already."""
        return self._removed is not None

    def explain(self, ranges: Iterable[tuple[int, int]]) -> None:
        """An entry that is applied once more removed these, or may have."""
        if self._removed is not None:
            for first, last in ranges:
                self._removed.add_range(first, last)

    def settle(self, gone: SeqSet) -> None:
        """The store stands where the log does: what is `gone` for no reason is missing."""
        removed, self._removed = self._removed, None
        if removed is None:
            return
        back = self.known.copy()
        for first, last in gone.ranges():
            back.remove_range(first, last)
        back.remove_range(0, self.anchor_seq)
        self._note(back, self.back)
        for first, last in removed.ranges():
            gone.remove_range(first, last)
        gone.remove_range(0, self.anchor_seq)
        self._note(gone, self.missing)

    def _note(self, seqs: SeqSet, to: SeqSet) -> None:
        """Those of some sequences that messages have, or had."""
        for first, last in seqs.ranges():
            for block, _ in self._blocks(first, last):
                for seq in block.seqs():
                    if first <= seq <= last:
                        to.add(seq)

    # Snapshots

    def snapshot(self, removed: SeqSet) -> list[bytes]:
        """As bytes, in pieces; `removed`: what is gone now."""
        sets = self._told(removed).encode(), self.missing.encode(), self.back.encode()
        head = _HEAD.pack(
            self.since,
            self.anchor_seq,
            self.anchor,
            self.seq,
            self.link,
            len(sets[0]),
            len(sets[1]),
            len(sets[2]),
            len(self.blocks),
            self.count,
        )
        found = [head, *sets]
        for block in self.blocks:
            found.append(_BLOCK.pack(block.number, block.before, len(block.places)))
            found.append(block.places.tobytes())
            found.append(bytes(block.leaves))
        return found

    def _told(self, gone: SeqSet) -> SeqSet:
        """What is known to be removed. While a start catches up that is only some of what is gone:
        for the rest there may be an entry yet. What may have been removed says nothing alone."""
        if self._removed is None:
            return gone
        told, unknown = gone.copy(), gone.copy()
        for first, last in self._removed.ranges():
            unknown.remove_range(first, last)
        for first, last in unknown.ranges():
            told.remove_range(first, last)
        for first, last in self.known.ranges():
            told.add_range(first, last)
        return told

    @staticmethod
    def restore(data: bytes, at: int) -> tuple["Chain", int]:
        """Inverse of `snapshot`; also where it ends."""
        since, anchor_seq, anchor, seq, link, *sizes = _HEAD.unpack_from(data, at)
        gone, lost, back, blocks, count = sizes
        at += _HEAD.size
        made = Chain(since, anchor_seq, anchor, seq, link, count=count)
        made.known = SeqSet.decode(data[at : at + gone])
        made.missing = SeqSet.decode(data[at + gone : at + gone + lost])
        at += gone + lost
        made.back = SeqSet.decode(data[at : at + back])
        at += back
        for _ in range(blocks):
            number, before, size = _BLOCK.unpack_from(data, at)
            at += _BLOCK.size
            places = array("H", data[at : at + 2 * size])
            at += 2 * size
            leaves = data[at : at + HASH_BYTES * size]
            at += HASH_BYTES * size
            made.blocks.append(Block(number, before, places, leaves))
        if made.blocks:
            made.blocks[-1].leaves = bytearray(made.blocks[-1].leaves)
        return made, at


def explained(entry: StreamEntry, config: StreamConfig) -> Iterable[tuple[int, int]]:
    """Which messages an entry may have removed, as far as it says so itself; `config` is the one
    before it."""
    match entry:
        case Delete():
            return ((entry.seq, entry.seq),)
        case RemoveMessages():
            return [(seq, seq) for seq in entry.seqs]
        case Expire() | Purge():
            return ((0, entry.up_to),)
        case Scheduled():
            return [(seq, seq) for seq in entry.changes]
        case Messages() if entry.flags & (Flags.ROLLUPS | Flags.SCHEDULES):
            return (EVERYTHING,)
        case Messages():
            return (EVERYTHING,) if _limits(config) else [(seq, seq) for seq in entry.skipped]
        case Config():
            return (EVERYTHING,) if _limits(STREAMS.config(entry.config)) else ()
        case _:
            return ()


def _limits(config: StreamConfig) -> bool:
    return max(config.max_msgs, config.max_bytes, config.max_msgs_per_subject) > 0
