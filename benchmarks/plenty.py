"""A server with very much of something, beside nats-server: assets, groups, messages, keys.

    python -m benchmarks.plenty [--only assets groups messages keys] [--small]

The whole takes an hour on two cores; each part can be run alone.
"""

import re
import time
from random import Random

from benchmarks import alone, cases, growth, process, servers
from benchmarks.figure import Figure, Stopwatch, cpu_s
from benchmarks.growth import INBOX, SETTLE_S, Asking, created, idle_cpu, memory_mb, request
from benchmarks.servers import Kind
from benchmarks.traffic import SEED
from benchmarks.wire import Address, Wire, now
from jsctl.testing import Cluster

IN_FLIGHT = 50
GETS = 4_000
ASKED_AGAIN_S = 0.2
"""How long a publish to a stream without a leader waits before it is made again."""
PATIENCE_S = 300.0


def assets(kind: Kind, scale: int) -> dict[str, Figure]:
    """10,000 streams with a durable consumer each, on one server."""
    count = 10_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        streams = created(at, [growth.stream_request(n) for n in range(count)], IN_FLIGHT)
        durables = [growth.durable_request(n, b"T%d" % n) for n in range(count)]
        consumers = created(at, durables, IN_FLIGHT)
        time.sleep(4 * SETTLE_S)  # What each has to write down when it is new is written by then.
        found = {
            f"streams created, {count:,}": streams,
            f"durable consumers created, {count:,}": consumers,
            f"memory with {count:,} of both": memory_mb(broker),
            f"idle CPU with {count:,} of both": idle_cpu(broker),
        }
        broker.kill()  # nats-server needs minutes to stop with so many.
        return found


# Groups


def groups(kind: Kind, scale: int) -> dict[str, Figure]:
    """1,000 streams with three replicas; a server with a third of their leaders is killed."""
    count = 1_000 // scale
    with Cluster(3, server=kind.server, config=kind.config) as cluster:
        first, second, killed = list(cluster)
        growth_at = servers.address(first)
        servers.stream_leader(cluster)  # Until the cluster takes streams at all.
        at = Address(growth_at.host, growth_at.port, pids=tuple(one.pid for one in cluster))
        made = created(at, [_replicated(number) for number in range(count)], IN_FLIGHT)
        _all_answer(Wire(at), count)
        time.sleep(SETTLE_S)
        before, began = cpu_s(at.pids), time.perf_counter()
        time.sleep(growth.IDLE_S)
        percent = 100 * (cpu_s(at.pids) - before) / (time.perf_counter() - began)
        wire = Wire(servers.address(second))
        killed.kill()
        outage = _all_answer(wire, count)
        return {
            f"R3 streams created, {count:,}": made,
            f"idle CPU of three servers, {count:,} R3": Figure(percent, "%", higher=False),
            f"all {count:,} take messages after kill -9": Figure(outage, "s", higher=False),
        }


def _replicated(number: int) -> bytes:
    name = b"T%d" % number
    body = b'{"name":"%s","subjects":["grow.%s"],"storage":"file","num_replicas":3}' % (name, name)
    return request(b"$JS.API.STREAM.CREATE.%s" % name, body)


def _all_answer(wire: Wire, count: int) -> float:
    """Publish to each stream until it acknowledges; the seconds until the last one did."""
    waiting, began, rest = set(range(count)), now(), b""
    wire.send(b"SUB %s.* 1\r\n" % INBOX)
    wire.socket.settimeout(ASKED_AGAIN_S)
    while waiting:
        if now() - began > PATIENCE_S:
            raise RuntimeError(f"{len(waiting)} streams do not answer")
        wire.send(b"".join(b"PUB grow.T%d %s.%d 1\r\nx\r\n" % (n, INBOX, n) for n in waiting))
        asked = now()
        while waiting and now() - asked < ASKED_AGAIN_S:
            try:
                rest += wire.receive()
            except TimeoutError:
                break
            found = list(re.finditer(rb'%s\.(\d+) 1 \d+\r\n{"stream"' % INBOX, rest))
            waiting.difference_update(int(one[1]) for one in found)
            rest = rest[-200:]
    took = now() - began
    wire.close()
    return took


