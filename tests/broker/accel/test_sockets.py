"""Both twins of the loops over sockets: what is sent and what is not, and one look at many."""

import errno
import os
import select
import signal
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.accel import sockets
from jsctl.broker.accel.choice import compiled, interpreted, socket_loops
from jsctl.broker.accel.contract import Send, SocketLoops
from tests.support.quick import examples

Pair = tuple[socket.socket, socket.socket]
LOOPS = socket_loops()
SENDS: list[Any] = [pytest.param(sockets.send, id="pure")]
if LOOPS is not None:
    SENDS.append(pytest.param(LOOPS.send, id="compiled"))
looks = pytest.mark.skipif(LOOPS is None, reason="not built, or not for this system")
ROOM = 1 << 30


def pair(room: int = 4096) -> Pair:
    """Two ends, of which the first one takes not much before the second one reads."""
    made = socket.socketpair()
    for one in made:
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
    return made


@pytest.fixture
def pairs() -> Iterator[Callable[[int], list[Pair]]]:
    made: list[Pair] = []

    def more(count: int) -> list[Pair]:
        made.extend(pair() for _ in range(count))
        return made[-count:]

    yield more
    for both in made:
        for one in both:
            one.close()


def received(end: socket.socket) -> bytes:
    found = b""
    while True:
        try:
            some = end.recv(1 << 20)
        except BlockingIOError:
            return found
        if not some:
            return found
        found += some


# Sends


@pytest.mark.parametrize("send", SENDS)
def test_what_the_system_takes_is_sent(send: Send, pairs: Callable[[int], list[Pair]]) -> None:
    made = pairs(7)
    direct = {conn: ours.fileno() for conn, (ours, _) in enumerate(made)}
    before = dict(direct)
    writes = [(conn, b"%d" % conn) for conn in range(7)] + [(0, b"more"), (3, b"")]
    assert [*send(writes, direct)] == []
    assert direct == before
    assert [received(theirs) for _, theirs in made] == [b"0more", *[b"%d" % n for n in range(1, 7)]]


@pytest.mark.parametrize("send", SENDS)
def test_what_is_not_direct_is_left(send: Send, pairs: Callable[[int], list[Pair]]) -> None:
    ((ours, theirs),) = pairs(1)
    direct = {2: ours.fileno()}
    assert [*send([(1, b"a"), (2, b"b"), (3, b"c")], direct)] == [(1, b"a", 0), (3, b"c", 0)]
    assert received(theirs) == b"b"
    assert [*send([], direct)] == []


@pytest.mark.parametrize("send", SENDS)
def test_behind_what_is_not_taken_everything_is_left(
    send: Send, pairs: Callable[[int], list[Pair]]
) -> None:
    (ours, theirs), (other, _) = pairs(2)
    direct = {1: ours.fileno(), 2: other.fileno()}
    large = b"x" * (8 << 20)
    left = [*send([(1, large), (2, b"b"), (1, b"behind"), (1, b"it")], direct)]
    assert [(conn, data) for conn, data, _ in left] == [(1, large), (1, b"behind"), (1, b"it")]
    sent = left[0][2]
    assert 0 < sent < len(large) and [one[2] for one in left[1:]] == [0, 0]
    assert direct == {2: other.fileno()}
    assert len(received(theirs)) == sent
    direct[1] = ours.fileno()
    while not (left := [*send([(1, large)], direct)])[0][2]:
        direct[1] = ours.fileno()
    assert [*send([(1, b"c")], direct)] == [(1, b"c", 0)]


@pytest.mark.parametrize("send", SENDS)
def test_who_is_gone_ends_nothing_else(send: Send, pairs: Callable[[int], list[Pair]]) -> None:
    (ours, theirs), (other, end) = pairs(2)
    theirs.close()
    direct = {1: ours.fileno(), 2: other.fileno()}
    assert [*send([(1, b"a"), (2, b"b"), (1, b"c")], direct)] == [(1, b"a", 0), (1, b"c", 0)]
    assert direct == {2: other.fileno()}
    assert received(end) == b"b"


writes_of = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 40_000), st.booleans()), max_size=30
)


