"""Every advisory and every metric is provoked, and keeps to its published schema."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from jsctl.api.schema import schema_names, schema_of
from jsctl.api.schema.validation import violations
from tests.support.archives import restore, take
from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import NodePlay, PlayClient, node_options
from tests.support.stream_requests import consumer, stream

EVENT = "$JS.EVENT."
BEGINS = ("io.nats.jetstream.advisory.", "io.nats.jetstream.metric.")
OWN = frozenset({"stream_damage"})
"""Without a published schema: docs/api-extensions.md."""
MISTAKEN = {
    "nak": ["/consumer_seq: expected string, but got number"],
    "terminated": ["/consumer_seq: expected string, but got number"],
    "consumer_group_pinned": ["missing properties: 'server'"],
    "consumer_group_unpinned": ["missing properties: 'server'"],
    "domain_leader_elected": ["/replicas: expected object, but got array"],
}
"""Where nats-server does not keep to its published schemas, the broker does as nats-server."""
UNPUBLISHED = frozenset({"meta_rescue"})
"""nats-server has it, the published schemas do not."""
Heard = dict[str, list[Any]]


def kind(document: Any) -> str:
    """The type without what all have in front."""
    return str(document["type"]).rpartition(".")[2]


def heard(*clients: PlayClient) -> Heard:
    """What clients heard, by kind."""
    found: Heard = {}
    for client in clients:
        for one in client.heard(EVENT):
            found.setdefault(kind(one), []).append(one)
    return found


def alone() -> Heard:
    """What one server tells."""
    options = node_options()
    limits = replace(options.jetstream.limits, request_queue_max=5)
    play = NodePlay(replace(options, jetstream=replace(options.jetstream, limits=limits)))
    client, listener, system = play.connect("a"), play.connect("a"), play.connect("sys")
    for one in (listener, system):
        one.subscribe(f"{EVENT}>")
    made = stream(replicas=1, allow_atomic=True)
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", **made)
    client.ask("$JS.API.STREAM.UPDATE.S", **{**made, "description": "new"})
    deliveries(play, client)
    pins(play, client)
    headers = b"NATS/1.0\r\nNats-Batch-Id: b\r\nNats-Batch-Sequence: 1\r\n\r\n"
    client.publish("s.b", b"x", "in", headers)
    play.run(15)
    taken = take(client, "S")
    client.ask("$JS.API.STREAM.DELETE.S")
    restore(client, {**made, "name": "S"}, b"".join(taken.chunks))
    play.disk.capacity = 0
    play.run(3)
    play.disk.capacity = 1 << 40
    play.run(3)
    line = b"PUB $JS.API.STREAM.CREATE.T in 2\r\n{}\r\n"
    play.turn(chunks=[(client.conn, line * 2000)])
    play.run(1)
    return heard(listener, system)


def deliveries(play: NodePlay, client: PlayClient) -> None:
    """A consumer that is paused, and what may become of its messages."""
    body = consumer(max_deliver=2, sample_freq="100%")
    assert "error" not in client.ask("$JS.API.CONSUMER.CREATE.S.C", **body)
    client.ask("$JS.API.CONSUMER.PAUSE.S.C", pause_until="2026-09-21T14:13:30Z")
    play.run(10)
    client.subscribe("in")
    for number, answers in enumerate(((b"-NAK", b"-NAK", b""), (b"+ACK",), (b"+TERM why",))):
        client.publish(f"s.{number}", b"x")
        for answer in answers:
            client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":1,"no_wait":true}', "in")
            play.run(0.1)
            replies = [reply for to, reply, _ in client.messages if to == f"s.{number}"]
            if answer:
                client.publish(replies[-1], answer)
    client.ask("$JS.API.CONSUMER.DELETE.S.C")


def pins(play: NodePlay, client: PlayClient) -> None:
    """A client is pinned, and let go."""
    group: dict[str, Any] = {"priority_groups": ["g"], "priority_policy": "pinned_client"}
    client.ask("$JS.API.CONSUMER.CREATE.S.P", **consumer("P", **group))
    client.publish("s.p", b"x")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.P", b'{"batch":1,"group":"g"}', "in")
    play.run(1)
    client.ask("$JS.API.CONSUMER.UNPIN.S.P", group="g")
    play.run(1)
    client.ask("$JS.API.CONSUMER.DELETE.S.P")


def several() -> Heard:
    """What three servers tell, of which two die."""
    cluster = ClusterPlay()
    left, *others = sorted(cluster, key=lambda one: one.name)
    listener, system = left.connect("a"), left.connect("sys")
    listener.subscribe(f"{EVENT}>")
    system.subscribe(f"{EVENT}>")
    left.request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    left.request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    system.publish("$JS.API.META.LEADER.STEPDOWN", b"", "answer")
    cluster.run(5)
    for one in others:
        one.halt()
    cluster.run(20)
    system.publish("$JS.API.META.RESCUE", b'{"quorum_needed":1}', "answer")
    cluster.wait(lambda: cluster.maybe_leader("_meta_") is left, "what is left leads")
    system.publish("$JS.API.SERVER.REMOVE", b'{"peer":"n2"}', "answer")
    cluster.run(5)
    return heard(listener, system)


@pytest.fixture(scope="module")
def told() -> Iterator[Heard]:
    """All that was heard."""
    one, three = alone(), several()
    yield {name: one.get(name, []) + three.get(name, []) for name in {*one, *three}}


def published() -> set[str]:
    """Kinds that have a schema."""
    return {name.rpartition(".")[2] for name in schema_names() if name.startswith(BEGINS)}


def test_every_kind_is_told(told: Heard) -> None:
    assert published() - set(told) == set()
    assert set(told) - published() <= OWN | UNPUBLISHED


@pytest.mark.parametrize("name", sorted(published()))
def test_it_keeps_to_its_schema(told: Heard, name: str) -> None:
    for document in told[name]:
        schema = schema_of(document["type"])
        assert schema is not None
        assert violations(document, schema) == MISTAKEN.get(name, []), json.dumps(document)
