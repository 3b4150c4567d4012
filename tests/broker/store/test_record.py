"""Frames and records: round trips, every flipped bit, and what can be saved from damage."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.record import Record
from tests.support.frames import decode_frame, encode_frame
from tests.support.quick import examples

SMALL = [
    Record(5, 1_700_000_000_000_000_000, b"orders.eu", b"", b"first"),
    Record(6, 1_700_000_000_000_000_001, b"orders.us", b"NATS/1.0\r\nA: b\r\n\r\n", b""),
    Record(9, -3, b"o", b"", b"\x00" * 7),
]

contents = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.integers(-(2**63), 2**63 - 1),
        st.binary(min_size=1, max_size=20),
        st.binary(max_size=30),
        st.binary(max_size=60),
    ),
    min_size=1,
    max_size=20,
)


@given(contents, st.integers(0, 2**40))
@settings(max_examples=examples(100), deadline=None)
def test_what_is_encoded_comes_back(
    rows: list[tuple[int, int, bytes, bytes, bytes]], seq: int
) -> None:
    records = []
    for gap, time_ns, subject, headers, payload in rows:
        seq += gap
        records.append(Record(seq, time_ns, subject, headers, payload))
    frame = encode_frame(records)
    decoded = decode_frame(frame)
    assert decoded == records
    assert record.peek(frame) == (len(records), records[0][0], records[-1][0], len(frame))
    starts = record.offsets(frame, record.FRAME_HEADER_BYTES, len(frame))
    raws = [frame[a:b] for a, b in zip(starts, [*starts[1:], len(frame)], strict=True)]
    assert [record.decode_row(raw) for raw in raws] == records
    assert all(record.verify_record(raw) == len(raw) for raw in raws)
    assert record.frame_of_raw(raws) == frame


def test_columns_tell_what_an_index_needs() -> None:
    frame = encode_frame(SMALL)
    found = record.read_columns(frame, record.FRAME_HEADER_BYTES, len(frame))
    assert [*found.seqs] == [5, 6, 9]
    assert found.subjects == [one.subject for one in SMALL]
    assert [*found.times] == [one.time_ns for one in SMALL]
    assert [*found.lengths] == [
        record.message_bytes(len(one.subject), len(one.headers), len(one.payload)) for one in SMALL
    ]


def test_every_flipped_bit_of_a_frame_is_detected() -> None:
    frame = encode_frame(SMALL)
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << (bit % 8)
        with pytest.raises(Damaged):
            decode_frame(bytes(damaged))


def test_every_flipped_bit_of_a_record_is_detected() -> None:
    frame = encode_frame(SMALL[1:2])
    raw = frame[record.FRAME_HEADER_BYTES :]
    for bit in range(8 * len(raw)):
        damaged = bytearray(raw)
        damaged[bit // 8] ^= 1 << (bit % 8)
        assert record.verify_record(bytes(damaged)) == 0


def test_every_cut_of_a_frame_is_detected() -> None:
    frame = encode_frame(SMALL)
    for length in range(len(frame)):
        with pytest.raises(Damaged):
            decode_frame(frame[:length])


def test_one_flipped_bit_costs_at_most_one_record() -> None:
    frame = encode_frame(SMALL)
    start = record.FRAME_HEADER_BYTES
    for bit in range(8 * start, 8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << (bit % 8)
        found = record.salvage(bytes(damaged), start, len(frame), 5, 9)
        assert len(found) == 2
        for at in found:
            raw = bytes(damaged[at : at + record.verify_record(bytes(damaged), at)])
            assert record.decode_row(raw) in SMALL


def test_peek_refuses_what_is_no_frame() -> None:
    with pytest.raises(Damaged):
        record.peek(b"\x00" * 100)
    with pytest.raises(Damaged):
        record.peek(b"")
