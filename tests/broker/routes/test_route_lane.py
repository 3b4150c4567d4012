"""Messages of other servers: through both loops, and step by step, they come to the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.accel.choice import Twin, interpreted
from jsctl.broker.interest.targets import RouteLink
from jsctl.broker.options import AccountOptions
from jsctl.broker.protocol.ops import Interest, NoInterest, Routed, RouteOp
from jsctl.broker.protocol.route import RouteParser
from jsctl.broker.routes.lane import RouteLane
from tests.support.lane_sides import Side
from tests.support.lane_tables import TWINS
from tests.support.quick import examples

LINE_MAX = 2048
ROUTED = (Routed, Interest, NoInterest)


class Receiver(Side):
    """What `Side` has, and a link that sends, to one account or to all of a pool."""

    def __init__(self, twin: Twin, *, dedicated: bool = False) -> None:
        super().__init__(b"", twin)
        self.router.accounts.put(AccountOptions(name="B"), "")
        name = "$G" if dedicated else None
        self.sender = RouteLink(11, "other", name)
        self.router.add_route(self.sender)
        account = b"$G" if dedicated else b""
        self.parser = RouteParser(LINE_MAX, 200_000, account)
        self.lane = RouteLane(self.router, twin.table)

    def carry_out(self, ops: list[RouteOp]) -> bool:
        self.router.route_ops(self.sender, [op for op in ops if isinstance(op, ROUTED)])
        return True

    def seen(self) -> dict[str, object]:
        """What came of the input."""
        counts = (self.sender.in_messages, self.sender.in_bytes, sorted(self.sender.subscriptions))
        return self.outcome(self.publisher()) | {"link": counts}


def check(pieces: list[bytes], *, dedicated: bool = False) -> None:
    steps = Receiver(interpreted(), dedicated=dedicated)
    lanes = [Receiver(twin, dedicated=dedicated) for twin in TWINS]
    for piece in pieces:
        steps.carry_out(steps.parser.feed(piece))
        for one in lanes:
            one.lane.feed(one.sender, one.parser, piece, one.carry_out)
    expected = steps.seen()
    for one in lanes:
        assert one.seen() == expected


def message(account: bytes, subject: bytes, middle: bytes, headers: bytes, payload: bytes) -> bytes:
    size = len(headers) + len(payload)
    if headers:
        line = b"HMSG %s%s %s%d %d" % (account, subject, middle, len(headers), size)
    else:
        line = b"RMSG %s%s %s%d" % (account, subject, middle, size)
    return b"%s\r\n%s%s\r\n" % (line, headers, payload)


SUBJECTS = [b"c.a", b"c.b", b"s.a", b"s.b", b"q.a", b"q.l", b"d.a", b"none", b"_I.1", b"r.a"]
ACK = b"$JS.ACK.S.C.1.1.1.1.0"
SHOWN = [
    ACK + b"@c.a ",
    ACK + b"@s.b ",
    ACK + b"1@x@y.z ",
    b"$JS.ACK.S@1.C.1.1.1.1.0@c.a ",
    b"$JS.ACK.S.C.1.1.1.1.x@c.a ",
    b"$JS.ACK.D.H.S.C.1.1.1.1.0@c.a ",
    b"$JS.ACK..C.1.1.1.1.0@c.a ",
    ACK + b"@ ",
    ACK + b"@c.a| ",
]
MIDDLES = [b"", b"", b"_I.1 ", b"| grp ", b"+ _I.1 grp ", b"| ", b"+ ", ACK + b" ", *SHOWN]
HEADERS = [
    b"",
    b"",
    b"NATS/1.0\r\n\r\n",
    b"NATS/1.0\r\na: b\r\n\r\n",
    b"NATS/1.0\r\nNats-Trace-Dest: t\r\n\r\n",
]
PAYLOADS = [b"", b"x", b"RMSG $G c.a 1\r\nx\r\n", b"\r\n" * 5, b"y" * 30]
CONTROL = [
    b"RS+ $G c.>\r\n",
    b"RS- $G c.>\r\n",
    b"RS+ $G q.l grp 3\r\n",
    b"PING\r\n",
    b"INFO {}\r\n",
    b"rmsg $G c.a 1\r\nx\r\n",
    b"RMSG  $G c.a 1\r\nx\r\n",
    b"RMSG B c.a 1\r\nx\r\n",
    b"RMSG unknown c.a 1\r\nx\r\n",
    b"RMSG $G c.a 01\r\nx\r\n",
    b"RMSG $G c.a %b@s 01\r\nx\r\n" % ACK,
    b"HMSG $G c.a %b@s 0 1\r\nx\r\n" % ACK,
    b"RMSG $G c\t.a %b@s 1\r\nx\r\n" % ACK,
    b"RMSG $G c.a  %b@s 1\r\nx\r\n" % ACK,
    b"RMSG $G c.a %b@s\t1\r\nx\r\n" % ACK,
]
single = st.builds(
    message,
    st.just(b"$G "),
    st.sampled_from(SUBJECTS),
    st.sampled_from(MIDDLES),
    st.sampled_from(HEADERS),
    st.sampled_from(PAYLOADS),
)
repeated = st.builds(lambda one, count: one * count, single, st.integers(2, 30))
parts = st.lists(st.one_of(single, repeated, st.sampled_from(CONTROL)), min_size=1, max_size=10)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [*sorted(min(place, len(data)) for place in places), len(data)]
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@given(parts, st.lists(st.integers(0, 2000), max_size=4))
@settings(max_examples=examples(120), deadline=None)
def test_same_outcome(some: list[bytes], places: list[int]) -> None:
    check(cut(b"".join(some), places))


deliveries = st.builds(
    message,
    st.just(b"$G "),
    st.sampled_from([b"c.a", b"_I.1", b"_I.2", b"c.b"]),
    st.sampled_from(SHOWN),
    st.sampled_from(HEADERS),
    st.sampled_from(PAYLOADS),
)
runs = st.lists(
    st.one_of(deliveries, st.builds(lambda one, n: one * n, deliveries, st.integers(2, 9)), single),
    min_size=1,
    max_size=20,
)


@given(runs, st.lists(st.integers(0, 2000), max_size=4))
@settings(max_examples=examples(200), deadline=None)
def test_same_outcome_of_deliveries(some: list[bytes], places: list[int]) -> None:
    check(cut(b"".join(some), places))


@given(runs, st.integers(0, 3000), st.binary(min_size=1, max_size=3))
@settings(max_examples=examples(200), deadline=None)
def test_same_outcome_of_damaged_deliveries(some: list[bytes], at: int, other: bytes) -> None:
    data = b"".join(some)
    at %= len(data)
    check([data[:at] + other + data[at + len(other) :]])


@given(parts, st.lists(st.integers(0, 2000), max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_same_outcome_on_a_link_of_one_account(some: list[bytes], places: list[int]) -> None:
    data = b"".join(some).replace(b"MSG $G ", b"MSG ").replace(b" $G ", b" ")
    check(cut(data, places), dedicated=True)


@pytest.mark.parametrize(
    "end", [b"NONSENSE\r\n", b"RMSG $G c.a x\r\n", b"RMSG $G c.a 1\r\nxyz\r\n"]
)
def test_same_end(end: bytes) -> None:
    one = message(b"$G ", b"c.a", b"", b"", b"x")
    check([one * 3 + end + one])


def test_lines_and_names_of_the_maximum() -> None:
    for size in (LINE_MAX - 9, LINE_MAX - 8, LINE_MAX - 7):
        check([b"RMSG $G c.a %s 1\r\nx\r\n" % (b"r" * (size - 1))])
        check([b"RMSG $G c.a %s@%s 1\r\nx\r\n" % (ACK, b"r" * (size - 2 - len(ACK)))])
    check([b"RMSG %s c.a 1\r\nx\r\n" % (b"a" * 600)])
    check([b"RMSG $G" + b"a" * 3000])


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_plain_messages_do_not_go_step_by_step(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Receiver(twin)
    steps: list[bytes] = []
    step = RouteParser.step

    def counted(parser: RouteParser, data: bytes, position: int) -> tuple[RouteOp | None, int]:
        steps.append(data[position : position + 20])
        return step(parser, data, position)

    monkeypatch.setattr(RouteParser, "step", counted)
    plain = message(b"$G ", b"c.a", b"_I.1 ", b"", b"x") * 50
    there.lane.feed(there.sender, there.parser, plain + b"PING\r\n" + plain, there.carry_out)
    assert steps == [b"PING\r\n" + plain[:14]]
    assert there.sender.in_messages == 100
    for middle, headers in ((ACK + b"@a.b ", b""), (ACK + b"@a.b ", HEADERS[3])):
        shown = message(b"$G ", b"c.a", middle, headers, b"x") * 50
        there.lane.feed(there.sender, there.parser, plain + shown + plain, there.carry_out)
    assert len(steps) == 1, "nor do deliveries of consumers at other servers"
    assert there.sender.in_messages == 400


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_an_account_that_comes_again_is_another_one(twin: Twin) -> None:
    there = Receiver(twin)
    data = message(b"B ", b"c.a", b"", b"", b"x")
    for _ in range(2):
        assert there.router.accounts.get("B") is not None
        there.lane.feed(there.sender, there.parser, data, there.carry_out)
        there.router.accounts.remove("B")
        there.lane.feed(there.sender, there.parser, data, there.carry_out)
        there.router.accounts.put(AccountOptions(name="B"), "")
        account = there.router.accounts.get("B")
        assert account is not None
        there.router.subscribe(account, b"c.*", there.sink)
    assert [row[:2] for row in there.sink.messages] == [(b"c.a", b"")]
    assert there.sender.in_messages == 4
