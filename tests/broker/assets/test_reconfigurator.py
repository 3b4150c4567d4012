"""Groups that are brought to other servers while the cluster serves."""

from typing import Any

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import consumer, stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers."""
    return ClusterPlay()


def voters(cluster: ClusterPlay, group: str) -> set[str]:
    """Names of the servers that vote in a group, as its leader has it."""
    leader = cluster.leader(group)
    peers = {server.peer: server.name for server in cluster}
    return {peers[peer] for peer in leader.engine.groups.by_name[group].raft.members.voters}


def hosts(cluster: ClusterPlay, stream_name: str = "S") -> set[str]:
    """Servers with a replica."""
    return {one.name for one in cluster if ("A", stream_name) in one.engine.assets.streams}


def update(cluster: ClusterPlay, **more: Any) -> None:
    """Change the stream."""
    (answer,) = cluster.leader().request_all("$JS.API.STREAM.UPDATE.S", 1, **stream(**more))
    assert "error" not in answer, answer


def test_every_server_joins_the_meta_group(cluster: ClusterPlay) -> None:
    assert voters(cluster, "_meta_") == {"n1", "n2", "n3"}
    meta = cluster.leader().engine.meta.state
    assert {server.name for server in meta.servers.values()} == {"n1", "n2", "n3"}


def test_a_stream_scales_up_and_down_with_its_messages(cluster: ClusterPlay) -> None:
    leader = cluster.leader()
    leader.request_all("$JS.API.STREAM.CREATE.S", 1, **stream(replicas=1))
    client = leader.connect("a")
    for _ in range(20):
        client.publish("s.x", b"hello", "ack")
    cluster.run(0.5)
    group = cluster.group_of("S")
    update(cluster, replicas=3)
    cluster.wait(lambda: len(voters(cluster, group)) == 3, "three replicas")
    cluster.wait(
        lambda: all(one.engine.assets.streams[("A", "S")].store.state().messages == 20
                    for one in cluster),
        "all have all",
    )  # fmt: skip
    cluster.wait(lambda: not any(one.engine.assets.unsettled for one in cluster), "settled")
    update(cluster, replicas=1)
    cluster.wait(lambda: len(hosts(cluster)) == 1, "one replica")
    cluster.wait(lambda: not any(one.engine.assets.unsettled for one in cluster), "settled")
    assert len(voters(cluster, group)) == 1
    left = next(one for one in cluster if one.name in hosts(cluster))
    assert left.engine.assets.streams[("A", "S")].store.state().messages == 20
    others = [one for one in cluster if one is not left]
    assert not any(one.disk.list(f"streams/{group}") for one in others), "nothing is left over"


def test_a_change_waits_for_who_is_not_there(cluster: ClusterPlay) -> None:
    leader = cluster.leader()
    leader.request_all("$JS.API.STREAM.CREATE.S", 1, **stream(replicas=1))
    group = cluster.group_of("S")
    away = next(one for one in cluster if one not in (leader, cluster.leader(group)))
    away.halt()
    cluster.run(0.5)
    update(cluster, replicas=3)
    cluster.run(3)
    host = cluster.leader(group)
    waits = host.engine.reconfigurator.status[group]
    assert waits.what in ("catchup", "membership") and waits.why
    away.begin()
    cluster.wait(lambda: len(voters(cluster, group)) == 3, "all three")
    cluster.wait(lambda: group not in host.engine.reconfigurator.status, "nothing to wait for")


def test_consumers_follow_their_stream(cluster: ClusterPlay) -> None:
    leader = cluster.leader()
    leader.request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    leader.request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    cluster.wait(lambda: len(voters(cluster, cluster.group_of("S", "C"))) == 3, "three")
    update(cluster, replicas=1)
    cluster.wait(lambda: len(hosts(cluster)) == 1, "one replica of the stream")
    cluster.wait(lambda: voters(cluster, cluster.group_of("S", "C")) == hosts(cluster), "one of C")


def test_a_removed_server_leaves_and_stays_out(cluster: ClusterPlay) -> None:
    leader = cluster.leader()
    gone = next(one for one in cluster if one is not leader)
    gone.halt()
    cluster.run(6)
    system = leader.connect("sys")
    system.subscribe("answer")
    body = b'{"peer":"%s"}' % gone.name.encode()
    system.publish("$JS.API.SERVER.REMOVE", body, "answer")
    cluster.wait(lambda: gone.name not in voters(cluster, "_meta_"), "it left")
    gone.begin()
    cluster.run(5)
    assert gone.engine.cluster.removed and gone.name not in voters(cluster, "_meta_")
    gone.halt()
    gone.wipe()
    gone.begin()
    cluster.wait(lambda: gone.name in voters(cluster, "_meta_"), "with an empty store it joins")


def test_a_wiped_server_is_filled_up_again(cluster: ClusterPlay) -> None:
    leader = cluster.leader()
    leader.request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    client = leader.connect("a")
    for _ in range(10):
        client.publish("s.x", b"hello", "ack")
    cluster.run(1)
    wiped = next(one for one in cluster if cluster.maybe_leader(cluster.group_of("S")) is not one)
    wiped.halt()
    wiped.wipe()
    cluster.run(0.5)
    wiped.begin()
    cluster.run(0.3)
    group = cluster.group_of("S")
    for name, one in wiped.engine.groups.by_name.items():
        if name in ("_meta_", group):
            assert one.raft.standing.kind.name == "UNKNOWN" or one.raft.commit > 0
    cluster.wait(
        lambda: (
            ("A", "S") in wiped.engine.assets.streams
            and wiped.engine.assets.streams[("A", "S")].store.state().messages == 10
        ),
        "it has the messages",
        30,
    )
    groups = wiped.engine.groups.by_name.values()
    cluster.wait(
        lambda: all(one.raft.standing.kind.name == "WHOLE" for one in groups), "no doubt is left"
    )
