"""Many who ask for the same asset at once, as services do that start together: all are answered."""

import json
from typing import Any

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream

ASKERS = 4


@pytest.fixture(scope="module")
def cluster() -> ClusterPlay:
    return ClusterPlay()


def asked(cluster: ClusterPlay, subject: str, *bodies: dict[str, Any]) -> list[Any]:
    """The answers to requests that come in one turn, in any order."""
    client = cluster.leader().connect("a")
    client.subscribe("answer.*")
    sent = b""
    for number, body in enumerate(bodies):
        payload = json.dumps(body).encode()
        head = b"PUB $JS.API.%b answer.%d %d\r\n" % (subject.encode(), number, len(payload))
        sent += head + payload + b"\r\n"
    client.send(sent)
    cluster.run(1)
    return [answer for number in range(len(bodies)) for answer in client.heard(f"answer.{number}")]


def test_a_stream_is_made_once(cluster: ClusterPlay) -> None:
    answers = asked(cluster, "STREAM.CREATE.S", *[stream()] * ASKERS)
    assert [one["config"]["name"] for one in answers] == ["S"] * ASKERS
    assert sorted(one.get("did_create", False) for one in answers) == [False] * 3 + [True]


def test_each_is_told_of_its_own_update(cluster: ClusterPlay) -> None:
    asked(cluster, "STREAM.CREATE.S", stream())
    limits = range(10, 10 + ASKERS)
    answers = asked(cluster, "STREAM.UPDATE.S", *[stream(max_msgs=limit) for limit in limits])
    assert sorted(one["config"]["max_msgs"] for one in answers) == [*limits]


def test_a_consumer_is_made_and_changed(cluster: ClusterPlay) -> None:
    asked(cluster, "STREAM.CREATE.S", stream())
    for most in (3, 4):
        config = consumer(max_deliver=most)
        answers = asked(cluster, "CONSUMER.CREATE.S.C", *[config] * ASKERS)
        assert [one["config"]["max_deliver"] for one in answers] == [most] * ASKERS
