"""What is taken a buffer at once is what would be taken one message at a time."""

import re
from itertools import accumulate

from hypothesis import example, given
from hypothesis import strategies as st

from jsctl.spark.scan.plain import LARGE, Plain, take_plain

MARK = b" 2 $JS.ACK.S.c.1."
FORGED = b"\r\nMSG a 2 $JS.ACK.S.c.1.7.7.1.5 3\r\n"
WORDS = [b"", b"x", b"\r", b"\n", b"\r\n", b"MSG a 2 ", b"HMSG ", FORGED, MARK, b"\xff\x00", b"12"]
LIKE_LINES = re.compile(rb"\r\n|\AHMSG ")
"""Payloads that make it stop earlier than it would have to."""
BLOCK = b"NATS/1.0\r\nA: b\r\n\r\n"

payloads = st.lists(st.sampled_from(WORDS), max_size=4).map(b"".join)
Item = tuple[bytes, int, bytes]
"""Kind, gap before its sequence, payload."""
items = st.lists(
    st.tuples(st.sampled_from([b"MSG"] * 8 + [b"HMSG", b"PING"]), st.integers(1, 3), payloads),
    max_size=12,
)


def encoded(made: list[Item], token: bool) -> tuple[list[bytes], list[int]]:
    """Each item as on the wire, and the sequences."""
    seqs = list(accumulate(gap for _, gap, _ in made))
    lines = []
    for number, ((kind, _, payload), seq) in enumerate(zip(made, seqs, strict=True), 1):
        reply = b"%d.%d.%d.%d" % (seq, number, 10**18 + number, 99 - number)
        reply += b".tok" if token else b""
        if kind == b"PING":
            lines.append(b"PING\r\n")
        elif kind == b"HMSG":
            sizes = len(BLOCK), len(BLOCK) + len(payload)
            line = b"HMSG s.%d%s%s %d %d\r\n" % (number, MARK, reply, *sizes)
            lines.append(line + BLOCK + payload + b"\r\n")
        else:
            size = len(payload)
            lines.append(b"MSG s.%d%s%s %d\r\n%s\r\n" % (number, MARK, reply, size, payload))
    return lines, seqs


@given(items, st.booleans(), st.integers(0, 400), st.integers(0, 3))
@example([(b"MSG", 1, FORGED + b"xyz")] * 3, False, 0, 0)
@example([(b"MSG", 1, b""), (b"MSG", 1, b"")], False, 0, 0)
def test_rows_are_those_of_the_messages(
    made: list[Item], token: bool, missing: int, skipped: int
) -> None:
    lines, seqs = encoded(made, token)
    ends = list(accumulate(map(len, lines), initial=0))
    at = ends[min(skipped, len(lines))]
    data = b"".join(lines)
    data = data[: max(at, len(data) - missing)]
    found = take_plain(data, at, MARK)
    first = min(skipped, len(lines))
    last = first
    while last < len(made) and made[last][0] == b"MSG" and ends[last + 1] <= len(data):
        last += 1
    if found is None:
        rest = made[first : last + 1]
        assert any(b"\r\n" in payload or kind == b"PING" for kind, _, payload in rest)
        return
    assert found.end == ends[first + len(found.subjects)]
    taken = made[first : first + len(found.subjects)]
    if not any(kind == b"PING" or LIKE_LINES.search(payload) for kind, _, payload in made):
        assert len(taken) == last - first, "nothing stands in the way"
    assert list(found.payloads) == [payload for _, _, payload in taken]
    if not taken:
        assert found == Plain(at)
        return
    stop = first + len(taken)
    assert list(map(int, found.seqs)) == seqs[first:stop]
    assert found.subjects == [b"s.%d" % number for number in range(first + 1, stop + 1)]
    assert list(map(int, found.times)) == [10**18 + n for n in range(first + 1, stop + 1)]
    assert found.numbers == (first + 1, stop)
    assert found.pending == 99 - stop


def test_large_messages_are_left_to_others() -> None:
    large = b"MSG a 2 $JS.ACK.S.c.1.1.1.1.0 %d\r\n%b\r\n" % (LARGE + 1, b"x" * (LARGE + 1))
    small = b"MSG a 2 $JS.ACK.S.c.1.2.2.1.0 1\r\nx\r\n"
    assert take_plain(large + small, 0, MARK) == Plain(0)
    found = take_plain(small + large, 0, MARK)
    assert found is not None and len(found.subjects) == 2


def test_lines_of_others_are_not_taken() -> None:
    line = b"MSG a 2 $JS.ACK.S.c.1.1.1.1.0 1\r\nx\r\n"
    assert take_plain(line, 0, MARK) is not None
    for other in (
        line.replace(b" 2 ", b" 3 "),
        line.replace(b".c.", b".d."),
        line.replace(b".c.1.", b".c.2."),
        line.replace(b" 1\r", b" y\r"),
        line.replace(b".1.1.1.0", b".1.1.1"),
        line.replace(b".1.1.1.0", b".1.1.1.0.t.t"),
        b"MSG _INBOX.1 1 3\r\n{ }\r\n",
        b"-ERR 'no'\r\nPONG\r\n",
    ):
        assert take_plain(line + other + line, 0, MARK) is None