# Messages


def messages(kind: Kind, scale: int) -> dict[str, Figure]:
    """A stream of 10 million messages: filled, killed, started, read here and there."""
    count = 10_000_000 // scale
    with servers.single(kind) as broker:
        cases.make_stream(servers.address(broker), 1, allow_direct=True)
        filled = cases.async_publish(servers.address(broker), 1, count, 8192, fresh=False)
        broker.kill()
        began = time.perf_counter()
        broker.launch()
        while not process.has_messages(servers.address(broker), count):
            time.sleep(0.01)
        recovered = time.perf_counter() - began
        at, chance = servers.address(broker), Random(SEED)
        gets = [b'{"seq":%d}' % chance.randint(1, count) for _ in range(max(GETS // scale, 100))]
        subject = b"$JS.API.DIRECT.GET.BENCH"
        found = growth.asked(at, [request(subject, body) for body in gets])
        time.sleep(SETTLE_S)
        return {
            f"publish of {count:,} x 128 B": filled,
            "recovery after kill -9": Figure(recovered, "s", higher=False),
            "get by a random sequence p50": found,
            "memory behind them": memory_mb(broker),
        }


# Keys


def keys(kind: Kind, scale: int) -> dict[str, Figure]:
    """A bucket with a million keys: put, read by key, watched from its beginning."""
    count = 1_000_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        put = growth.puts(at, count, count)
        names = _keys(at)
        chance = Random(SEED + 1)
        subject = b"$JS.API.DIRECT.GET.KV_GROW."
        some = [chance.choice(names) for _ in range(max(GETS // scale, 100))]
        get = growth.asked(at, [request(subject + name) for name in some])
        first, every = _watch(at, len(names))
        return {
            f"puts on {count:,} keys": put,
            "get by a random key p50": get,
            "first value of a watch": first,
            f"all {len(names):,} values of a watch": every,
            "memory behind the keys": memory_mb(broker),
        }


def _keys(at: Address) -> list[bytes]:
    """Those that were drawn; each answer of the API holds a part of them."""
    found: list[bytes] = []
    asking = Asking(at)
    while True:
        body = b'{"subjects_filter":"$KV.GROW.>","offset":%d}' % len(found)
        info = asking.ask(b"$JS.API.STREAM.INFO.KV_GROW", body)
        some = re.findall(rb'"(\$KV\.GROW\.key\.\d+)":', info)
        if not some:
            asking.wire.close()
            return found
        found += some


def _watch(at: Address, count: int) -> tuple[Figure, Figure]:
    """As clients watch a bucket: until its first value came, and all of them."""
    wire = Wire(at)
    wire.send(b"SUB %s 1\r\nSUB _INBOX.watched 2\r\n" % INBOX)
    wire.flush()
    config = (
        b'{"deliver_subject":"_INBOX.watched","deliver_policy":"last_per_subject",'
        b'"ack_policy":"none","max_deliver":1,"filter_subject":"$KV.GROW.>","mem_storage":true,'
        b'"num_replicas":1,"inactive_threshold":300000000000}'
    )
    body = b'{"stream_name":"KV_GROW","config":%s}' % config
    watch = Stopwatch(at)
    began = now()
    wire.send(request(b"$JS.API.CONSUMER.CREATE.KV_GROW", body))
    came = wire.count(b"MSG $KV.GROW.key", 1)
    first = now() - began
    wire.count(b"MSG $KV.GROW.key", count, came)
    every = watch.rate(count)
    wire.close()
    return Figure(first * 1e3, "ms", higher=False), every


PARTS = {"assets": assets, "groups": groups, "messages": messages, "keys": keys}

if __name__ == "__main__":
    alone.main(__doc__, PARTS)
