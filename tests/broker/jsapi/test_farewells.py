"""When a delete is answered whose asset is led by another server than the meta leader."""

from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import stream


def led_elsewhere() -> tuple[ClusterPlay, ServerPlay, ServerPlay]:
    """A cluster with a stream; the meta leader, and the stream's leader on another server."""
    cluster = ClusterPlay()
    meta = cluster.leader()
    for attempt in range(20):
        meta.request_all(f"$JS.API.STREAM.CREATE.S{attempt}", 1, **stream(f"S{attempt}"))
        leader = cluster.leader(cluster.group_of(f"S{attempt}"))
        if leader is not meta:
            return cluster, meta, leader
        meta.request_all(f"$JS.API.STREAM.DELETE.S{attempt}", 1)
    raise AssertionError("the meta leader leads all streams")


def name_of(leader: ServerPlay) -> str:
    return next(iter(leader.engine.meta.state.streams("A")))


def test_it_waits_until_the_leader_has_let_go() -> None:
    cluster, meta, leader = led_elsewhere()
    subject = f"$JS.API.STREAM.DELETE.{name_of(leader)}"
    client = meta.connect("a")
    client.subscribe("answer")
    leader.disk_held = True
    client.publish(subject, b"", "answer")
    cluster.run(0.2)
    assert not meta.engine.assets.streams and leader.engine.assets.streams
    assert not client.heard("answer")
    leader.release_disk()
    cluster.run(0.1)
    assert not leader.engine.assets.streams
    (answer,) = client.heard("answer")
    assert answer["success"]


def test_it_does_not_wait_for_ever() -> None:
    _, meta, leader = led_elsewhere()
    leader.disk_held = True
    (answer,) = meta.request_all(f"$JS.API.STREAM.DELETE.{name_of(leader)}", 3)
    # It leads no more without the others, who let go of their replicas.
    assert answer["success"] and leader.engine.assets.streams


def test_it_does_not_wait_for_a_leader_that_is_gone() -> None:
    cluster, meta, leader = led_elsewhere()
    client = meta.connect("a")
    client.subscribe("answer")
    leader.disk_held = True
    client.publish(f"$JS.API.STREAM.DELETE.{name_of(leader)}", b"", "answer")
    cluster.run(0.2)
    assert not client.heard("answer")
    leader.halt()
    cluster.run(0.2)
    (answer,) = client.heard("answer")
    assert answer["success"]
