"""Streams and consumers that are deleted while who makes them waits for the answer."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from jsctl.broker.assets.meta.group_file import META_GROUP
from jsctl.broker.jsapi import overtaken
from jsctl.broker.raft.types import Message
from jsctl.broker.replication.groups import Groups
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import consumer, stream

AT_ONCE = 0.4
"""Seconds. What nobody answers is given up after 4.5."""
Patch = pytest.MonkeyPatch


def send(client: PlayClient, *asked: tuple[str, Any]) -> None:
    """Requests that come in one turn."""
    client.subscribe("answer.*")
    sent = b""
    for number, (subject, body) in enumerate(asked):
        payload = json.dumps(body).encode() if body else b""
        head = b"PUB $JS.API.%b answer.%d %d\r\n" % (subject.encode(), number, len(payload))
        sent += head + payload + b"\r\n"
    client.send(sent)


def told(client: PlayClient, count: int) -> list[int | str]:
    """What each was told, in order: what it made, that it deleted it, or the code of an error."""
    answers = [client.heard(f"answer.{number}") for number in range(count)]
    assert [len(some) for some in answers] == [1] * count
    return [
        one["error"]["err_code"] if "error" in one else one.get("name", "deleted")
        for (one,) in answers
        for one in [{**one.get("config", {}), **one}]
    ]


@pytest.fixture(scope="module")
def cluster() -> ClusterPlay:
    return ClusterPlay()


MADE = ("CONSUMER.CREATE.S.C", consumer())
GONE = ("CONSUMER.DELETE.S.C", None)


def test_on_a_server_alone_one_comes_behind_the_other() -> None:
    node = NodePlay()
    client, other = node.connect("a"), node.connect("a")
    body = stream(replicas=1)
    made, gone = ("STREAM.CREATE.S", body), ("STREAM.DELETE.S", None)
    send(client, made, gone, made, gone)
    node.run(AT_ONCE)
    assert told(client, 4) == ["S", "deleted", "S", 10059]
    client.messages.clear()
    send(other, made, MADE, gone)
    node.run(AT_ONCE)
    assert told(other, 3) == ["S", "C", "deleted"]


def test_in_a_cluster_too(cluster: ClusterPlay) -> None:
    for server in cluster:
        client = server.connect("a")
        send(client, ("STREAM.CREATE.S", stream()), ("STREAM.DELETE.S", None))
        cluster.run(AT_ONCE)
        assert told(client, 2) == ["S", "deleted"]


@pytest.fixture
def nothing_is_led(monkeypatch: Patch) -> None:
    """From then on no asset has a leader, but at a server alone."""
    step = Groups.step

    def heard(self: Groups, key: bytes, messages: Sequence[Message]) -> bool:
        return key == META_GROUP.encode() and step(self, key, messages)

    monkeypatch.setattr(Groups, "step", heard)


@pytest.mark.usefixtures("nothing_is_led")
def test_who_made_what_nobody_serves_is_told_that_it_is_gone(cluster: ClusterPlay) -> None:
    made = ("STREAM.CREATE.T", stream("T"))
    for server in cluster:
        client = server.connect("a")
        send(client, made, made, ("STREAM.DELETE.T", None))
        cluster.run(overtaken.SERVED_NS / 1e9 + AT_ONCE)
        assert told(client, 3) == [10059, 10059, "deleted"]


def test_consumers_that_nobody_serves(cluster: ClusterPlay, request: pytest.FixtureRequest) -> None:
    cluster.leader().request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    request.getfixturevalue("nothing_is_led")
    client = cluster["n2"].connect("a")
    send(client, MADE, GONE, ("CONSUMER.CREATE.S.D", consumer("D")))
    cluster.run(overtaken.SERVED_NS / 1e9 + AT_ONCE)
    assert client.heard("answer.0")[0]["error"]["err_code"] == 10014
    assert client.heard("answer.1")[0]["success"] and not client.heard("answer.2")
    client.publish("$JS.API.STREAM.DELETE.S", b"", "answer.3")
    cluster.run(overtaken.SERVED_NS / 1e9 + AT_ONCE)
    assert client.heard("answer.2")[0]["error"]["err_code"] == 10059


def test_those_who_are_answered_are_forgotten(cluster: ClusterPlay, monkeypatch: Patch) -> None:
    server = cluster.leader()
    assert server.node.jetstream is not None
    kept = server.node.jetstream.api.overtaken
    monkeypatch.setattr(overtaken, "KEPT_MAX", 2)
    kept.made.clear()
    for name in ("U1", "U2", "U3", "U4"):
        server.request_all(f"$JS.API.STREAM.CREATE.{name}", 0.5, **stream(name))
    assert sum(map(len, kept.made.values())) <= 2
