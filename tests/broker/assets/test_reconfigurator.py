"""Groups that are brought to other servers while the cluster serves."""

import json
from typing import Any

import pytest

from jsctl.broker.raft.types import StandingKind
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import NodePlay
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


def test_a_consumer_without_quorum_does_not_keep_its_stream_large() -> None:
    cluster = ClusterPlay(5)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(replicas=5))
    body = consumer(num_replicas=3)
    (answer,) = cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **body)
    assert "error" not in answer
    group = cluster.group_of("S", "C")
    cluster.run(2)
    peers = cluster.leader().engine.meta.state.consumer("A", "S", "C")
    assert peers is not None
    away = [one for one in cluster if one.peer in peers.group.peers][:2]
    for one in away:
        one.halt()
    cluster.run(2)
    (answer,) = cluster.leader().request_all("$JS.API.STREAM.UPDATE.S", 2, **stream(replicas=3))
    assert "error" not in answer, answer
    there = {one.name for one in cluster if one.running}
    cluster.wait(lambda: voters(cluster, cluster.group_of("S")) == there, "three that are there")
    assert cluster.maybe_leader(group) is None
    for one in away:
        one.begin()
    cluster.wait(lambda: cluster.maybe_leader(group) is not None, "the consumer is led again")
    cluster.wait(lambda: voters(cluster, group) <= there, "it follows its stream")
    cluster.wait(lambda: hosts(cluster) == there, "who left lets go of it")


def ask_system(server: ServerPlay, subject: str, **fields: object) -> Any:
    """An answer to the system account."""
    client = server.connect("sys")
    client.subscribe("answer")
    client.publish(subject, json.dumps(fields).encode(), "answer")
    server.cluster.wait(lambda: bool(client.heard("answer")), "an answer")
    return client.heard("answer")[0]


def test_a_new_server_counts_although_another_one_is_away() -> None:
    cluster = ClusterPlay(5)
    leader = cluster.leader()
    away, gone, *_ = (one for one in cluster if one is not leader)
    away.halt()
    gone.halt()
    cluster.run(1)
    gone.wipe()
    gone.begin()
    cluster.wait(
        lambda: (
            gone.engine.meta.replica is not None
            and gone.engine.meta.group.raft.standing.kind is StandingKind.WHOLE
        ),
        "who is new counts",
    )
    assert voters(cluster, "_meta_") == set(cluster.servers)
    # With the new one, what is left can lose another one.
    next(one for one in cluster if one not in (away, gone) and one.running).halt()
    cluster.run(3)
    (answer,) = gone.request_all("$JS.API.STREAM.CREATE.T", 3, **stream("T", 3))
    assert "error" not in answer


def test_who_led_what_is_no_more_is_forgotten(cluster: ClusterPlay) -> None:
    """Else each consumer that ever was costs memory, and is told of to whoever comes back."""
    client = cluster["n1"]
    client.request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    for name in "CDE":
        client.request_all(f"$JS.API.CONSUMER.CREATE.S.{name}", 1, **consumer(name))
    client.request_all("$JS.API.CONSUMER.DELETE.S.C", 1)
    names = {"_meta_", cluster.group_of("S"), *(cluster.group_of("S", one) for one in "DE")}
    assert all(set(one.engine.cluster.leaders) == names for one in cluster)
    client.request_all("$JS.API.STREAM.DELETE.S", 1)
    assert all(set(one.engine.cluster.leaders) == {"_meta_"} for one in cluster)


@pytest.mark.parametrize("leads_meta", [False, True])
def test_what_a_removed_server_led_has_another_leader_soon(leads_meta: bool) -> None:
    """It lives, and nobody hears anything else from groups that sleep."""
    cluster = ClusterPlay(4)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    leader = cluster.leader(cluster.group_of("S"))
    while (cluster.leader() is leader) != leads_meta:
        ask_system(leader, "$JS.API.META.LEADER.STEPDOWN")
        cluster.run(1)
    groups = [cluster.group_of("S"), cluster.group_of("S", "C")]
    cluster.run(5)
    assert all(leader.engine.groups.by_name[name].raft.quiet for name in groups)
    assert ask_system(leader, "$JS.API.SERVER.REMOVE", peer=leader.name)["success"]
    cluster.wait(lambda: all(map(cluster.maybe_leader, groups)), "other ones lead", 3)
    assert all(cluster.leader(name) is not leader for name in groups)
    cluster.wait(lambda: len(voters(cluster, groups[0])) == 3, "and has a third replica")


def test_what_a_removed_server_alone_holds_is_offline_although_it_lives() -> None:
    """It was the last one who told that it leads."""
    cluster = ClusterPlay(4)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(replicas=1))
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    holder = cluster.leader(cluster.group_of("S"))
    assert ask_system(holder, "$JS.API.SERVER.REMOVE", peer=holder.name)["success"]
    cluster.run(2)
    for one in (one for one in cluster if one is not holder):
        for request in ("STREAM.INFO.S", "STREAM.MSG.GET.S"):
            (answer,) = one.request_all(f"$JS.API.{request}", 3, seq=1)
            assert answer["error"]["err_code"] == 10118, (one.name, request)
        (answer,) = one.request_all("$JS.API.CONSUMER.INFO.S.C", 3)
        assert answer["error"]["err_code"] == 10119, one.name
        (answer,) = one.request_all("$JS.API.STREAM.LIST", 0.5)
        assert answer["missing"] == ["S"], "and nobody waits for it"


def test_a_removal_that_leaves_no_majority_is_refused(cluster: ClusterPlay) -> None:
    leader = cluster.leader()
    away, there = (one for one in cluster if one is not leader)
    away.halt()
    cluster.run(2)
    for peer in (there, leader):
        answer = ask_system(leader, "$JS.API.SERVER.REMOVE", peer=peer.name)
        assert answer["error"]["err_code"] == 10005
        assert f"start {away.name} first" in answer["error"]["description"]
    assert ask_system(leader, "$JS.API.SERVER.REMOVE", peer=away.name)["success"] is True
    assert cluster.leader().running


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


def test_a_consumer_that_is_made_anew_is_not_removed_as_the_one_before() -> None:
    """That was found unused, and its removal came late."""
    play = NodePlay()
    client = play.connect("a")
    client.ask("$JS.API.STREAM.CREATE.S", **stream(replicas=1))
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    assert play.node.engine is not None
    engine = play.node.engine
    unused = engine.assets.consumers["A", "S", "C"].assignment
    assert client.ask("$JS.API.CONSUMER.DELETE.S.C")["success"]
    client.ask("$JS.API.CONSUMER.CREATE.S.C", **consumer())
    engine.context.unused.append(unused)
    engine.reconfigurator.remove_unused()
    play.run(1)
    assert "error" not in client.ask("$JS.API.CONSUMER.INFO.S.C")
