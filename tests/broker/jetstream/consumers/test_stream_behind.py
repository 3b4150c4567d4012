"""A consumer led beside a replica of its stream that is behind, as after a restart."""

import pytest

from jsctl.broker.store.frame import frame_of
from jsctl.broker.store.memory_store import MemoryStore
from jsctl.broker.store.record import Record
from tests.support.consumer_play import Play


def led_behind(script: str, has: int) -> Play:
    """A consumer after a script, led anew where the stream has only so many messages yet."""
    play = Play()
    play.run(script)
    whole = play.store
    play.store = MemoryStore()
    for row in whole.load_range(1, has):
        play.store.append(frame_of([Record._make(row)]), row[0])
    play._lead()
    return play


@pytest.mark.parametrize("put_back", [False, True])
def test_what_the_stream_does_not_have_yet_is_not_removed(put_back: bool) -> None:
    play = led_behind("publish a 3\nconsumer ack_wait=20s\npull in 3", has=1)
    if put_back:
        play.run("ack 1\nack 2 -NAK\nack 3 -NAK\npull in 2")
    else:
        play.run("ack 1\ntick 21s\npull in 2")
    assert list(play.consumer.state.pending) == [2, 3], "they wait for the stream, and an ack"
    told = play.run("publish a 2\ntick 30s\npull in 2")
    assert list(play.consumer.state.pending) == [2, 3]
    again = [line.split()[3] for line in told.splitlines() if "dc=2" in line]
    assert again == ["#2", "#3"], "delivered again once the stream has them"


def test_what_was_removed_is_given_up_even_so() -> None:
    play = led_behind("publish a 3\nconsumer ack_wait=20s\npull in 3", has=3)
    play.run("remove 2\ntick 21s\npull in 3")
    assert list(play.consumer.state.pending) == [1, 3]
