"""Nobody waits until another client's whole input is carried out."""

from jsctl.broker.sessions.effort import Effort
from jsctl.broker.turn import TurnInputs
from tests.support.node_play import NodePlay, PlayClient

UNITS = 4096


class Flood:
    """A node in which one client sends much at once and an innocent one pings."""

    def __init__(self, *streams: str, users: int = 1) -> None:
        self.play = NodePlay()
        self.innocent = self.play.connect("b")
        self.senders = [self.play.connect("a") for _ in range(users)]
        self.sender = self.senders[0]
        for name in streams:
            self.sender.ask(f"$JS.API.STREAM.CREATE.{name}", name=name, subjects=[f"{name}.>"])
        self.turns = 0

    def send(self, data: bytes) -> None:
        """One turn takes the input of all senders and a ping."""
        self.turn([(sender.conn, data) for sender in self.senders])

    def turn(self, chunks: list[tuple[int, bytes]]) -> None:
        """One more turn; the innocent client is answered in it."""
        self.turns += 1
        self.innocent.lines.clear()
        self.play._once(TurnInputs(chunks=[*chunks, (self.innocent.conn, b"PING\r\n")]))
        assert b"PONG" in self.innocent.lines

    def finish(self, sender: PlayClient) -> None:
        """Turns until a ping behind everything is answered."""
        sender.lines.clear()
        chunks = [(sender.conn, b"PING\r\n")]
        while b"PONG" not in sender.lines:
            self.turn(chunks)
            chunks = []
            assert self.turns < 1000


def subscriptions(flood: Flood) -> int:
    return sum(len(session.subscriptions) for session in flood.play.node.sessions)


def test_a_storm_of_subscriptions_is_carried_out_in_turns_and_in_order() -> None:
    flood = Flood()
    before = subscriptions(flood)
    flood.send(b"".join(b"SUB s.%d %d\r\n" % (n, n + 9000) for n in range(10_000)))
    assert 0 < subscriptions(flood) - before <= UNITS
    flood.finish(flood.sender)
    assert subscriptions(flood) - before == 10_000
    assert flood.turns >= 3


def test_many_senders_share_a_turn() -> None:
    flood = Flood(users=16)
    before = subscriptions(flood)
    flood.send(b"".join(b"SUB s.%d %d\r\n" % (n, n + 9000) for n in range(1000)))
    assert subscriptions(flood) - before <= UNITS
    for sender in flood.senders:
        flood.finish(sender)
    assert subscriptions(flood) - before == 16_000


def test_changing_a_large_group_costs_what_it_takes_to_look_at_its_members() -> None:
    flood = Flood()
    flood.sender.send(b"".join(b"SUB g q %d\r\n" % (n + 9000) for n in range(1000)))
    churn = b"".join(
        b"PUB g 0\r\n\r\nUNSUB %d\r\nSUB g q %d\r\n" % (n + 9000, n + 9000) for n in range(600)
    )
    flood.turns = 0
    flood.send(churn)
    flood.finish(flood.sender)
    assert flood.turns > 600 * 1000 // 32 // UNITS
    assert sum(session.out_messages for session in flood.play.node.sessions) >= 600


def told_apart(flood: Flood) -> Flood:
    """Somebody listens to one subject of the stream, so that each is looked up."""
    flood.sender.send(b"SUB S.none 9\r\n")
    return flood


def test_publishes_to_new_subjects_are_cut_and_all_of_them_stored() -> None:
    flood = told_apart(Flood("S"))
    flood.send(b"".join(b"PUB S.%d 1\r\nx\r\n" % n for n in range(20_000)))
    flood.finish(flood.sender)
    assert flood.turns >= 4
    flood.play.turn()
    assert flood.sender.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 20_000


def test_a_run_to_many_subscribers_is_cut_by_what_it_delivers() -> None:
    flood = Flood()
    flood.play.node.sessions._effort.turn_units_max = units = 128
    receiver = flood.play.connect("a")
    receiver.send(b"".join(b"SUB f %d\r\n" % (n + 9000) for n in range(100)))
    receiver.messages.clear()
    # Two have something to do, the pinging one among them, and share the turn.
    flood.turn([(flood.sender.conn, b"PUB f 1\r\nx\r\n" * 100)])
    assert 0 < len(receiver.messages) <= units // 2 * 32
    flood.finish(flood.sender)
    assert len(receiver.messages) == 10_000


def test_plain_publishes_to_one_subject_are_never_cut() -> None:
    flood = Flood("S")
    flood.sender.send(b"SUB f 9\r\n")
    flood.sender.messages.clear()
    flood.send(b"PUB f 1\r\nx\r\n" * 20_000)
    assert len(flood.sender.messages) == 20_000


def test_new_subjects_that_nobody_tells_apart_cost_no_more_than_one() -> None:
    flood = Flood("S")
    flood.send(b"".join(b"PUB S.%d 1\r\nx\r\n" % n for n in range(20_000)))
    flood.finish(flood.sender)
    assert flood.turns == 2
    flood.play.turn()
    assert flood.sender.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 20_000


def test_what_a_client_sent_before_it_went_is_carried_out() -> None:
    flood = told_apart(Flood("S"))
    data = b"".join(b"PUB S.%d 1\r\nx\r\n" % n for n in range(10_000))
    conn = flood.sender.conn
    flood.play._once(TurnInputs(chunks=[(conn, data)], closed=[(conn, "Client Closed")]))
    assert flood.play.node.sessions.get(conn) is not None
    flood.play.turn()
    assert flood.play.node.sessions.get(conn) is None
    other = flood.play.connect("a")
    assert other.ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 10_000


def test_who_has_input_left_is_not_read() -> None:
    flood = Flood()
    data = b"".join(b"SUB s.%d %d\r\n" % (n, n + 9000) for n in range(6000))
    outputs = flood.play.node.turn(
        TurnInputs(chunks=[(flood.sender.conn, data)]), flood.play.now_ns
    )
    assert outputs.pauses == [flood.sender.conn]
    assert flood.play.node.unfinished
    due_ns = flood.play.node.settle(flood.play.now_ns)
    assert due_ns is not None and due_ns <= flood.play.now_ns
    outputs = flood.play.node.turn(TurnInputs(), flood.play.now_ns)
    assert outputs.resumes == [flood.sender.conn]


def test_everybody_has_a_least_share() -> None:
    effort = Effort(100, 10)
    effort.begin(50)
    effort.next()
    assert effort.left == 10
