"""One stream with a thousand consumers: of everything, of a subject each, and of a work queue.

`python -m benchmarks crowds`. What a message costs where nearly all consumers have nothing to do
with it. Subjects come in an order drawn by chance, and each message has a token of its own.
"""

from collections.abc import Iterator
from random import Random

from benchmarks import cases, servers
from benchmarks.figure import Figure, Stopwatch
from benchmarks.servers import Kind
from benchmarks.traffic import SEED
from benchmarks.wire import Address, Wire, now

STREAM = "CROWD"
INBOX = b"_INBOX.crowd"
WINDOW = 500
"""Publishes whose acknowledgements are outstanding."""
PAYLOAD = b"x" * 128
KINDS = ("idle", "watch", "queue")


def crowds(kind: Kind, scale: int) -> dict[str, Figure]:
    """On one server; the streams and consumers are in memory."""
    consumers, messages = 1_000 // scale, 20_000 // scale
    found: dict[str, Figure] = {}
    with servers.single(kind) as broker:
        at = servers.address(broker)
        for crowd in KINDS:
            _make(at, crowd, consumers)
            if crowd == "idle":
                found["crowdidle"] = _one_by_one(at, consumers, 200)
            elif crowd == "watch":
                found["crowdwatch"] = _watched(at, consumers, messages)
            else:
                found["crowdqueue"] = _worked_off(at, consumers, messages)
    return found


def _make(at: Address, crowd: str, count: int) -> None:
    retention = "workqueue" if crowd == "queue" else "limits"
    cases.make_stream(at, 1, STREAM, subjects=["crowd.>"], storage="memory", retention=retention)
    wire = Wire(at)
    for number in range(count):
        config: dict[str, object] = {"durable_name": f"C{number}", "mem_storage": True}
        config["ack_policy"] = "none" if crowd == "watch" else "explicit"
        if crowd != "idle":
            config["filter_subject"] = f"crowd.{number}.>"
        if crowd == "watch":
            config["deliver_subject"] = f"watch.{number}"
        wire.api(
            f"CONSUMER.DURABLE.CREATE.{STREAM}.C{number}",
            {"stream_name": STREAM, "config": config},
        )
    wire.close()


def _published(consumers: int, count: int) -> Iterator[bytes]:
    chance = Random(SEED)
    for number in range(count):
        subject = b"crowd.%d.%d" % (chance.randrange(consumers), number)
        yield b"PUB %s %s %d\r\n%s\r\n" % (subject, INBOX, len(PAYLOAD), PAYLOAD)


def _one_by_one(at: Address, consumers: int, count: int) -> Figure:
    """Each publish waits for its acknowledgement: p50."""
    wire, times = Wire(at), []
    wire.send(b"SUB %s 1\r\n" % INBOX)
    wire.flush()
    watch = Stopwatch(at)
    for one in _published(consumers, count):
        start = now()
        wire.send(one)
        wire.wait_for(b'"seq":')
        times.append(now() - start)
    figure = watch.latencies(times)[0]
    wire.close()
    return figure


def _publish(wire: Wire, consumers: int, count: int) -> None:
    """All of them, with at most `WINDOW` acknowledgements outstanding."""
    messages = list(_published(consumers, count))
    wire.send(b"SUB %s 1\r\n" % INBOX)
    wire.send(b"".join(messages[:WINDOW]))
    acked, sent = 0, WINDOW
    while acked < count:
        acked = wire.count(b'"seq":', acked + 1, acked)
        wire.send(b"".join(messages[sent : acked + WINDOW]))
        sent = max(sent, acked + WINDOW)


def _watched(at: Address, consumers: int, count: int) -> Figure:
    """Until who watches has all of them: messages a second."""
    watcher, publisher = Wire(at), Wire(at)
    watcher.send(b"".join(b"SUB watch.%d %d\r\n" % (one, one + 1) for one in range(consumers)))
    watcher.flush()
    watch = Stopwatch(at)
    _publish(publisher, consumers, count)
    watcher.count(PAYLOAD, count)
    figure = watch.rate(count)
    watcher.close()
    publisher.close()
    return figure


def _worked_off(at: Address, consumers: int, count: int) -> Figure:
    """Published, pulled and acknowledged, until the stream has none left: messages a second."""
    worker, publisher = Wire(at), Wire(at)
    worker.send(b"SUB take 1\r\n")
    worker.flush()
    watch = Stopwatch(at)
    _publish(publisher, consumers, count)
    most = 4 * count // consumers + 16
    for number in range(consumers):
        subject = b"$JS.API.CONSUMER.MSG.NEXT.%s.C%d" % (STREAM.encode(), number)
        worker.send(b"PUB %s take %d\r\n%d\r\n" % (subject, len(b"%d" % most), most))
    done = 0
    while done < count:
        for word in worker.wait_for(PAYLOAD + b"\r\n").split():
            if word.startswith(b"$JS.ACK."):
                worker.send(b"PUB %s 4\r\n+ACK\r\n" % word)
                done += 1
    while _left(publisher):
        pass
    figure = watch.rate(count)
    worker.close()
    publisher.close()
    return figure


def _left(wire: Wire) -> int:
    state = wire.api(f"STREAM.INFO.{STREAM}")["state"]
    assert isinstance(state, dict)
    return int(state["messages"])
