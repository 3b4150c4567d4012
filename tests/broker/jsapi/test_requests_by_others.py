"""What a server sends where clients want it is no request: they may not be allowed to make it."""

import json

import pytest

from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import consumer, stream

DELETE = "$JS.API.STREAM.DELETE.T"
CREATE = "$JS.API.STREAM.CREATE.N"
CONFIG = b'{"name":"N","subjects":["n"]}'


@pytest.fixture
def client() -> PlayClient:
    """Streams S, which allows direct gets, and T."""
    made = NodePlay().connect("a")
    made.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, allow_direct=True))
    made.ask("$JS.API.STREAM.CREATE.T", **stream("T", 1))
    return made


def streams(client: PlayClient) -> list[str]:
    client.play.run(1)
    return list(client.ask("$JS.API.STREAM.NAMES")["streams"])


def test_a_consumer_delivers_no_requests(client: PlayClient) -> None:
    made = client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(deliver_subject=DELETE))
    assert "error" not in made
    client.publish("s.1")
    assert streams(client) == ["S", "T"]


@pytest.mark.parametrize("to", [DELETE, CREATE])
def test_pulls_and_gets_are_answered_by_no_requests(client: PlayClient, to: str) -> None:
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    client.publish("s.1", CONFIG if to == CREATE else b"")
    client.publish("$JS.API.DIRECT.GET.S.s.1", b"", to)
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b"", to)
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"no_wait":true}', to)
    assert streams(client) == ["S", "T"]


def test_acknowledgements_are_confirmed_by_no_requests(client: PlayClient) -> None:
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    client.publish("s.1", b"x")
    client.subscribe("got")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", json.dumps({"batch": 1}).encode(), "got")
    client.play.run(0.1)
    _, reply, payload = client.messages[-1]
    assert payload == b"x"
    client.publish(reply, b"+ACK", DELETE)
    assert streams(client) == ["S", "T"]
