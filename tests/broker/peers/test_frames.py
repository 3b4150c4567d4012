"""Peer frames: round trip, splitting, and damage that must end in ProtocolError."""

import contextlib
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.checksums import Checksums
from jsctl.broker.errors import ProtocolError
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.jetstream.requests import ApiRequest, AskerClaims, ClientInfo
from jsctl.broker.leafnodes.domains import BROKERS
from jsctl.broker.peers import frames
from jsctl.broker.peers.frames import decode_frame, encode_frames
from jsctl.broker.peers.items import (
    Announcement,
    Answered,
    AuditAnswer,
    AuditRequest,
    CheckRequest,
    ChunkKind,
    DamagedReplica,
    DamagedReplicas,
    DiskRoom,
    Forward,
    ForwardReply,
    GatherReply,
    GatherRequest,
    Introduced,
    Introduction,
    Item,
    PeerFrame,
    PeerHeartbeat,
    RaftBatch,
    RangeAnswer,
    RangeRequest,
    ReplicaReport,
    Returned,
    ServerNews,
    StateAck,
    StateChunk,
)
from jsctl.broker.peers.outbox import frame_subject
from jsctl.broker.peers.use_items import AccountUse, TierUse
from jsctl.broker.peers.work_items import FinishedSeqs, WorkQuestion
from tests.support.quick import examples

u64 = st.integers(0, 2**64 - 1)
i64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(max_size=12)
small = st.binary(max_size=20)
claims = st.builds(AskerClaims, text, text, st.lists(text, max_size=3).map(tuple))
clients = st.builds(
    ClientInfo, text, text, text, text, u64, text, text, text, text, i64, st.none() | claims
)
requests = st.builds(ApiRequest, text, small, small, small, small, clients, text, st.booleans())
ranges = st.sets(u64, max_size=6).map(
    lambda some: list(zip(sorted(some)[:-1:2], sorted(some)[1::2], strict=False))
)
facts = st.builds(
    ServerFacts, text, text, text, text, st.lists(text, max_size=3).map(tuple), store_max=i64,
    memory_used=i64, ha_assets_max=i64, incarnation=u64, online=st.booleans(),
)  # fmt: skip
listed: st.SearchStrategy[dict[str, list[Item]]] = st.fixed_dictionaries(dict(
    raft=st.lists(st.builds(RaftBatch, small, small.map(lambda one: (one,))), max_size=3),
    announcements=st.lists(st.builds(Announcement, text, u64, text), max_size=2),
    forwards=st.lists(st.builds(Forward, u64, requests), max_size=2),
    replies=st.lists(st.builds(ForwardReply, text, small, small, small), max_size=2),
    news=st.lists(st.builds(ServerNews, facts, text, text, text, st.booleans()), max_size=2),
    gathers=st.lists(
        st.builds(GatherRequest, u64, text, st.lists(st.tuples(text, text), max_size=3)), max_size=2
    ),
    gathered=st.lists(
        st.builds(
            GatherReply, u64, st.lists(st.tuples(text, text, small), max_size=2), st.booleans()
        ),
        max_size=2,
    ),
    chunks=st.lists(
        st.builds(
            StateChunk, small, u64, st.sampled_from(ChunkKind), u64, u64, u64, small, small
        ),
        max_size=2,
    ),
    acks=st.lists(st.builds(StateAck, small, u64, u64, st.booleans(), text), max_size=2),
    introductions=st.lists(st.builds(Introduction, small, u64, u64), max_size=2),
    introduced=st.lists(st.builds(Introduced, u64), max_size=2),
    work_questions=st.lists(st.builds(WorkQuestion, small, u64, u64), max_size=2),
    finished_work=st.lists(st.builds(FinishedSeqs, u64, ranges), max_size=2),
    answered=st.lists(st.builds(Answered, text, small), max_size=2),
    returned=st.lists(st.builds(Returned, text, small, small, st.booleans()), max_size=2),
    damaged=st.lists(
        st.builds(
            DamagedReplicas,
            st.lists(st.builds(DamagedReplica, text, u64, u64, ranges), max_size=3).map(tuple),
        ),
        max_size=2,
    ),
    uses=st.lists(st.builds(AccountUse, text, i64, i64, i64, i64), max_size=2),
    tier_uses=st.lists(st.builds(TierUse, text, text, i64, i64), max_size=2),
    rooms=st.lists(st.builds(DiskRoom, st.booleans()), max_size=2),
    wanted=st.lists(st.builds(RangeRequest, small, u64, ranges), max_size=2),
    checks=st.lists(st.builds(CheckRequest, small, u64), max_size=2),
    reports=st.lists(
        st.builds(
            ReplicaReport, small, u64, st.booleans(), u64, u64, u64, u64, ranges, ranges,
            st.lists(st.tuples(u64, small), max_size=3),
        ),
        max_size=2,
    ),
    audits=st.lists(st.builds(AuditRequest, small, u64, u64, u64, u64, st.booleans()), max_size=2),
    audited=st.lists(
        st.builds(
            AuditAnswer, small, u64, u64, u64, u64, u64, small, ranges, small,
            st.lists(st.tuples(u64, text), max_size=3),
        ),
        max_size=2,
    ),
    found=st.lists(
        st.builds(RangeAnswer, small, u64, u64, u64, ranges, st.lists(small, max_size=3)),
        max_size=2,
    ),
))  # fmt: skip
whole = st.builds(
    PeerFrame,
    sender=st.text(max_size=8),
    heartbeat=st.none() | st.builds(PeerHeartbeat, u64, u64, u64, u64, u64, st.booleans()),
    items=listed.map(lambda lists: [item for some in lists.values() for item in some]),
)


