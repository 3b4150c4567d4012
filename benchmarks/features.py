"""What streams can do besides storing, beside nats-server: copies, batches, counters, archives.

python -m benchmarks.features [--only copies batches counters archives] [--small]
"""

import json
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from benchmarks import alone, cases, process, servers
from benchmarks.figure import Figure, Stopwatch
from benchmarks.servers import Kind
from benchmarks.wire import Address, Wire, now

INBOX = b"_INBOX.features"
BODY = b"x" * 128
BATCH = 100
"""Messages in an atomic batch."""
BATCHES_OPEN = 16
COUNTERS = 1_000
WINDOW = 4096
CHUNKS_OPEN = 8
PATIENCE_S = 600.0


def copies(kind: Kind, scale: int) -> dict[str, Figure]:
    """A stream that is there, taken over by a mirror, and by a stream that sources it."""
    count = 500_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        cases.async_publish(at, 1, count)
        return {
            "mirror of a stream, 128 B": _copied(at, count, mirror={"name": "BENCH"}),
            "source of a stream, 128 B": _copied(at, count, sources=[{"name": "BENCH"}]),
        }


def _copied(at: Address, count: int, **origin: object) -> Figure:
    wire = Wire(at)
    watch, end = Stopwatch(at), now() + PATIENCE_S
    wire.api("STREAM.CREATE.COPY", {"name": "COPY", "storage": "file", **origin})
    while True:
        state = wire.api("STREAM.INFO.COPY")["state"]
        assert isinstance(state, dict)
        if state["messages"] >= count:
            break
        if now() > end:
            raise RuntimeError(f"only {state['messages']} of {count} messages came")
        time.sleep(0.02)
    figure = watch.rate(count)
    wire.api("STREAM.DELETE.COPY")
    wire.close()
    return figure


# Publishes with headers


def batches(kind: Kind, scale: int) -> dict[str, Figure]:
    """Atomic batches, up to 16 of them without an answer; each is answered once."""
    count = 2_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        cases.make_stream(at, 1, allow_atomic=True)
        watch, all_of_them = Stopwatch(at), (_batch(number) for number in range(count))
        _answered(at, all_of_them, count, BATCHES_OPEN)
        return {f"atomic batches of {BATCH} x 128 B": watch.rate(count * BATCH)}


def _batch(number: int) -> bytes:
    parts = []
    for sequence in range(1, BATCH + 1):
        head = b"Nats-Batch-Id: b%d\r\nNats-Batch-Sequence: %d\r\n" % (number, sequence)
        if sequence < BATCH:
            parts.append(_with_headers(b"bench.js", head, BODY))
        else:
            last = head + b"Nats-Batch-Commit: 1\r\n"
            parts.append(_with_headers(b"bench.js " + INBOX, last, BODY))
    return b"".join(parts)


def _with_headers(to: bytes, lines: bytes, body: bytes = b"") -> bytes:
    block = b"NATS/1.0\r\n" + lines + b"\r\n"
    return b"HPUB %s %d %d\r\n%s%s\r\n" % (to, len(block), len(block) + len(body), block, body)


def counters(kind: Kind, scale: int) -> dict[str, Figure]:
    """Increments of 1,000 counters in turn, each answered with its value."""
    count = 200_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        cases.make_stream(at, 1, subjects=["count.*"], allow_msg_counter=True, allow_direct=True)
        round_of_them = [
            _with_headers(b"count.%d %s" % (number, INBOX), b"Nats-Incr: 1\r\n")
            for number in range(COUNTERS)
        ]
        watch = Stopwatch(at)
        _answered(at, (round_of_them[n % COUNTERS] for n in range(count)), count, WINDOW)
        return {"increments of counters": watch.rate(count)}


