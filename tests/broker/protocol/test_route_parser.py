"""Route lines as captured from a real cluster, whole and byte by byte."""

import pytest

from jsctl.broker.protocol import writer
from jsctl.broker.protocol.ops import (
    PAYLOAD_TOO_LARGE,
    UNKNOWN,
    VIOLATION,
    Bad,
    Connect,
    Info,
    Interest,
    NoInterest,
    Ok,
    PeerError,
    Ping,
    Pong,
    Routed,
    RouteOp,
)
from jsctl.broker.protocol.route import (
    GREETINGS_MAX,
    TOO_MANY_GREETINGS,
    GatewayParser,
    LeafParser,
    RouteParser,
)

CASES: list[tuple[bytes, list[RouteOp]]] = [
    (b"PING\r\nPONG\r\n", [Ping(), Pong()]),
    (b"INFO {} \r\nCONNECT {}\r\n-ERR 'x'\r\n", [Info(b"{} "), Connect(b"{}"), PeerError(b"'x'")]),
    (b"RS+ $G foo\r\n", [Interest(b"$G", b"foo", b"", 1, b"")]),
    (b"RS+ $G qq grp 2\r\n", [Interest(b"$G", b"qq", b"grp", 2, b"")]),
    (
        b"RS- $G qq grp\r\nRS- $G foo\r\n",
        [
            NoInterest(b"$G", b"qq", b"grp", b""),
            NoInterest(b"$G", b"foo", b"", b""),
        ],
    ),
    (
        b"LS+ leaf $G a\r\nLS- leaf $G a\r\n",
        [
            Interest(b"$G", b"a", b"", 1, b"leaf"),
            NoInterest(b"$G", b"a", b"", b"leaf"),
        ],
    ),
    (b"RMSG $G a 2\r\nhi\r\n", [Routed(b"$G", b"a", b"", (), None, b"hi", b"")]),
    (b"RMSG $G a r 2\r\nhi\r\n", [Routed(b"$G", b"a", b"r", (), None, b"hi", b"")]),
    (b"RMSG $G qq | grp 1\r\nx\r\n", [Routed(b"$G", b"qq", b"", (b"grp",), None, b"x", b"")]),
    (
        b"HMSG $G qq + r.x grp 12 13\r\nNATS/1.0\r\n\r\nx\r\n",
        [Routed(b"$G", b"qq", b"r.x", (b"grp",), b"NATS/1.0\r\n\r\n", b"x", b"")],
    ),
    (b"LMSG leaf $G a 0 1\r\nx\r\n", [Routed(b"$G", b"a", b"", (), None, b"x", b"leaf")]),
]
BAD: list[tuple[bytes, Bad]] = [
    (b"SUB a 1\r\n", UNKNOWN),
    (b"RS+ $G\r\n", VIOLATION),
    (b"RS+ $G a q 0\r\n", VIOLATION),
    (b"RS- $G\r\n", VIOLATION),
    (b"LS+ \r\n", VIOLATION),
    (b"RMSG $G 1\r\n", VIOLATION),
    (b"RMSG $G a b c 1\r\n", VIOLATION),
    (b"RMSG $G a x\r\n", VIOLATION),
    (b"HMSG $G a 3 2\r\n", VIOLATION),
    (b"RMSG $G a 1001\r\n", PAYLOAD_TOO_LARGE),
    (b"RMSG $G a 1\r\nxx\r\n", UNKNOWN),
]


def pieces(data: bytes, step: int, account: bytes = b"") -> list[RouteOp]:
    parser = RouteParser(1024, 1000, account)
    ops: list[RouteOp] = []
    for start in range(0, len(data), step):
        ops += parser.feed(data[start : start + step])
    return ops


@pytest.mark.parametrize(("data", "ops"), CASES)
@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_good_input(data: bytes, ops: list[RouteOp], step: int) -> None:
    assert pieces(data, step) == ops
    assert pieces(data + b"PONG\r\nRM", step) == [*ops, Pong()]


@pytest.mark.parametrize(("data", "bad"), BAD)
def test_bad_input(data: bytes, bad: Bad) -> None:
    for step in (1, 1000):
        assert pieces(b"PING\r\n" + data + b"PING\r\n", step) == [Ping(), bad]


