"""Whoever asks is answered, whatever becomes of the servers that his request passes through."""

import json

import pytest

from jsctl.broker.jsapi.forwarded import SILENT_NS
from jsctl.broker.options import SECOND_NS
from jsctl.broker.peers.liveness import DOWN_AFTER_NS
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient
from tests.support.stream_requests import consumer, stream

CHECK = "$JS.API.STREAM.CHECK.S"


@pytest.fixture
def cluster() -> ClusterPlay:
    """With a stream S of three replicas."""
    play = ClusterPlay()
    (answer,) = play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    assert "error" not in answer
    return play


def leader_of(cluster: ClusterPlay) -> ServerPlay:
    return cluster.leader(cluster.group_of("S"))


def follower_of(cluster: ClusterPlay) -> ServerPlay:
    return next(one for one in cluster if one is not leader_of(cluster))


def answers(client: PlayClient) -> dict[str, int]:
    """How many came for each question."""
    found: dict[str, int] = {}
    for subject, _, _ in client.messages:
        found[subject] = found.get(subject, 0) + 1
    return found


def test_a_server_that_stood_still_passes_on_what_came_meanwhile(cluster: ClusterPlay) -> None:
    asked, leader = follower_of(cluster), leader_of(cluster)
    client = asked.connect("a")
    client.subscribe("in.*")
    asked.pause()
    # The leader gives it up; it does not know of that.
    cluster.run((DOWN_AFTER_NS + 0.2 * SECOND_NS) / SECOND_NS)
    assert not leader.engine.cluster.online(asked.peer)
    for number in range(3):
        client.publish(CHECK, b"{}", f"in.{number}")
    asked.go_on()
    cluster.run(1)
    assert answers(client) == {f"in.{number}": 1 for number in range(3)}
    for _, _, payload in client.messages:
        assert "error" not in json.loads(payload), "who leads can answer"


@pytest.mark.parametrize("away_ns", range(1_600_000_000, 2_000_000_000, 50_000_000))
def test_who_leads_answers_when_it_goes_on(cluster: ClusterPlay, away_ns: int) -> None:
    (answer,) = cluster["n1"].request_all("$JS.API.STREAM.CREATE.T", 1, **stream("T", 1))
    assert "error" not in answer
    leader = cluster.leader(cluster.group_of("T"))
    asked = next(one for one in cluster if one is not leader)
    client = asked.connect("a")
    client.subscribe("in.*")
    leader.pause()
    cluster.run(away_ns / SECOND_NS - 0.3)
    client.publish("$JS.API.STREAM.CHECK.T", b"{}", "in.0")
    cluster.run(0.3)
    assert answers(client) == {}, "it waits"
    leader.go_on()
    cluster.run(1)
    assert answers(client) == {"in.0": 1}
    assert "error" not in json.loads(client.messages[0][2])


def test_a_change_waits_for_a_leader_that_is_slow(cluster: ClusterPlay) -> None:
    """It is silent for longer than others take it to live; it does what was asked, or says that it
    leads no more."""
    leader = cluster.leader()
    asked = next(one for one in cluster if one is not leader)
    client = asked.connect("a")
    client.subscribe("in.*")
    leader.pause()
    client.publish("$JS.API.STREAM.CREATE.T", json.dumps(stream("T", 1)).encode(), "in.0")
    cluster.run((DOWN_AFTER_NS + SILENT_NS) / 2 / SECOND_NS)
    assert not asked.engine.cluster.online(leader.peer) and answers(client) == {}
    leader.go_on()
    cluster.run(2)
    assert answers(client) == {"in.0": 1}
    assert "error" not in json.loads(client.messages[0][2])


def test_requests_that_meet_a_change_of_leaders_are_answered(cluster: ClusterPlay) -> None:
    clients = [one.connect("a") for one in cluster]
    for client in clients:
        client.subscribe("in.>")
    asked = 0
    group = cluster.group_of("S")
    for number in range(12):
        leader = leader_of(cluster)
        target = [one for one in cluster if one is not leader][number % 2]
        raft = leader.engine.groups.by_name[group].raft
        assert raft.transfer(target.peer)
        leader.engine.groups.touch(leader.engine.groups.by_name[group])
        for _ in range(8):
            for place, client in enumerate(clients):
                client.publish(CHECK, b"{}", f"in.{place}.{asked}")
            asked += 1
            cluster.run(0.05)
        cluster.run(0.5)
    cluster.run(3)
    wanted = {f"in.{place}.{number}": 1 for place in range(3) for number in range(asked)}
    found: dict[str, int] = {}
    for place, client in enumerate(clients):
        found |= {key: n for key, n in answers(client).items() if key.startswith(f"in.{place}.")}
    assert found == wanted


def test_what_is_lost_with_one_of_several_links_is_answered(cluster: ClusterPlay) -> None:
    asked, leader = follower_of(cluster), leader_of(cluster)
    client = asked.connect("a")
    client.subscribe("in.*")
    cluster.cut.add(frozenset((asked.name, leader.name)))
    client.publish(CHECK, b"{}", "in.lost")
    cluster.cut.clear()
    asked.break_link(leader)
    client.publish(CHECK, b"{}", "in.later")
    cluster.run(1)
    assert answers(client) == {"in.later": 1}
    assert leader.engine.cluster.online(asked.peer), "other links are there"
    cluster.run(2)
    assert answers(client) == {"in.later": 1, "in.lost": 1}
    _, _, payload = client.messages[-1]
    assert json.loads(payload)["error"]["err_code"] == 10008


def test_whose_servers_are_all_gone_is_offline(cluster: ClusterPlay) -> None:
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.T", 1, **stream("T", 1))
    body = {"stream_name": "T", "config": {"durable_name": "c", "ack_policy": "explicit"}}
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.T.c", 1, **body)
    gone = cluster.leader(cluster.group_of("T"))
    asked = next(one for one in cluster if one is not gone)
    gone.pause()
    cluster.run((DOWN_AFTER_NS + 0.2 * SECOND_NS) / SECOND_NS)
    client = asked.connect("a")
    client.subscribe("in.*")
    for number, words in enumerate(("STREAM.INFO.T", "STREAM.PURGE.T", "CONSUMER.INFO.T.c")):
        client.publish(f"$JS.API.{words}", b"", f"in.{number}")
    cluster.run(5)
    found = {to: json.loads(payload)["error"]["err_code"] for to, _, payload in client.messages}
    assert found == {"in.0": 10118, "in.1": 10118, "in.2": 10119}


def test_a_consumer_without_a_leader_is_told_of_wherever_its_replicas_are(
    cluster: ClusterPlay,
) -> None:
    (answer,) = cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer())
    assert "error" not in answer
    left = cluster.leader()
    for one in cluster:
        if one is not left:
            one.halt()
    cluster.run(5)
    (answer,) = left.request_all("$JS.API.CONSUMER.INFO.S.C", 3)
    assert answer["error"]["err_code"] == 10008
    (answer,) = left.request_all("$JS.API.STREAM.INFO.S", 3)
    assert "error" not in answer, "it tells what it has"