def _answered(at: Address, sent: Iterable[bytes], count: int, window: int) -> None:
    """Send all, with up to `window` answers outstanding. RuntimeError for one that refuses."""
    wire = Wire(at)
    wire.send(b"SUB %s 1\r\n" % INBOX)
    some, open_, answered, tail = iter(sent), 0, 0, b""
    portion = max(window // 2, 1)
    while answered < count:
        while open_ - answered <= window - portion and open_ < count:
            part = list(islice(some, min(portion, count - open_)))
            wire.send(b"".join(part))
            open_ += len(part)
        data = tail + wire.receive()
        if b'"error"' in data:
            raise RuntimeError(f"refused: {data[:300]!r}")
        answered += data.count(b'{"stream"')
        tail = data[data.rfind(b"\n") + 1 :]
        tail = b"" if b'{"stream"' in tail else tail[-256:]
    wire.close()


# Archives


def archives(kind: Kind, scale: int) -> dict[str, Figure]:
    """A stream sent as an archive, and made again from it; chunks are kept in memory here."""
    count = 1_000_000 // scale
    with servers.single(kind) as broker:
        at = servers.address(broker)
        cases.async_publish(at, 1, count, 8192)
        wire = Wire(at)
        watch = Stopwatch(at)
        answer, chunks = _taken(at, wire)
        backup = watch.rate(count)
        wire.api("STREAM.DELETE.BENCH")
        watch = Stopwatch(at)
        _restore(at, wire, answer, chunks)
        assert process.has_messages(at, count)
        restore = watch.rate(count)
        wire.close()
        return {"backup of a stream, 128 B": backup, "restore of a stream, 128 B": restore}


def _taken(at: Address, wire: Wire) -> tuple[dict[str, object], list[bytes]]:
    """The answer to the request, and the chunks."""
    receiver = Wire(at)
    receiver.send(b"SUB _INBOX.chunks 1\r\n")
    receiver.flush()
    asked = {"deliver_subject": "_INBOX.chunks", "no_consumers": True, "chunk_size": 128 << 10}
    answer = wire.api("STREAM.SNAPSHOT.BENCH", asked)
    chunks: list[bytes] = []
    for reply, payload in _arriving(receiver):
        if not payload:
            receiver.close()
            return answer, chunks
        chunks.append(payload)
        receiver.send(b"PUB %s 0\r\n\r\n" % reply)
    raise AssertionError("the archive has no end")


def _arriving(wire: Wire) -> Iterator[tuple[bytes, bytes]]:
    """Messages as (reply, payload without headers)."""
    while True:
        words = wire.wait_for(b"\r\n").split()
        if words[0] not in (b"MSG", b"HMSG"):
            continue
        sizes = 2 if words[0] == b"HMSG" else 1
        size, parts = int(words[-1]) + 2, b""
        while len(parts) < size:
            parts += wire.receive()
        wire.give_back(parts[size:])
        reply = words[3] if len(words) == 4 + sizes else b""
        head = int(words[-2]) if sizes == 2 else 0
        yield reply, parts[head : size - 2]


def _restore(at: Address, wire: Wire, answer: dict[str, object], chunks: list[bytes]) -> None:
    """Send an archive. RuntimeError if it is refused."""
    body = {"config": answer["config"], "state": answer["state"]}
    to = str(wire.api("STREAM.RESTORE.BENCH", body)["deliver_subject"]).encode()
    sender = Wire(at)
    sender.send(b"SUB %s 1\r\n" % INBOX)
    arriving, open_ = _arriving(sender), 0
    for chunk in [*chunks, b""]:
        sender.send(b"PUB %s %s %d\r\n%s\r\n" % (to, INBOX, len(chunk), chunk))
        open_ += 1
        while open_ >= (CHUNKS_OPEN if chunk else 1):
            _, told = next(arriving)
            open_ -= 1
            if told and "error" in json.loads(told):
                raise RuntimeError(f"the restore is refused: {told!r}")
    sender.close()


PARTS = {"copies": copies, "batches": batches, "counters": counters, "archives": archives}

if __name__ == "__main__":
    alone.main(__doc__, PARTS)
