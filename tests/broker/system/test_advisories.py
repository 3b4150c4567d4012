"""What a node tells of its streams, consumers and requests."""

import json
from typing import Any

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient
from tests.support.stream_requests import consumer, stream

ADVISORY = "$JS.EVENT.ADVISORY."


@pytest.fixture
def play() -> NodePlay:
    """A node, a while after its start."""
    return NodePlay()


@pytest.fixture
def client(play: NodePlay) -> PlayClient:
    """A client that listens to all events of its account, and has a stream S."""
    client = play.connect("a")
    client.subscribe("$JS.EVENT.>")
    config = stream_config()
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **config)
    return client


def stream_config(**fields: object) -> dict[str, object]:
    """A whole configuration."""
    config: dict[str, object] = {"name": "S", "subjects": ["s.>"], "retention": "limits"}
    config |= {"max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0}
    return {**config, "storage": "file", "num_replicas": 1, "discard": "old", **fields}


def add_consumer(client: PlayClient, **fields: object) -> None:
    """A durable pull consumer C."""
    config = {"durable_name": "C", "ack_policy": "explicit", "deliver_policy": "all", **fields}
    answer = client.ask("$JS.API.CONSUMER.CREATE.S.C", stream_name="S", config=config)
    assert "error" not in answer, answer


def events(client: PlayClient, words: str) -> list[Any]:
    """Advisories heard so far."""
    return client.heard(ADVISORY + words)


def test_streams(client: PlayClient) -> None:
    (event,) = events(client, "STREAM.CREATED.S")
    assert event["action"] == "create" and event["stream"] == "S"
    assert event["type"] == "io.nats.jetstream.advisory.v1.stream_action"
    client.ask("$JS.API.STREAM.CREATE.S", **stream_config())
    client.ask("$JS.API.STREAM.UPDATE.S", **stream_config(description="new"))
    (event,) = events(client, "STREAM.UPDATED.S")
    assert event["action"] == "modify"
    add_consumer(client)
    client.ask("$JS.API.STREAM.DELETE.S")
    (event,) = events(client, "STREAM.DELETED.S")
    assert event["action"] == "delete"
    assert len(events(client, "STREAM.CREATED")) == 1
    assert not events(client, "CONSUMER.DELETED")


def test_consumers(client: PlayClient) -> None:
    add_consumer(client)
    (event,) = events(client, "CONSUMER.CREATED.S.C")
    assert (event["stream"], event["consumer"], event["action"]) == ("S", "C", "create")
    client.ask("$JS.API.CONSUMER.DELETE.S.C")
    (event,) = events(client, "CONSUMER.DELETED.S.C")
    assert event["action"] == "delete"


def test_a_pause_and_its_end(play: NodePlay, client: PlayClient) -> None:
    add_consumer(client)
    until = "2026-09-21T14:13:30Z"
    client.ask("$JS.API.CONSUMER.PAUSE.S.C", pause_until=until)
    (event,) = events(client, "CONSUMER.PAUSE.S.C")
    assert event["paused"] is True and event["pause_until"] == until
    play.run(10)
    assert [one["paused"] for one in events(client, "CONSUMER.PAUSE")] == [True, False]


def test_a_pause_that_a_restart_comes_into(play: NodePlay, client: PlayClient) -> None:
    add_consumer(client)
    client.ask("$JS.API.CONSUMER.PAUSE.S.C", pause_until="2026-09-21T14:14:22Z")
    again = NodePlay(disk=play.disk)
    assert again.now_ns < 1_790_000_062_000_000_000
    client = again.connect("a")
    client.subscribe("$JS.EVENT.>")
    again.run(65)
    assert [one["paused"] for one in events(client, "CONSUMER.PAUSE")] == [False]


def test_a_pause_is_told_to_end_by_who_leads_then() -> None:
    cluster = ClusterPlay()
    leader = cluster.leader()
    for subject, body in (
        ("STREAM.CREATE.S", stream()),
        ("CONSUMER.CREATE.S.C", consumer()),
        ("CONSUMER.PAUSE.S.C", {"pause_until": "2026-09-21T14:14:22Z"}),
    ):
        (answer,) = leader.request_all(f"$JS.API.{subject}", 1, **body)
        assert "error" not in answer
    leader.halt()
    cluster.run(3)
    client = cluster.leader().connect("a")
    client.subscribe("$JS.EVENT.>")
    cluster.run(65)
    assert [one["paused"] for one in events(client, "CONSUMER.PAUSE")] == [False]


def test_a_pause_ended_by_hand(play: NodePlay, client: PlayClient) -> None:
    add_consumer(client)
    client.ask("$JS.API.CONSUMER.PAUSE.S.C", pause_until="2027-01-01T00:00:00Z")
    client.ask("$JS.API.CONSUMER.PAUSE.S.C")
    play.run(3)
    assert [one["paused"] for one in events(client, "CONSUMER.PAUSE")] == [True, False]


def test_deliveries(client: PlayClient) -> None:
    add_consumer(client, max_deliver=2, sample_freq="100%")
    client.publish("s.1", b"x")
    client.subscribe("in")
    next_subject = "$JS.API.CONSUMER.MSG.NEXT.S.C"
    for answer in (b"-NAK", b"-NAK"):
        client.publish(next_subject, b'{"batch":1,"no_wait":true}', "in")
        reply = [reply for subject, reply, _ in client.messages if subject == "s.1"][-1]
        client.publish(reply, answer)
    client.publish(next_subject, b'{"batch":1,"no_wait":true}', "in")
    assert [one["deliveries"] for one in events(client, "CONSUMER.MSG_NAKED.S.C")] == [1, 2]
    (event,) = events(client, "CONSUMER.MAX_DELIVERIES.S.C")
    assert (event["stream_seq"], event["deliveries"]) == (1, 2)
    client.publish("s.2", b"x")
    client.publish(next_subject, b'{"batch":1,"no_wait":true}', "in")
    reply = [reply for subject, reply, _ in client.messages if subject == "s.2"][-1]
    client.publish(reply, b"+ACK")
    (metric,) = client.heard("$JS.EVENT.METRIC.CONSUMER.ACK.S.C")
    assert metric["stream_seq"] == 2


def test_audit_of_requests(play: NodePlay) -> None:
    other, client = play.connect("a"), play.connect("a")
    client.ask("$JS.API.STREAM.NAMES")
    other.subscribe(ADVISORY + "API")
    client.ask("$JS.API.STREAM.CREATE.S", **stream_config())
    client.publish("$JS.API.STREAM.NAMES")
    (event,) = other.heard(ADVISORY + "API")
    assert event["subject"] == "$JS.API.STREAM.CREATE.S" and event["server"] == "n1"
    assert event["client"]["acc"] == "A" and event["client"]["user"] == "a"
    assert json.loads(event["request"])["name"] == "S"
    assert json.loads(event["response"])["did_create"] is True


def test_nothing_is_told_again_after_a_restart(play: NodePlay, client: PlayClient) -> None:
    add_consumer(client)
    engine = play.node.engine
    assert engine is not None
    engine.close()
    again = NodePlay(disk=play.disk)
    listener = again.connect("a")
    listener.subscribe("$JS.EVENT.>")
    again.run(3)
    assert listener.heard(ADVISORY) == []
    assert listener.ask("$JS.API.STREAM.NAMES")["streams"] == ["S"]
