"""Archives: entries as they were written, and everything that makes one not whole."""

import io

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jsctl.backups.archive import (
    MAGIC,
    ArchiveReader,
    ConsumerEntry,
    Entry,
    MessageEntry,
    StateEntry,
    end_bytes,
    state_bytes,
)
from jsctl.backups.entries import Row, entries_bytes, entry_bytes
from jsctl.backups.filters import Dropped, Filter, Judge, is_tombstone, matches
from jsctl.backups.s2 import BrokenStream
from jsctl.errors import UsageError

CONSUMER = b'{"config":{},"state":{}}'


def entries(*parts: bytes) -> list[Entry]:
    packed = bytes(cramjam.snappy.compress(b"".join(parts)))
    return list(ArchiveReader(io.BytesIO(packed)))


def state(consumers: int = 0, first: int = 1) -> bytes:
    return state_bytes(7, {"first_seq": first, "consumer_count": consumers}, pad=100)


def message(sequence: int, subject: str = "a", payload: bytes = b"x") -> bytes:
    return entry_bytes(subject, -5, sequence, b"NATS/1.0\r\nK: v\r\n\r\n", payload)


def test_entries_are_what_was_written() -> None:
    found = entries(
        state(1),
        entry_bytes("consumers/C", 3, 0, b"", CONSUMER),
        message(1),
        message(9, "ä.b", bytes(300)),
        end_bytes(),
    )
    headers = b"NATS/1.0\r\nK: v\r\n\r\n"
    assert found == [
        StateEntry(7, {"first_seq": 1, "consumer_count": 1}),
        ConsumerEntry("C", 3, CONSUMER),
        MessageEntry("a", 1, -5, headers, b"x"),
        MessageEntry("ä.b", 9, -5, headers, bytes(300)),
    ]


@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=9),
            st.integers(-(2**62), 2**62),
            st.integers(1, 2**40),
            st.binary(max_size=40),
            st.binary(max_size=40),
        ),
        max_size=6,
        unique_by=lambda one: one[2],
    )
)
def test_any_messages_are_read_back(messages: list[tuple[str, int, int, bytes, bytes]]) -> None:
    messages.sort(key=lambda one: one[2])
    written = [entry_bytes(*one) for one in messages]
    found = entries(state(), *written, end_bytes())[1:]
    assert found == [
        MessageEntry(subject, sequence, time_ns, headers, payload)
        for subject, time_ns, sequence, headers, payload in messages
    ]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ((b"",), "not a NATS Server 2.15 stream backup"),
        ((b"not an archive",), "not a NATS Server 2.15 stream backup"),
        ((MAGIC,), "ends before the end-of-backup sentinel after no entries"),
        ((MAGIC, entry_bytes("x", 0, 0, b"", b"")), "expected state.json first"),
        ((MAGIC, entry_bytes("state.json", 0, 0, b"", b"{")), "error in state.json"),
        ((MAGIC, entry_bytes("state.json", 0, 0, b"", b"[]")), "error in state.json"),
        ((state(-1), end_bytes()), "negative consumer_count"),
        ((state(1), message(1)), 'expected consumer entry .1 remaining., found "a"'),
        (
            (state(1), entry_bytes("consumers/C", 0, 0, b"", b'{"config":{}}')),
            'consumer "C" is missing state',
        ),
        ((state(), message(2), message(2)), "message sequence 2 out of order after entry #2"),
        ((state(first=5), message(4)), "message sequence 4 out of order"),
        ((state(), message(1)), "ends before the end-of-backup sentinel after entry #2 message a"),
        ((state(), message(1)[:-1]), "cut off within an entry"),
        ((state(), entry_bytes("a", 5, 0, b"", b"")), "with sequence 0"),
        ((state(), b"\x01\x00\x01\x00\xff\xff\xff\xff\xff\x7f"), "too large"),
        ((state(), b"\xff" * 11), "invalid archive stream"),
    ],
)
def test_what_is_not_whole_is_told(parts: tuple[bytes, ...], told: str) -> None:
    with pytest.raises(BrokenStream, match=told):
        entries(*parts)


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("*", "a", True),
        ("*.b", "a", False),
    ],
)
def test_patterns(pattern: str, subject: str, expected: bool) -> None:
    assert matches(pattern, subject) is expected


def test_the_first_reason_counts() -> None:
    one = MessageEntry("a.b", 5, 100, b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n", b"body")
    assert Judge(Filter())(one) is None
    assert Judge(Filter(first_sequence=6, subjects=("c",)))(one) is Dropped.SEQUENCE
    assert Judge(Filter(last_sequence=5))(one) is None
    assert Judge(Filter(before_ns=100))(one) is Dropped.TIME
    assert Judge(Filter(after_ns=100))(one) is None
    assert Judge(Filter(exclude_subjects=("a.>",)))(one) is Dropped.SUBJECT
    assert Judge(Filter(headers=(("kv-operation", "DEL"),)))(one) is None
    assert Judge(Filter(headers=(("kv-operation", "PUT"),)))(one) is Dropped.HEADER
    assert Judge(Filter(exclude_headers=("KV-Operation",)))(one) is Dropped.HEADER
    assert is_tombstone(one)
    assert not is_tombstone(MessageEntry("a", 1, 1, b"", b""))


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Filter(subjects=("a..b",)), 'invalid subject filter "a..b"'),
        (Filter(after_ns=5, before_ns=5), "After must be earlier than Before"),
        (Filter(first_sequence=6, last_sequence=5), "FirstSeq 6 is above LastSeq 5"),
        (Filter(exclude_headers=("a b",)), 'invalid header name "a b"'),
        (Filter(kv_compact=True, last_per_subject=1), "mutually exclusive"),
    ],
)
def test_what_cannot_be_meant_is_refused(wanted: Filter, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        wanted.check()


@given(
    st.lists(
        st.tuples(
            st.integers(1, 1 << 63),
            st.integers(-5, 1 << 62),
            st.binary(min_size=1, max_size=200),
            st.binary(max_size=20_000) | st.just(b""),
            st.binary(max_size=200),
        ),
        max_size=20,
    )
)
def test_entries_in_a_row_are_those_written_one_by_one(rows: list[Row]) -> None:
    both = [
        (seq + more, time_ns + more, to, head, body)
        for seq, time_ns, to, head, body in rows
        for more in (0, 1)
    ]
    single = [entry_bytes(to, at, seq, head, body) for seq, at, to, head, body in both]
    assert entries_bytes(both) == b"".join(single)


@pytest.mark.parametrize(
    ("lines", "gone"),
    [
        (b"KV-Operation: DEL\r\nKV-Operation: PUT\r\n", True),
        (b"KV-Operation: PUT\r\nKV-Operation: DEL\r\n", False),
        (b"KV-Operation:  \tPURGE\r\n", True),
        (b"KV-Operation: DEL \r\n", False),
        (b"KV-Operation: \r\nNats-Marker-Reason: MaxAge\r\n", True),
    ],
)
def test_what_says_that_a_key_is_gone(lines: bytes, gone: bool) -> None:
    block = b"NATS/1.0\r\n" + lines + b"\r\n"
    assert is_tombstone(MessageEntry("k", 1, 1, block, b"")) is gone


def test_a_value_is_compared_as_clients_read_it() -> None:
    judge = Judge(Filter(headers=(("A", "1 "),)))
    found = [
        judge(MessageEntry("k", 1, 1, b"NATS/1.0\r\nA: %s\r\n\r\n" % one, b""))
        for one in (b"1 ", b"1")
    ]
    assert found == [None, Dropped.HEADER]
