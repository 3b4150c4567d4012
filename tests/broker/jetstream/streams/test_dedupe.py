"""Message ids: found within the window, forgotten by the log's time, kept in snapshots."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.accel.columns import plain_ids
from jsctl.broker.jetstream.streams.dedupe import Dedupe
from jsctl.broker.jetstream.streams.publish_headers import MSG_ID, nats_fields
from tests.support.quick import examples


def test_an_id_is_found_until_its_window_is_over() -> None:
    dedupe = Dedupe(100)
    dedupe.add(b"a", 1, 1000)
    dedupe.add(b"b", 2, 1050)
    assert dedupe.find(b"a", 1099) == 1
    assert dedupe.find(b"a", 1100) is None
    assert dedupe.find(b"x", 0) is None
    assert dedupe.empty_at_ns() == 1150
    assert dedupe.expire(1100) == 1
    assert len(dedupe) == 1
    assert dedupe.expire(1150) == 1
    assert dedupe.empty_at_ns() is None


def test_an_id_used_again_lives_by_its_newer_time() -> None:
    dedupe = Dedupe(100)
    dedupe.add(b"a", 1, 0)
    dedupe.add(b"a", 9, 60)
    dedupe.expire(100)
    assert dedupe.find(b"a", 100) == 9


def test_what_was_forgotten_is_over_for_every_later_leader() -> None:
    dedupe = Dedupe(100)
    assert dedupe.over_ns == 0
    dedupe.add(b"a", 1, 1000)
    dedupe.add(b"b", 2, 1050)
    dedupe.expire(1120)
    assert dedupe.over_ns == 1100
    copy = Dedupe(100)
    copy.restore(dedupe.snapshot())
    assert (copy.over_ns, len(copy), copy.find(b"b", 1149)) == (1100, 1, 2)
    dedupe.expire(1200)
    copy.restore(dedupe.snapshot())
    assert (copy.over_ns, len(copy), copy.empty_at_ns()) == (1150, 0, None)
    copy.restore(Dedupe(100).snapshot())
    assert copy.over_ns == 0


def test_no_window_remembers_nothing() -> None:
    dedupe = Dedupe(0)
    dedupe.add(b"a", 1, 5)
    assert len(dedupe) == 0
    dedupe.resize(10)
    dedupe.add(b"a", 1, 5)
    assert dedupe.find(b"a", 6) == 1
    dedupe.resize(0)
    assert dedupe.find(b"a", 6) is None


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.binary(min_size=1, max_size=3), st.integers(0, 40)), max_size=40))
def test_snapshots_keep_what_a_plain_map_would_hold(steps: list[tuple[bytes, int]]) -> None:
    dedupe, model, now = Dedupe(50), dict[bytes, tuple[int, int]](), 0
    for seq, (message_id, pause) in enumerate(steps, start=1):
        now += pause
        dedupe.expire(now)
        model = {key: item for key, item in model.items() if item[1] + 50 > now}
        dedupe.add(message_id, seq, now)
        model[message_id] = (seq, now)
    copy = Dedupe(50)
    copy.restore(dedupe.snapshot())
    assert copy.snapshot() == dedupe.snapshot()
    assert len(copy) == len(model)
    for message_id, (seq, _) in model.items():
        assert copy.find(message_id, now) == seq


def test_the_pieces_of_a_snapshot_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk thread writes them while ids come and go."""
    monkeypatch.setattr("jsctl.broker.jetstream.streams.dedupe._BLOCK_BYTES", 50)
    dedupe, kept = Dedupe(10), []
    for now in range(60):
        dedupe.add(b"id-%d" % now, now + 1, now)
        dedupe.expire(now)
        pieces = dedupe.pieces()
        kept.append((pieces, b"".join(pieces)))
        copy = Dedupe(10)
        copy.restore(dedupe.snapshot())
        assert [copy.find(b"id-%d" % one, now) for one in range(now + 1)] == [
            one + 1 if one > now - 10 else None for one in range(now + 1)
        ]
    assert all(b"".join(pieces) == data for pieces, data in kept)
    assert max(len(pieces) for pieces, _ in kept) > 3


@given(st.lists(st.binary(max_size=3), max_size=9), st.integers(0, 50))
def test_many_are_remembered_as_one_by_one(ids: list[bytes], window: int) -> None:
    together, single = Dedupe(window), Dedupe(window)
    together.add_many(ids, 7, 30)
    for seq, message_id in enumerate(ids, start=7):
        if message_id:
            single.add(message_id, seq, 30)
    assert together.snapshot() == single.snapshot()
    assert together.empty_at_ns() == single.empty_at_ns()
    assert together.has_any([b"", *ids]) == (len(single) > 0)


PIECES = (b"NATS/1.0", b"\r\n", b"Nats-Msg-Id", b":", b" ", b"a", b"Nats-Rollup: all", b"X: Nats-")


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(PIECES), max_size=9))
def test_a_block_with_an_id_only_says_nothing_else(pieces: list[bytes]) -> None:
    for block in (b"".join(pieces), b"NATS/1.0\r\nNats-Msg-Id:" + b"".join(pieces) + b"\r\n\r\n"):
        if found := plain_ids([block]):
            assert nats_fields(block) == {MSG_ID: found[0]}
