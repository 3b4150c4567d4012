"""Cases with the traffic of users: many sizes, subjects, headers, ids and connections.

Each case proves that nothing was left out: deliveries are counted to the byte, what a stream took
is asked of the stream.
"""

import selectors
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.cases import STREAM, make_bucket, make_stream
from benchmarks.figure import Figure, Stopwatch
from benchmarks.traffic import POOL, Message, buffers, mixed, repeated
from benchmarks.wire import Address, Wire, now

PREFIX = "bench.mixed"
OVERLAPPING = (
    b"bench.>",
    b"bench.mixed.>",
    b"bench.*.>",
    b"bench.*.*.*",
    b"*.mixed.>",
    b"*.*.*.*",
    b"*.*.>",
    b"bench.mixed.*.*",
)
MEMBERS = 4
WINDOW = 4_096
LOOP_S = 60.0
KEYS = 1_000
ACROSS_S = 0.5
"""How long interest may take to reach another server."""


# Core messages


def to_subscribers(
    at: Address,
    count: int,
    patterns: Sequence[bytes],
    *,
    queue: bytes = b"",
    headers: bool = False,
    across: Address | None = None,
) -> Figure:
    """From one connection to one more for each pattern; published messages a second.

    All patterns match all messages; the members of a queue group share them. Without patterns
    nobody listens. Who listens does so at another server, `across` a route, if there is one.
    """
    receivers = [Wire(across or at) for _ in patterns]
    for wire, pattern in zip(receivers, patterns, strict=True):
        wire.send(b"SUB %s %s 1\r\n" % (pattern, queue))
        wire.flush()
    if across is not None:
        time.sleep(ACROSS_S)
    pool = mixed(PREFIX, POOL, headers=headers)
    chunks = list(buffers(repeated(pool, count)))
    expected = sum(len(message.delivered(b"1")) for message in repeated(pool, count))
    copies = min(len(patterns), 1) if queue else len(patterns)
    sender = Wire(at)

    def send() -> None:
        for chunk in chunks:
            sender.send(chunk)
        sender.flush()

    thread = threading.Thread(target=send)
    watch = Stopwatch(at)
    thread.start()
    _read_all(receivers, expected * copies)
    thread.join()
    figure = watch.rate(count)
    for wire in (sender, *receivers):
        wire.close()
    return figure


def _read_all(wires: Sequence[Wire], wanted: int) -> None:
    """Read `wanted` bytes from all connections together, and not one more."""
    with selectors.DefaultSelector() as selector:
        for wire in wires:
            selector.register(wire.socket, selectors.EVENT_READ, wire)
        got = 0
        while got < wanted:
            for key, _ in selector.select(LOOP_S):
                got += len(key.data.receive().replace(b"PING\r\n", b""))
        if got != wanted:
            raise RuntimeError(f"{got - wanted} bytes more than were published")


# One request in flight on each of many connections


def closed_loop(at: Address, messages: Sequence[Sequence[bytes]], expect: bytes) -> Figure:
    """A connection for each list; each sends its next message when the last one is answered.

    Answers come to `_INBOX.<number of the connection>`, and hold `expect`.
    """
    wires = [Wire(at) for _ in messages]
    left = [iter(one) for one in messages]
    for number, wire in enumerate(wires):
        wire.send(b"SUB _INBOX.%d 1\r\n" % number)
        wire.flush()
    with selectors.DefaultSelector() as selector:
        for number, wire in enumerate(wires):
            selector.register(wire.socket, selectors.EVENT_READ, number)
        partial = [b""] * len(wires)
        watch = Stopwatch(at)
        for wire, some in zip(wires, left, strict=True):
            wire.send(next(some))
        running = len(wires)
        while running:
            ready = selector.select(LOOP_S)
            if not ready:
                raise RuntimeError(f"{running} connections wait for an answer")
            for key, _ in ready:
                number = key.data
                running -= _answered(wires[number], number, partial, left[number], expect)
        figure = watch.rate(sum(len(one) for one in messages))
    for wire in wires:
        wire.close()
    return figure


def _answered(
    wire: Wire, number: int, partial: list[bytes], left: Iterator[bytes], expect: bytes
) -> int:
    """Take what came; 1 when that was the last answer of this connection."""
    data = (partial[number] + wire.receive()).replace(b"PING\r\n", b"")
    if data.count(b"\r\n") < 2 or not data.endswith(b"\r\n"):
        partial[number] = data
        return 0
    partial[number] = b""
    if expect not in data:
        raise RuntimeError(f"an unexpected answer: {data[:200]!r}")
    following = next(left, None)
    if following is None:
        return 1
    wire.send(following)
    return 0


