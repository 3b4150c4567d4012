"""A pinned client is let go: who waited behind it has the next messages at once."""

from typing import Any

from tests.support.node_play import NodePlay
from tests.support.stream_requests import consumer, stream

PULL = b'{"batch":1,"group":"g","expires":60000000000}'


def test_who_waits_is_pinned_next() -> None:
    play = NodePlay()
    client, listener = play.connect("a"), play.connect("a")
    listener.subscribe("$JS.EVENT.ADVISORY.CONSUMER.*.S.C")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    group: dict[str, Any] = {"priority_groups": ["g"], "priority_policy": "pinned_client"}
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(**group))
    for inbox in ("first", "second"):
        client.subscribe(inbox)
        client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", PULL, inbox)
    for _ in range(2):
        client.publish("s.a", b"x")
    got = [to for to, _, _ in client.messages]
    assert got.count("s.a") == 1, "one is pinned, and has what it asked for"
    client.ask("$JS.API.CONSUMER.UNPIN.S.C", group="g")
    got = [to for to, _, _ in client.messages]
    assert got.count("s.a") == 2, "without anything else happening"
    told = [one["type"].rpartition(".")[2] for one in listener.heard("$JS.EVENT.ADVISORY.CONSUMER")]
    pinned, unpinned = "consumer_group_pinned", "consumer_group_unpinned"
    assert [one for one in told if "group" in one] == [pinned, unpinned, pinned]


def test_who_is_gone_is_not_pinned() -> None:
    play = NodePlay()
    client, gone = play.connect("a"), play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    group: dict[str, Any] = {"priority_groups": ["g"], "priority_policy": "pinned_client"}
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer(**group))
    gone.subscribe("gone")
    gone.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", PULL, "gone")
    play.hang_up(gone)
    client.subscribe("here")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", PULL, "here")
    client.publish("s.a", b"x")
    assert [to for to, _, _ in client.messages].count("s.a") == 1
