"""What lies on the disk and what brokers tell each other: it decodes, or says that it is damaged.

Checksums stop nearly all changed bytes, so a part of the inputs is sealed again: then the decoder
behind the checksum meets them.
"""

import random
import struct
import zlib
from collections.abc import Callable, Sequence

from jsctl.broker.checksums import Checksums
from jsctl.broker.errors import Damaged, ProtocolError
from jsctl.broker.peers.frames import decode_frame, encode_frames
from jsctl.broker.peers.items import PeerFrame, PeerHeartbeat, RaftBatch
from jsctl.broker.raft import codec
from jsctl.broker.raft.types import Members
from jsctl.broker.replication import state_file
from jsctl.broker.store import identity, record
from jsctl.broker.store.saved_index import decode_index
from jsctl.broker.store.segments import segment
from jsctl.broker.store.seqset import SeqSet
from jsctl.broker.store.wal import format as wal_format
from tests.fuzz.target import Target
from tests.support.frames import decode_frame as store_decode
from tests.support.frames import encode_frame

RECORDS = [
    record.Record(seq, 10**18 + seq, b"s.%d" % seq, b"", b"payload %d" % seq) for seq in range(1, 6)
]
OWNER = b"i" * 16
MIRROR_HEAD_BYTES = 24
"""A slot is never shorter: the file is made in one piece."""


class Frames(Target):
    """Frames of records: sound ones are what was written, of others every sound record is kept."""

    name = "record-frames"
    words = (b"\x00\x00", b"\xff\xff\xff\xff", b"s.1")

    def __init__(self) -> None:
        self.frame = encode_frame(RECORDS)
        self.raws = _raws(self.frame)
        self.whole = _envelopes(self.frame)

    def seeds(self) -> list[bytes]:
        return [self.frame, self.whole, encode_frame(RECORDS[:1])]

    def run(self, data: bytes, rng: random.Random) -> None:
        try:
            found = store_decode(data)
        except Damaged:
            found = []
        if found:
            again = encode_frame(found)
            assert store_decode(again) == found
        for at in record.salvage(data, 0, len(data), 1, 5):
            length = record.verify_record(data, at)
            assert length, "what is salvaged is sound"
            assert data[at : at + length] in self.raws, "and is what was written"
        end = 0
        for one in segment.walk(data, 0, None):
            assert one.end > end or one.end == len(data), "a walk goes forward"
            end = one.end
            if isinstance(one, segment.Envelope) and one.kind == segment.FRAME:
                assert data[one.start : one.end] == self.frame, "a sound frame was written"


def _raws(frame: bytes) -> list[bytes]:
    places = record.offsets(frame, record.FRAME_HEADER_BYTES, len(frame))
    return [frame[a:b] for a, b in zip(places, [*places[1:], len(frame)], strict=True)]


def _envelopes(frame: bytes) -> bytes:
    head, crc = segment.encode_envelope(segment.FRAME, 1, 0, frame)
    second, _ = segment.encode_envelope(segment.FRAME, 2, crc, frame)
    return head + frame + second + frame


