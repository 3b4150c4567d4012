"""The lane and the simple parser with its session give the same, however the bytes are cut.

So do both of its loops, which run here beside each other.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.lane_sides import Side, disagreements
from tests.support.lane_tables import TWINS
from tests.support.quick import examples


def message(
    subject: bytes, reply: bytes, payload: bytes, headers: bytes | None, verb: bytes
) -> bytes:
    middle = b" " + reply if reply else b""
    if headers is None:
        return b"%s %s%s %d\r\n%s\r\n" % (verb, subject, middle, len(payload), payload)
    size = len(headers)
    total = size + len(payload)
    return b"H%s %s%s %d %d\r\n%s%s\r\n" % (verb, subject, middle, size, total, headers, payload)


PAYLOADS = [
    b"",
    b"x",
    b"PUB c.a 5\r\nhello\r\n",
    b"\r\nPUB c.a 1\r\n1\r\n",
    b"y" * 30,
    b"\r\n" * 9,
    b"PING\r\n",
    b"c.a 5\r\nPUB c.a 5\r\nPUB",
]
SUBJECTS = [b"c.a", b"c.b", b"s.a", b"s.b", b"r.a", b"q.a", b"none", b"deny.x", b"$NRG.x", b"c..a"]
SUBJECTS += [b"d.a", b"d.b", b"q.l", b"q.m", b"s.x.1", b"s.x.2", b"s..2", b"s.x.", b"s.*", b"r.>"]
SUBJECTS += [b"deny.y", b"s.x.no", b"_GR_.x", b"$NRG.y"]
REPLIES = [b"", b"", b"_I.1", b"_I.22", b"$JS.ACK.x", b"other"]
single = st.builds(
    message,
    st.sampled_from(SUBJECTS),
    st.sampled_from(REPLIES),
    st.sampled_from(PAYLOADS),
    st.sampled_from([None, None, b"NATS/1.0\r\n\r\n", b""]),
    st.sampled_from([b"PUB", b"PUB", b"pub"]),
)
runs = st.builds(lambda one, count: one * count, single, st.integers(2, 40))
rows = st.builds(
    lambda subjects, reply, payload, headers, count: b"".join(
        message(
            subjects[n % len(subjects)],
            b"%s.%d" % (reply, n) if reply else b"",
            payload,
            headers,
            b"PUB",
        )
        for n in range(count)
    ),
    st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=3),
    st.sampled_from([b"", b"_I.r", b"_I.r", b"$JS.ACK.x"]),
    st.sampled_from(PAYLOADS),
    st.sampled_from([None, None, b"NATS/1.0\r\nA: b\r\n\r\n"]),
    st.integers(5, 40),
)
control = st.sampled_from(
    [
        b"PING\r\n",
        b"SUB c.* 9\r\n",
        b"SUB s.* 8\r\n",
        b"UNSUB 9\r\n",
        b"UNSUB 8 3\r\n",
        b"UNSUB 7 6\r\n",
        b"SUB bad..x 5\r\n",
        b"SUB q.a grp 6\r\n",
        b"SUB q.l grp 10\r\n",
    ]
)
rare = st.sampled_from(
    [
        b"NONSENSE\r\n",
        b"PUB c.a x\r\n",
        b"PUB c.a 1\r\nxy\r\n",
        b"PUB c.a 5000\r\n",
        b'CONNECT {"user":"u","pass":"p","verbose":true}\r\n',
        b"PUB c.a 3\r\nab",
    ]
)
inputs = st.lists(st.one_of(single, runs, runs, rows, rows, control), min_size=1, max_size=8)
FREE = b',"user":"free"'
"""Who may publish anything: subjects that begin the same are asked for once."""
connects = st.sampled_from(
    [
        b"",
        FREE,
        FREE,
        b',"no_responders":true',
        FREE + b',"no_responders":true',
        FREE + b',"echo":false,"no_responders":true',
        b',"verbose":true',
    ]
)


def check(data: bytes, cuts: list[int], connect: bytes) -> None:
    places = sorted(min(cut, len(data)) for cut in cuts)
    pieces = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    assert not disagreements(pieces, connect)


@given(inputs, st.lists(st.integers(0, 3000), max_size=5), connects)
@settings(max_examples=examples(150), deadline=None)
def test_same_outcome(pieces: list[bytes], cuts: list[int], connect: bytes) -> None:
    check(b"".join(pieces), cuts, connect)


@given(inputs, rare, single, st.lists(st.integers(0, 3000), max_size=3), connects)
@settings(max_examples=examples(80), deadline=None)
def test_same_end(
    pieces: list[bytes], end: bytes, behind: bytes, cuts: list[int], connect: bytes
) -> None:
    check(b"".join(pieces) + end + behind, cuts, connect)


def test_byte_by_byte() -> None:
    data = b"PUB c.a 5\r\nhello\r\n" * 15 + b"HPUB s.b _I.1 12 13\r\nNATS/1.0\r\n\r\nx\r\n" * 12
    check(data, list(range(len(data))), b"")


def test_long_run_with_protocol_text_inside() -> None:
    check(message(b"c.a", b"", b"PUB c.a 18\r\n\r\nPUB ", None, b"PUB") * 200, [333], b"")


def test_who_listens_twice_gets_message_by_message() -> None:
    check(b"PUB d.a 5\r\nhello\r\n" * 15, [], b"")
    check(b"".join(b"PUB d.%d 2\r\n%02d\r\n" % (n, n) for n in range(10, 30)), [], b"")


def test_long_run_that_ends_badly() -> None:
    for wrong in (b"\r\0", b"\0\n", b"\0\0"):
        check(
            b"PUB c.a 1\r\nx\r\n" * 15 + b"PUB c.a 1\r\nx" + wrong + b"PUB c.a 1\r\nx\r\n", [], b""
        )


def test_permissions_that_tell_few_subjects_apart_leave_families() -> None:
    """What begins with tokens behind which nothing is told apart is looked up once."""
    for twin in TWINS:
        side = Side(b"", twin)
        sublist = side.publisher().account.sublist
        before = sublist.cache_hits + sublist.cache_misses
        names = [b"s.y.%d" % number for number in range(500)]
        data = b"".join(message(name, b"", b"x", None, b"PUB") for name in names)
        side.sessions.feed(1, data, 1)
        assert [row[0] for row in side.sink.messages] == names
        assert sublist.cache_hits + sublist.cache_misses - before < 10


def test_who_may_not_publish_all_of_a_family_is_told_so() -> None:
    """And who may publish anything is not, nor for what begins as what nobody may publish."""
    names = (b"s.x.1", b"s.x.no", b"s.x.2", b"$NRG.a.b", b"$NRG.a.c", b"_GR_.a", b"_GR_.b")
    for connect in (b"", FREE):
        check(b"".join(message(name, b"", b"x", None, b"PUB") for name in names * 2), [], connect)
