"""A stream whose log lost its end knows by its messages what it needs."""

from typing import Any

from jsctl.api.stream import StreamConfig
from jsctl.broker.jetstream.streams.entries import Flags, decode, encode_messages
from jsctl.broker.jetstream.streams.recall import recall
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.record import Row

WINDOW_NS = 1_000
CONFIG: dict[str, Any] = {
    "name": "S",
    "subjects": ("s.>",),
    "duplicate_window": WINDOW_NS,
    "allow_msg_ttl": True,
    "metadata": {"jsctl.chain": "sha256"},
}


def row(seq: int) -> Row:
    """A message with an id and a time to live."""
    headers = b"NATS/1.0\r\nNats-Msg-Id: %d\r\nNats-TTL: 5s\r\n\r\n" % seq
    return seq, seq * 100, b"s.x", headers, b"data %d" % seq


def add(stream: Stream, seq: int) -> None:
    """As an entry of the log."""
    stream.apply(seq, decode(encode_messages([row(seq)], Flags.IDS | Flags.TTLS)))


def streams(known: int, stored: int) -> tuple[Stream, Stream]:
    """One whose state stands before its store, as a start finds it, and what it was."""
    whole = Stream("A", StreamConfig(**CONFIG), 5, MemoryStore())
    whole.chained.configured(0, whole.config)
    for seq in range(1, known + 1):
        add(whole, seq)
    snapshot = whole.snapshot()
    for seq in range(known + 1, stored + 1):
        add(whole, seq)
    behind = Stream("A", StreamConfig(**CONFIG), 5, whole.store)
    behind.restore(snapshot)
    return behind, whole


def test_what_the_log_would_have_brought() -> None:
    behind, whole = streams(3, 40)
    assert behind.dedupe.snapshot() != whole.dedupe.snapshot()
    recall(behind)
    assert behind.dedupe.snapshot() == whole.dedupe.snapshot()
    assert behind.ttls.snapshot() == whole.ttls.snapshot()
    assert behind.last_msg_id == whole.last_msg_id == b"40"
    mine, theirs = behind.chained.chain, whole.chained.chain
    assert mine is not None and theirs is not None
    assert (mine.seq, mine.link) == (theirs.seq, theirs.link)


def test_nothing_is_taken_twice() -> None:
    behind, whole = streams(0, 7)
    recall(behind)
    recall(behind)
    assert behind.dedupe.snapshot() == whole.dedupe.snapshot()
    assert behind.ttls.snapshot() == whole.ttls.snapshot()


def test_who_is_abreast_learns_nothing() -> None:
    behind, whole = streams(7, 7)
    recall(behind)
    assert behind.snapshot() == whole.snapshot()


def test_what_is_never_to_expire_is_known_without_times_to_live() -> None:
    config = StreamConfig(**{**CONFIG, "allow_msg_ttl": False})
    whole = Stream("A", config, 5, MemoryStore())
    before = whole.snapshot()
    rows: list[Row] = [
        (seq, seq * 100, b"s.x", b"NATS/1.0\r\nNats-TTL: %b\r\n\r\n" % ttl, b"")
        for seq, ttl in ((1, b"never"), (2, b"5s"))
    ]
    whole.apply(1, decode(encode_messages(rows, Flags.NEVERS)))
    assert whole.ttls.never == {1} and whole.ttls.next_due_ns() is None
    behind = Stream("A", config, 5, whole.store)
    behind.restore(before)
    recall(behind)
    assert behind.ttls.snapshot() == whole.ttls.snapshot()