class Decoder(Target):
    """One format: it decodes to what encodes to the same bytes, or raises its error."""

    def __init__(
        self,
        name: str,
        seeds: Sequence[bytes],
        decode: Callable[[bytes], object],
        error: type[Exception],
        encode: Callable[[object], bytes] | None = None,
        sealed: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.name = name
        self._seeds = list(seeds)
        self._decode, self._encode, self._error = decode, encode, error
        self._sealed = sealed

    def seeds(self) -> list[bytes]:
        return self._seeds

    def run(self, data: bytes, rng: random.Random) -> None:
        if self._sealed is not None and rng.random() < 0.7:
            data = self._sealed(data)
        try:
            made = self._decode(data)
        except self._error:
            return
        if self._encode is not None and made is not None:
            again = self._encode(made)
            assert self._decode(again) == made, "a round trip changes nothing"


def seqset() -> Target:
    """Sets of sequences: damaged, or exactly what encode makes."""
    some = SeqSet()
    for first, last in ((1, 5), (9, 9), (100, 70_000), (2**40, 2**40 + 3)):
        some.add_range(first, last)
    return Decoder(
        "seqset",
        [some.encode(), SeqSet().encode()],
        lambda data: SeqSet.decode(data).encode(),
        Damaged,
        lambda made: made,  # type: ignore[arg-type,return-value]  # already bytes
    )


def raft_messages() -> Target:
    """Messages between members of a raft group."""
    members = codec.encode_members(Members(("a", "b", "c"), ("d",)))

    def decode(data: bytes) -> object:
        if data[:1] == b"M":
            return codec.decode_members(data[1:])
        return codec.decode_messages(data)

    def encode(made: object) -> bytes:
        if isinstance(made, Members):
            return b"M" + codec.encode_members(made)
        assert isinstance(made, list)
        return b"".join(codec.encode_messages(made))

    head = [struct.pack("<H", 1) + bytes([kind, 0, 1]) + b"a\x01b" + bytes(60) for kind in range(8)]
    return Decoder("raft-messages", [b"M" + members, *head], decode, codec.CodecError, encode)


def peer_frames() -> Target:
    """Frames between brokers, behind the checksum too."""
    frame = PeerFrame(sender="peer1")
    frame.heartbeat = PeerHeartbeat(1, 2, 3, 4, 5, False)
    frame.raft.append(RaftBatch(b"group", codec.encode_messages([])))

    def sealed(data: bytes) -> bytes:
        if len(data) < 8:
            return data
        return b"JB\x01" + data[3:4] + zlib.crc32(data[8:]).to_bytes(4, "little") + data[8:]

    def encode(made: object) -> bytes:
        assert isinstance(made, PeerFrame)
        return next(map(b"".join, encode_frames(made, Checksums())), b"")

    def decode(data: bytes) -> object:
        return decode_frame(data) if data else PeerFrame(sender="")

    kinds = [_item(kind, bytes(40)) for kind in range(1, 20)]
    return Decoder(
        "peer-frames",
        [*map(b"".join, encode_frames(frame, Checksums())), *kinds],
        decode,
        ProtocolError,
        None,
        sealed,
    )


def _item(kind: int, body: bytes) -> bytes:
    content = b"p" + struct.pack("<BI", kind, len(body)) + body
    return struct.pack("<2sBBI", b"JB", 1, 1, zlib.crc32(content)) + content


def state_files() -> Target:
    """Snapshots of groups."""
    state = state_file.GroupState(3, 100, 7, b"members", b"snapshot")

    def encode(made: object) -> bytes:
        assert isinstance(made, state_file.GroupState)
        return state_file.encode(made, "")

    return Decoder(
        "state-file", [encode(state)], lambda data: state_file.decode(data, "p"), Damaged, encode
    )


def stored_facts() -> Target:
    """Identity, saved index, headers and claims of the log (votes among them)."""
    claim = wal_format.Claim(7, b"h" * 16)
    claim.groups[b"g"] = wal_format.Claimed(1, 2, True, 3, b"peer", False)
    mirror = wal_format.encode_mirror(OWNER, claim)
    header, _ = wal_format.encode_header(OWNER, 1, b"p" * 16, 4, [b"body"], 1, 1)
    whoami = identity.encode(identity.StoreIdentity("server", "cluster", b"1" * 16))

    def decode(data: bytes) -> object:
        kind, body = data[:1], data[1:]
        if kind == b"i":
            return identity.decode(body)
        if kind == b"h":
            return wal_format.decode_header(body, OWNER)
        if kind == b"x":
            return decode_index(body)
        if len(body) >= MIRROR_HEAD_BYTES:
            return wal_format.decode_mirror(body, OWNER)
        return None

    seeds = [b"i" + whoami, b"h" + header, b"m" + mirror, b"x" + bytes(80)]
    return Decoder("stored-facts", seeds, decode, Damaged)


MADE: dict[str, Callable[[], Target]] = {
    "record-frames": Frames,
    "seqset": seqset,
    "raft-messages": raft_messages,
    "peer-frames": peer_frames,
    "state-file": state_files,
    "stored-facts": stored_facts,
}
