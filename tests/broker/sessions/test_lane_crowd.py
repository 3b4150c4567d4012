"""Messages of several publishers, a chunk each, are taken together, and it makes no difference."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.accel.choice import Twin, compiled, interpreted
from jsctl.broker.accel.contract import Chunk, Outputs
from jsctl.broker.routing.fans import RESTS
from jsctl.broker.sessions import lane
from jsctl.broker.sessions.last_line import LastLine
from jsctl.broker.sessions.session import ClientSession
from jsctl.broker.turn import Accepted, ConnKind, TurnOutputs
from tests.support.lane_sides import LIMITS, Side
from tests.support.quick import examples

COMPILED = compiled()
built = pytest.mark.skipif(COMPILED is None, reason="not built")
QUIET = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,%b}\r\n'
FREE, STRICT = b'"user":"free","pass":"p"', b'"user":"u","pass":"p"'
LOGINS = {
    10: FREE, 11: FREE, 12: FREE + b',"no_responders":true', 13: FREE + b',"echo":false',
    14: STRICT, 15: STRICT + b',"headers":false', 16: STRICT,
}  # fmt: skip
Chunks = Sequence[tuple[int, bytes]]


class Crowd(Side):
    """A side with more publishers, and the last line in front of its sessions."""

    def __init__(self, twin: Twin) -> None:
        super().__init__(b"", twin)
        self.line = LastLine(self.sessions)
        for conn, login in LOGINS.items():
            self.sessions.accept(Accepted(conn, ConnKind.CLIENT, "h", 1), 0)
            self.sessions.feed(conn, QUIET % login + b"SUB own.%d 1\r\nSUB q.l grp 2\r\n" % conn, 0)
        for _ in range(RESTS):
            # The loop pauses while subscriptions come as often as messages.
            for conn in LOGINS:
                self.sessions.feed(conn, b"PUB none 0\r\n\r\n", 0)
        self.emit()

    def session(self, conn: int) -> ClientSession:
        found = self.sessions.get(conn)
        assert found is not None
        return found

    def seen(self) -> dict[str, object]:
        """All that can be seen of what was published."""
        own = {one.conn: (one.in_messages, one.in_bytes, one.last_in_ns) for one in self.sessions}
        origins = [row[4].conn for row in self.sink.messages if isinstance(row[4], ClientSession)]
        held = [one.intake.held() for one in self.sessions]
        return self.outcome(self.publisher()) | {"each": own, "origins": origins, "held": held}


def message(subject: bytes, reply: bytes, payload: bytes, headers: bytes | None) -> bytes:
    middle = b" " + reply if reply else b""
    if headers is None:
        return b"PUB %s%s %d\r\n%s\r\n" % (subject, middle, len(payload), payload)
    sizes = len(headers), len(headers) + len(payload)
    return b"HPUB %s%s %d %d\r\n%s%s\r\n" % (subject, middle, *sizes, headers, payload)


SUBJECTS = [b"c.a", b"c.b", b"s.a", b"s.b", b"s.x.1", b"r.a", b"q.l", b"q.a", b"none", b"deny.x"]
SUBJECTS += [b"own.10", b"own.13", b"s.a", b"s.a", b"c..a", b"$NRG.x"]
single = st.builds(
    message,
    st.sampled_from(SUBJECTS),
    st.sampled_from([b"", b"own.10", b"own.12", b"_I.1", b"$JS.ACK.x"]),
    st.sampled_from([b"", b"x", b"y" * 30, b"\r\nPING\r\n"]),
    st.sampled_from([None, None, None, b"NATS/1.0\r\n\r\n"]),
)
other = st.sampled_from([
    b"PUB s.a 1\r\n1\r\nPUB c.a 1\r\n2\r\n", b"PUB s.a 4\r\nab", b"cd\r\n", b"PING\r\n", b"\r\n",
    b"SUB c.a 7\r\n", b"UNSUB 7 2\r\n", b"PUB s.a 1\r\nx", b"NONSENSE\r\n", b"PUB c.a 5000\r\n",
])  # fmt: skip
pieces = st.one_of(single, single, single, single, other)
turns = st.lists(
    st.lists(st.tuples(st.integers(9, 16), pieces), min_size=1, max_size=24), max_size=4
)


@built
@given(turns)
@settings(max_examples=examples(200), deadline=None)
def test_together_and_one_by_one_are_the_same(some: list[list[tuple[int, bytes]]]) -> None:
    assert COMPILED is not None
    together, alone, pure = Crowd(COMPILED), Crowd(COMPILED), Crowd(interpreted())
    for now_ns, chunks in enumerate(some, 1):
        together.line.feed(chunks, None, now_ns)
        pure.line.feed(chunks, None, now_ns)
        for chunk in chunks:
            alone.line.feed([chunk], None, now_ns)
        for one in (together, alone, pure):
            one.emit()
    expected = alone.seen()
    assert together.seen() == expected
    assert pure.seen() == expected
    assert not together.line.take()


def noting(some: list[list[int]]) -> Twin:
    """The compiled twin, which notes who was taken together."""
    assert COMPILED is not None
    given_each = COMPILED.each
    assert given_each is not None

    def each(table: object, rows: list[Chunk], lot: int) -> tuple[list[int], int, Outputs | None]:
        made = given_each(table, rows, lot)
        some.append([row[0].conn for row in rows[: len(made[0])]])
        return made

    return Twin("noting", COMPILED.table, COMPILED.columns, each)


ONE = b"PUB s.a 1\r\nx\r\n"


@built
def test_those_who_may_publish_the_same_are_taken_together() -> None:
    taken: list[list[int]] = []
    crowd = Crowd(noting(taken))
    crowd.line.feed([(conn, ONE) for conn in (10, 11, 12, 14, 16, 10, 13, 13)], None, 5)
    assert taken == [[10, 11, 12], [14, 16], [10, 13, 13]]
    assert [crowd.session(conn).last_in_ns for conn in (10, 12, 15)] == [5, 5, 0]
    assert len(crowd.sink.messages) == 8


@built
def test_each_chunk_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands behind one that was not taken goes one by one."""
    monkeypatch.setattr(lane, "EACH_MAX", 4)
    taken: list[list[int]] = []
    crowd = Crowd(noting(taken))
    crowd.line.feed(
        [(10, ONE), (11, ONE * 2), (12, ONE), (13, ONE), (10, ONE), (11, b"PING\r\n"), (12, ONE)],
        None,
        5,
    )
    assert taken == [[10], [10]]
    assert [row[4].conn for row in crowd.sink.messages if isinstance(row[4], ClientSession)] == [
        10, 11, 11, 12, 13, 10, 12,
    ]  # fmt: skip


