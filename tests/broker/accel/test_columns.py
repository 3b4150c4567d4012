"""The two twins of the loops over a batch: on the same input the same answer."""

from functools import partial
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.backups.archive import end_bytes
from jsctl.backups.entries import entries_bytes, entry_bytes
from jsctl.broker.accel import columns
from jsctl.broker.accel.choice import compiled
from jsctl.broker.accel.columns import Publish, Row
from jsctl.broker.accel.contract import ArchiveLoops, ColumnLoops
from jsctl.broker.store import record
from jsctl.broker.store.frame import Frame, frame_of
from tests.support.column_twins import (
    read_anything,
    same,
    same_of_archives,
    written_and_read,
)
from tests.support.quick import examples

ID = b"NATS/1.0\r\nNats-Msg-Id:%b\r\n\r\n"
blanks = st.sampled_from([b"", b" ", b"\t ", b"\x0b\x0c"])
ids = st.builds(lambda a, b, c: ID % (a + b + c), blanks, st.binary(max_size=5), blanks)
blocks = st.one_of(
    st.just(b""),
    ids,
    st.sampled_from([
        ID % b" a b ", ID % b"", ID % b" ", b"NATS/1.0\r\n\r\n", b"NATS/1.0\r\nNats-Msg-Id:",
        b"NATS/1.0\r\nNats-Msg-Id: 1\r\nA: b\r\n\r\n", b"NATS/1.0\r\nNats-Msg-Id: 1\r\n",
        b"NATS/1.0\r\nNats-Msg-Id: 1\r\nab", b"NATS/1.0\r\nNats-Msg-Id:\r\n\r\n",
        b"NATS/1.0\r\nnats-msg-id: 1\r\n\r\n", b"NATS/1.0\r\nNats-Msg-Id: 1\r\r\n\r\n",
    ]),
)  # fmt: skip
replies = st.sampled_from(
    [b"", b"_I.1", b"_I.$FI.2", b"$JS.$FI", b"$FI", b".$F", b"x.$FI", b"$$$$"]
)
seqs = st.integers(1, (1 << 64) - 100)
times = st.integers(-(1 << 63), (1 << 63) - 1)


def publishes(headers: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[Publish]]:
    one = st.tuples(st.binary(max_size=9), replies, headers, st.binary(max_size=70), st.none())
    return st.lists(one, min_size=1, max_size=9)


batches = st.one_of(publishes(st.just(b"")), publishes(ids), publishes(blocks))


@given(batches, st.binary(max_size=40), seqs, times)
@settings(max_examples=examples(400), deadline=None)
def test_a_batch_is_written_and_read_alike(
    batch: list[Publish], head: bytes, first_seq: int, time_ns: int
) -> None:
    buffer, begin = written_and_read(batch, head, first_seq, time_ns)
    rows = [(first_seq + n, time_ns, one[0], one[2], one[3]) for n, one in enumerate(batch)]
    assert frame_of(rows, head).buffer == buffer
    assert record.decode_records(buffer, begin, len(buffer)) == rows
    assert record.frame_is_sound(buffer[len(head) :])


@given(batches, st.data())
@settings(max_examples=examples(400), deadline=None)
def test_what_is_damaged_is_read_alike(batch: list[Publish], data: st.DataObject) -> None:
    buffer, begin = written_and_read(batch, b"", 1, 1)
    made = bytearray(buffer)
    for _ in range(data.draw(st.integers(0, 3))):
        made[data.draw(st.integers(begin, len(made) - 1))] = data.draw(st.integers(0, 255))
    start = data.draw(st.one_of(st.just(begin), st.integers(-1, len(made) + 1)))
    end = data.draw(st.one_of(st.just(len(made)), st.integers(-1, len(made) + 1)))
    read_anything(bytes(made), start, end)