def test_dedicated_connection_leaves_accounts_out() -> None:
    data = b"RS+ foo\r\nRS+ foo q 3\r\nRS- foo\r\nRMSG foo bar 1\r\nx\r\n"
    assert pieces(data, 3, b"$SYS") == [
        Interest(b"$SYS", b"foo", b"", 1, b""),
        Interest(b"$SYS", b"foo", b"q", 3, b""),
        NoInterest(b"$SYS", b"foo", b"", b""),
        Routed(b"$SYS", b"foo", b"bar", (), None, b"x", b""),
    ]


@pytest.mark.parametrize("reply", [b"", b"re.ply"])
@pytest.mark.parametrize("queues", [(), (b"q1",), (b"q1", b"q2")])
@pytest.mark.parametrize("headers", [None, b"NATS/1.0\r\n\r\n"])
def test_written_messages_are_read_back(
    reply: bytes, queues: tuple[bytes, ...], headers: bytes | None
) -> None:
    verb = b"RMSG " if headers is None else b"HMSG "
    data = writer.routed(verb, b"A foo", reply, queues, headers, b"pay\r\nload")
    assert pieces(data, 1000) == [Routed(b"A", b"foo", reply, queues, headers, b"pay\r\nload", b"")]


def test_written_interest_is_read_back() -> None:
    data = writer.interest(b"A", b"f", b"", 1) + writer.interest(b"A", b"f", b"q", 4)
    data += writer.no_interest(b"A", b"f", b"") + writer.no_interest(b"A", b"f", b"q")
    assert pieces(data, 1000) == [
        Interest(b"A", b"f", b"", 1, b""),
        Interest(b"A", b"f", b"q", 4, b""),
        NoInterest(b"A", b"f", b"", b""),
        NoInterest(b"A", b"f", b"q", b""),
    ]


@pytest.mark.parametrize(
    ("data", "ops"),
    [
        (b"A+ $G\r\nA- $G\r\nPING\r\n", [Ok(), Ok(), Ping()]),
        (b"RS+ $G a q 1\r\n", [Interest(b"$G", b"a", b"q", 1, b"")]),
        (b"RS- $G a\r\n", [NoInterest(b"$G", b"a", b"", b"")]),
        (
            b"RMSG $G a + _GR_.x.y.r q 1\r\nz\r\n",
            [Routed(b"$G", b"a", b"_GR_.x.y.r", (b"q",), None, b"z", b"")],
        ),
    ],
)
@pytest.mark.parametrize("step", [1, 7, 4096])
def test_what_other_clusters_say(data: bytes, ops: list[RouteOp], step: int) -> None:
    parser = GatewayParser(4096, 1024)
    found = [op for at in range(0, len(data), step) for op in parser.feed(data[at : at + step])]
    assert found == ops


@pytest.mark.parametrize(
    ("data", "bad"),
    [
        (b"LS+ C $G a\r\n", UNKNOWN),
        (b"LMSG C $G a 0 0\r\n\r\n", UNKNOWN),
        (b"A+ one two\r\n", VIOLATION),
        (b"A- \r\n", VIOLATION),
        (b"RMSG $G a 1025\r\n", PAYLOAD_TOO_LARGE),
    ],
)
def test_what_other_clusters_do_not_say(data: bytes, bad: Bad) -> None:
    assert GatewayParser(4096, 1024).feed(data) == [bad]


def test_only_other_clusters_speak_of_whole_accounts() -> None:
    for parser in (RouteParser(4096, 1024), LeafParser(4096, 1024)):
        assert parser.feed(b"A+ $G\r\n") == [UNKNOWN]


@pytest.mark.parametrize("parser", [RouteParser, LeafParser, GatewayParser])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_stranger_has_little_to_say(parser: type[RouteParser], at_once: bool) -> None:
    """Who does not say who he is costs no more than that, however much he sends."""
    stranger, count = parser(4096, -1), 2 * GREETINGS_MAX
    chunks = [b"+OK\r\n" * count] if at_once else [b"+OK\r\n"] * count
    ops = [op for chunk in chunks for op in stranger.feed(chunk)]
    assert ops == [*[Ok()] * GREETINGS_MAX, TOO_MANY_GREETINGS]


def test_a_peer_that_is_known_may_go_on() -> None:
    peer = RouteParser(4096, -1)
    peer.feed(b"PING\r\n" * GREETINGS_MAX)
    peer.payload_max = 100
    assert peer.feed(b"PING\r\n" * 1000) == [Ping()] * 1000
