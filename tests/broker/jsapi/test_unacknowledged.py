"""What was published, or acknowledged, without an answer counts for who asks right behind it."""

import json
from typing import Any

import pytest

from jsctl.broker.jsapi.deciding.settling import WAIT_NS
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import consumer, stream

PUBLISH = b"PUB s.1 1\r\nx\r\n"
INFOS = ("STREAM.INFO.S", "CONSUMER.INFO.S.C", "STREAM.LIST", "CONSUMER.LIST.S")


def counted(payload: bytes) -> int:
    """How many messages an answer tells of."""
    told: dict[str, Any] = json.loads(payload)
    for name in ("streams", "consumers"):
        if name in told:
            assert len(told[name]) == 1, told
            told = told[name][0]
    return int(told["state"]["messages"] if "state" in told else told["num_pending"])


@pytest.fixture
def cluster() -> ClusterPlay:
    """With a stream and a consumer."""
    made = ClusterPlay()
    made["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(replicas=1))
    made["n1"].request_all("$JS.API.CONSUMER.DURABLE.CREATE.S.C", 1, **consumer())
    return made


@pytest.fixture
def server(cluster: ClusterPlay) -> ServerPlay:
    """The one that has the stream."""
    return cluster.leader(cluster.group_of("S"))


@pytest.mark.parametrize("request_", INFOS)
def test_an_info_counts_what_came_before_it_in_the_same_turn_and_is_being_stored(
    cluster: ClusterPlay, server: ServerPlay, request_: str
) -> None:
    client = server.connect("a")
    client.subscribe("got")
    for count in range(1, 4):
        server.disk_held = True
        client.send(PUBLISH + b"PUB $JS.API.%s got 0\r\n\r\n" % request_.encode())
        cluster.run(0.1)
        assert client.messages == [], "it is not stored yet"
        server.release_disk()
        cluster.wait(lambda: bool(client.messages), "it is answered")
        ((_, _, payload),) = client.messages
        assert counted(payload) == count
        client.messages.clear()


def test_an_info_of_a_work_queue_counts_what_was_acknowledged_before_it() -> None:
    cluster = ClusterPlay()
    queue = stream(replicas=1, retention="workqueue")
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **queue)
    cluster["n1"].request_all("$JS.API.CONSUMER.DURABLE.CREATE.S.C", 1, **consumer())
    server = cluster.leader(cluster.group_of("S", "C"))
    client = server.connect("a")
    client.subscribe("got")
    for count in range(1, 4):
        client.send(PUBLISH + PUBLISH + b"PUB $JS.API.CONSUMER.MSG.NEXT.S.C got 0\r\n\r\n")
        cluster.wait(lambda: bool(client.messages), "it is delivered")
        ((_, reply, _),) = client.messages
        ack = reply.encode()
        client.messages.clear()
        server.disk_held = True
        client.send(b"PUB %s 0\r\n\r\nPUB $JS.API.STREAM.INFO.S got 0\r\n\r\n" % ack)
        cluster.run(0.1)
        assert client.messages == [], "it is not stored yet"
        server.release_disk()
        cluster.wait(lambda: bool(client.messages), "it is answered")
        ((_, _, payload),) = client.messages
        assert counted(payload) == count, "one of two goes"
        client.messages.clear()


@pytest.mark.parametrize("request_", INFOS[2:])
def test_a_list_does_not_wait_for_a_disk_that_stands_still(
    cluster: ClusterPlay, server: ServerPlay, request_: str
) -> None:
    client = server.connect("a")
    client.subscribe("got")
    server.disk_held = True
    client.send(PUBLISH + b"PUB $JS.API.%s got 0\r\n\r\n" % request_.encode())
    cluster.run(WAIT_NS / 1e9 - 0.2)
    assert client.messages == []
    cluster.wait(lambda: bool(client.messages), "it is answered", 1)
    ((_, _, payload),) = client.messages
    assert counted(payload) == 0
    server.release_disk()
