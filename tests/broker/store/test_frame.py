"""Frames where they lie: what is known without a look is what a look finds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.checksums import SHARED_BYTES
from jsctl.broker.errors import Damaged
from jsctl.broker.store import record
from jsctl.broker.store.frame import Frame, frame_of
from jsctl.broker.store.record import Columns, Row

PAYLOADS = st.binary(max_size=20) | st.integers(SHARED_BYTES - 40, SHARED_BYTES + 40).map(bytes)
ROWS = st.lists(
    st.tuples(
        st.integers(1, 5), st.integers(0, 2**40), st.binary(max_size=9),
        st.sampled_from([b"", b"", b"NATS/1.0\r\nA: b\r\n\r\n"]), PAYLOADS,
    ),
    min_size=1,
    max_size=12,
)  # fmt: skip


def rows_of(parts: list[tuple[int, int, bytes, bytes, bytes]]) -> list[Row]:
    rows: list[Row] = []
    seq = 0
    for gap, time_ns, subject, headers, payload in parts:
        seq += gap
        rows.append((seq, time_ns, subject, headers, payload))
    return rows


def plain(found: Columns) -> list[list[object]]:
    return [list(column) for column in found]


@settings(max_examples=80, deadline=None)
@given(ROWS, st.binary(max_size=30))
def test_who_encodes_knows_what_others_read(
    parts: list[tuple[int, int, bytes, bytes, bytes]], head: bytes
) -> None:
    rows = rows_of(parts)
    made = frame_of(rows, head)
    assert made.buffer[: made.start] == head
    assert bytes(made.view) == frame_of(rows).buffer
    assert record.frame_is_sound(bytes(made.view))
    read = Frame(made.buffer, len(head))
    assert plain(made.columns) == plain(read.columns)
    assert (read.count, read.first_seq, read.last_seq) == (len(rows), rows[0][0], rows[-1][0])
    assert made.records == read.records == rows
    assert made.header_blocks == read.header_blocks == [row[3] for row in rows]
    assert len(read) == len(read.view)


def test_what_was_found_is_kept() -> None:
    read = Frame(frame_of([(1, 2, b"s", b"", b"x")], b"head").buffer, 4)
    assert read.columns is read.columns
    assert read.records is read.records
    assert read.header_blocks is read.header_blocks


def test_where_no_frame_is_there_is_damage() -> None:
    with pytest.raises(Damaged):
        Frame(frame_of([(1, 2, b"s", b"", b"x")], b"head").buffer, 3)
    with pytest.raises(Damaged):
        Frame(b"short")


def test_a_large_record_of_one_frame_is_no_other_s() -> None:
    """The frame's checksum is derived from its records': every bit still counts."""
    frame = frame_of([(seq, 1, b"s", b"", b"%d" % seq * SHARED_BYTES) for seq in (1, 2)]).buffer
    assert record.frame_is_sound(frame)
    for bit in range(0, 8 * len(frame), 8 * 1009 + 3):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        assert not record.frame_is_sound(bytes(damaged)), bit
