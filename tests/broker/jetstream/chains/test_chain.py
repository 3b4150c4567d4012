"""The chain of a stream: its hashes, what stays of what is removed, and what does not fit."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.codec import dumps
from jsctl.api.stream import StreamConfig
from jsctl.broker.assets.repair.portions import read_portion
from jsctl.broker.jetstream.chains import chain as chains
from jsctl.broker.jetstream.chains.chain import BEGIN, BLOCK_SEQS, Chain, leaf_of
from jsctl.broker.jetstream.chains.chain_key import CHAIN_KEY, CHAIN_KIND
from jsctl.broker.jetstream.streams.entries import (
    Flags,
    decode,
    encode_config,
    encode_delete,
    encode_expire,
    encode_messages,
    encode_purge,
    encode_remove,
)
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.seqset import SeqSet
from tests.support.quick import examples

HOME = StreamConfig(name="S", subjects=("s.>",), metadata={CHAIN_KEY: CHAIN_KIND})


def made(**config: Any) -> Stream:
    return Stream("A", replace(HOME, **config), 5, MemoryStore())


def config_entry(stream: Stream, revision: int = 1, **more: Any) -> bytes:
    return encode_config(revision, dumps(replace(stream.config, **more)))


def apply(stream: Stream, entry: bytes) -> None:
    stream.apply(stream.applied + 1, decode(entry))


def begun(**config: Any) -> Stream:
    stream = made(**config)
    apply(stream, config_entry(stream))
    return stream


def store(stream: Stream, first: int, count: int, flags: int = 0, headers: bytes = b"") -> None:
    rows = [(first + at, 10, b"s.%d" % (at % 3), headers, b"m%d" % at) for at in range(count)]
    apply(stream, encode_messages(rows, flags))


def chain_of(stream: Stream) -> Chain:
    found = stream.chained.settled(stream.applied)
    assert found is not None
    return found


def raws(stream: Stream) -> dict[int, bytes]:
    seqs = stream.store.live_seqs(1, stream.store.last_seq, 1 << 20)
    return dict(zip(seqs, stream.store.read_raw(seqs), strict=True)) if seqs else {}


def broken(stream: Stream, found: dict[int, bytes] | None = None) -> list[tuple[int, str]]:
    messages = raws(stream) if found is None else found
    return chain_of(stream).breaks(1, stream.store.last_seq, messages, 8)


def test_hashes_are_what_the_page_says() -> None:
    stream = begun()
    store(stream, 1, 2)
    link = bytes(32)
    for raw in raws(stream).values():
        leaf = sha256(b"\0" + raw[4:]).digest()
        link = sha256(b"\1" + link + leaf).digest()
    chain = chain_of(stream)
    assert (chain.seq, chain.link) == (2, link)
    assert chain.link_at(2) == link and chain.link_at(0) == BEGIN
    assert chain.link_at(3) == b""


def test_without_the_key_there_is_none_and_snapshots_are_as_before() -> None:
    stream = begun(metadata={})
    store(stream, 1, 3)
    assert stream.chained.chain is None
    assert stream.snapshot()[0] == 4
    apply(stream, config_entry(stream, 2, metadata=HOME.metadata))
    store(stream, 4, 2)
    chain = chain_of(stream)
    assert (chain.since, chain.seq, chain.count) == (3, 5, 2)
    assert broken(stream) == []
    apply(stream, config_entry(stream, 3, metadata={}))
    assert stream.chained.chain is None


REMOVALS = {
    "delete": encode_delete(4, True),
    "consumed": encode_remove([2, 5, 6]),
    "purge": encode_purge(b"", 6, 0),
    "purge of a subject": encode_purge(b"s.1", 9, 1),
    "expiry": encode_expire(5, 100),
    "all": encode_purge(b"", 10, 0),
}


@pytest.mark.parametrize("name", REMOVALS)
def test_what_goes_leaves_its_hash(name: str) -> None:
    stream, whole = begun(), begun()
    for one in (stream, whole):
        store(one, 1, 10)
    apply(stream, REMOVALS[name])
    apply(whole, encode_expire(0, 1))
    assert len(raws(stream)) < 10
    for one in (stream, whole):
        store(one, 11, 3)
        assert broken(one) == []
    assert chain_of(stream).link == chain_of(whole).link


def test_limits_and_rollups_leave_theirs() -> None:
    stream = begun(max_msgs_per_subject=2, max_msgs=5)
    store(stream, 1, 9)
    store(stream, 10, 1, Flags.ROLLUPS, b"NATS/1.0\r\nNats-Rollup: all\r\n\r\n")
    assert list(raws(stream)) == [10]
    assert broken(stream) == []


def changed(raw: bytes) -> bytes:
    return raw[:-1] + bytes([raw[-1] ^ 1])


def test_what_was_changed_is_named() -> None:
    stream = begun()
    store(stream, 1, 10)
    found = raws(stream)
    assert broken(stream, found | {7: changed(found[7])}) == [(7, "the message was changed")]
    swapped = found | {3: found[8], 8: found[3]}
    assert [seq for seq, _ in broken(stream, swapped)] == [3, 8]
    assert broken(stream, found | {11: found[9]})[0] == (11, "the message was put in")


def test_a_leaf_that_was_changed_too_does_not_fit_the_links() -> None:
    stream = begun()
    store(stream, 1, 10)
    found = raws(stream)
    found[7] = changed(found[7])
    block = chain_of(stream).blocks[0]
    leaves = bytearray(block.leaves)
    leaves[6 * 32 : 7 * 32] = leaf_of(found[7])
    block.leaves = leaves
    assert broken(stream, found) == [(1, "the chain's own hashes do not fit")]


def test_blocks_go_when_their_messages_are_gone() -> None:
    stream = begun()
    store(stream, 1, 3 * BLOCK_SEQS)
    before = chain_of(stream)
    links = [before.link_at(seq) for seq in (BLOCK_SEQS - 1, 2 * BLOCK_SEQS - 1, 2 * BLOCK_SEQS)]
    apply(stream, encode_purge(b"", 2 * BLOCK_SEQS, 0))
    chain = chain_of(stream)
    assert chain.anchor_seq == 2 * BLOCK_SEQS - 1
    assert chain.link_at(BLOCK_SEQS - 1) == b""
    assert [chain.link_at(2 * BLOCK_SEQS - 1), chain.link_at(2 * BLOCK_SEQS)] == links[1:]
    assert broken(stream) == []
    assert chain.count == BLOCK_SEQS + 1


def test_there_are_only_so_many_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "LEAVES_MAX", 2 * BLOCK_SEQS)
    stream = begun()
    store(stream, 1, 3 * BLOCK_SEQS)
    chain = chain_of(stream)
    assert chain.count <= 2 * BLOCK_SEQS
    assert chain.anchor_seq == 2 * BLOCK_SEQS - 1
    assert broken(stream) == []


def test_blocks_go_as_others_come() -> None:
    stream = begun(max_msgs=10)
    for number in range(4):
        store(stream, 1 + number * BLOCK_SEQS, BLOCK_SEQS)
    assert stream.chained.chain is not None
    assert len(stream.chained.chain.blocks) == 3


ENTRIES = st.lists(
    st.one_of(
        st.tuples(st.just("store"), st.integers(1, 700)),
        st.tuples(st.just("purge"), st.integers(0, 3000)),
        st.tuples(st.just("delete"), st.integers(1, 3000)),
        st.tuples(st.just("subject"), st.integers(0, 3000)),
    ),
    max_size=12,
)


@settings(max_examples=examples(40), deadline=None)
@given(ENTRIES, st.sampled_from([-1, 50, 1500]), st.integers(0, 12))
def test_a_replica_that_starts_anew_has_the_same_chain(
    plan: list[tuple[str, int]], max_msgs: int, cut: int
) -> None:
    """The state is of any moment, the store of a later one."""
    stream = begun(max_msgs=max_msgs)
    log: list[bytes] = []
    snapshot, at = stream.snapshot(), 0
    link = BEGIN
    for number, (kind, value) in enumerate(plan):
        last = stream.store.last_seq
        if kind == "store":
            rows = [(last + 1 + n, 10, b"s.%d" % (n % 3), b"", b"%d" % n) for n in range(value)]
            log.append(encode_messages(rows))
        elif kind == "delete":
            log.append(encode_delete(value, True))
        else:
            log.append(encode_purge(b"s.1" if kind == "subject" else b"", min(value, last), 0))
        apply(stream, log[-1])
        if kind == "store":
            # What is stored counts, whatever limits remove at once.
            others = begun()
            apply(others, log[-1])
            for raw in raws(others).values():
                link = chains.link_of(link, leaf_of(raw))
        if number + 1 == cut:
            snapshot, at = stream.snapshot(), number + 1
    chain = chain_of(stream)
    assert broken(stream) == []
    assert chain.link == link
    again = Stream("A", stream.config, 5, stream.store)
    again.restore(snapshot)
    again.chained.started()
    for entry in log[at:]:
        apply(again, entry)
    other = chain_of(again)
    assert not other.missing
    shown = [(one.seq, one.link, one.anchor_seq, one.anchor, one.count) for one in (chain, other)]
    assert shown[0] == shown[1]
    assert [bytes(one.leaves) for one in chain.blocks] == [
        bytes(one.leaves) for one in other.blocks
    ]
    assert again.snapshot() == stream.snapshot()


def started(stream: Stream, snapshot: bytes, *log: bytes) -> Stream:
    """After a restart with the same messages, and entries that are applied once more."""
    again = Stream("A", stream.config, 5, stream.store)
    again.restore(snapshot)
    again.chained.started()
    for entry in log:
        apply(again, entry)
    return again


def test_what_is_missing_at_a_start_is_a_break_that_stays() -> None:
    stream = begun()
    store(stream, 1, 10)
    apply(stream, encode_delete(3, True))
    snapshot = stream.snapshot()
    rows = [(11, 10, b"s.1", b"", b"x")]
    apply(stream, encode_messages(rows))
    apply(stream, encode_delete(5, True))
    stream.store.remove((7, 8), stream.store.mark)
    again = started(stream, snapshot, encode_messages(rows), encode_delete(5, True))
    assert broken(again) == [(7, "the message is missing")]
    store(again, 12, 2)
    once_more = started(again, again.snapshot())
    assert broken(once_more) == [(7, "the message is missing")]


def test_a_removed_message_that_is_back_is_a_break() -> None:
    stream = begun()
    store(stream, 1, 10)
    apply(stream, encode_delete(3, True))
    stream.chained.restore(b"".join(stream.chained.snapshot(stream.applied)), 0)
    chain = stream.chained.chain
    assert chain is not None
    chain.started()
    chain.settle(SeqSet())
    assert broken(stream) == [(3, "the message was removed, and is back")]
    assert broken(started(stream, stream.snapshot()))[0][0] == 3


def test_at_the_front_and_at_the_end_it_is_a_break_too() -> None:
    for gone in ((1, 2), (9, 10)):
        stream = begun()
        store(stream, 1, 10)
        snapshot = stream.snapshot()
        stream.store.remove(gone, stream.store.mark)
        assert broken(started(stream, snapshot)) == [(gone[0], "the message is missing")]


@pytest.mark.parametrize("limit", ["max_msgs", "max_bytes", "max_msgs_per_subject"])
def test_what_a_new_limit_removed_is_not_missing_when_that_is_applied_once_more(
    limit: str,
) -> None:
    stream = begun()
    store(stream, 1, 10)
    snapshot = stream.snapshot()
    entry = config_entry(stream, 2, **{limit: 1})
    apply(stream, entry)
    assert stream.store.messages < 10
    assert broken(started(stream, snapshot, entry)) == []


def test_a_state_that_is_written_while_a_start_catches_up_tells_what_is_gone_alone() -> None:
    """With a limit every message may be the one that an entry removed."""
    stream = begun(max_msgs=8)
    store(stream, 1, 10)
    snapshot, log = stream.snapshot(), list[bytes]()
    for seq in range(11, 14):
        log.append(encode_messages([(seq, 10, b"s.1", b"", b"x")]))
        apply(stream, log[-1])
    again = started(stream, snapshot, log[0])
    again = started(stream, again.snapshot(), *log[1:])
    assert broken(again) == []
    snapshot = again.snapshot()
    stream.store.remove((12,), stream.store.mark)
    again = started(stream, snapshot)
    assert broken(again) == [(12, "the message is missing")]


def test_few_messages_among_many_that_are_gone_are_looked_at_in_pieces() -> None:
    stream = begun()
    for number in range(12):
        store(stream, 1 + number * BLOCK_SEQS, BLOCK_SEQS)
    last = stream.store.last_seq
    apply(stream, encode_remove(list(range(2, last))))
    assert len(raws(stream)) == 2
    first, seen = 1, list[tuple[int, int]]()
    while first <= last:
        made = read_portion(stream, first, last, 1 << 20, chained=True)
        seen.append((made.up_to + 1 - first, made.count))
        assert (made.link, made.breaks) == (chain_of(stream).link_at(made.up_to), [])
        first = made.up_to + 1
    assert sum(count for _, count in seen) == 2
    assert max(size for size, _ in seen) <= chains.BLOCKS_AT_ONCE * BLOCK_SEQS


def test_what_is_removed_is_looked_at_behind_a_start_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question would cost as much as there are holes in the stream."""
    stream = begun()
    store(stream, 1, 10)
    apply(stream, encode_remove([2, 4]))
    again, looks = started(stream, stream.snapshot()), list[SeqSet]()
    deleted = again.store.deleted

    def noted() -> SeqSet:
        looks.append(deleted())
        return looks[-1]

    monkeypatch.setattr(again.store, "deleted", noted)
    for _ in range(3):
        chain_of(again)
    assert len(looks) == 1
