"""A stream's replicas in a cluster that runs: who admits, who answers, what survives."""

import json
from dataclasses import replace

import pytest

from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient
from tests.support.stream_requests import consumer, stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers with a stream S."""
    play = ClusterPlay()
    (answer,) = play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    assert "error" not in answer
    return play


def led(cluster: ClusterPlay) -> ServerPlay:
    """Who leads S."""
    return cluster.leader(cluster.group_of("S"))


def publish(client: PlayClient, count: int = 1, subject: str = "s.x") -> list[dict[str, object]]:
    """Acknowledgements that come at once."""
    found = []
    for number in range(count):
        found += client.request(subject, b"message %d" % number)
    return [json.loads(one) for one in found]


def counts(cluster: ClusterPlay) -> list[int]:
    """Messages of all replicas that run."""
    return [
        one.engine.assets.streams[("A", "S")].store.state().messages
        for one in cluster
        if one.running
    ]


def test_every_server_takes_publishes_and_the_leader_acknowledges(cluster: ClusterPlay) -> None:
    for number, server in enumerate(cluster, 1):
        (ack,) = publish(server.connect("a"))
        assert (ack["stream"], ack["seq"]) == ("S", number)
    cluster.run(0.5)
    assert len(set(counts(cluster))) == 1


def test_nothing_is_acknowledged_before_a_majority_has_it(cluster: ClusterPlay) -> None:
    leader = led(cluster)
    client = leader.connect("a")
    others = [one for one in cluster if one is not leader]
    for one in others:
        one.disk_held = True
    assert publish(client) == []
    client.subscribe("_INBOX.>")
    others[0].release_disk()
    assert client.messages, "one follower and the leader are a majority"
    others[1].release_disk()
    cluster.run(0.5)
    assert counts(cluster) == [1, 1, 1]


def test_a_leader_that_is_cut_off_acknowledges_nothing_more(cluster: ClusterPlay) -> None:
    old = led(cluster)
    client = old.connect("a")
    assert len(publish(client, 3)) == 3
    cluster.isolate(old.name)
    assert publish(client, 2) == []
    cluster.run(4)
    group = cluster.group_of("S")
    assert not old.engine.groups.by_name[group].leading
    new = next(
        one for one in cluster if one is not old and one.engine.groups.by_name[group].leading
    )
    assert [ack["seq"] for ack in publish(new.connect("a"), 2)] == [4, 5]
    cluster.cut.clear()
    cluster.wait(lambda: counts(cluster) == [5, 5, 5], "all have the same")
    first, *rest = [one.engine.assets.streams[("A", "S")].store for one in cluster]
    assert all(store.load(seq) == first.load(seq) for store in rest for seq in range(1, 6))


def test_a_request_is_answered_once_whoever_leads_later(cluster: ClusterPlay) -> None:
    listener = cluster["n1"].connect("a")
    listener.subscribe("answer")
    cluster["n1"].request_all("$JS.API.STREAM.UPDATE.S", 1, **stream(description="new"))
    assert len(listener.heard("answer")) == 1
    old = led(cluster)
    group = old.engine.groups.by_name[cluster.group_of("S")]
    cluster.run(6)
    group.raft.transfer(None)
    old.engine.groups.touch(group)
    cluster.wait(lambda: led(cluster) is not old, "another one leads")
    cluster.run(1)
    assert len(listener.heard("answer")) == 1
    for server in cluster:
        server.halt()
    for server in cluster:
        server.begin()
    again = cluster["n1"].connect("a")
    again.subscribe("answer")
    cluster.run(4)
    led(cluster)
    assert again.heard("answer") == []


def test_everything_survives_the_end_of_all_power(cluster: ClusterPlay) -> None:
    assert len(publish(led(cluster).connect("a"), 25)) == 25
    for server in cluster:
        server.halt()
        server.disk.crash()
    for server in cluster:
        server.begin()
    cluster.run(3)
    assert [ack["seq"] for ack in publish(led(cluster).connect("a"))] == [26]
    cluster.wait(lambda: counts(cluster) == [26, 26, 26], "all are complete")


def test_new_subjects_count_from_the_answer_on(cluster: ClusterPlay) -> None:
    client = led(cluster).connect("a")
    assert publish(client, subject="t.x") == []
    led(cluster).request_all("$JS.API.STREAM.UPDATE.S", 1, **stream(subjects=["t.>"]))
    assert [ack["seq"] for ack in publish(client, subject="t.x")] == [1]
    assert publish(client, subject="s.x") == []


def test_a_config_that_is_wanted_again_is_behind_the_one_on_its_way(cluster: ClusterPlay) -> None:
    leader = led(cluster)
    replica = leader.engine.assets.streams[("A", "S")]
    first = replica.assignment
    for number, config in enumerate((replace(first.config, max_msgs=5), first.config), 1):
        replica.assign(replace(first, config=config, revision=first.revision + number))
    leader.turn()
    cluster.run(0.5)
    found = [one.engine.assets.streams[("A", "S")].stream for one in cluster]
    assert [(one.revision, one.config.max_msgs) for one in found] == 3 * [(3, -1)]


def test_interest_and_work_queues_let_go_of_what_was_consumed(cluster: ClusterPlay) -> None:
    server = cluster["n1"]
    for name, retention in (("W", "workqueue"), ("I", "interest")):
        body = stream(name, retention=retention)
        server.request_all(f"$JS.API.STREAM.CREATE.{name}", 1, **body)
        server.request_all(f"$JS.API.CONSUMER.CREATE.{name}.C", 1, **consumer(stream_name=name))
        client = server.connect("a")
        for _ in range(3):
            client.publish(f"{name.lower()}.x", b"task", "ack")
        client.subscribe("next")
        client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{name}.C", b"3", "next")
        cluster.run(0.5)
        replies = [reply for subject, reply, _ in client.messages if reply.startswith("$JS.ACK")]
        assert len(replies) == 3
        for reply in replies[:2]:
            client.publish(reply, b"+ACK")
        cluster.run(1)
        left = {one.engine.assets.streams[("A", name)].store.state().messages for one in cluster}
        assert left == {1}, retention


def test_a_deleted_stream_leaves_no_files(cluster: ClusterPlay) -> None:
    directory = f"streams/{cluster.group_of('S')}"
    publish(led(cluster).connect("a"), 3)
    cluster["n2"].request_all("$JS.API.STREAM.DELETE.S", 2)
    for server in cluster:
        assert ("A", "S") not in server.engine.assets.streams
        assert not any(path.startswith(directory) for path in server.disk.paths())
    assert publish(cluster["n1"].connect("a")) == []


def test_what_an_offer_of_leadership_in_vain_holds_up_is_done_later(cluster: ClusterPlay) -> None:
    asker = cluster["n1"]
    asker.request_all("$JS.API.STREAM.CREATE.W", 1, **stream("W", retention="workqueue"))
    asker.request_all("$JS.API.CONSUMER.CREATE.W.C", 1, **consumer(stream_name="W"))
    group = cluster.group_of("W")
    leader = cluster.leader(group)
    other = next(one for one in cluster if one is not leader)
    client = leader.connect("a")
    client.subscribe("next")
    client.publish("w.x", b"1", "ack")
    client.publish("$JS.API.CONSUMER.MSG.NEXT.W.C", b"1", "next")
    cluster.run(0.5)
    (reply,) = (back for _, back, _ in client.messages if back.startswith("$JS.ACK"))
    raft = leader.engine.groups.by_name[group].raft
    cluster.cut.add(frozenset((leader.name, other.name)))
    assert raft.transfer(other.engine.options.me)
    client.publish(reply, b"+ACK")
    changed = stream("W", retention="workqueue", description="changed")
    client.publish("$JS.API.STREAM.UPDATE.W", json.dumps(changed).encode(), "updated")
    cluster.run(0.3)
    assert raft.transferee is not None
    cluster.wait(lambda: raft.transferee is None, "the offer is withdrawn")
    cluster.cut.clear()
    cluster.run(1)
    (info,) = asker.request_all("$JS.API.STREAM.INFO.W", 0.5)
    assert cluster.leader(group) is leader
    assert (info["state"]["messages"], info["config"]["description"]) == (0, "changed")
