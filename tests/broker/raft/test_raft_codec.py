"""Bytes of members and messages: round trips, and only the declared error on other bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.broker.raft.codec import (
    CodecError,
    decode_members,
    decode_messages,
    encode_members,
    encode_messages,
)
from jsctl.broker.raft.types import (
    Append,
    AppendReply,
    Entry,
    EntryKind,
    Heartbeat,
    HeartbeatReply,
    Members,
    Message,
    StandingKind,
    TimeoutNow,
    VoteReply,
    VoteRequest,
)

PEER = st.text(min_size=1, max_size=8)
NUMBER = st.integers(0, 2**64 - 1)
FLAG = st.booleans()
STANDING = st.sampled_from(StandingKind)
MEMBERS = st.lists(PEER, unique=True, max_size=6).flatmap(
    lambda names: st.integers(0, len(names)).map(
        lambda cut: Members(tuple(names[:cut]), tuple(names[cut:]))
    )
)


@st.composite
def appends(draw: st.DrawFn) -> Append:
    terms = sorted(draw(st.lists(st.integers(0, 50), min_size=2, max_size=6)))
    prev = draw(st.integers(0, 2**60))
    made = []
    for index, term in enumerate(terms[1:-1], prev + 1):
        kind = draw(st.sampled_from(EntryKind))
        is_config = kind == EntryKind.CONFIG
        data = encode_members(draw(MEMBERS)) if is_config else draw(st.binary(max_size=20))
        made.append(Entry(index, term, kind, data))
    return Append(draw(PEER), draw(PEER), terms[-1], prev, terms[0], draw(NUMBER), made)


MESSAGE: st.SearchStrategy[Message] = st.one_of(
    st.builds(VoteRequest, PEER, PEER, NUMBER, NUMBER, NUMBER, FLAG, FLAG, FLAG, FLAG),
    st.builds(VoteReply, PEER, PEER, NUMBER, NUMBER, FLAG, FLAG, FLAG),
    appends(),
    st.builds(AppendReply, PEER, PEER, NUMBER, NUMBER, FLAG, NUMBER, NUMBER, STANDING),
    st.builds(Heartbeat, PEER, PEER, NUMBER, NUMBER, NUMBER, NUMBER, FLAG, NUMBER),
    st.builds(HeartbeatReply, PEER, PEER, NUMBER, NUMBER, NUMBER, NUMBER, FLAG, STANDING),
    st.builds(TimeoutNow, PEER, PEER, NUMBER),
)


def encoded_messages(messages: list[Message]) -> bytes:
    return b"".join(encode_messages(messages))


@given(MEMBERS)
def test_members_round_trip(members: Members) -> None:
    assert decode_members(encode_members(members)) == members


@given(st.lists(MESSAGE, max_size=5))
def test_messages_round_trip(messages: list[Message]) -> None:
    assert decode_messages(encoded_messages(messages)) == messages


@given(st.lists(MESSAGE, min_size=1, max_size=3), st.data())
def test_changed_bytes_decode_to_something_or_fail_as_declared(
    messages: list[Message], data: st.DataObject
) -> None:
    raw = bytearray(encoded_messages(messages))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = decode_messages(bytes(raw))
    except CodecError:
        return
    assert decode_messages(encoded_messages(decoded)) == decoded


@given(st.lists(MESSAGE, min_size=1, max_size=3))
def test_every_shorter_or_longer_string_fails(messages: list[Message]) -> None:
    raw = encoded_messages(messages)
    for bad in [raw[:length] for length in range(len(raw))] + [raw + b"\0"]:
        with pytest.raises(CodecError):
            decode_messages(bad)


@given(st.binary(max_size=60))
def test_arbitrary_bytes(raw: bytes) -> None:
    for decode in (decode_members, decode_messages):
        try:
            decode(raw)
        except CodecError:
            continue


def _append(raw_entries: bytes, count: int = 1) -> bytes:
    empty = encoded_messages([Append("b", "a", 5, 1, 2, 0, [])])
    return empty[:-4] + count.to_bytes(4, "little") + raw_entries


@pytest.mark.parametrize(
    "raw",
    [
        b"\x02\x00\x01a\x01a",
        b"\x01\x00\x00",
        b"\x01\x00\x02\xff\xff",
        b"\x01\x00",
    ],
    ids=["named twice", "no name", "no UTF-8", "short"],
)
def test_bad_members(raw: bytes) -> None:
    with pytest.raises(CodecError):
        decode_members(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x01\x00\x63\x00\x01b\x01a",
        b"\x01\x00\x07\x01\x01b\x01a" + bytes(8),
        b"\x01\x00\x04\x07\x01b\x01a" + bytes(32),
        _append(b"\x09" + (3).to_bytes(8, "little") + bytes(4)),
        _append(b"\x00" + (1).to_bytes(8, "little") + bytes(4)),
        _append(b"\x00" + (6).to_bytes(8, "little") + bytes(4)),
        _append(b"\x02" + (3).to_bytes(8, "little") + bytes(4)),
        _append(b"", count=2**32 - 1),
    ],
    ids=[
        "kind",
        "flags",
        "standing",
        "entry kind",
        "term falls",
        "term above leader",
        "config without members",
        "more entries than bytes",
    ],
)
def test_bad_messages(raw: bytes) -> None:
    with pytest.raises(CodecError):
        decode_messages(raw)
