"""Archives as their bytes come: whatever was written is read, however it is cut."""

from io import BytesIO
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.backups import archive, s2
from jsctl.backups.archive import ArchiveReader, Entry, EntryParser, MessageEntry
from jsctl.backups.entries import entry_bytes, varint_at
from jsctl.backups.s2 import BlockDecoder, BrokenStream
from tests.support.quick import examples

ROWS = st.lists(
    st.tuples(
        st.integers(1, 50),
        st.integers(0, (1 << 63) - 1),
        st.text("abc.ä", min_size=1, max_size=8),
        st.binary(max_size=20),
        st.binary(max_size=300),
    ),
    max_size=12,
)
CUTS = st.lists(st.integers(0, 4000), max_size=8)
Rows = list[tuple[int, int, str, bytes, bytes]]


def written(rows: Rows) -> tuple[bytes, list[MessageEntry]]:
    """An archive, and the messages that it has."""
    made, seq = [], 0
    for gap, time_ns, subject, headers, payload in rows:
        seq += gap
        made.append(MessageEntry(subject, seq, time_ns, headers, payload))
    parts = [
        entry_bytes(one.subject, one.time_ns, one.sequence, one.headers, one.payload)
        for one in made
    ]
    begin = archive.begin_bytes(1, {"first_seq": 1, "last_seq": seq})
    return b"".join((begin, *parts, archive.end_bytes())), made


def pushed(data: bytes, cuts: list[int]) -> list[Entry]:
    decoder, parser, found = BlockDecoder(), EntryParser(), list[Entry]()
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for begin, end in pairwise(bounds):
        decoder.feed(data[begin:end])
        while (block := decoder.step()) is not None:
            if block:
                parser.feed(block)
            while (entry := parser.next()) is not None:
                found.append(entry)
    decoder.finish()
    parser.finish()
    return found


@settings(max_examples=examples(60), deadline=None)
@given(ROWS, CUTS, st.integers(1, 200))
def test_what_was_written_is_read(rows: Rows, cuts: list[int], block: int) -> None:
    plain, made = written(rows)
    pieces = [plain[at : at + block] for at in range(0, len(plain), block)]
    for data in (
        s2.compressed(plain),
        s2.plain_chunk(plain),
        b"".join(map(s2.compressed, pieces)),
        b"".join(map(s2.plain_chunk, pieces)),
    ):
        assert pushed(data, cuts)[1:] == made
        assert list(ArchiveReader(BytesIO(data)))[1:] == made


@settings(max_examples=examples(60), deadline=None)
@given(ROWS, st.integers(0, 10_000), st.integers(0, 7))
def test_a_changed_bit_or_a_lost_end_is_noticed(rows: Rows, place: int, bit: int) -> None:
    plain, made = written(rows)
    data = bytearray(s2.plain_chunk(plain))
    place %= len(data)
    with pytest.raises(BrokenStream):
        pushed(bytes(data[:place]), [])
    data[place] ^= 1 << bit
    try:
        found = pushed(bytes(data), [])[1:]
    except BrokenStream:
        return
    assert found == made, "what has no checksum says nothing of the content"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x00\x00\x00\x00", "no S2 stream"),
        (b"\xff\x06\x00\x00S2sTwX", "no S2 stream"),
        (b"\xff\x06\x00\x00S2sTwO\x00\xff\xff\xff", "too large"),
        (b"\xff\x06\x00\x00S2sTwO\x02\x00\x00\x00", "unknown kind"),
        (b"\xff\x06\x00\x00S2sTwO\x01\x02\x00\x00ab", "no checksum"),
        (b"\xff\x06\x00\x00S2sTwO\x00\x0a\x00\x00abcd\xff\xff\xff\xff\x0f\x00", "too large"),
    ],
)
def test_lengths_are_not_believed(data: bytes, why: str) -> None:
    with pytest.raises(BrokenStream, match=why):
        pushed(data, [])


def test_what_is_skipped_is_not_kept() -> None:
    decoder = BlockDecoder()
    decoder.feed(b"\xff\x06\x00\x00S2sTwO\xfe\xff\xff\xff")
    for _ in range(100):
        decoder.feed(bytes(100_000))
        assert decoder.step() is None
    assert len(decoder._raw) == 0


@settings(max_examples=examples(100))
@given(st.binary(max_size=12))
def test_numbers_have_64_bits(data: bytes) -> None:
    try:
        found = varint_at(data, 0)
    except BrokenStream:
        assert len(data) >= 10
        return
    if found is None:
        assert all(byte >= 0x80 for byte in data)
    else:
        value, end = found
        assert 0 <= value < 1 << 64 and data[end - 1] < 0x80


def outcome(data: bytes, step: int) -> tuple[list[Entry], str, str]:
    """Entries of plain bytes that come in pieces, what was wrong, and the last good entry."""
    parser, found = EntryParser(body_bytes_max=400), list[Entry]()
    try:
        for at in range(0, len(data), step):
            parser.feed(data[at : at + step])
            while (entry := parser.next()) is not None:
                found.append(entry)
        parser.finish()
    except BrokenStream as error:
        return found, str(error), parser.last
    return found, "", parser.last


TIMES = (0, 1, 1 << 53, 1_700_000_000 * 10**9, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, -5)
FORMS = st.lists(
    st.tuples(
        st.sampled_from(TIMES) | st.integers(1_600_000_000 * 10**9, 1_900_000_000 * 10**9),
        st.sampled_from([0, 1, 1, 1, 2, 130, 20_000]),
        st.sampled_from([b"a", b"a.b", b"n" * 127, b"n" * 128, b"\xff"]),
        st.sampled_from([0, 0, 40, 130]),
        st.sampled_from([0, 100, 128, 300, 400, 401]),
    ),
    max_size=8,
)


@settings(max_examples=examples(120), deadline=None)
@given(FORMS, st.sampled_from([0, 1, 7]), st.binary(max_size=80), st.data())
def test_messages_that_are_there_as_a_whole_are_those_that_come_byte_by_byte(
    forms: list[tuple[int, int, bytes, int, int]], first: int, behind: bytes, data: st.DataObject
) -> None:
    """One look at a message does what the steps do, whatever is wrong with it."""
    parts, seq = [archive.begin_bytes(1, {"first_seq": first, "last_seq": 9})], first
    for time_ns, gap, name, headers, payload in forms:
        seq += gap
        encoded = bytearray(entry_bytes("", time_ns, seq, b"h" * headers, b"p" * payload))
        encoded[0:1] = bytes([len(name)]) if len(name) < 128 else bytes([len(name) & 127 | 128, 1])
        head = len(encoded) - headers - payload
        parts.append(bytes(encoded[:head] + name + encoded[head:]))
    made = bytearray(b"".join((*parts, archive.end_bytes(), behind)))
    if data.draw(st.booleans()):
        made[data.draw(st.integers(len(parts[0]), len(made) - 1))] ^= 1 << data.draw(
            st.integers(0, 7)
        )
    want = outcome(bytes(made), 1)
    assert outcome(bytes(made), len(made)) == want
    assert outcome(bytes(made), 97) == want


def test_documents_of_very_many_parts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "DOCUMENT_PARTS_MAX", 100)
    for parts, why in ((99, "sentinel"), (100, "too many parts")):
        begin = archive.begin_bytes(1, {"of_later": [[]] * (parts - 1)})
        with pytest.raises(BrokenStream, match=why):
            pushed(s2.compressed(begin), [])
