"""Deadlines of unacknowledged messages, against looking at every message each time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jsctl.broker.jetstream.consumers.redelivery import SLACK, Redelivery
from jsctl.broker.jetstream.consumers.state import ConsumerState
from jsctl.broker.protocol.deliveries import singly
from tests.support.consumer_play import Play
from tests.support.quick import examples

MS = 1_000_000
WAITS = (100 * MS, 250 * MS, 900 * MS)

STEPS = st.one_of(
    st.tuples(st.just("deliver"), st.integers(1, 5)),
    st.tuples(st.just("ack"), st.integers(1, 30)),
    st.tuples(st.just("touch"), st.integers(1, 30)),
    st.tuples(st.just("pass"), st.integers(1, 400)),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_what_is_due_is_found_once_and_in_order(steps: list[tuple[str, int]]) -> None:
    state, redelivery = ConsumerState(acks_needed=True), Redelivery(0, WAITS)
    now, last = 10_000 * MS, 0
    for name, number in steps:
        if name == "deliver":
            seqs = range(last + 1, last + number + 1)
            last += number
            state.deliver(seqs, seqs[0], now)
            redelivery.file(seqs, now, 1)
        elif name == "ack":
            state.ack((number,), now)
            redelivery.trim(state)
        elif name == "touch" and number in state.pending:
            state.touch([(number, now)])
            redelivery.file((number,), now, state.deliveries(number))
        elif name == "pass":
            now += number * MS
            due = redelivery.take_due(state, now)
            expected = [
                seq
                for seq, (_, since) in state.pending.items()
                if since + redelivery.wait_of(state.deliveries(seq)) <= now
            ]
            assert due == expected or set(due) <= set(expected)
            late = [s for s in expected if s not in due]
            step = MS
            for seq in late:
                since = state.pending[seq][1]
                assert now < since + redelivery.wait_of(state.deliveries(seq)) + step
            state.redeliver(due, state.delivered_seq + 1, now)
            for seq in due:
                redelivery.file((seq,), now, state.deliveries(seq))
    if state.pending:
        assert redelivery.next_due_ns is not None


def test_the_last_wait_of_a_backoff_repeats() -> None:
    redelivery = Redelivery(5, WAITS)
    assert [redelivery.wait_of(count) for count in (1, 2, 3, 4, 9)] == [*WAITS, WAITS[2], WAITS[2]]


def test_no_ack_wait_means_for_ever() -> None:
    state, redelivery = ConsumerState(acks_needed=True), Redelivery(0, ())
    state.deliver([1, 2], 1, 5)
    redelivery.file([1, 2], 5, 1)
    assert redelivery.next_due_ns is None
    assert redelivery.take_due(state, 1 << 60) == []


def test_what_was_acknowledged_is_not_kept_for_long() -> None:
    state, redelivery = ConsumerState(acks_needed=True), Redelivery(100 * MS, ())
    for first in range(1, 2 * SLACK, 1000):
        seqs = range(first, first + 1000)
        state.deliver(seqs, first, first)
        redelivery.file(seqs, first, 1)
    state.ack(range(2, 2 * SLACK + 1000), 1)
    redelivery.trim(state)
    assert redelivery.take_due(state, 1 << 60) == [1]
    state.ack((1,), 1)
    redelivery.trim(state)
    assert redelivery.next_due_ns is None


def test_a_queued_message_is_not_due_again() -> None:
    state, redelivery = ConsumerState(acks_needed=True), Redelivery(100 * MS, ())
    state.deliver([1, 2], 1, 0)
    redelivery.file([1, 2], 0, 1)
    redelivery.queue([2])
    assert redelivery.take_due(state, 1 << 60) == [1]
    state.ack((2,), 1)
    redelivery.trim(state)
    assert not redelivery.again


@pytest.mark.parametrize("how", ["", " deliver_subject=in"])
def test_what_is_due_goes_on_in_the_next_turns_where_one_has_no_room_for_it(how: str) -> None:
    """Nobody who asked not to wait is told that there is nothing."""
    play = Play()
    play.run(f"consumer ack_wait=1s{how}\npublish a 40\npull out 40")
    play.now += 2_000 * MS
    request = (b"", b"in", b"", b'{"batch":40,"no_wait":true}', None)
    made = play.leader.turn(play.now, pulls=[] if how else [request], most=16)
    seen = singly(made.publish)
    while made.again:
        made = play.leader.turn(play.now, most=16)
        seen += singly(made.publish)
    assert len([item for item in seen if item[0] == b"in" and item[4]]) == 40
    assert not play.leader.delivery.redelivery.again


def test_waits_may_be_as_long_and_as_short_as_a_config_can_say() -> None:
    """Their times fit into the state that is written: that of a delay lies before or behind now."""
    play = Play()
    play.now = 1_790_000_000_000_000_000
    play.run(
        "consumer max_deliver=5\nupdate backoff=1ns,2562047h\npublish a 2\npull in 2\n"
        "ack 1 -NAK\npull in 1\n"
        'ack 1 -NAK {"delay":1}\nack 2 -NAK {"delay":9223372036854775807}'
    )
    restored = ConsumerState(acks_needed=True)
    restored.decode(play.consumer.state.encode())
    assert restored.facts() == play.consumer.state.facts()
    assert play.run("tick 10ms\npull in 1").startswith("-> in a #1 ")
