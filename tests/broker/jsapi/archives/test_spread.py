"""Restores in a cluster: the content reaches all replicas, or there is no stream."""

import json
from typing import Any

import pytest

from tests.support import archives as support
from tests.support.archives import ask, message, packed, take
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient
from tests.support.stream_requests import consumer, stream

COUNT = 40


@pytest.fixture
def cluster() -> ClusterPlay:
    return ClusterPlay()


def waiting(cluster: ClusterPlay) -> Any:
    return lambda: cluster.run(0.1)


def archive(count: int = COUNT) -> bytes:
    head = b"NATS/1.0\r\nA: b\r\n\r\n"
    rows = [message(seq, bytes(500), headers=head if seq % 3 else b"") for seq in range(2, count)]
    state: dict[str, object] = {
        "delivered": {"consumer_seq": 9, "stream_seq": 9},
        "ack_floor": {"consumer_seq": 3, "stream_seq": 3},
    }
    state["pending"] = {"5": {"Sequence": 5, "Timestamp": 1}}
    config = {"name": "C", "durable_name": "C", "ack_policy": "explicit"}
    own = support.consumer("C", config, state)
    return packed(own, *rows, consumer_count=1, first_seq=1, last_seq=count + 5)


def restored(cluster: ClusterPlay, client: PlayClient, **more: Any) -> dict[str, Any]:
    return support.restore(client, stream(**more), archive(), waiting(cluster))


def holders(cluster: ClusterPlay, name: str = "S") -> list[ServerPlay]:
    return [one for one in cluster if one.running and ("A", name) in one.engine.assets.streams]


def digests(cluster: ClusterPlay) -> list[tuple[int, int, int]]:
    stores = [one.engine.assets.streams["A", "S"].store for one in holders(cluster)]
    return [(store.messages, store.last_seq, store.digest()) for store in stores]


def settled(cluster: ClusterPlay, count: int) -> bool:
    found = digests(cluster)
    return len(found) == count and len(set(found)) == 1 and found[0][:2] == (COUNT - 2, COUNT + 5)


def directories(server: ServerPlay) -> set[str]:
    return {
        "/".join(path.split("/")[:2])
        for path in server.disk.paths()
        if path.startswith(("streams/", "consumers/"))
    }


@pytest.mark.parametrize("storage", ["file", "memory"])
@pytest.mark.parametrize("replicas", [1, 3])
def test_all_replicas_get_everything(cluster: ClusterPlay, storage: str, replicas: int) -> None:
    client = cluster["n1"].connect("a")
    answer = restored(cluster, client, storage=storage, replicas=replicas)
    assert answer["state"]["messages"] == COUNT - 2, answer
    held = cluster.leader(cluster.group_of("S")).engine.groups.by_name[cluster.group_of("S")]
    assert len(held.raft.members.voters) == replicas, "all have it when it is answered"
    cluster.wait(lambda: settled(cluster, replicas), "all replicas are equal", 30)
    told = ask(client, "$JS.API.CONSUMER.INFO.S.C", b"", waiting(cluster))
    assert told["num_ack_pending"] == 1 and told["ack_floor"]["stream_seq"] == 3
    assert told["delivered"]["stream_seq"] == 9
    client.subscribe("ack")
    client.publish("s.x", b"goes on", "ack")
    cluster.wait(lambda: bool(client.heard("ack")), "a publish is acknowledged")
    assert client.heard("ack")[0]["seq"] == COUNT + 6


def test_the_content_survives_who_received_it(cluster: ClusterPlay) -> None:
    restored(cluster, cluster["n1"].connect("a"))
    first = cluster.leader(cluster.group_of("S"))
    first.halt()
    cluster.run(3)
    other = next(one for one in cluster if one.running).connect("a")
    cluster.leader(cluster.group_of("S"))
    told = ask(other, "$JS.API.STREAM.INFO.S", b"", waiting(cluster))
    assert told["state"]["messages"] == COUNT - 2
    first.begin()
    cluster.wait(lambda: settled(cluster, 3), "it has everything again", 30)


def test_a_server_that_is_down_is_not_waited_for(cluster: ClusterPlay) -> None:
    away = next(one for one in cluster if one is not cluster.leader())
    client = cluster.leader().connect("a")
    body = json.dumps({"config": stream(), "state": {}}).encode()
    begun = ask(client, "$JS.API.STREAM.RESTORE.S", body, waiting(cluster))
    away.halt()
    assert ask(client, begun["deliver_subject"], archive(), waiting(cluster)) == {}
    answer = ask(client, begun["deliver_subject"], b"", waiting(cluster))
    assert answer["state"]["messages"] == COUNT - 2, answer
    assert len(holders(cluster)) == 2
    away.begin()
    cluster.wait(lambda: settled(cluster, 3), "it gets everything", 30)


