"""Origins of mirrors that are behind a prefix may be anybody: what they answer ends no server."""

import json
from typing import Any

import pytest

from tests.support.node_play import NodePlay, PlayClient

CREATED = {
    "type": "io.nats.jetstream.api.v1.consumer_create_response",
    "stream_name": "X",
    "name": "c",
    "created": "2026-01-01T00:00:00Z",
    "delivered": {"consumer_seq": 0, "stream_seq": 0},
    "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
}
REFUSED = {"code": 404, "err_code": 10059, "description": "stream not found"}
STRANGE: list[object] = ["x", -1, 1e300, 10**30, [], {}, None, True, "", "y" * 100_000]


def begun(play: NodePlay, answer: dict[str, Any]) -> tuple[PlayClient, str]:
    """An origin that has answered the first question of its mirror M, and where it delivers."""
    client = play.connect("a")
    client.subscribe("far.>")
    mirror = {"name": "X", "external": {"api": "far.api", "deliver": "far.d"}}
    client.ask("$JS.API.STREAM.CREATE.M", name="M", mirror=mirror)
    (asked,) = [one for one in client.messages if one[0].startswith("far.api.CONSUMER.CREATE")]
    config = json.loads(asked[2])["config"]
    client.publish(asked[1], json.dumps({"config": config, **answer}).encode())
    play.run(0.5)
    assert play.exit is None and not play.faults
    return client, config["deliver_subject"]


def answered(answer: dict[str, Any]) -> dict[str, Any]:
    """What a mirror shows of its origin after an answer to its first question."""
    client, _ = begun(NodePlay(), answer)
    info = client.ask("$JS.API.STREAM.INFO.M")
    assert len(json.dumps(info)) < 10_000
    shown: dict[str, Any] = info["mirror"]
    return shown


@pytest.mark.parametrize("value", STRANGE)
@pytest.mark.parametrize("key", ["name", "delivered", "ack_floor", "config", "created"])
def test_a_consumer_of_other_types(key: str, value: object) -> None:
    fields: dict[str, Any] = {"stream_seq": value, "consumer_seq": value}
    answered({**CREATED, key: fields if key in ("delivered", "ack_floor") else value})


@pytest.mark.parametrize("value", STRANGE)
@pytest.mark.parametrize("key", ["code", "err_code", "description", ""])
def test_a_mistake_of_other_types(key: str, value: object) -> None:
    answered({"error": {**REFUSED, key: value} if key else value})


def test_what_an_origin_says_is_shown() -> None:
    assert answered({"error": REFUSED})["error"] == REFUSED
    assert "error" not in answered(CREATED)


@pytest.mark.parametrize("stalled", [False, True])
def test_an_origin_has_nothing_said_but_that_it_may_go_on(stalled: bool) -> None:
    """What it names to be answered is published by the server, which may do everything."""
    play = NodePlay()
    client, deliver = begun(play, CREATED)
    assert "error" not in client.ask("$JS.API.STREAM.CREATE.V", name="V", subjects=["v"])
    client.subscribe("$JS.FC.>")
    for to in ("$JS.API.STREAM.DELETE.V", "v", "$JS.FC.X.c.1"):
        head = "NATS/1.0 100 FlowControl Request\r\n\r\n"
        if stalled:
            head = f"NATS/1.0 100 Idle Heartbeat\r\nNats-Consumer-Stalled: {to}\r\n\r\n"
        client.publish(deliver, reply="" if stalled else to, headers=head.encode())
    play.run(0.5)
    state = client.ask("$JS.API.STREAM.INFO.V")
    assert "error" not in state and state["state"]["messages"] == 0
    assert [one[0] for one in client.messages if one[0].startswith("$JS.FC.")] == ["$JS.FC.X.c.1"]
