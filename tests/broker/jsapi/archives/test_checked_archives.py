"""Archives of streams that are checked first: they show the moment at which that began."""

import json
import os

import pytest

from tests.support.archives import Taken
from tests.support.node_play import NodePlay
from tests.support.stream_requests import stream

pytestmark = pytest.mark.slow


def test_what_comes_during_the_check_is_not_told_of() -> None:
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1, storage="memory"))
    for number in range(5):
        client.publish("s.x", b"%d" % number)
    for subject in ("to", "in"):
        client.subscribe(subject)
    play.hold_disk = True
    asked = {"deliver_subject": "to", "jsck": True}
    client.publish("$JS.API.STREAM.SNAPSHOT.S", json.dumps(asked).encode(), "in")
    client.publish("s.x", b"later")
    play.hold_disk = False
    play.run(1)
    (answer,) = client.heard("in")
    chunks = [payload for to, _, payload in client.messages if to == "to" and payload]
    made = Taken(answer, chunks)
    assert [one.sequence for one in made.messages] == [1, 2, 3, 4, 5]
    assert (made.state["messages"], made.state["last_seq"]) == (5, 5)
    assert made.answer["state"]["last_seq"] == 5


@pytest.mark.parametrize("to", ["$JS.API.STREAM.DELETE.T", "$JS.hub.API.STREAM.PURGE.T"])
def test_archives_are_no_requests(to: str) -> None:
    """Who may take a snapshot cannot have the server ask in its place for what he may not."""
    play = NodePlay()
    client = play.connect("a")
    for name in ("S", "T"):
        body = stream(name=name, subjects=[f"{name}.x"], replicas=1)
        assert "error" not in client.ask(f"$JS.API.STREAM.CREATE.{name}", **body)
    for _ in range(3):
        client.publish("S.x", os.urandom(1000))
    answer = client.ask("$JS.API.STREAM.SNAPSHOT.S", deliver_subject=to, chunk_size=1024)
    assert answer["error"]["err_code"] == 10015
    play.run(5)
    assert "error" not in client.ask("$JS.API.STREAM.INFO.T")
