"""Every case runs whole, byte by byte, in two pieces, and with bytes behind it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.protocol.client import ClientParser
from jsctl.broker.protocol.ops import (
    LINE_TOO_LONG,
    PAYLOAD_TOO_LARGE,
    UNKNOWN,
    VIOLATION,
    Bad,
    ClientOp,
    Connect,
    Info,
    Ok,
    PeerError,
    Ping,
    Pong,
    Publish,
    Subscribe,
    Unsubscribe,
)
from tests.support.quick import examples

CASES: list[tuple[bytes, list[ClientOp]]] = [
    (b"PING\r\n", [Ping()]),
    (b"ping\n", [Ping()]),
    (b"PING x y\r\n", [Ping()]),
    (b"PONG\r\n+OK\r\n", [Pong(), Ok()]),
    (b"CONNECT {}\r\n", [Connect(b"{}")]),
    (b'connect\t {"a": 1} \r\n', [Connect(b'{"a": 1} ')]),
    (b"INFO {}\r\n", [Info(b"{}")]),
    (b"-ERR 'no'\r\n", [PeerError(b"'no'")]),
    (b"PUB foo 5\r\nhello\r\n", [Publish(b"foo", b"", None, b"hello")]),
    (b"pub foo 0\n\r\n", [Publish(b"foo", b"", None, b"")]),
    (b"PUB \t foo\t bar  5 \r\nhel\r\n\r\n", [Publish(b"foo", b"bar", None, b"hel\r\n")]),
    (
        b"PUB a 10\r\nPUB b 1\r\nx\r\nPING\r\n",
        [Publish(b"a", b"", None, b"PUB b 1\r\nx"), Ping()],
    ),
    (b"HPUB f 3 5\r\nABCde\r\n", [Publish(b"f", b"", b"ABC", b"de")]),
    (b"hpub f r 0 2\r\nde\r\n", [Publish(b"f", b"r", b"", b"de")]),
    (
        b"SUB foo 1\r\nSUB foo q a.b-c\r\n",
        [
            Subscribe(b"foo", b"", b"1"),
            Subscribe(b"foo", b"q", b"a.b-c"),
        ],
    ),
    (b"UNSUB 1\r\nUNSUB 1 5\r\n", [Unsubscribe(b"1", 0), Unsubscribe(b"1", 5)]),
    (b"SUB a\x0bb 1\r\n", [Subscribe(b"a\x0bb", b"", b"1")]),
]
BAD: list[tuple[bytes, Bad]] = [
    (b"FOO\r\n", UNKNOWN),
    (b"\r\n", UNKNOWN),
    (b" PING\r\n", UNKNOWN),
    (b"MSG a 1 1\r\nx\r\n", UNKNOWN),
    (b"RMSG a b 1\r\nx\r\n", UNKNOWN),
    (b"RS+ a b\r\n", UNKNOWN),
    (b"UNSUB\r\n", UNKNOWN),
    (b"UNSUB \r\n", VIOLATION),
    (b"UNSUB 1 2 3\r\n", VIOLATION),
    (b"SUB foo\r\n", VIOLATION),
    (b"SUB a b c d\r\n", VIOLATION),
    (b"PUB foo\r\n", VIOLATION),
    (b"PUB foo x\r\n", VIOLATION),
    (b"PUB foo -1\r\n", VIOLATION),
    (b"PUB foo 1234567890\r\n", VIOLATION),
    (b"PUB a b c 1\r\n", VIOLATION),
    (b"PUB foo 101\r\n", PAYLOAD_TOO_LARGE),
    (b"HPUB foo 3\r\n", VIOLATION),
    (b"HPUB foo 3 2\r\n", VIOLATION),
    (b"HPUB foo x 2\r\n", VIOLATION),
    (b"HPUB foo 1 101\r\n", PAYLOAD_TOO_LARGE),
    (b"PUB foo 1\r\nxy\r\n", UNKNOWN),
    (b"PUB foo 1\r\nx\n\r\n", UNKNOWN),
    (b"PUB foo 1\r\nx\rx", UNKNOWN),
    (b"SUB " + b"a" * 65 + b"\r\n", LINE_TOO_LONG),
    (b"CONNECT " + b"a" * 70, LINE_TOO_LONG),
]


def pieces(data: bytes, *cuts: int) -> list[ClientOp]:
    parser = ClientParser(64, 100)
    ops: list[ClientOp] = []
    start = 0
    for cut in [*cuts, len(data)]:
        ops += parser.feed(data[start:cut])
        start = cut
    return ops


@pytest.mark.parametrize(("data", "ops"), CASES)
def test_good_input(data: bytes, ops: list[ClientOp]) -> None:
    assert pieces(data) == ops
    assert pieces(data, *range(1, len(data))) == ops
    for cut in range(1, len(data)):
        assert pieces(data, cut) == ops
    assert pieces(data + b"PONG\r\nPI") == [*ops, Pong()]


@pytest.mark.parametrize(("data", "bad"), BAD)
def test_bad_input_ends_the_list(data: bytes, bad: Bad) -> None:
    data = b"PING\r\n" + data
    assert pieces(data) == [Ping(), bad]
    assert pieces(data, *range(1, len(data))) == [Ping(), bad]
    assert pieces(data + b"PING\r\n") == [Ping(), bad]


def test_line_of_the_maximum_passes() -> None:
    assert pieces(b"SUB " + b"a" * 62 + b" 1\r\n") == [Subscribe(b"a" * 62, b"", b"1")]


def test_endless_blanks_are_refused() -> None:
    assert ClientParser(64, 100).feed(b"PUB " + b" " * 70000) == [LINE_TOO_LONG]
    assert ClientParser(64, 100).feed(b"PING" + b" " * 70000) == [LINE_TOO_LONG]


@given(
    st.lists(st.sampled_from([*[c[0] for c in CASES], *[b[0] for b in BAD]]), max_size=6),
    st.lists(st.integers(0, 200), max_size=8),
)
@settings(max_examples=examples(150), deadline=None)
def test_any_cut_gives_the_same(inputs: list[bytes], cuts: list[int]) -> None:
    data = b"".join(inputs)
    assert pieces(data, *sorted(min(cut, len(data)) for cut in cuts)) == pieces(data)