def encoded_frames(frame: PeerFrame, bytes_max: int = frames.FRAME_BYTES_MAX) -> list[bytes]:
    return [b"".join(pieces) for pieces in encode_frames(frame, Checksums(), bytes_max)]


@settings(max_examples=examples(60), deadline=None)
@given(whole)
def test_round_trip(frame: PeerFrame) -> None:
    encoded = encoded_frames(frame)
    assert len(encoded) == (1 if any(True for _ in frame.items()) else 0)
    for data in encoded:
        read = decode_frame(data)
        assert (read.sender, list(read.items())) == (frame.sender, list(frame.items()))


@settings(max_examples=examples(60), deadline=None)
@given(whole, st.integers(20, 200))
def test_split_frames_hold_the_same(frame: PeerFrame, limit: int) -> None:
    parts = [decode_frame(data) for data in encoded_frames(frame, limit)]
    assert [item for part in parts for item in part.items()] == list(frame.items())


@settings(max_examples=examples(150), deadline=None)
@given(whole, st.integers(0, 10_000), st.integers(0, 255), st.booleans())
def test_damage_is_a_protocol_error(frame: PeerFrame, at: int, value: int, fix: bool) -> None:
    """One changed byte: the checksum catches it; with the checksum mended, the fields do."""
    for data in encoded_frames(frame):
        damaged = bytearray(data)
        damaged[at % len(damaged)] = value
        if fix:
            struct.pack_into("<I", damaged, 4, zlib.crc32(damaged[8:]))
        with contextlib.suppress(ProtocolError):
            decode_frame(bytes(damaged))
        if not fix and bytes(damaged) != data:
            with pytest.raises(ProtocolError):
                decode_frame(bytes(damaged)[: at % len(damaged)])


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=60), st.integers(0, 12))
def test_noise_behind_a_valid_head(noise: bytes, kind: int) -> None:
    body = b"peer" + struct.pack("<BI", kind, len(noise)) + noise
    data = struct.pack("<2sBBI", b"JB", 1, 4, zlib.crc32(body)) + body
    with contextlib.suppress(ProtocolError):
        decode_frame(data)
    with pytest.raises(ProtocolError):
        decode_frame(noise)


def test_unknown_items_are_skipped() -> None:
    body = b"p" + struct.pack("<BI", 250, 3) + b"new"
    data = struct.pack("<2sBBI", b"JB", 1, 1, zlib.crc32(body)) + body
    read = decode_frame(data)
    assert (read.sender, list(read.items())) == ("p", [])


def test_other_versions_are_refused() -> None:
    (data,) = encoded_frames(PeerFrame("p", items=[RaftBatch(b"_meta_", (b"x",))]))
    with pytest.raises(ProtocolError, match="version 9"):
        decode_frame(data[:2] + b"\x09" + data[3:])


def test_a_large_frame_is_split_at_the_limit() -> None:
    chunk = StateChunk(b"S", 1, ChunkKind.MORE, 0, 5, 1, b"", b"x" * frames.CHUNK_BYTES_MAX)
    encoded = encoded_frames(PeerFrame("p", items=[chunk] * 9))
    assert [len(decode_frame(data).chunks) for data in encoded] == [3, 3, 3]
    assert max(map(len, encoded)) <= frames.FRAME_BYTES_MAX


def test_frames_of_brokers_are_what_leaf_nodes_do_not_pass_on() -> None:
    assert frame_subject("6DVFpukC").startswith(BROKERS.removesuffix(b">"))