@pytest.mark.parametrize("send", SENDS)
@given(steps=writes_of)
@settings(max_examples=examples(60), deadline=None)
def test_nothing_is_lost_and_nothing_comes_twice(
    send: Send, steps: list[tuple[int, int, bool]]
) -> None:
    """Connection 3 is never direct; each step may end a batch."""
    made = [pair() for _ in range(3)]
    direct = {conn: ours.fileno() for conn, (ours, _) in enumerate(made)}
    wanted, batch = [b""] * 4, list[tuple[int, bytes]]()
    left: list[tuple[int, bytes, int]] = []
    for number, (conn, size, ends) in enumerate(steps):
        data = bytes([number % 256]) * size
        batch.append((conn, data))
        wanted[conn] += data
        if ends:
            left += send(batch, direct)
            batch = []
    left += send(batch, direct)
    for conn, (_, theirs) in enumerate(made):
        kept = b"".join([data[sent:] for one, data, sent in left if one == conn])
        assert received(theirs) + kept == wanted[conn]
        assert (conn in direct) is not any(one == conn for one, _, _ in left)
    assert b"".join([data for one, data, _ in left if one == 3]) == wanted[3]
    for both in made:
        for one in both:
            one.close()


@pytest.mark.parametrize(
    "given",
    [
        (), ([],), ((), {}), ([], []), ([1], {}), ([(1,)], {}), ([(1, "a")], {}),
        ([(1, bytearray(b"a"))], {}), ([("1", b"a")], {}), ([(1, b"a")], {1: "a"}),
        ([(1, b"a")], {1: 1 << 40}), ([(1, b"a"), (1, None)], {1: -5}), ([[1, b"a"]], {}),
    ],
)  # fmt: skip
@looks
def test_what_is_no_write_is_refused(given: tuple[Any, ...]) -> None:
    assert LOOPS is not None
    with pytest.raises((TypeError, OverflowError)):
        LOOPS.send(*given)


# Looks


class Eye:
    """Sockets that are looked at, and what was found."""

    def __init__(self, loops: SocketLoops) -> None:
        self.loops = loops
        self.epoll = select.epoll()
        self.plain: dict[int, int] = {}
        self.chunks: list[tuple[int, bytes]] = []
        self.buffer = memoryview(bytearray(16))

    def watch(self, one: socket.socket, conn: int | None, events: int = select.EPOLLIN) -> None:
        self.epoll.register(one.fileno(), events)
        if conn is not None:
            self.plain[one.fileno()] = conn

    def look(self, *, wait_ms: int = 0, room: int = ROOM) -> tuple[int, Sequence[tuple[int, int]]]:
        numbers = (self.epoll.fileno(), wait_ms)
        size, left = self.loops.look(*numbers, self.plain, self.chunks, self.buffer, 2, room)
        assert left != []
        return size, left or []


@pytest.fixture
def eye() -> Iterator[Eye]:
    assert LOOPS is not None
    made = Eye(LOOPS)
    yield made
    made.epoll.close()


@looks
def test_plain_ones_are_read_and_others_left(eye: Eye, pairs: Callable[[int], list[Pair]]) -> None:
    (plain, at_plain), (other, at_other), (quiet, _) = pairs(3)
    eye.watch(plain, 7)
    eye.watch(other, None)
    eye.watch(quiet, 8)
    at_plain.send(b"hello")
    at_other.send(b"hello")
    assert eye.look() == (5, [(other.fileno(), select.EPOLLIN)])
    assert eye.chunks == [(7, b"hello")]
    assert received(plain) == b"" and received(other) == b"hello"
    assert eye.look() == (0, [])


@looks
def test_many_come_in_some_looks_each_in_order(
    eye: Eye, pairs: Callable[[int], list[Pair]]
) -> None:
    made = pairs(20)
    for conn, (ours, theirs) in enumerate(made):
        eye.watch(ours, conn)
        theirs.send(b"%d:" % conn + b"abcdefgh" * 5)
    while eye.look()[0]:
        pass
    for conn in range(20):
        found = b"".join([data for one, data in eye.chunks if one == conn])
        assert found == b"%d:" % conn + b"abcdefgh" * 5
    assert {len(data) for _, data in eye.chunks} <= {16, 10, 11}


@looks
def test_reads_are_small_behind_what_there_is_room_for(
    eye: Eye, pairs: Callable[[int], list[Pair]]
) -> None:
    made = pairs(3)
    for conn, (ours, theirs) in enumerate(made):
        eye.watch(ours, conn)
        theirs.send(b"x" * 30)
    assert eye.look(room=17)[0] == 16 + 16 + 2
    assert eye.look(room=-5)[0] == 2 + 2 + 2