def test_all_servers_restart_behind_a_restore(cluster: ClusterPlay) -> None:
    restored(cluster, cluster["n1"].connect("a"))
    cluster.wait(lambda: settled(cluster, 3), "all replicas are equal", 30)
    for one in cluster:
        one.halt()
    for one in cluster:
        one.begin()
    cluster.settle()
    cluster.wait(lambda: settled(cluster, 3), "all replicas are back", 30)


@pytest.mark.parametrize("storage", ["file", "memory"])
def test_a_receiver_that_dies_leaves_nothing(cluster: ClusterPlay, storage: str) -> None:
    client = cluster["n1"].connect("a")
    body = json.dumps({"config": stream(storage=storage), "state": {}}).encode()
    begun = ask(client, "$JS.API.STREAM.RESTORE.S", body, waiting(cluster))
    assert ask(client, begun["deliver_subject"], archive(), waiting(cluster)) == {}
    cluster.run(1)
    receiver = next(one for one in cluster if one.engine.assets.prepared.receiving)
    receiver.halt()
    cluster.run(3)
    receiver.begin()
    cluster.run(5)
    assert not holders(cluster)
    assert directories(receiver) == set()
    client = cluster[receiver.name].connect("a")
    assert "error" not in restored(cluster, client, storage=storage), "the name is free"


def test_the_meta_leader_changes_meanwhile(cluster: ClusterPlay) -> None:
    meta = cluster.leader()
    other = next(one for one in cluster if one is not meta)
    client = other.connect("a")
    config = stream(replicas=1)
    body = json.dumps({"config": config, "state": {}}).encode()
    begun = ask(client, "$JS.API.STREAM.RESTORE.S", body, waiting(cluster))
    data = archive()
    assert ask(client, begun["deliver_subject"], data, waiting(cluster)) == {}
    system = meta.connect("sys")
    ask(system, "$JS.API.META.LEADER.STEPDOWN", b"", waiting(cluster))
    cluster.wait(lambda: cluster.maybe_leader("_meta_") not in (None, meta), "another one leads")
    answer = ask(client, begun["deliver_subject"], b"", waiting(cluster))
    assert answer["state"]["messages"] == COUNT - 2, answer


def test_a_name_that_is_taken_meanwhile(cluster: ClusterPlay) -> None:
    client = cluster["n1"].connect("a")
    body = json.dumps({"config": stream(), "state": {}}).encode()
    begun = ask(client, "$JS.API.STREAM.RESTORE.S", body, waiting(cluster))
    made = ask(client, "$JS.API.STREAM.CREATE.S", json.dumps(stream()).encode(), waiting(cluster))
    assert "error" not in made
    assert ask(client, begun["deliver_subject"], archive(), waiting(cluster)) == {}
    answer = ask(client, begun["deliver_subject"], b"", waiting(cluster))
    assert answer["error"]["err_code"] == 10130
    cluster.run(3)
    assert all(len(directories(one)) <= 1 for one in cluster)


def test_a_snapshot_has_consumers_that_are_elsewhere(cluster: ClusterPlay) -> None:
    client = cluster["n1"].connect("a")
    assert "error" not in ask(
        client, "$JS.API.STREAM.CREATE.S", json.dumps(stream()).encode(), waiting(cluster)
    )
    for number in range(6):
        body = consumer(f"C{number}", num_replicas=1)
        made = ask(
            client,
            f"$JS.API.CONSUMER.CREATE.S.C{number}",
            json.dumps(body).encode(),
            waiting(cluster),
        )
        assert "error" not in made
    for _ in range(5):
        client.publish("s.x", b"x")
    cluster.run(1)
    taken = take(client, "S", wait=waiting(cluster))
    assert sorted(taken.consumers) == [f"C{number}" for number in range(6)]
    assert len(taken.messages) == 5
    ask(client, "$JS.API.STREAM.DELETE.S", b"", waiting(cluster))
    answer = support.restore(client, stream(), b"".join(taken.chunks), waiting(cluster))
    assert answer["state"]["consumer_count"] == 6, answer