@given(st.lists(replies.filter(bool), max_size=12), st.integers(0, 10_000), st.binary(max_size=9))
@settings(max_examples=examples(200), deadline=None)
def test_acknowledgements_are_written_alike(
    inboxes: list[bytes], first_seq: int, word: bytes
) -> None:
    form = (b'{"stream":"S","seq":', b"}" + word)
    lines = same(lambda loops: loops.ack_lines(inboxes, first_seq, b"MSG ", b" 1 ", form))
    assert bool(lines) == bool(inboxes)


lines_of = st.lists(st.tuples(replies.filter(bool), st.binary(max_size=5)), max_size=12)


@given(lines_of, st.integers(0, 10_000), st.binary(max_size=9))
@settings(max_examples=examples(200), deadline=None)
def test_acknowledgements_to_many_are_written_alike(
    rows: list[tuple[bytes, bytes]], first_seq: int, word: bytes
) -> None:
    form = (b'{"stream":"S","seq":', b"}" + word)
    inboxes, infixes = [reply for reply, _ in rows], [infix for _, infix in rows]
    found = same(lambda loops: loops.ack_each(inboxes, first_seq, b"MSG ", infixes, form))
    assert found == [
        columns.ack_lines([reply], seq, b"MSG ", infix, form)
        for seq, (reply, infix) in enumerate(rows, first_seq)
    ]


def test_each_acknowledgement_has_one_infix() -> None:
    form, replies_of_two = (b"<", b">"), [b"r", b"s"]
    for few in ([], [b" 1 "], [b" 1 "] * 3):

        def work(loops: ColumnLoops, few: list[bytes] = few) -> list[bytes]:
            return loops.ack_each(replies_of_two, 1, b"M ", few, form)

        assert same(work) is ValueError
    assert same(lambda loops: loops.ack_each([], 1, b"M ", [], form)) == []


@pytest.mark.parametrize("first_seq", [0, 9, 99, 10**9 - 1, 10**19, (1 << 64) - 3])
def test_sequences_of_any_length(first_seq: int) -> None:
    form = (b"<", b">")
    lines = same(lambda loops: loops.ack_lines([b"r"] * 3, first_seq, b"MSG ", b" s ", form))
    size = len(str(first_seq)) + 2
    assert lines.startswith(b"MSG r s %d\r\n<%d>\r\n" % (size, first_seq))


@given(batches, st.data())
@settings(max_examples=examples(200), deadline=None)
def test_rows_are_read_alike_wherever_they_lie(batch: list[Publish], data: st.DataObject) -> None:
    """Some records, in any order, one of them perhaps damaged or not where it should be."""
    buffer, begin = written_and_read(batch, b"", 1, 5)
    found = record.read_columns(buffer, begin, len(buffer))
    ends = [*found.offsets[1:], len(buffer)]
    picked = data.draw(st.lists(st.integers(0, len(batch) - 1), max_size=6))
    seqs = [found.seqs[at] for at in picked]
    starts = [found.offsets[at] + 7 for at in picked]
    lengths = [ends[at] - found.offsets[at] for at in picked]
    left = data.draw(st.one_of(st.just(sum(lengths)), st.integers(-1, sum(lengths) + 1)))
    whole = [(at + 1, 5, batch[at][0], batch[at][2], batch[at][3]) for at in picked]

    def read(buffer: bytes, left: int) -> Any:
        return same(lambda loops: loops.read_rows(buffer, 7, seqs, starts, lengths, left))

    assert read(buffer, sum(lengths)) == whole
    some = read(buffer, left)
    assert some == whole[: len(some)]
    assert sum(lengths[: len(some)]) <= max(left, 0)
    if len(some) < len(whole):
        assert sum(lengths[: len(some) + 1]) > left
    bad = bytearray(buffer)
    at = data.draw(st.integers(begin, len(buffer) - 1))
    bad[at] ^= data.draw(st.integers(1, 255))
    hit = [start <= at + 7 < start + size for start, size in zip(starts, lengths, strict=True)]
    assert read(bytes(bad), sum(lengths)) == whole[: hit.index(True) if True in hit else None]
    for column in (seqs, starts, lengths):
        if column:
            column[-1] += data.draw(st.sampled_from([1, 40, 1 << 31, (1 << 63) - 1]))
            assert len(read(buffer, 1 << 62)) < len(picked)
            break