def requests(at: Address, connections: int, count: int) -> Figure:
    """Requests to one responder, one in flight on each connection."""
    responder = Wire(at)
    responder.send(b"SUB %s.> 1\r\n" % PREFIX.encode())
    responder.flush()
    pool = mixed(PREFIX, count)
    asked = _shares(pool, connections, lambda number: b"_INBOX.%d" % number)

    def answer() -> None:
        rest, left = b"", count
        while left:
            lines = (rest + responder.receive()).split(b"\r\n")
            rest = lines.pop()
            replies = [line.split(b" ")[3] for line in lines if line.startswith(b"MSG ")]
            left -= len(replies)
            responder.send(b"".join([b"PUB %s 4\r\npong\r\n" % reply for reply in replies]))

    thread = threading.Thread(target=answer)
    thread.start()
    figure = closed_loop(at, asked, b"\r\npong\r\n")
    thread.join()
    responder.close()
    return figure


def _shares(
    messages: Sequence[Message], connections: int, inbox: Callable[[int], bytes]
) -> list[list[bytes]]:
    return [
        [message.published(inbox(number)) for message in messages[number::connections]]
        for number in range(connections)
    ]


# Streams


def make_mixed_stream(at: Address, replicas: int) -> None:
    """A fresh stream that takes the mixed traffic."""
    make_stream(at, replicas, subjects=[f"{PREFIX}.>"])


def stored(at: Address, stream: str = STREAM) -> int:
    """How many messages a stream holds."""
    wire = Wire(at)
    state = wire.api(f"STREAM.INFO.{stream}")["state"]
    wire.close()
    return int(state["messages"]) if isinstance(state, dict) else 0


def publish_with_ids(at: Address, count: int) -> Figure:
    """Publishes with an id each, WINDOW acknowledgements outstanding, into the stream there is."""
    before = stored(at)
    messages = mixed(PREFIX, count, ids=f"run-{before}")
    inbox = b"_INBOX.bench.ack"
    half = WINDOW // 2
    batches = [
        b"".join([message.published(inbox) for message in messages[first : first + half]])
        for first in range(0, count, half)
    ]
    wire = Wire(at)
    wire.send(b"SUB %s 1\r\n" % inbox)
    wire.flush()
    sent = acked = 0
    watch = Stopwatch(at)
    while acked < count:
        while sent - acked <= half and sent < count:
            wire.send(batches[sent // half])
            sent = min(sent + half, count)
        acked = wire.count(b'{"stream"', min(acked + 1, count), acked)
    figure = watch.rate(count)
    wire.close()
    _check_stored(at, before + count)
    return figure


def waiting_publishers(at: Address, publishers: int, count: int) -> Figure:
    """Publishers that wait for each acknowledgement, into the stream there is."""
    before = stored(at)
    shares = _shares(mixed(PREFIX, count), publishers, lambda number: b"_INBOX.%d" % number)
    figure = closed_loop(at, shares, b'"seq":')
    _check_stored(at, before + count)
    return figure


def _check_stored(at: Address, wanted: int) -> None:
    found = stored(at)
    if found != wanted:
        raise RuntimeError(f"the stream holds {found} messages instead of {wanted}")


# Key-value


def put_and_get(at: Address, replicas: int, count: int) -> tuple[Figure, Figure]:
    """One put at a time on KEYS keys, then one get at a time: p50 of each."""
    wire = Wire(at)
    make_bucket(at, "BENCH", replicas)
    wire.send(b"SUB _INBOX.kv 1\r\n")
    wire.flush()
    values = [message.payload for message in mixed("$KV.BENCH", count)]
    keys = [b"$KV.BENCH.key.%d" % (number % KEYS) for number in range(count)]
    puts = [
        Message(key, b"", value).published(b"_INBOX.kv")
        for key, value in zip(keys, values, strict=True)
    ]
    gets = [
        Message(b"$JS.API.DIRECT.GET.KV_BENCH." + key, b"", b"").published(b"_INBOX.kv")
        for key in keys
    ]
    figures = (
        _one_by_one(at, wire, puts, b"}\r\n"),
        _one_by_one(at, wire, gets, b"\r\n\r\n", lines_more=1),
    )
    wire.close()
    return figures


def _one_by_one(
    at: Address, wire: Wire, messages: Sequence[bytes], end: bytes, lines_more: int = 0
) -> Figure:
    times = []
    watch = Stopwatch(at)
    for message in messages:
        start = now()
        wire.send(message)
        answer = wire.wait_for(end)
        for _ in range(lines_more):
            answer += wire.wait_for(b"\r\n")
        times.append(now() - start)
        if b'"error"' in answer or b"NATS/1.0 4" in answer:
            raise RuntimeError(f"an unexpected answer: {answer[:200]!r}")
    return watch.latencies(times)[0]