@looks
def test_an_end_is_left_behind_what_came_before_it(
    eye: Eye, pairs: Callable[[int], list[Pair]]
) -> None:
    ((ours, theirs),) = pairs(1)
    eye.watch(ours, 7)
    theirs.send(b"bye")
    theirs.shutdown(socket.SHUT_WR)
    assert eye.look() == (3, [])
    assert eye.look() == (0, [(ours.fileno(), select.EPOLLIN)])
    theirs.close()
    size, left = eye.look()
    assert (size, [fd for fd, _ in left]) == (0, [ours.fileno()])
    assert left[0][1] & select.EPOLLHUP


@looks
def test_who_may_be_written_to_as_well_is_left(
    eye: Eye, pairs: Callable[[int], list[Pair]]
) -> None:
    ((ours, theirs),) = pairs(1)
    eye.watch(ours, 7, select.EPOLLIN | select.EPOLLOUT)
    theirs.send(b"x")
    assert eye.look() == (0, [(ours.fileno(), select.EPOLLIN | select.EPOLLOUT)])
    assert not eye.chunks


@looks
def test_what_cannot_be_read_is_told_as_broken(eye: Eye) -> None:
    reading, writing = os.pipe()
    eye.epoll.register(reading, select.EPOLLIN)
    eye.plain[reading] = 7
    os.write(writing, b"no socket")
    assert eye.look() == (0, [(reading, 0)])
    os.close(reading)
    os.close(writing)


@looks
def test_who_broke_off_is_broken_or_left(eye: Eye) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with socket.create_connection(listener.getsockname()) as client:
            ours, _ = listener.accept()
            eye.watch(ours, 7)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        size, left = eye.look(wait_ms=10_000)
        assert size == 0 and [fd for fd, _ in left] == [ours.fileno()]
        assert left[0][1] == 0 or left[0][1] & select.EPOLLERR
        ours.close()


class Alarm(Exception):
    """A signal came."""


@looks
def test_signals_are_heard_while_nothing_comes(eye: Eye) -> None:
    def heard(*_: object) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, heard)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Alarm):
            eye.look(wait_ms=60_000)
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert eye.look(wait_ms=60_000) == (0, [])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@looks
def test_it_waits_for_the_time_it_is_given(eye: Eye) -> None:
    assert eye.look(wait_ms=1) == (0, [])


BUFFER = memoryview(bytearray(4))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((), TypeError),
        ((0, 0, [], [], BUFFER, 1, 1), TypeError),
        ((0, 0, {}, (), BUFFER, 1, 1), TypeError),
        (("0", 0, {}, [], BUFFER, 1, 1), TypeError),
        ((0, 1 << 31, {}, [], BUFFER, 1, 1), OverflowError),
        ((-1, 0, {}, [], BUFFER, 1, "1"), TypeError),
        ((-1, 0, {}, [], b"read only", 1, 1), BufferError),
        ((-1, 0, {}, [], BUFFER, 5, 1), ValueError),
        ((-1, 0, {}, [], BUFFER, 0, 1), ValueError),
        ((-1, 0, {}, [], memoryview(bytearray()), 1, 1), ValueError),
        ((-1, 0, {}, [], BUFFER, 1, 1), OSError),
    ],
)
@looks
def test_what_is_no_look_is_refused(given: tuple[Any, ...], error: type[Exception]) -> None:
    assert LOOPS is not None
    with pytest.raises(error):
        LOOPS.look(*given)


@looks
def test_what_is_looked_at_has_to_be_there(eye: Eye) -> None:
    eye.epoll.close()
    assert LOOPS is not None
    with pytest.raises(OSError) as caught:
        LOOPS.look(1 << 20, 0, {}, [], BUFFER, 1, 1)
    assert caught.value.errno == errno.EBADF


def test_the_reference_reads_what_is_there(pairs: Callable[[int], list[Pair]]) -> None:
    ((ours, theirs),) = pairs(1)
    buffer = memoryview(bytearray(4))
    assert sockets.read(ours.fileno(), buffer) == 0
    theirs.send(b"hello")
    assert (sockets.read(ours.fileno(), buffer), bytes(buffer)) == (4, b"hell")
    assert (sockets.read(ours.fileno(), buffer), bytes(buffer[:1])) == (1, b"o")
    theirs.close()
    assert sockets.read(ours.fileno(), buffer) == sockets.ENDED
    assert sockets.read(-1, buffer) == sockets.BROKEN


def test_there_are_loops_where_the_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSCTL_PURE", "1")
    assert socket_loops() is None
    monkeypatch.setenv("JSCTL_PURE", "0")
    assert (socket_loops() is None) is (compiled() is None or LOOPS is None)
    assert interpreted().name == "pure"
