"""What is measured. Each case takes connected servers and gives one figure."""

import itertools
import re
import threading

from benchmarks.figure import Figure, Stopwatch
from benchmarks.wire import Address, Wire, chunks, now

STREAM = "BENCH"
ACKS = re.compile(rb"MSG bench\.\S+ \S+ (\S+) ")
"""Where messages are acknowledged; payloads have nothing that looks like it."""
_runs = itertools.count()


def core_publish(at: Address, count: int = 1_000_000) -> Figure:
    """Messages of 16 B nobody listens to, one connection."""
    wire = Wire(at)
    message = b"PUB bench.core 16\r\n" + b"x" * 16 + b"\r\n"
    watch = Stopwatch(at)
    for chunk in chunks(message, count):
        wire.send(chunk)
    wire.flush()
    figure = watch.rate(count)
    wire.close()
    return figure


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
    watch = Stopwatch(at)
    thread.start()
    receiver.read_bytes(expected)
    figure = watch.rate(count)
    thread.join()
    receiver.close()
    sender.close()
    return figure


def make_stream(at: Address, replicas: int, name: str = STREAM, **extra: object) -> None:
    """A fresh file stream for the JetStream cases."""
    wire = Wire(at)
    try:
        wire.api(f"STREAM.DELETE.{name}")
    except RuntimeError:
        pass
    wire.api(
        f"STREAM.CREATE.{name}",
        {
            "name": name,
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


def make_bucket(at: Address, name: str, replicas: int = 1) -> None:
    """A fresh key-value bucket with one value for each key."""
    make_stream(
        at,
        replicas,
        name=f"KV_{name}",
        subjects=[f"$KV.{name}.>"],
        max_msgs_per_subject=1,
        discard="new",
        allow_direct=True,
        allow_rollup_hdrs=True,
        deny_delete=True,
    )


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
    watch = Stopwatch(at)
    while acked < count:
        while sent - acked <= window // 2 and sent < count:
            wire.send(half)
            sent += window // 2
        acked = wire.count(b'{"stream"', min(acked + 1, count), acked)
    figure = watch.rate(acked)
    wire.close()
    return figure


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
    watch = Stopwatch(at)
    for _ in range(count):
        start = now()
        wire.send(message)
        wire.wait_for(b"}\r\n")
        times.append(now() - start)
    figures = watch.latencies(times)
    wire.close()
    return figures


def pull_consume(at: Address, count: int = 100_000) -> Figure:
    """A pull consumer reads a stream of 128 B messages, acknowledging each."""
    async_publish(at, 1, count)
    return consume(at, count)


def consume(at: Address, count: int, batch: int = 1000) -> Figure:
    """A new consumer pulls the first `count` messages of the stream, and acknowledges each."""
    # A name of its own: nats-server may still be removing the last one's files.
    name = f"C{next(_runs)}"
    wire = Wire(at)
    wire.api(
        f"CONSUMER.CREATE.{STREAM}.{name}",
        {
            "stream_name": STREAM,
            "config": {
                "durable_name": name,
                "name": name,
                "ack_policy": "explicit",
                "deliver_policy": "all",
                "max_ack_pending": 20_000,
            },
        },
    )
    wire.send(b"SUB _INBOX.bench.pull 1\r\n")
    wire.flush()
    pull = b'{"batch":%d,"expires":30000000000}' % batch
    request = b"PUB $JS.API.CONSUMER.MSG.NEXT.%s.%s _INBOX.bench.pull %d\r\n%s\r\n" % (
        STREAM.encode(),
        name.encode(),
        len(pull),
        pull,
    )
    watch = Stopwatch(at)
    wire.send(request * 2)
    got = asked = 0
    asked = 2 * batch
    rest = b""
    while got < count:
        data = rest + wire.receive()
        end = data.rfind(b"\r\n") + 2
        rest = data[end:]
        # Without steps for each message, of which this client has fewer to spare than servers have.
        acks = ACKS.findall(data, 0, end)
        if acks:
            got += len(acks)
            wire.send(b"PUB %s 4\r\n+ACK\r\n" % b" 4\r\n+ACK\r\nPUB ".join(acks))
        if asked - got <= batch and asked < count:
            wire.send(request)
            asked += batch
    figure = watch.rate(got)
    wire.api(f"CONSUMER.DELETE.{STREAM}.{name}")
    wire.close()
    return figure


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
    watch = Stopwatch(at)
    for _ in range(count):
        start = now()
        asking.send(b"PUB bench.rr _INBOX.bench.rr 4\r\nping\r\n")
        asking.wait_for(b"\r\npong\r\n")
        times.append(now() - start)
    figure = watch.latencies(times)[0]
    thread.join()
    asking.close()
    answering.close()
    return figure