@given(st.lists(st.tuples(seqs, times, st.binary(max_size=120))), st.integers(0, 1 << 40))
@settings(max_examples=examples(200), deadline=None)
def test_deliveries_are_worded_alike(rows: list[tuple[int, int, bytes]], first: int) -> None:
    made = [(seq, time_ns, b"s", b"", payload) for seq, time_ns, payload in rows]
    front, pending = b"$JS.ACK.S%d.C.1.", len(rows) - 3  # It may end below zero.
    tails = same(lambda loops: loops.delivery_tails(front, made, first, pending))
    assert tails == [
        b"$JS.ACK.S%%d.C.1.%d.%d.%d.%d %d\r\n"
        % (seq, first + at, time_ns, pending - at, len(payload))
        + payload
        + b"\r\n"
        for at, (seq, time_ns, payload) in enumerate(rows)
    ]


tokens = st.sampled_from(
    [b"1", b"42", b"007", b"0", b"", b"-1", b"+1", b"1_0", b" 1", b"1 ", b"x", b"%d" % (1 << 64),
     b"%d" % ((1 << 64) - 1), b"%d" % (10**20 - 1), b"9" * 40, b"0" * 40 + b"5", b"\xd9\xa1"]
)  # fmt: skip
heads_of_acks = st.sampled_from([b"$JS.ACK.S.C.1.", b"$JS.ACK.S.C.1", b"a.b", b"", b"....."])
words = st.sampled_from([b"", b"+ACK", b"+OK", b"+NXT", b"-NAK", b"+ack", b"+OK "])
acks = st.lists(
    st.tuples(
        st.builds(lambda head, seq, tail: head + seq + tail, heads_of_acks, tokens,
                  st.sampled_from([b"", b".1", b".1.2.3.x"])),
        replies, st.just(b""), words, st.none(),
    )
)  # fmt: skip


@given(acks)
@settings(max_examples=examples(300), deadline=None)
def test_acknowledgements_of_consumers_are_read_alike(some: list[Publish]) -> None:
    done, answered, others = same(lambda loops: loops.plain_acks(some))
    assert [at for at, ack in enumerate(some) if ack[3] not in (b"", b"+ACK", b"+OK")] == others
    assert len(done) == len(answered) <= len(some) - len(others)
    assert all(0 < seq < 1 << 64 for seq in done)


def test_acknowledged_sequences_are_plain_numbers() -> None:
    given = [b"7", b"007", b"%d" % ((1 << 64) - 1), b"%d" % (1 << 64), b"0", b"+7", b"7_0", b""]
    some: list[Publish] = [(b"$JS.ACK.S.C.1.%b.1.1.1" % one, b"r", b"", b"", None) for one in given]
    found = same(lambda loops: loops.plain_acks(some))
    assert found == [[7, 7, (1 << 64) - 1], [b"r"] * 3, []]


def packed(ids: list[bytes]) -> Any:
    return same(lambda loops: loops.pack_ids(ids, 1, 2))


def test_ids_may_be_as_long_as_their_length_can_tell() -> None:
    for size in (0, 1, 0xFFFF):
        assert len(packed([b"x" * size])) == 18 + size
    assert packed([b"a", b"x" * 0x10000]) is ValueError
    assert packed([]) == b""


def test_an_empty_batch_is_like_no_other() -> None:
    assert same(lambda loops: loops.read_publishes([])) is None
    assert same(lambda loops: loops.encode_publishes(b"", [], 1, 1)) is ValueError
    assert same(lambda loops: loops.encode_rows(b"", [])) is ValueError


archived = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([1790000000000000000, (1 << 61) + 5, 77, -5]),
        st.sampled_from([b"s.a", b"", b"x" * 127, b"x" * 128, b"\xff"]),
        st.sampled_from([b"", b"NATS/1.0\r\n\r\n", bytes(200)]),
        st.binary(max_size=20),
    ),
    max_size=6,
)


