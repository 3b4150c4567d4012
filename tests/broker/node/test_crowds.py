"""Who publishes faster than the log takes it is not read for a while, instead of refused."""

import pytest

from jsctl.broker.jetstream.streams import in_flight
from tests.support.node_play import NodePlay, PlayClient

PAYLOAD = bytes(256 << 10)
TOO_MANY = in_flight.CROWDED_BYTES // len(PAYLOAD) + 1


@pytest.fixture
def play() -> NodePlay:
    made = NodePlay()
    admin = made.connect("a")
    for name in ("S", "OTHER"):
        answer = admin.ask(f"$JS.API.STREAM.CREATE.{name}", name=name, subjects=[name.lower()])
        assert "error" not in answer
    made.run(1)
    return made


def inbox_of(client: PlayClient) -> str:
    return f"acks.{client.conn}"


def publisher(play: NodePlay, subject: str, count: int, payload: bytes = PAYLOAD) -> PlayClient:
    """A client that has published and waits for its acknowledgements."""
    client = play.connect("a")
    client.subscribe(inbox_of(client))
    for _ in range(count):
        client.publish(subject, payload, inbox_of(client))
    return client


def stored(client: PlayClient) -> list[int]:
    answers = client.heard(inbox_of(client))
    assert not [answer for answer in answers if "error" in answer]
    return [answer["seq"] for answer in answers]


def go_on(play: NodePlay) -> None:
    play.hold_disk = False
    play.turn()
    play.run(1)


def test_who_is_ahead_of_the_log_waits_and_nobody_else_does(play: NodePlay) -> None:
    play.hold_disk = True
    fast = publisher(play, "s", TOO_MANY)
    slow = publisher(play, "other", 3)
    watching = play.connect("a")
    assert play.paused == {fast.conn}
    watching.send(b"PING\r\n")
    assert watching.lines[-1] == b"PONG"

    go_on(play)

    assert play.paused == set()
    assert stored(fast) == list(range(1, TOO_MANY + 1))
    assert stored(slow) == [1, 2, 3]


def test_the_number_of_messages_counts_too(play: NodePlay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "CROWDED_MESSAGES", 100)
    play.hold_disk = True
    assert publisher(play, "s", 100, b"x").conn not in play.paused
    late = publisher(play, "s", 1, b"x")
    assert play.paused == {late.conn}
    go_on(play)
    assert play.paused == set()
    assert stored(late) == [101]


def test_nobody_waits_for_a_stream_that_is_gone(play: NodePlay) -> None:
    play.hold_disk = True
    fast = publisher(play, "s", TOO_MANY)
    assert play.paused == {fast.conn}
    admin = play.connect("a")
    admin.publish("$JS.API.STREAM.DELETE.S")
    go_on(play)
    assert play.paused == set()


def test_who_hung_up_is_not_waited_for(play: NodePlay) -> None:
    play.hold_disk = True
    fast = publisher(play, "s", TOO_MANY)
    play.hang_up(fast)
    again = publisher(play, "s", 1)
    assert again.conn in play.paused
    go_on(play)
    assert again.conn not in play.paused
    assert stored(again) == [TOO_MANY + 1]