@built
def test_whose_input_waits_is_not_overtaken() -> None:
    taken: list[list[int]] = []
    crowd = Crowd(noting(taken))
    chunks = [(10, b"PUB s.a 2\r\n1"), (11, ONE), (10, b"2\r\n"), (10, ONE), (99, ONE), (12, ONE)]
    crowd.line.feed(chunks, None, 5)
    assert [row[3] for row in crowd.sink.messages] == [b"x", b"12", b"x", b"x"]
    assert crowd.session(10).in_messages == RESTS + 2


@built
def test_publishers_to_a_congested_client_are_paused_and_nobody_else() -> None:
    taken: list[list[int]] = []
    crowd = Crowd(noting(taken))
    crowd.sessions.client_pending(13, LIMITS.pending_bytes_high + 1)
    chunks = [(10, ONE), (11, b"PUB own.13 1\r\nx\r\n"), (12, ONE)]
    crowd.line.feed(chunks, None, 5)
    outputs = TurnOutputs()
    crowd.sessions.emit(outputs)
    assert outputs.pauses == [11]
    assert not taken


@built
def test_a_bug_costs_the_connection_that_met_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert COMPILED is not None
    crowd = Crowd(COMPILED)
    account = crowd.publisher().account
    match = account.sublist.match

    def broken(subject: bytes) -> object:
        if subject == b"s.bad":
            raise ZeroDivisionError
        return match(subject)

    monkeypatch.setattr(type(account.sublist), "match", lambda _, subject: broken(subject))
    chunks = [(10, ONE), (11, b"PUB s.bad 1\r\nx\r\n"), (12, b"PUB s.b 1\r\nx\r\n")]
    crowd.line.feed(chunks, None, 5)
    assert [fault.place for fault in crowd.line.take()] == ["connection 11"]
    assert crowd.session(11).closing == "Internal Error"
    assert not crowd.session(10).closing and not crowd.session(12).closing
    assert [row[0] for row in crowd.sink.messages] == [b"s.a", b"s.b"]


@built
@pytest.mark.parametrize(
    "given_rows",
    [
        (), ([],), ((), 1), ([1], 1), ([(None, 1)], 1), ([(None, "1", b"")], 1),
        ([(None, 1, "a")], 1), ([], "1"), ([], -1),
    ],
)  # fmt: skip
def test_what_is_no_row_is_refused(given_rows: tuple[object, ...]) -> None:
    assert COMPILED is not None
    table = COMPILED.table(b"PUB ", b"HPUB ", (), 100, 100, lambda origin, subject: (-1, 1, 0))
    with pytest.raises((TypeError, OverflowError)):
        table.route_each(*given_rows)  # type: ignore[attr-defined]  # of the compiled one
    assert table.route_each([], 7) == ([], 7, None)  # type: ignore[attr-defined]  # the same