@given(archived, st.binary(max_size=4), st.integers(0, 5), st.integers(0, 230), st.integers(0, 7))
@settings(max_examples=examples(400), deadline=None)
def test_messages_of_an_archive_are_read_alike(
    made: list[Row], front: bytes, last_seq: int, body_max: int, most: int
) -> None:
    seqs = accumulate((row[0] for row in made), initial=1 << 7 * most)
    rows = [(seq, *row[1:]) for seq, row in zip(seqs, made, strict=False)]
    entries = same_of_archives(lambda loops: loops.entries_bytes(rows))
    assert entries == b"".join([entry_bytes(row[2], row[1], row[0], *row[3:]) for row in rows])
    data = front + entries + end_bytes() + bytes(64)

    def read(loops: ArchiveLoops) -> Any:
        return loops.read_messages(data, len(front), last_seq, body_max, most)

    found, end = same_of_archives(read)
    assert found == rows[: len(found)]
    assert end == len(front) + len(entries_bytes(found))


@pytest.mark.parametrize("at", range(1, 40))
@pytest.mark.parametrize("byte", [0, 0x7F, 0x80, 0xFF])
def test_damaged_messages_of_an_archive_are_read_alike(at: int, byte: int) -> None:
    data = bytearray(entries_bytes([(1 << 60, 1 << 60, b"subject", b"", bytes(40))]) + bytes(64))
    data[at] = byte
    same_of_archives(lambda loops: loops.read_messages(bytes(data), 0, 1, 1 << 20, 2))
    same_of_archives(lambda loops: loops.read_messages(bytes(data[at:]), 0, 1, 1 << 20, 2))


def test_messages_of_an_archive_are_read_in_its_bounds() -> None:
    row = (1, 1790000000000000000, b"subject", b"", bytes(60))
    data = entries_bytes([row, (2, *row[1:])])
    one = len(data) // 2
    other = (2, *row[1:])
    assert same_of_archives(lambda loops: loops.read_messages(data, 0, 0, 99, 9)) == [
        [row, other],
        len(data),
    ]
    assert same_of_archives(lambda loops: loops.read_messages(data, 0, 0, 99, 1)) == [[row], one]
    assert same_of_archives(lambda loops: loops.read_messages(data, one, 0, 99, 9)) == [
        [other],
        len(data),
    ]
    assert same_of_archives(lambda loops: loops.read_messages(data, one, 0, 99, 0)) == [[], one]
    assert same_of_archives(lambda loops: loops.read_messages(data, len(data), 0, 99, 9)) == [
        [],
        len(data),
    ]
    assert same_of_archives(lambda loops: loops.read_messages(data[:-1], 0, 0, 99, 9)) == [
        [row],
        one,
    ]
    assert same_of_archives(lambda loops: loops.read_messages(data, 0, 0, 59, 9)) == [[], 0]
    assert same_of_archives(lambda loops: loops.read_messages(data, 0, 1, 99, 9)) == [[], 0]
    for begin, body_max in ((-1, 9), (len(data) + 1, 9), (0, -1), (0, 1 << 31)):
        assert same_of_archives(partial(_read, data, begin, body_max)) is ValueError


def _read(data: bytes, begin: int, body_max: int, loops: ArchiveLoops) -> Any:
    return loops.read_messages(data, begin, 0, body_max, 1)


