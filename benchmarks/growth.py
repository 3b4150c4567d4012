"""Cases in which there is much of something: streams, consumers, connections, messages, keys.

What a server spends on one more of them, and what those that are there cost while nothing is done
with them.
"""

import resource
import selectors
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from benchmarks import cases, servers
from benchmarks.crowds import crowds
from benchmarks.figure import Figure, Stopwatch, cpu_s
from benchmarks.floods import floods
from benchmarks.servers import Kind
from benchmarks.traffic import SEED
from benchmarks.wire import Address, Wire, now
from jsctl.testing import Broker

STREAM = "GROW"
INBOX = b"_INBOX.growth"
SETTLE_S = 5.0
"""Before a server counts as idle: what was begun is finished by then."""
IDLE_S = 10.0
PING_S = 30
"""Each client is pinged about once while the CPU of idle ones is taken."""
PINGS = 400
KEY = b"$KV.GROW.key.%d"


class Asking:
    """One connection that asks and counts what is answered."""

    def __init__(self, at: Address) -> None:
        self.wire = Wire(at)
        self.wire.send(b"SUB %s 1\r\n" % INBOX)
        self.wire.flush()

    def ask(self, subject: bytes, body: bytes = b"") -> bytes:
        """The answer, headers included. RuntimeError if it is an error."""
        self.wire.send(request(subject, body))
        return self.answer()

    def answer(self) -> bytes:
        """The next one."""
        words = self.wire.wait_for(b"\r\n").split()
        while words[0] not in (b"MSG", b"HMSG"):
            words = self.wire.wait_for(b"\r\n").split()
        size, found = int(words[-1]) + 2, b""
        while len(found) < size:
            found += self.wire.receive()
        self.wire.give_back(found[size:])
        if b'"error"' in found[:300] or found.startswith(b"NATS/1.0 4"):
            raise RuntimeError(f"an unexpected answer: {found[:300]!r}")
        return found[: size - 2]

    def ask_all(self, requests: Sequence[bytes], in_flight: int) -> None:
        """Have so many of them open at a time until all are answered."""
        for asked in requests[:in_flight]:
            self.wire.send(asked)
        for asked in requests[in_flight:]:
            self.answer()
            self.wire.send(asked)
        for _ in requests[-in_flight:]:
            self.answer()


def request(subject: bytes, body: bytes = b"") -> bytes:
    """A request as it is sent."""
    return b"PUB %s %s %d\r\n%s\r\n" % (subject, INBOX, len(body), body)


# Made one after the other


def stream_request(number: int) -> bytes:
    """For a stream of its own subject."""
    name = b"T%d" % number
    body = b'{"name":"%s","subjects":["grow.%s"],"storage":"file"}' % (name, name)
    return request(b"$JS.API.STREAM.CREATE.%s" % name, body)


def durable_request(number: int, stream: bytes = STREAM.encode()) -> bytes:
    """For a pull consumer whose state is kept in files."""
    name = b"D%d" % number
    config = b'{"durable_name":"%s","name":"%s","ack_policy":"explicit"}' % (name, name)
    body = b'{"stream_name":"%s","action":"create","config":%s}' % (stream, config)
    return request(b"$JS.API.CONSUMER.CREATE.%s.%s" % (stream, name), body)


def watch_request(number: int) -> bytes:
    """For what readers of buckets and ordered consumers make: in memory, to an inbox."""
    name = b"W%d" % number
    config = (
        b'{"name":"%s","deliver_subject":"_INBOX.watch.%s","ack_policy":"none","max_deliver":1,'
        b'"flow_control":true,"idle_heartbeat":5000000000,"mem_storage":true,"num_replicas":1,'
        b'"inactive_threshold":300000000000}'
    ) % (name, name)
    body = b'{"stream_name":"GROW","action":"create","config":%s}' % config
    subscribe = b"SUB _INBOX.watch.%s w%d\r\n" % (name, number)
    return subscribe + request(b"$JS.API.CONSUMER.CREATE.GROW.%s" % name, body)


def created(at: Address, requests: Sequence[bytes], in_flight: int = 1) -> Figure:
    """How many a second are answered."""
    asking = Asking(at)
    watch = Stopwatch(at)
    asking.ask_all(requests, in_flight)
    figure = watch.rate(len(requests))
    asking.wire.close()
    return Figure(figure.value, "/s", cpu_us=figure.cpu_us)


