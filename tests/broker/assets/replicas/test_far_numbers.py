"""Numbers that clients may name and that lie at the end of what 64 bits hold."""

import pytest

from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import consumer, stream

MOST = 1 << 62


@pytest.fixture
def play() -> NodePlay:
    return NodePlay()


@pytest.fixture
def client(play: NodePlay) -> PlayClient:
    return play.connect("a")


@pytest.mark.parametrize("ttl", [b"9223372036854775807", b"9223372036", b"2562047h47m16s"])
def test_a_time_to_live_longer_than_time_itself(
    play: NodePlay, client: PlayClient, ttl: bytes
) -> None:
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, allow_msg_ttl=True))
    (ack,) = client.request("s.x", b"1", b"NATS/1.0\r\nNats-TTL: %b\r\n\r\n" % ttl)
    assert b'"seq":1' in ack
    play.write_states()
    again = NodePlay(disk=play.disk)
    again.run(5)
    assert again.connect("a").ask("$JS.API.STREAM.INFO.S")["state"]["messages"] == 1


@pytest.mark.parametrize("first", [MOST, MOST + 1, 1 << 63, (1 << 64) - 1])
def test_a_stream_never_runs_out_of_sequences(
    play: NodePlay, client: PlayClient, first: int
) -> None:
    answer = client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, first_seq=first))
    if "error" in answer:
        assert first > MOST
        assert answer["error"]["err_code"] == 10052
        return
    for number in range(3):
        (ack,) = client.request("s.x", b"1")
        assert b'"seq":%d' % (first + number) in ack
    client.subscribe("to")
    made = client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(name="C", deliver_subject="to"))
    assert "error" not in made, made
    play.run(1)
    assert len(client.heard("s.x")) == 3
    play.write_states()
    assert play.exit is None
