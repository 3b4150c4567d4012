"""Archives of streams that are checked first: they show the moment at which that began."""

import json

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