def test_large_messages_are_encoded_alike() -> None:
    batch: list[Publish] = [(b"s", b"", ID % b"1", bytes(n), None) for n in (1 << 16, 0, 1 << 14)]
    written_and_read(batch, b"head", 7, 8)
    for size in (1, 1 << 30):
        buffer, found = record.encode_publishes(b"head", batch, 7, 8, size)
        assert [*found.seqs] == [7, 8, 9] and [*found.times] == [8, 8, 8]
        assert [*Frame(buffer, 4).columns.offsets] == [*found.offsets]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("read_publishes", ((),)),
        ("read_publishes", ([(b"s", b"", b"")],)),
        ("read_publishes", ([(b"s", b"", "", b"")],)),
        ("read_publishes", ([[b"s", b"", b"", b""]],)),
        ("encode_publishes", (b"", [(b"s", None, b"", b"")], 1, 1)),
        ("encode_publishes", (b"", [None], 1, 1)),
        ("encode_publishes", ("", [], 1, 1)),
        ("encode_rows", (b"", ((1, 2, b"s", b"", b""),))),
        ("encode_rows", (b"", [[1, 2, b"s", b"", b""]])),
        ("encode_rows", (b"", [(1, 2, b"s", b"")])),
        ("encode_rows", (b"", [(1, 2.5, b"s", b"", b"")])),
        ("encode_rows", (b"", [(None, 2, b"s", b"", b"")])),
        ("encode_rows", (b"", [(1, 2, b"s", b"", "")])),
        ("encode_rows", ("", [(1, 2, b"s", b"", b"")])),
        ("entries_bytes", (((1, 2, b"s", b"", b""),),)),
        ("entries_bytes", ([(1, "2", b"s", b"", b"")],)),
        ("entries_bytes", ([(1, 2, b"s", None, b"")],)),
        ("read_messages", (bytearray(90), 0, 0, 9, 1)),
        ("read_messages", (bytes(90), None, 0, 9, 1)),
        ("read_columns", (bytearray(40), 0, 40)),
        ("read_ids", (None, 0, 0)),
        ("read_rows", (bytearray(40), 0, [1], [0], [40], 40)),
        ("read_rows", (bytes(40), 0, [1], [0], None, 40)),
        ("read_rows", (bytes(40), 0, [1.5], [0], [40], 40)),
        ("delivery_tails", (b"f", ((1, 2, b"s", b"", b"p"),), 1, 1)),
        ("delivery_tails", (b"f", [[1, 2, b"s", b"", b"p"]], 1, 1)),
        ("delivery_tails", (b"f", [(1, 2, b"s", b"")], 1, 1)),
        ("delivery_tails", (b"f", [(1.5, 2, b"s", b"", b"p")], 1, 1)),
        ("delivery_tails", (b"f", [(1, 2, b"s", b"", "p")], 1, 1)),
        ("plain_acks", ((),)),
        ("plain_acks", ([None],)),
        ("plain_acks", ([(b"s", b"", b"")],)),
        ("plain_acks", ([(b"s", b"", b"", "")],)),
        ("pack_ids", ([b"a", None], 1, 1)),
        ("pack_ids", ((b"a",), 1, 1)),
        ("ack_lines", ([None], 1, b"", b"", (b"", b""))),
        ("ack_lines", ([b"r"], 1, b"", b"", b"")),
        ("ack_each", ([None], 1, b"", [b""], (b"", b""))),
        ("ack_each", ([b"r"], 1, b"", [None], (b"", b""))),
        ("ack_each", ([b"r"], 1, b"", b"", (b"", b""))),
    ],
)
def test_the_compiled_one_refuses_what_is_no_batch(name: str, given: tuple[Any, ...]) -> None:
    twin = compiled()
    assert twin is not None, "build it: pip install -e . with a C compiler"
    with pytest.raises((TypeError, IndexError)):
        getattr(twin.columns, name)(*given)


def test_subjects_that_no_record_can_tell_are_refused() -> None:
    twin = compiled()
    assert twin is not None
    large: list[Publish] = [(bytes(1 << 16), b"", b"", b"", None)]
    with pytest.raises(ValueError, match="too large"):
        twin.columns.encode_publishes(b"", large, 1, 1)
    with pytest.raises(ValueError, match="too large"):
        twin.columns.encode_rows(b"", [(1, 1, bytes(1 << 16), b"", b"")])
    assert columns.read_publishes(large) == twin.columns.read_publishes(large)
