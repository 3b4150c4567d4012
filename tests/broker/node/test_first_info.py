"""What is told of a consumer that was just made is what is for it: nothing is delivered before."""

import json

import pytest

from tests.support.cluster_play import ClusterPlay

COUNT = 5


@pytest.fixture(scope="module")
def cluster() -> ClusterPlay:
    """Streams with messages, of one replica and of three."""
    made = ClusterPlay()
    for replicas in (1, 3):
        server = made["n1"]
        name = f"S{replicas}"
        (answer,) = server.request_all(
            f"$JS.API.STREAM.CREATE.{name}",
            5,
            name=name,
            subjects=[f"{name}.>"],
            num_replicas=replicas,
        )
        assert "error" not in answer
        client = server.connect("a")
        for number in range(COUNT):
            client.publish(f"{name}.{number}", b"x")
        made.run(1)
    return made


@pytest.mark.parametrize("stored", ["file", "memory"])
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("name", ["n1", "n2", "n3"])
def test_all_is_pending_when_it_is_answered(
    cluster: ClusterPlay, name: str, replicas: int, stored: str
) -> None:
    client = cluster[name].connect("a")
    client.subscribe("answer")
    client.subscribe("deliver")
    cluster.run(0.5)
    client.messages.clear()
    config = {
        "deliver_subject": "deliver",
        "deliver_policy": "last_per_subject",
        "filter_subject": f"S{replicas}.>",
        "ack_policy": "none",
        "mem_storage": stored == "memory",
        "num_replicas": 1,
        "inactive_threshold": 60_000_000_000,
    }
    body = json.dumps({"stream_name": f"S{replicas}", "config": config}).encode()
    client.publish(f"$JS.API.CONSUMER.CREATE.S{replicas}", body, "answer")
    cluster.wait(lambda: len(client.messages) == 1 + COUNT, "an answer, and all messages")
    (made,) = client.heard("answer")
    assert made["num_pending"] == COUNT
    assert made["delivered"]["consumer_seq"] == 0
    client.request(f"$JS.API.CONSUMER.DELETE.S{replicas}.{made['name']}")
