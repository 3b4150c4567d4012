"""Deliveries and acks of one consumer, without network and log: messages a second."""

from time import perf_counter

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.words import AckPolicy
from jsctl.broker.jetstream.consumers.consumer import Consumer
from jsctl.broker.jetstream.consumers.defaults import with_defaults
from jsctl.broker.jetstream.consumers.leader import ConsumerLeader
from jsctl.broker.protocol.deliveries import singly
from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore

MESSAGES = 200_000
PAYLOAD = b"x" * 128
START_NS = 1_700_000_000_000_000_000


def filled() -> MemoryStore:
    """A stream of messages on ten subjects."""
    store = MemoryStore()
    for first in range(1, MESSAGES, 1000):
        seqs = range(first, first + 1000)
        rows = [(seq, START_NS, b"orders.%d" % (seq % 10), b"", PAYLOAD) for seq in seqs]
        store.append(frame_of(rows), first)
    return store


def measure(store: MemoryStore, batch: int, pulls: int, subject_filter: str = "") -> str:
    """Fetch and acknowledge everything; the rates as a line of text."""
    config = ConsumerConfig(
        durable_name="C",
        ack_policy=AckPolicy.EXPLICIT,
        max_ack_pending=-1,
        filter_subject=subject_filter,
    )
    consumer = Consumer("S", "C", with_defaults(config))
    leader = ConsumerLeader(
        consumer,
        store,
        replicated=False,
        has_interest=lambda subject: True,
        jitter=lambda n: 0,
        new_id=lambda: "ID",
        now_ns=START_NS,
    )
    payload = b'{"batch":%d,"expires":1000000000}' % (batch // pulls)
    requests = [(b"", b"_INBOX.%d" % at, b"", payload, None) for at in range(pulls)]
    got, now = 0, START_NS
    spent = [0.0, 0.0, 0.0]
    while got < MESSAGES:
        now += 1_000_000
        marks = [perf_counter()]
        made = leader.turn(now, pulls=requests)
        marks.append(perf_counter())
        acks = [(item[1], b"", b"", b"+ACK", None) for item in singly(made.publish) if item[1]]
        marks.append(perf_counter())
        acked = leader.turn(now + 10, acks=acks)
        marks.append(perf_counter())
        for turn in (made, acked):
            assert turn.entry is not None
            consumer.apply(1, turn.entry)
        marks.append(perf_counter())
        leader.committed(acked.ticket)
        got += len(acks)
        for at, first in enumerate((0, 2, 3)):
            spent[at] += marks[first + 1] - marks[first]
    rates = [
        f"{name} {got / time_s / 1000:5.0f} k/s" for name, time_s in zip(NAMES, spent, strict=True)
    ]
    return f"batch {batch:5} pulls {pulls:3} filter {subject_filter or '-':9} " + "  ".join(rates)


NAMES = ("deliver", "ack", "apply")


if __name__ == "__main__":
    stream = filled()
    for arguments in ((5000, 1), (1000, 1), (100, 1), (1, 1), (1000, 10), (1000, 1, "orders.>")):
        print(measure(stream, *arguments))
