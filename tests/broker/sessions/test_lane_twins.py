"""The lane and the simple parser with its session give the same, however the bytes are cut."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.interest.targets import RouteLink, Sink
from jsctl.broker.options import (
    AuthOptions,
    Options,
    PermissionRules,
    SubjectPermission,
    UserOptions,
)
from jsctl.broker.protocol.client import ClientParser
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routing.limits import RoutingLimits, ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.turn import Accepted, ConnKind, TurnOutputs

LIMITS = RoutingLimits(payload_bytes_max=4096, control_line_bytes_max=2048)
USER = UserOptions(
    name="u",
    password="p",
    permissions=PermissionRules(publish=SubjectPermission(deny=("deny.>",))),
)
OPTIONS = Options(auth=AuthOptions(users=(USER,)))


class Side:
    """A router with a publisher, a subscriber, a sink and a route."""

    def __init__(self, connect: bytes) -> None:
        self.turns = 0
        accounts = Accounts(OPTIONS)
        self.router = Router(accounts, LIMITS, self.draw)
        self.sessions = Sessions(self.router, ServerIdentity("N", "n"), LIMITS)
        self.sink = Sink()
        link = RouteLink(9, "peer")
        self.router.add_route(link)
        account = accounts.default
        self.router.subscribe(account, b"s.>", self.sink)
        ops = b"RS+ $G r.* \r\nRS+ $G q.a grp 2\r\n"
        self.router.route_ops(link, RouteParser(65536, 1 << 20).feed(ops))
        for conn in (1, 2):
            self.sessions.accept(Accepted(conn, ConnKind.CLIENT, "h", 1), 0)
        who = b'"user":"u","pass":"p","verbose":false,"pedantic":false,"headers":true'
        lines = b"SUB c.* 1\r\nSUB q.a grp 2\r\nSUB c.b 3\r\nUNSUB 3 5\r\nSUB s.b 4\r\n"
        self.sessions.feed(2, b"CONNECT {%s}\r\n" % who + lines, 0)
        self.sessions.feed(1, b"CONNECT {%s}\r\nSUB _I.> 7\r\n" % (who + connect), 0)
        self.sent: dict[int, bytes] = {}
        self.closes: list[tuple[int, str]] = []
        self.emit()

    def draw(self, below: int) -> int:
        self.turns += 1
        return self.turns % below

    def emit(self) -> None:
        outputs = TurnOutputs()
        self.sessions.emit(outputs)
        for conn, data in outputs.writes:
            self.sent[conn] = self.sent.get(conn, b"") + data
        self.closes += outputs.closes

    def captured(self) -> list[tuple[bytes, ...]]:
        return [row[:4] for row in self.sink.messages]


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
connects = st.sampled_from(
    [b"", b',"no_responders":true', b',"echo":false,"no_responders":true', b',"verbose":true']
)


def check(data: bytes, cuts: list[int], connect: bytes) -> None:
    lane, simple = Side(connect), Side(connect)
    parser = ClientParser(LIMITS.control_line_bytes_max, LIMITS.payload_bytes_max)
    session = simple.sessions.get(1)
    assert session is not None
    start = 0
    for cut in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
        lane.sessions.feed(1, data[start:cut], 1)
        for op in parser.feed(data[start:cut]):
            if not session.closing:
                session.take(op)
        start = cut
    own = lane.sessions.get(1)
    assert own is not None
    assert lane.captured() == simple.captured()
    assert own.in_messages == session.in_messages and own.in_bytes == session.in_bytes
    assert own.out_messages == session.out_messages
    assert own.account.in_bytes == session.account.in_bytes
    lane.emit()
    simple.emit()
    assert lane.sent == simple.sent
    assert lane.closes == simple.closes


@given(inputs, st.lists(st.integers(0, 3000), max_size=5), connects)
@settings(max_examples=150, deadline=None)
def test_same_outcome(pieces: list[bytes], cuts: list[int], connect: bytes) -> None:
    check(b"".join(pieces), cuts, connect)


@given(inputs, rare, single, st.lists(st.integers(0, 3000), max_size=3), connects)
@settings(max_examples=80, deadline=None)
def test_same_end(
    pieces: list[bytes], end: bytes, behind: bytes, cuts: list[int], connect: bytes
) -> None:
    check(b"".join(pieces) + end + behind, cuts, connect)


def test_byte_by_byte() -> None:
    data = b"PUB c.a 5\r\nhello\r\n" * 15 + b"HPUB s.b _I.1 12 13\r\nNATS/1.0\r\n\r\nx\r\n" * 12
    check(data, list(range(len(data))), b"")


def test_long_run_with_protocol_text_inside() -> None:
    check(message(b"c.a", b"", b"PUB c.a 18\r\n\r\nPUB ", None, b"PUB") * 200, [333], b"")


def test_long_run_that_ends_badly() -> None:
    for wrong in (b"\r\0", b"\0\n", b"\0\0"):
        check(
            b"PUB c.a 1\r\nx\r\n" * 15 + b"PUB c.a 1\r\nx" + wrong + b"PUB c.a 1\r\nx\r\n", [], b""
        )
