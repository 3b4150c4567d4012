"""Operators bring back what lost its majority for good."""

import json
from typing import Any

from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.sim_disk import SimDisk
from tests.support.stream_requests import consumer, stream


def ask(at: ServerPlay, user: str, subject: str, **fields: object) -> list[Any]:
    """All answers that come within a second."""
    client = at.connect(user)
    client.subscribe("answer")
    client.publish(subject, json.dumps(fields).encode(), "answer")
    at.cluster.run(1)
    return client.heard("answer")


def fill(cluster: ClusterPlay, count: int) -> None:
    """Acknowledged messages."""
    client = cluster.leader(cluster.group_of("S")).connect("a")
    client.subscribe("ack")
    for _ in range(count):
        client.publish("s.x", b"x", "ack")
    cluster.wait(lambda: len(client.heard("ack")) == count, "all are acknowledged")


def test_what_is_left_of_a_cluster_goes_on() -> None:
    cluster = ClusterPlay()
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    fill(cluster, 20)
    left, *gone = sorted(cluster, key=lambda one: one.name)
    (refused,) = ask(left, "sys", "$JS.API.META.RESCUE", quorum_needed=1)[:1]
    assert refused["error"]["err_code"] == 10224
    assert "leader is known" in refused["error"]["description"]
    for one in gone:
        one.halt()
    cluster.run(6)
    assert cluster.maybe_leader("_meta_") is None
    for quorum in (0, 3):
        (refused,) = ask(left, "sys", "$JS.API.META.RESCUE", quorum_needed=quorum)
        assert "must be between 1 and" in refused["error"]["description"]
    assert ask(left, "a", "$JS.API.META.RESCUE", quorum_needed=1) == []
    (done,) = ask(left, "sys", "$JS.API.META.RESCUE", quorum_needed=1)
    assert (done["prev_quorum"], done["new_quorum"], done["server"]) == (2, 1, "n1")
    cluster.wait(lambda: cluster.maybe_leader("_meta_") is left, "what is left leads")
    (told,) = ask(left, "a", "$JS.API.STREAM.RESCUE.S", quorum_needed=0)
    assert told["server"] == "n1" and told["whole"] and told["last_seq"] == 20
    assert sorted(told["offline"]) == ["n2", "n3"] and "leader" not in told
    assert ask(left, "a", "$JS.API.STREAM.RESCUE.S", quorum_needed=1, server="n2") == []
    (done,) = ask(left, "a", "$JS.API.STREAM.RESCUE.S", quorum_needed=1, server="n1")
    assert (done["prev_quorum"], done["new_quorum"]) == (2, 1)
    for group in (cluster.group_of("S"), cluster.group_of("S", "C")):
        assert cluster.leader(group) is left
    fill(cluster, 5)
    for one in gone:
        (answer,) = ask(left, "sys", "$JS.API.SERVER.REMOVE", peer=one.name)
        assert answer.get("success"), answer
    cluster.wait(
        lambda: left.engine.meta.group.raft.members.voters == (left.peer,), "it is a majority again"
    )
    assert not left.engine.meta.group.raft.lowered
    cluster.run(2)
    left.halt()
    left.begin()
    cluster.leader(cluster.group_of("S"))
    fill(cluster, 5)
    assert left.engine.assets.streams[("A", "S")].store.last_seq == 30


def test_a_lowered_quorum_ends_by_itself() -> None:
    cluster = ClusterPlay()
    cluster.leader()
    cluster["n2"].halt()
    cluster["n3"].halt()
    cluster.run(3)
    ask(cluster["n1"], "sys", "$JS.API.META.RESCUE", quorum_needed=1)
    raft = cluster.leader().engine.meta.group.raft
    assert raft.lowered == 1
    raft.lowered_until = raft.now + 10
    cluster.wait(lambda: cluster.maybe_leader("_meta_") is None, "one of three is no majority")
    assert not raft.lowered


def damage(disk: SimDisk) -> None:
    """Flip a bit in each slot of the stream's state."""
    for path in disk.paths():
        if path.startswith("streams/") and "/state." in path:
            disk.flip_bit(path, 8 * (len(disk.content(path)) // 2))


def test_a_stream_of_one_replica_with_a_damaged_state_is_served_again() -> None:
    cluster = ClusterPlay()
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(replicas=1))
    fill(cluster, 20)
    host = cluster.leader(cluster.group_of("S"))
    for _ in range(2):
        groups = host.engine.groups
        groups.checkpoints.soon(groups.by_name[cluster.group_of("S")])
        cluster.run(1)
        fill(cluster, 1)
    host.halt()
    damage(host.disk)
    host.begin()
    cluster.run(5)
    assert cluster.maybe_leader(cluster.group_of("S")) is None
    other = next(one for one in cluster if one is not host)
    (told,) = ask(other, "a", "$JS.API.STREAM.RESCUE.S", quorum_needed=0)
    assert told["server"] == host.name and not told.get("whole")
    (done,) = ask(other, "a", "$JS.API.STREAM.RESCUE.S", quorum_needed=1, server=host.name)
    assert "error" not in done
    assert cluster.leader(cluster.group_of("S")) is host
    fill(cluster, 3)
