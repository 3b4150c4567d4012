"""Where the ack floor of a consumer stands when acknowledgements take all before them."""

import pytest

from jsctl.broker.jetstream.consumers.state import ConsumerState
from tests.support.consumer_play import Play


@pytest.fixture
def state() -> ConsumerState:
    """Of a consumer that got four messages."""
    made = ConsumerState(acks_needed=True)
    made.start(1, 0, ())
    made.deliver([2, 4, 6, 8], 1, 100)
    return made


def test_the_floor_is_what_was_acknowledged(state: ConsumerState) -> None:
    state.ack_all(4, 2, 200)
    assert (list(state.pending), state.floor_stream, state.floor_seq) == ([6, 8], 4, 2)


def test_messages_that_left_before_do_not_hold_the_floor_down(state: ConsumerState) -> None:
    """They expired above what was acknowledged: nothing is waited for any more."""
    state.ack([6, 8], 150)
    state.ack_all(4, 2, 200)
    assert (list(state.pending), state.floor_stream, state.floor_seq) == ([], 8, 4)
    assert state.floor_last_ns == 200


def test_what_was_never_delivered_is_not_acknowledged(state: ConsumerState) -> None:
    state.ack_all(9, 9, 200)
    assert (list(state.pending), state.floor_stream, state.floor_seq) == ([], 8, 4)


def test_behind_a_purge_the_floor_follows_what_is_waited_for(state: ConsumerState) -> None:
    """The purge took what was delivered last: docs/differences.md."""
    state.move(0, [8])
    assert (list(state.pending), state.floor_stream, state.floor_seq) == ([2, 4, 6], 0, 4)
    state.ack([4], 200)
    assert state.floor_stream == 0
    state.ack([2], 200)
    assert (state.floor_stream, state.floor_seq) == (5, 2)
    state.ack([6], 200)
    assert (list(state.pending), state.floor_stream, state.floor_seq) == ([], 8, 4)


def test_acks_of_what_was_delivered_once_count_behind_what_was_delivered_again() -> None:
    """A redelivery has a higher number than what came behind its message."""
    play = Play()
    play.run(
        "consumer ack_policy=all ack_wait=1s\npublish a 6\npull in 6\ntick 1500ms\n"
        "pull again 1\nack 1 reply=first"
    )
    assert play.consumer.state.floor_seq == 7
    play.turn(acks=[(b"$JS.ACK.S.C.1.4.4.0.0", b"second", b"", b"", None)])
    state = play.consumer.state
    assert play.out[-1] == "-> second (answer)"
    assert (list(state.pending), state.floor_stream) == ([5, 6], 4)
