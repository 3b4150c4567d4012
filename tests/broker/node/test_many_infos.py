"""What a list of many streams or consumers costs, counted in steps of the interpreter.

The bounds are what was counted and some room; putting objects together and writing them, each time
and with their configs, took three times as many.
"""

import json

import pytest

from jsctl.broker.jsapi import gathering
from tests.support.node_play import NodePlay, PlayClient
from tests.support.steps import steps_of

COUNT = 200
STREAM_STEPS_MAX = 950
CONSUMER_STEPS_MAX = 750


def listed(client: PlayClient, subject: str, field: str) -> int:
    """Steps of an info in a list that was asked for before."""
    (first,) = client.request(subject)
    client.messages.clear()
    client.subscribe("again")
    steps = steps_of(lambda: client.publish(subject, b"", "again"))
    (again,) = [body for to, _, body in client.messages if to == "again"]
    assert len(json.loads(again)[field]) == COUNT
    assert again == first, "nothing has changed, not even the time"
    return steps // COUNT


def test_an_info_in_a_list_of_streams_takes_few_steps() -> None:
    client = NodePlay().connect("a")
    for number in range(COUNT):
        name = f"S{number:03}"
        assert "error" not in client.ask(f"$JS.API.STREAM.CREATE.{name}", name=name)
    assert listed(client, "$JS.API.STREAM.LIST", "streams") <= STREAM_STEPS_MAX


def test_an_info_in_a_list_of_consumers_takes_few_steps() -> None:
    client = NodePlay().connect("a")
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.S", name="S")
    for number in range(COUNT):
        config = {"durable_name": f"C{number:03}", "ack_policy": "explicit"}
        subject = f"$JS.API.CONSUMER.DURABLE.CREATE.S.C{number:03}"
        assert "error" not in client.ask(subject, stream_name="S", config=config)
    assert listed(client, "$JS.API.CONSUMER.LIST.S", "consumers") <= CONSUMER_STEPS_MAX


def test_a_list_tells_of_a_config_that_has_changed() -> None:
    client = NodePlay().connect("a")
    for text in ("one", "two"):
        for operation in ("CREATE", "UPDATE"):
            client.ask(f"$JS.API.STREAM.{operation}.S", name="S", description=text)
        config = {"durable_name": "C", "ack_policy": "explicit", "description": text}
        made = client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config=config)
        assert "error" not in made
        (stream,) = client.ask("$JS.API.STREAM.LIST")["streams"]
        (consumer,) = client.ask("$JS.API.CONSUMER.LIST.S")["consumers"]
        assert (stream["config"]["description"], consumer["config"]["description"]) == (text, text)


def test_a_list_tells_of_what_was_made_anew() -> None:
    play = NodePlay()
    client = play.connect("a")
    told: set[tuple[str, str]] = set()
    config = {"durable_name": "C", "ack_policy": "explicit"}
    for _ in range(2):
        client.ask("$JS.API.STREAM.CREATE.S", name="S")
        client.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config=config)
        (stream,) = client.ask("$JS.API.STREAM.LIST")["streams"]
        (consumer,) = client.ask("$JS.API.CONSUMER.LIST.S")["consumers"]
        told.add((stream["created"], consumer["created"]))
        assert client.ask("$JS.API.STREAM.DELETE.S")["success"]
        play.run(1)
    assert len({first for first, _ in told}) == len({second for _, second in told}) == 2


def test_what_lists_begin_with_is_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "BEGINNINGS_KEPT", 3)
    play = NodePlay()
    client = play.connect("a")
    names = [f"S{number}" for number in range(6)]
    for name in names:
        large = {"large": "x" * 5000} if name == "S5" else {}
        assert "error" not in client.ask(f"$JS.API.STREAM.CREATE.{name}", name=name, metadata=large)
    for _ in range(2):
        listed = client.ask("$JS.API.STREAM.LIST")["streams"]
        assert [one["config"]["name"] for one in listed] == names
    assert play.node.jetstream is not None
    kept = play.node.jetstream.api.gathering.beginnings
    assert [name for _, name, _ in kept] == ["S2", "S3", "S4"]
