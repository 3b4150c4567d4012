"""A stream's state machine: storing, limits, removal, snapshots, replay."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.api.codec import dumps
from jsctl.api.stream import StreamConfig
from jsctl.api.words import Discard
from jsctl.broker.jetstream.streams.entries import (
    Flags,
    decode,
    encode_begin,
    encode_config,
    encode_delete,
    encode_expire,
    encode_messages,
    encode_purge,
    encode_remove,
    encode_sourced,
    make_messages,
)
from jsctl.broker.jetstream.streams.positions import SourcePosition
from jsctl.broker.jetstream.streams.stream import Stream
from jsctl.broker.store.memory_store import MemoryStore
from tests.support.quick import examples

POSITIONS = {"O > >": SourcePosition(7, "I")}


def _stream(**config: object) -> Stream:
    made = StreamConfig(name="S", subjects=("s.>",), duplicate_window=1000)
    return Stream("A", replace(made, **config), 5, MemoryStore())  # type: ignore[arg-type]


def _entry(
    first: int, *subjects: bytes, headers: bytes = b"", time_ns: int = 10, flags: int = 0
) -> bytes:
    rows = [(first + at, time_ns, one, headers, b"data") for at, one in enumerate(subjects)]
    return encode_messages(rows, flags)


def apply(stream: Stream, index: int, entry: bytes) -> int:
    return stream.apply(index, decode(entry))


def _seqs(stream: Stream) -> list[int]:
    return [row[0] for row in stream.store.load_range(1, 1000)]


@pytest.mark.parametrize(
    "entry",
    [
        _entry(1, b"a"),
        encode_messages([(3, 5, b"s", b"", b"x")], Flags.IDS, [3, 2**63]),
        encode_expire(7, -1),
        encode_delete(9, True),
        encode_remove([1, 2, 3]),
        encode_remove([]),
        encode_purge(b"a.*", 5, 2),
        encode_config(3, b"{}"),
        make_messages([(3, 5, b"s", b"", b"x")], 0, [3], POSITIONS).frame.buffer,
        encode_sourced(POSITIONS),
        encode_begin(9),
    ],
)
def test_entries_decode_to_what_they_were_made_of(entry: bytes) -> None:
    encoders = {
        "Messages": lambda one: (
            make_messages(one.frame.records, one.flags, one.skipped, one.positions).frame.buffer
        ),
        "Sourced": lambda one: encode_sourced(one.positions),
        "Begin": lambda one: encode_begin(one.first),
        "Expire": lambda one: encode_expire(one.up_to, one.now_ns),
        "Delete": lambda one: encode_delete(one.seq, one.erase),
        "RemoveMessages": lambda one: encode_remove(one.seqs),
        "Purge": lambda one: encode_purge(one.filter, one.up_to, one.keep),
        "Config": lambda one: encode_config(one.revision, one.config),
    }
    decoded = decode(entry)
    assert encoders[type(decoded).__name__](decoded) == entry


def test_messages_are_stored_and_counted() -> None:
    stream = _stream()
    state = stream.info_state()
    assert (state.first_seq, state.last_seq, state.first_ts) == (0, 0, "0001-01-01T00:00:00Z")
    assert apply(stream, 1, _entry(1, b"s.a", b"s.b", b"s.a")) == 3
    total, subjects = stream.subjects_page(b"s.*")
    state = stream.info_state(subjects=subjects, consumers=2)
    assert (state.messages, state.first_seq, state.last_seq) == (3, 1, 3)
    assert (state.subjects, state.num_subjects) == ({"s.a": 2, "s.b": 1}, 2)
    assert state.consumer_count == 2
    assert total == 2 and stream.subjects_page(b"s.*", 1) == (2, {"s.b": 1})
    assert stream.subjects_page(b"s.*", 9) == (2, {})


def test_replay_below_the_stores_mark_changes_only_memory() -> None:
    stream = _stream(max_msgs=2)
    log = [_entry(1, b"s.a", b"s.b"), _entry(3, b"s.a"), encode_purge(b"", 3, 1)]
    for index, entry in enumerate(log, start=1):
        apply(stream, index, entry)
    digest, state = stream.store.digest(), stream.store.state()
    again = Stream("A", stream.config, 5, stream.store)
    for index, entry in enumerate(log, start=1):
        apply(again, index, entry)
    assert (again.store.digest(), again.store.state()) == (digest, state)


@pytest.mark.parametrize(
    ("config", "left"),
    [
        ({"max_msgs": 2}, [4, 5]),
        ({"max_msgs_per_subject": 1}, [4, 5]),
        ({"max_msgs": 2, "discard": Discard.NEW}, [1, 2, 3, 4, 5]),
        ({"max_msgs_per_subject": 2, "discard": Discard.NEW}, [2, 3, 4, 5]),
        (
            {
                "max_msgs_per_subject": 1,
                "discard": Discard.NEW,
                "discard_new_per_subject": True,
            },
            [1, 2, 3, 4, 5],
        ),
    ],
)
def test_limits_remove_the_oldest(config: dict[str, object], left: list[int]) -> None:
    stream = _stream(**config)
    apply(stream, 1, _entry(1, b"s.a", b"s.b", b"s.a", b"s.b", b"s.a"))
    assert _seqs(stream) == left
    plain = _stream()
    apply(plain, 1, _entry(1, b"s.a", b"s.b", b"s.a", b"s.b", b"s.a"))
    changed = replace(plain.config, **config)  # type: ignore[arg-type]
    assert apply(plain, 2, encode_config(4, dumps(changed))) == 4
    assert (plain.revision, _seqs(plain)) == (4, left)


def test_bytes_are_limited_to_whole_messages() -> None:
    probe = _stream()
    apply(probe, 1, _entry(1, b"s.a"))
    one = probe.store.size_bytes
    stream = _stream(max_bytes=2 * one + 1)
    apply(stream, 1, _entry(1, b"s.a", b"s.b", b"s.c", b"s.d"))
    assert _seqs(stream) == [3, 4]


def test_removals() -> None:
    stream = _stream()
    apply(stream, 1, _entry(1, *[b"s.%d" % (seq % 2) for seq in range(1, 9)]))
    assert apply(stream, 2, encode_delete(2, True)) == 1
    assert apply(stream, 3, encode_delete(2, True)) == 0
    assert apply(stream, 4, encode_remove([1, 2, 4])) == 2
    assert stream.info_state(deleted_details=True).first_seq == 3
    assert apply(stream, 5, encode_purge(b"s.1", 5, 1)) == 2
    assert _seqs(stream) == [6, 7, 8]
    assert apply(stream, 6, encode_expire(6, 99)) == 1
    assert apply(stream, 7, encode_purge(b"", 8, 0)) == 2
    state = stream.info_state()
    assert (state.messages, state.first_seq, state.last_seq) == (0, 9, 8)


def test_deleted_details_name_the_holes() -> None:
    stream = _stream()
    apply(stream, 1, _entry(1, *[b"s.a"] * 6))
    apply(stream, 2, encode_remove([2, 3, 5]))
    state = stream.info_state(deleted_details=True)
    assert (state.deleted, state.num_deleted) == ((2, 3, 5), 3)


def test_skipped_sequences_are_used_up() -> None:
    stream = _stream()
    rows = [(1, 5, b"s.a", b"", b""), (2, 5, b"s.b", b"", b"x")]
    assert apply(stream, 1, encode_messages(rows, 0, [1])) == 1
    state = stream.info_state()
    assert (state.messages, state.first_seq, state.last_seq) == (1, 2, 2)


@pytest.mark.parametrize(("what", "left"), [(b"sub", [2, 4, 5]), (b"all", [4, 5])])
def test_rollups_remove_what_they_roll_up(what: bytes, left: list[int]) -> None:
    stream = _stream()
    apply(stream, 1, _entry(1, b"s.a", b"s.b", b"s.a"))
    headers = b"NATS/1.0\r\nNats-Rollup: " + what + b"\r\n\r\n"
    apply(stream, 2, _entry(4, b"s.a", headers=headers, flags=Flags.ROLLUPS))
    apply(stream, 3, _entry(5, b"s.a"))
    assert _seqs(stream) == left


def test_messages_that_never_expire_outlive_max_age() -> None:
    stream = _stream(allow_msg_ttl=True)
    headers = b"NATS/1.0\r\nNats-TTL: never\r\n\r\n"
    apply(stream, 1, _entry(1, b"s.a", headers=headers, flags=Flags.TTLS))
    apply(stream, 2, _entry(2, b"s.b", b"s.c"))
    assert apply(stream, 3, encode_expire(3, 50)) == 2
    assert _seqs(stream) == [1]


def test_first_sequence_of_the_config() -> None:
    stream = _stream(first_seq=100)
    state = stream.info_state()
    assert (state.first_seq, state.last_seq) == (100, 99)


def test_a_snapshot_brings_all_but_the_messages() -> None:
    stream = _stream(allow_msg_ttl=True)
    headers = b"NATS/1.0\r\nNats-Msg-Id: one\r\nNats-TTL: 5\r\n\r\n"
    apply(stream, 3, _entry(1, b"s.a", headers=headers, flags=Flags.IDS | Flags.TTLS))
    apply(stream, 4, encode_config(7, dumps(replace(stream.config, description="x"))))
    apply(stream, 4, encode_sourced(POSITIONS))
    other = _stream()
    other.restore(stream.snapshot())
    assert (other.applied, other.revision, other.config.description) == (4, 7, "x")
    assert other.dedupe.find(b"one", 11) == 1
    assert other.last_msg_id == b"one"
    assert other.positions == POSITIONS
    assert other.ttls.next_due_ns() == 10 + 5 * 10**9
    assert other.bounds is not None
    assert (other.bounds.first_seq, other.bounds.last_seq) == (1, 1)
    for chunk in stream.store.export_chunks():
        other.store.import_chunk(chunk)
    assert other.store.digest() == stream.store.digest()
    assert other.snapshot() == stream.snapshot()


def test_an_empty_stream_may_begin_later() -> None:
    stream = _stream()
    apply(stream, 3, encode_begin(10))
    assert (stream.store.first_seq, stream.store.last_seq) == (10, 9)
    apply(stream, 4, _entry(12, b"s.a"))
    apply(stream, 5, encode_begin(20))
    assert (_seqs(stream), stream.store.last_seq) == ([12], 12)


_PUBLISH = st.lists(st.sampled_from([b"s.a", b"s.b", b"s.c"]), min_size=1, max_size=4)
_PURGE = st.tuples(st.sampled_from([b"", b"s.a"]), st.integers(0, 3))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), _PUBLISH),
        st.tuples(st.just("remove"), st.lists(st.integers(1, 20), max_size=4)),
        st.tuples(st.just("purge"), _PURGE),
    ),
    max_size=12,
)


@settings(max_examples=examples(80), deadline=None)
@given(_STEPS, st.integers(0, 5), st.integers(0, 3))
def test_a_plain_list_agrees(
    steps: list[tuple[str, object]], max_msgs: int, per_subject: int
) -> None:
    stream = _stream(max_msgs=max_msgs, max_msgs_per_subject=per_subject)
    model: list[tuple[int, bytes]] = []
    last = 0
    for index, (what, value) in enumerate(steps, start=1):
        if what == "publish":
            assert isinstance(value, list)
            apply(stream, index, _entry(last + 1, *value))
            model += [(last + at, one) for at, one in enumerate(value, start=1)]
            last += len(value)
            if per_subject:
                model = [
                    (seq, one)
                    for seq, one in model
                    if sum(other == one and above >= seq for above, other in model) <= per_subject
                ]
            if max_msgs:
                model = model[-max_msgs:]
        elif what == "remove":
            assert isinstance(value, list)
            apply(stream, index, encode_remove(value))
            model = [(seq, one) for seq, one in model if seq not in value]
        else:
            assert isinstance(value, tuple)
            subject, keep = value
            apply(stream, index, encode_purge(subject, last, keep))
            hit = [seq for seq, one in model if subject in (b"", one)]
            gone = hit[: max(0, len(hit) - keep)] if keep else hit
            model = [(seq, one) for seq, one in model if seq not in gone]
        assert _seqs(stream) == [seq for seq, _ in model]
