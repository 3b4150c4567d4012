"""Times to live that end later than any time that can be told: the server goes on, and knows them
in its next life."""

import pytest

from jsctl.broker.turn import Command
from tests.support.node_play import NodePlay


@pytest.mark.parametrize("ttl", ["9223372036854775807", "9" * 19, "2562047h", "never"])
def test_a_message_that_lives_for_longer_than_there_is_time(ttl: str) -> None:
    play = NodePlay()
    client = play.connect("a")
    assert "error" not in client.ask(
        "$JS.API.STREAM.CREATE.S", name="S", subjects=["s"], allow_msg_ttl=True
    )
    (answer,) = client.request("s", b"x", f"NATS/1.0\r\nNats-TTL: {ttl}\r\n\r\n".encode())
    assert b'"seq":1' in answer.replace(b" ", b"")
    play.command(Command.SHUTDOWN)
    assert play.exit is not None
    later = NodePlay(disk=play.disk)
    assert later.connect("a").ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 1


@pytest.mark.parametrize("first", [(1 << 64) - 1, (1 << 64) - 2, (1 << 62) + 1])
def test_a_stream_does_not_begin_where_sequences_end(first: int) -> None:
    play = NodePlay()
    client = play.connect("a")
    answer = client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"], first_seq=first)
    client.request("s", b"x")
    client.request("s", b"y")
    assert play.exit is None
    assert answer["error"]["description"].startswith("first sequence is too large")


def test_a_stream_that_begins_late_has_room() -> None:
    play = NodePlay()
    client = play.connect("a")
    first = 1 << 62
    client.ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"], first_seq=first)
    (answer,) = client.request("s", b"x")
    assert answer == b'{"stream":"S","seq":%d}' % first
