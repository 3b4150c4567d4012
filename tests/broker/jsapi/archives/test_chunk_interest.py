"""To whom chunks of a snapshot are sent, and when."""

from jsctl.broker.jsapi.archives import snapshot
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import stream

SECOND = 10**9


def filled() -> tuple[NodePlay, PlayClient]:
    """A node with a stream of five messages."""
    play = NodePlay()
    client = play.connect("a")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    for _ in range(5):
        client.publish("s.x", b"x")
    return play, client


def test_chunks_wait_for_who_asks_to_listen() -> None:
    play, client = filled()
    client.subscribe("inbox.*")
    before = len(client.messages)
    client.publish("$JS.API.STREAM.SNAPSHOT.S", b'{"deliver_subject":"inbox.1"}', "inbox.0")
    play.run(1)
    assert [to for to, _, _ in client.messages[before:]] == ["inbox.0"], "answered, not sent yet"
    client.subscribe("inbox.1")
    play.run(0.2)
    assert len([to for to, _, _ in client.messages[before:] if to == "inbox.1"]) >= 2


def test_chunks_are_sent_to_a_pattern_after_a_while() -> None:
    play, client = filled()
    client.subscribe("inbox.*")
    client.publish("$JS.API.STREAM.SNAPSHOT.S", b'{"deliver_subject":"inbox.1"}')
    play.run(snapshot.INTEREST_NS / SECOND + 0.5)
    assert len([to for to, _, _ in client.messages if to == "inbox.1"]) == 2
