"""What is measured. Each case takes connected servers and gives one figure."""

import statistics
import threading
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.wire import Address, Wire, chunks, now

STREAM = "BENCH"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value; `higher` says which direction is better."""

    value: float
    unit: str
    higher: bool = True


def core_publish(at: Address, count: int = 1_000_000) -> Figure:
    """Messages of 16 B nobody listens to, one connection."""
    wire = Wire(at)
    message = b"PUB bench.core 16\r\n" + b"x" * 16 + b"\r\n"
    start = now()
    for chunk in chunks(message, count):
        wire.send(chunk)
    wire.flush()
    took = now() - start
    wire.close()
    return Figure(count / took, "msg/s")


def publish_to_subscriber(at: Address, count: int = 500_000) -> Figure:
    """Messages of 128 B from one connection to another."""
    receiver, sender = Wire(at), Wire(at)
    receiver.send(b"SUB bench.one 1\r\n")
    receiver.flush()
    body = b"x" * 128
    message = b"PUB bench.one 128\r\n" + body + b"\r\n"
    expected = count * len(b"MSG bench.one 1 128\r\n" + body + b"\r\n")

    def send() -> None:
        for chunk in chunks(message, count):
            sender.send(chunk)

    thread = threading.Thread(target=send)
    start = now()
    thread.start()
    receiver.read_bytes(expected)
    took = now() - start
    thread.join()
    receiver.close()
    sender.close()
    return Figure(count / took, "msg/s")


def make_stream(at: Address, replicas: int, **extra: object) -> None:
    """A fresh file stream for the JetStream cases."""
    wire = Wire(at)
    try:
        wire.api(f"STREAM.DELETE.{STREAM}")
    except RuntimeError:
        pass
    wire.api(
        f"STREAM.CREATE.{STREAM}",
        {
            "name": STREAM,
            "subjects": ["bench.js"],
            "retention": "limits",
            "storage": "file",
            "num_replicas": replicas,
            "max_msgs": -1,
            "max_bytes": -1,
            **extra,
        },
    )
    wire.close()


def async_publish(
    at: Address, replicas: int, count: int = 100_000, window: int = 4096, fresh: bool = True
) -> Figure:
    """JetStream publishes of 128 B with up to `window` acknowledgements outstanding.

    Not `fresh`: into the stream that is there, so that its leader stays where it is.
    """
    if fresh:
        make_stream(at, replicas)
    wire = Wire(at)
    wire.send(b"SUB _INBOX.bench.ack 1\r\n")
    wire.flush()
    message = b"PUB bench.js _INBOX.bench.ack 128\r\n" + b"x" * 128 + b"\r\n"
    sent = acked = 0
    half = message * (window // 2)
    start = now()
    while acked < count:
        while sent - acked <= window // 2 and sent < count:
            wire.send(half)
            sent += window // 2
        acked = wire.count(b'{"stream"', min(acked + 1, count), acked)
    took = now() - start
    wire.close()
    return Figure(acked / took, "msg/s")


def sync_publish(
    at: Address, replicas: int, count: int = 2_000, fresh: bool = True
) -> tuple[Figure, Figure]:
    """One JetStream publish at a time: p50 and p99 of the time to the acknowledgement."""
    if fresh:
        make_stream(at, replicas)
    wire = Wire(at)
    wire.send(b"SUB _INBOX.bench.ack 1\r\n")
    wire.flush()
    message = b"PUB bench.js _INBOX.bench.ack 128\r\n" + b"x" * 128 + b"\r\n"
    times = []
    for _ in range(count):
        start = now()
        wire.send(message)
        wire.wait_for(b"}\r\n")
        times.append(now() - start)
    wire.close()
    return percentiles(times)


def pull_consume(at: Address, count: int = 100_000, batch: int = 1000) -> Figure:
    """A pull consumer reads a stream of 128 B messages, acknowledging each."""
    async_publish(at, 1, count)
    wire = Wire(at)
    wire.api(
        f"CONSUMER.CREATE.{STREAM}.C",
        {
            "stream_name": STREAM,
            "config": {
                "durable_name": "C",
                "name": "C",
                "ack_policy": "explicit",
                "deliver_policy": "all",
                "max_ack_pending": 20_000,
            },
        },
    )
    wire.send(b"SUB _INBOX.bench.pull 1\r\n")
    wire.flush()
    pull = b'{"batch":%d,"expires":30000000000}' % batch
    request = b"PUB $JS.API.CONSUMER.MSG.NEXT.%s.C _INBOX.bench.pull %d\r\n%s\r\n" % (
        STREAM.encode(),
        len(pull),
        pull,
    )
    start = now()
    wire.send(request * 2)
    got = asked = 0
    asked = 2 * batch
    rest = b""
    while got < count:
        lines = (rest + wire.receive()).split(b"\r\n")
        rest = lines.pop()
        acks = [line.split(b" ")[3] for line in lines if line.startswith(b"MSG bench.js")]
        if acks:
            got += len(acks)
            wire.send(b"".join([b"PUB %s 4\r\n+ACK\r\n" % ack for ack in acks]))
        if asked - got <= batch and asked < count:
            wire.send(request)
            asked += batch
    took = now() - start
    wire.close()
    return Figure(got / took, "msg/s")


def request_reply(at: Address, count: int = 5_000) -> Figure:
    """Round trip of a request to a responder on another connection: p50."""
    asking, answering = Wire(at), Wire(at)
    answering.send(b"SUB bench.rr 1\r\n")
    answering.flush()

    def answer() -> None:
        for _ in range(count):
            answering.wait_for(b"\r\nping\r\n")
            answering.send(b"PUB _INBOX.bench.rr 4\r\npong\r\n")

    asking.send(b"SUB _INBOX.bench.rr 1\r\n")
    asking.flush()
    thread = threading.Thread(target=answer)
    thread.start()
    times = []
    for _ in range(count):
        start = now()
        asking.send(b"PUB bench.rr _INBOX.bench.rr 4\r\nping\r\n")
        asking.wait_for(b"\r\npong\r\n")
        times.append(now() - start)
    thread.join()
    asking.close()
    answering.close()
    return percentiles(times)[0]


def percentiles(times: list[float]) -> tuple[Figure, Figure]:
    """p50 and p99 in microseconds."""
    cuts = statistics.quantiles(times, n=100)
    return (
        Figure(cuts[49] * 1e6, "us", higher=False),
        Figure(cuts[98] * 1e6, "us", higher=False),
    )


Case = Callable[[Address], Figure]
