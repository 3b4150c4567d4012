"""What clients have begun and not finished: who may hold it, how much, and who lets go of it."""

import tracemalloc

import pytest

from jsctl.broker.options import AuthOptions, Options, UserOptions
from jsctl.broker.protocol.intake import Intake
from jsctl.broker.routing.limits import RoutingLimits
from jsctl.broker.sessions.unfinished import TOO_MUCH
from tests.broker.routing.routing_bench import QUIET, Server

LIMIT = 10_000
BEGUN = QUIET % b"" + b"PUB a 5000\r\n"


def server() -> Server:
    return Server(limits=RoutingLimits(unfinished_bytes_max=LIMIT))


def begin(there: Server, conn: int, size: int, host: str = "1.2.3.4") -> None:
    """A client says so many bytes of a payload."""
    there.now_ns += 1
    there.open(conn, BEGUN + b"x" * size, host)


def test_a_closed_client_holds_nothing() -> None:
    there = Server()
    there.open(1, QUIET % b"" + b"pub a 1\r\n.\r\n" + b"PUB b 1000000\r\n" + b"x" * 500_000)
    session = there.sessions.get(1)
    assert session is not None
    assert session.intake.size > 500_000
    assert session.heads, "the loop leaves small letters alone"
    assert session.plans and session.fans
    there.sessions.gone(1, "Client Closed")
    assert there.sessions.closed[-1] is session
    assert (session.intake.size, session.heads, session.plans) == (0, {}, {})
    assert session.fans is None


def test_the_silent_ones_of_whoever_holds_the_most_close() -> None:
    there = server()
    begin(there, 1, 500, "victim")
    for conn in range(2, 7):
        begin(there, conn, 1700, "flood")
    assert not there.closes
    there.say(2, b"x" * 10)
    begin(there, 7, 1000, "victim")
    # A quarter of the limit is free again; 2 has just said something, 3 and 4 are silent longest.
    assert there.closes == {3: TOO_MUCH, 4: TOO_MUCH}
    assert there.heard(3) == b"-ERR 'Too Much Unfinished Input'\r\n"
    there.say(1, b"x" * 4500 + b"\r\nPING\r\n")
    assert there.heard(1) == b"PONG\r\n"


def test_equals_let_go_alike() -> None:
    there = server()
    for conn in range(1, 13):
        begin(there, conn, 990, f"host {conn % 3}")
    left = [
        sum(1 for one in there.sessions if one.remote.remote_host == f"host {n}") for n in (0, 1)
    ]
    assert len(there.closes) >= 3
    assert abs(left[0] - left[1]) <= 1


def test_what_was_finished_or_closed_counts_no_more() -> None:
    there = server()
    for conn in range(1, 50):
        begin(there, conn, 4990)
        if conn % 2:
            there.say(conn, b"x" * 10 + b"\r\n")
        there.sessions.gone(conn, "Client Closed")
    assert not there.closes


def test_the_edge_hears_that_much_was_let_go() -> None:
    there = Server()
    begun = QUIET % b"" + b"PUB a 1048576\r\n" + b"x" * 1_000_000
    for conn in range(1, 30):
        there.open(conn, begun)
    told = [there.last.relieved]
    for conn in range(1, 30):
        there.sessions.gone(conn, "Client Closed")
    for _ in range(2):
        there.emit()
        told.append(there.last.relieved)
    assert told == [False, True, False]


@pytest.mark.parametrize(
    "said", [b"P", b"PUB a 5\r\nhe", b"PUB a 5\r\n", b"HPUB a 5 9\r\n", b"\r\n"]
)
def test_a_stranger_begins_nothing(said: bytes) -> None:
    there = Server(Options(auth=AuthOptions(users=(UserOptions("ann", "pw"),))))
    there.open(1, said)
    assert there.closes == {1: "Authentication Failure"}
    assert there.heard(1) == b"-ERR 'Authorization Violation'\r\n"


def test_whoever_waits_for_a_password_check_is_not_read() -> None:
    hashed = "$2a$04$0Qn5b9AeHgKyBmMmvmM0heZQYl0pBQ5MfQkYLYtMbOQQzTRTLbWiW"
    there = Server(Options(auth=AuthOptions(users=(UserOptions("ann", hashed),))))
    there.open(1, b'CONNECT {"verbose":false,"user":"ann","pass":"x"}\r\n')
    assert (there.last.pauses, there.last.resumes) == ([1], [])
    there.sessions.verified(1, True)
    there.emit()
    assert (there.last.pauses, there.last.resumes) == ([], [1])


def test_long_lines_are_not_cached() -> None:
    there = Server()
    there.client(1)
    for number in range(100):
        there.say(1, b"PUB %d.%s 1\r\n.\r\n" % (number, b"x" * 3000))
    session = there.sessions.get(1)
    assert session is not None
    assert (session.heads, session.plans) == ({}, {})


def test_small_pieces_take_little_more_than_their_size() -> None:
    size = 200_000
    intake = Intake()
    intake.keep(b"PUB a %d\r\n" % size, size)
    pieces = [bytes([65 + n % 26, 48 + n % 10]) for n in range(260)]
    tracemalloc.start()
    for number in range(size // 2 - 20):
        assert intake.gather(pieces[number % 260]) is None
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2 * size
    joined = intake.gather(b"x" * 100)
    assert joined is not None
    assert joined[14:18] == b"A0B1"
    assert len(joined) >= size
