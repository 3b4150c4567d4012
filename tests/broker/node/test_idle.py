"""A server with streams and consumers and nothing to do wakes about once a second."""

import json

from tests.support.node_play import SECOND_NS, NodePlay
from tests.support.stream_requests import consumer, stream

COUNT = 5
CALM_S = 20


def wakes(play: NodePlay, seconds: int) -> int:
    """Turns that the node itself asks for."""
    end, count = play.now_ns + seconds * SECOND_NS, 0
    while play.due_ns < end:
        play.now_ns = max(play.now_ns, play.due_ns)
        play.turn()
        count += 1
    play.now_ns = end
    return count


def test_wakes_once_a_second_and_serves_at_once() -> None:
    play = NodePlay()
    client = play.connect("a")
    for number in range(COUNT):
        name = f"S{number}"
        body = {"name": name, "subjects": [name], "storage": "file"}
        assert "error" not in client.ask(f"$JS.API.STREAM.CREATE.{name}", **body)
        made = client.ask(f"$JS.API.CONSUMER.CREATE.{name}.C", **consumer("C", name))
        assert "error" not in made
    wakes(play, CALM_S)
    assert wakes(play, CALM_S) <= CALM_S + 6


def test_direct_gets_come_and_go_with_the_config_of_a_calm_server() -> None:
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    client.publish("s.x", b"1", "ack")
    asked = json.dumps({"seq": 1}).encode()
    for direct in (True, False, True):
        wakes(play, CALM_S)
        changed = client.ask("$JS.API.STREAM.UPDATE.S", **stream(replicas=1, allow_direct=direct))
        assert "error" not in changed
        wakes(play, 1)
        answers = client.request("$JS.API.DIRECT.GET.S", asked)
        assert answers == ([b"1"] if direct else [])
