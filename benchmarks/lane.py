"""How fast one core takes publishes from bytes to bytes: parse, match, write, no socket.

    python benchmarks/lane.py

Prints millions of messages per second, best of several rounds, for chunks as the edge gives them.
"""

import time
from collections.abc import Callable
from itertools import count

from jsctl.broker.accounts.accounts import Accounts
from jsctl.broker.interest.targets import Sink
from jsctl.broker.options import Options
from jsctl.broker.routing.limits import RoutingLimits, ServerIdentity
from jsctl.broker.routing.router import Router
from jsctl.broker.sessions.sessions import Sessions
from jsctl.broker.turn import Accepted, ConnKind, TurnOutputs

CHUNK_BYTES = 128 * 1024
ROUNDS = 15
CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"protocol":1}\r\nPING\r\n'
PUBLISHER, SUBSCRIBER = 1, 2


class Bench:
    """A router with one publisher and one other client."""

    def __init__(self) -> None:
        accounts = Accounts(Options())
        limits = RoutingLimits()
        self.router = Router(accounts, limits, lambda n: 0)
        self.sessions = Sessions(self.router, ServerIdentity("N", "n"), limits)
        self.sink = Sink()
        for conn in (PUBLISHER, SUBSCRIBER):
            self.sessions.accept(Accepted(conn, ConnKind.CLIENT, "h", 1), 0)
            self.sessions.feed(conn, CONNECT, 0)
        self.sessions.emit(TurnOutputs())

    def capture(self, pattern: bytes) -> None:
        """Have a sink take what is published on `pattern`."""
        self.router.subscribe(self.router.accounts.default, pattern, self.sink)

    def turn(self, chunk: bytes) -> None:
        """One turn with one chunk of the publisher."""
        self.sessions.feed(PUBLISHER, chunk, 1)
        for sink in self.router.take_dirty():
            sink.take()
        self.sessions.emit(TurnOutputs())


def rate(bench: Bench, message: Callable[[int], bytes]) -> float:
    """Messages per second through `bench`, best round."""
    size = CHUNK_BYTES // len(message(0))
    best = 1e9
    for _ in range(ROUNDS):
        chunk = b"".join([message(number) for number in range(size)])
        start = time.perf_counter()
        bench.turn(chunk)
        best = min(best, time.perf_counter() - start)
    return size / best


def plain(size: int) -> Callable[[int], bytes]:
    """The same control line every time."""
    line = b"PUB foo.bar %d\r\n%s\r\n" % (size, b"x" * size)
    return lambda number: line


def replies(size: int) -> Callable[[int], bytes]:
    """A new reply every time, as JetStream clients publish."""
    line = b"PUB foo.bar _INBOX.abcdefghijklmnopqrstuv.%06d %d\r\n%s\r\n"
    return lambda number: line % (number, size, b"x" * size)


def headers(size: int) -> Callable[[int], bytes]:
    """With a message id, as deduplicated publishes have it."""
    line = b"HPUB foo.bar _INBOX.abc.%06d 33 %d\r\nNATS/1.0\r\nNats-Msg-Id: %06d\r\n\r\n%s\r\n"
    return lambda number: line % (number, size + 33, number, b"x" * size)


def subjects(size: int) -> Callable[[int], bytes]:
    """A hundred subjects in turn."""
    line = b"PUB foo.%02d %d\r\n%s\r\n"
    return lambda number: line % (number % 100, size, b"x" * size)


def news(size: int) -> Callable[[int], bytes]:
    """A subject that never came before, as acknowledgements have it."""
    line, counter = b"PUB foo.%08d %d\r\n%s\r\n", count()
    return lambda number: line % (next(counter), size, b"x" * size)


def mixed(size: int) -> Callable[[int], bytes]:
    """Sizes that change with every message."""
    return lambda number: (
        b"PUB foo.bar %d\r\n%s\r\n"
        % (
            size + number % 50,
            b"x" * (size + number % 50),
        )
    )


SHAPES: list[tuple[str, Callable[[int], bytes]]] = [
    ("same line, 16 B", plain(16)),
    ("same line, 128 B", plain(128)),
    ("new reply each, 128 B", replies(128)),
    ("headers and new reply, 128 B", headers(128)),
    ("100 subjects, 128 B", subjects(128)),
    ("sizes 128 to 177 B", mixed(128)),
    ("new subject each, 128 B", news(128)),
]


def main() -> None:
    """Print the table."""
    print(f"{'M msgs/s':32}{'no interest':>14}{'subscriber':>14}{'sink':>14}")
    for name, message in SHAPES:
        nobody, client, sink = Bench(), Bench(), Bench()
        client.sessions.feed(SUBSCRIBER, b"SUB foo.* 1\r\n", 1)
        sink.capture(b"foo.*")
        rates = [rate(bench, message) / 1e6 for bench in (nobody, client, sink)]
        print(f"{name:32}" + "".join(f"{one:14.2f}" for one in rates))


if __name__ == "__main__":
    main()