def creations(kind: Kind, scale: int) -> dict[str, Figure]:
    """Streams and consumers made on a server that has few."""
    count = 1_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        cases.make_stream(at, 1, STREAM, subjects=["grow.it"])
        ranges = [range(start, start + count) for start in range(0, 2 * count, count)]
        return {
            "durables": created(
                at, [durable_request(number) for number in ranges[0]][: count // 2]
            ),
            "watches": created(at, [watch_request(number) for number in ranges[0]][: count // 2]),
            "streams": created(at, [stream_request(number) for number in ranges[0]]),
            "streams50": created(at, [stream_request(number) for number in ranges[1]], 50),
        }


# Messages and keys


def memory_mb(broker: Broker) -> Figure:
    """What is resident."""
    pages = int(Path(f"/proc/{broker.pid}/statm").read_text().split()[1])
    return Figure(pages * resource.getpagesize() / 1e6, "MB", higher=False)


def messages(kind: Kind, scale: int) -> dict[str, Figure]:
    """Memory behind many messages, and single ones read by their sequence."""
    few, many = 1_000_000 // scale, 5_000_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        cases.make_stream(at, 1, allow_direct=True)
        cases.async_publish(at, 1, few, fresh=False)
        time.sleep(SETTLE_S)
        found = {"memory1": memory_mb(broker)}
        cases.async_publish(at, 1, many - few, fresh=False)
        time.sleep(SETTLE_S)
        found["memory5"] = memory_mb(broker)
        last = few
        chance = Random(SEED)
        bodies = [b'{"seq":%d}' % chance.randint(1, last) for _ in range(4_000 // scale)]
        subject = b"$JS.API.DIRECT.GET.BENCH"
        found["byseq"] = asked(at, [request(subject, body) for body in bodies])
        return found


def asked(at: Address, requests: Sequence[bytes]) -> Figure:
    """One after the other: p50."""
    asking, times = Asking(at), []
    watch = Stopwatch(at)
    for one in requests:
        start = now()
        asking.wire.send(one)
        asking.answer()
        times.append(now() - start)
    figure = watch.latencies(times)[0]
    asking.wire.close()
    return figure


def puts(at: Address, count: int, keys: int, window: int = 4096) -> Figure:
    """Values of 128 B, with up to `window` acknowledgements outstanding, on random keys."""
    cases.make_bucket(at, "GROW")
    chance, value = Random(SEED), b"x" * 128
    wire = Wire(at)
    wire.send(b"SUB %s 1\r\n" % INBOX)
    wire.flush()
    half, head = window // 2, b"PUB " + KEY + b" " + INBOX + b" 128\r\n%s\r\n"
    batches = [
        b"".join(head % (chance.randrange(keys), value) for _ in range(min(half, count - start)))
        for start in range(0, count, half)
    ]
    sent = acked = 0
    watch = Stopwatch(at)
    while acked < count:
        while sent - acked <= half and sent < count:
            wire.send(batches[sent // half])
            sent = min(sent + half, count)
        acked = wire.count(b'"seq":', min(acked + 1, count), acked)
    figure = watch.rate(count)
    wire.close()
    return figure


def buckets(kind: Kind, scale: int) -> dict[str, Figure]:
    """Puts on many keys, and values read by key."""
    count = 1_000_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        found = {
            "puts1m": puts(at, count, 1_000_000 // scale),
            "puts200k": puts(at, count, 200_000 // scale),
        }
        chance, subject = Random(SEED + 1), b"$JS.API.DIRECT.GET.KV_GROW."
        info = Asking(at).ask(b"$JS.API.STREAM.INFO.KV_GROW", b'{"subjects_filter":">"}')
        keys = [name for name in info.split(b'"') if name.startswith(b"$KV.GROW.key")]
        some = [chance.choice(keys) for _ in range(4_000 // scale)]
        found["bykey"] = asked(at, [request(subject + key) for key in some])
        return found


# What is there, and idle


def idle_cpu(broker: Broker, seconds: float = IDLE_S) -> Figure:
    """Percent of one CPU."""
    before, began = cpu_s((broker.pid,)), time.perf_counter()
    time.sleep(seconds)
    spent = cpu_s((broker.pid,)) - before
    return Figure(100 * spent / (time.perf_counter() - began), "%", higher=False)


def assets(kind: Kind, scale: int) -> dict[str, Figure]:
    """Streams with a consumer each: their CPU when idle, and the server's stop and start."""
    count = 1_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        asking = Asking(at)
        asking.ask_all([stream_request(number) for number in range(count)], 50)
        asking.ask_all([durable_request(n, b"T%d" % n) for n in range(count)], 50)
        asking.wire.close()
        time.sleep(SETTLE_S)
        found = {"idleassets": idle_cpu(broker)}
        began = time.perf_counter()
        broker.stop()
        found["stop"] = _seconds(began)
        began = time.perf_counter()
        broker.launch()
        while not _serves(broker, count):
            time.sleep(0.01)
        found["start"] = _seconds(began)
        return found


def _seconds(began: float) -> Figure:
    return Figure(time.perf_counter() - began, "s", higher=False)


def _serves(broker: Broker, count: int) -> bool:
    """Whether the last stream and its consumer are answered for."""
    try:
        asking = Asking(servers.address(broker))
    except OSError:
        return False
    name = b"%d" % (count - 1)
    try:
        asking.wire.socket.settimeout(1.0)
        asking.ask(b"$JS.API.CONSUMER.INFO.T%s.D%s" % (name, name))
    except (OSError, RuntimeError):
        return False
    finally:
        asking.wire.close()
    return True


@contextmanager
def _connected(at: Address, count: int) -> Iterator[None]:
    """Have so many clients that say only that they are there when they are asked."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    ended = threading.Event()
    with selectors.DefaultSelector() as selector:

        def answer() -> None:
            while not ended.is_set():
                for key, _ in selector.select(0.1):
                    if b"PING" in key.data.receive():
                        key.data.send(b"PONG\r\n")

        for _ in range(count):
            wire = Wire(at)
            selector.register(wire.socket, selectors.EVENT_READ, wire)
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            for key in list(selector.get_map().values()):
                key.data.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def connections(kind: Kind, scale: int) -> dict[str, Figure]:
    """Clients that do nothing, and one among them that asks whether the server is there."""
    pinging = replace(kind, config=kind.config + f'ping_interval: "{PING_S}s"\n')
    with servers.single(pinging) as broker:
        at = servers.address(broker)
        with _connected(at, 5_000 // scale):
            time.sleep(SETTLE_S)
            found = {"idleclients": idle_cpu(broker, PING_S)}
            wire, times = Wire(at), []
            watch = Stopwatch(at)
            for _ in range(PINGS):
                start = now()
                wire.flush()
                times.append(now() - start)
            found["ping"] = watch.latencies(times)[0]
            wire.close()
            return found


PARTS = {
    "creation": creations,
    "messages": messages,
    "buckets": buckets,
    "assets": assets,
    "connections": connections,
    "crowds": crowds,
    "floods": floods,
}
ROWS: tuple[tuple[str, str, float], ...] = (
    ("durable consumers, one after the other", "durables", 0.0),
    ("watches, one after the other", "watches", 0.0),
    ("streams, one after the other", "streams", 0.0),
    ("streams, 50 requests in flight", "streams50", 0.0),
    ("memory behind 1 M messages of 128 B", "memory1", 0.0),
    ("memory behind 5 M messages of 128 B", "memory5", 0.0),
    ("get by a random sequence p50", "byseq", 0.0),
    ("get by a random key p50", "bykey", 0.0),
    ("puts on 200,000 keys", "puts200k", 0.0),
    ("puts on 1,000,000 keys", "puts1m", 0.0),
    ("idle CPU, 1,000 streams with a consumer", "idleassets", 0.0),
    ("stop with 1,000 streams", "stop", 0.0),
    ("start with 1,000 streams", "start", 0.0),
    ("idle CPU, 5,000 connections", "idleclients", 0.0),
    ("PING among 5,000 connections p50", "ping", 0.0),
    ("publish, 1,000 idle consumers p50", "crowdidle", 0.0),
    ("1,000 watches of a subject each", "crowdwatch", 0.0),
    ("work queue, 1,000 subjects and consumers", "crowdqueue", 0.0),
    ("PING beside lists of 500 streams, longest", "floodlist", 0.0),
    ("PING beside 50,000 subjects told, longest", "floodsubjects", 0.0),
    ("PING beside messages of a pattern, longest", "floodlast", 0.0),
    ("PING beside direct gets of a pattern, longest", "flooddirect", 0.0),
    ("PING beside publishes that expect, longest", "floodexpect", 0.0),
)
