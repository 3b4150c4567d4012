"""A consumer's replicas in a cluster that runs: deliveries go on whoever leads."""

import json
from dataclasses import replace

import pytest

from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import PlayClient
from tests.support.stream_requests import consumer, stream


@pytest.fixture
def cluster() -> ClusterPlay:
    """Three servers, a stream S with five messages, a pull consumer C."""
    play = ClusterPlay()
    play["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream())
    body = consumer(ack_wait=2_000_000_000)
    (answer,) = play["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **body)
    assert "error" not in answer
    client = play["n1"].connect("a")
    for number in range(1, 6):
        client.publish("s.x", b"%d" % number, "ack")
    play.run(0.5)
    return play


def led(cluster: ClusterPlay) -> ServerPlay:
    """Who leads C."""
    return cluster.leader(cluster.group_of("S", "C"))


def pull(client: PlayClient, count: int, *, wait: float = 0.5) -> list[tuple[str, bytes]]:
    """(reply, payload) of what a pull brings; an empty reply means a status."""
    inbox = f"next.{len(client.messages)}"
    client.subscribe(inbox)
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b"%d" % count, inbox)
    client.play.run(wait)
    return [(reply, payload) for _, reply, payload in client.messages if reply.startswith("$JS")]


def test_any_server_is_asked(cluster: ClusterPlay) -> None:
    for server in cluster:
        client = server.connect("a")
        ((reply, payload),) = pull(client, 1)
        client.publish(reply, b"+ACK")
        assert payload == b"%d" % server.number
    cluster.run(0.5)
    info = cluster["n1"].request_all("$JS.API.CONSUMER.INFO.S.C", 0.5)[0]
    assert (info["ack_floor"]["consumer_seq"], info["num_pending"]) == (3, 2)


def test_a_config_that_is_wanted_again_is_behind_the_one_on_its_way(cluster: ClusterPlay) -> None:
    leader = led(cluster)
    replica = leader.engine.assets.consumers[("A", "S", "C")]
    first = replica.assignment
    for config in (replace(first.config, description="other"), first.config):
        replica.assign(replace(first, config=config))
    leader.turn()
    cluster.run(0.5)
    found = [one.engine.assets.consumers[("A", "S", "C")].consumer for one in cluster]
    assert [one.config for one in found] == 3 * [first.config]
    assert len({one.config_revision for one in found}) == 1


def test_the_next_leader_goes_on_where_the_last_one_was(cluster: ClusterPlay) -> None:
    old = led(cluster)
    client = next(one for one in cluster if one is not old).connect("a")
    taken = pull(client, 2)
    assert [payload for _, payload in taken] == [b"1", b"2"]
    client.publish(taken[0][0], b"+ACK")
    cluster.run(0.3)
    old.halt()
    cluster.wait(lambda: cluster.maybe_leader(cluster.group_of("S", "C")) is not None, "a leader")
    cluster.leader(cluster.group_of("S"))
    client.messages.clear()
    found = [payload for _, payload in pull(client, 5, wait=4)]
    assert sorted(set(found)) == [b"2", b"3", b"4", b"5"], "what was not acknowledged comes again"


def test_waiting_pulls_are_told_when_the_consumer_goes(cluster: ClusterPlay) -> None:
    client = led(cluster).connect("a")
    pull(client, 10, wait=0.2)
    client.messages.clear()
    cluster["n1"].request_all("$JS.API.CONSUMER.DELETE.S.C", 1)
    assert any(payload == b"" for _, _, payload in client.messages)
    for server in cluster:
        assert ("A", "S", "C") not in server.engine.assets.consumers


def test_progress_survives_a_restart_of_all(cluster: ClusterPlay) -> None:
    client = led(cluster).connect("a")
    for reply, _ in pull(client, 3):
        client.publish(reply, b"+ACK")
    cluster.run(0.5)
    for server in cluster:
        server.engine.groups.checkpoints.soon(
            server.engine.groups.by_name[cluster.group_of("S", "C")]
        )
    cluster.run(0.2)
    for server in cluster:
        server.halt()
    for server in cluster:
        server.begin()
    cluster.run(3)
    led(cluster)
    cluster.leader(cluster.group_of("S"))
    assert [payload for _, payload in pull(cluster["n2"].connect("a"), 5)] == [b"4", b"5"]


def test_a_push_consumer_waits_for_a_listener(cluster: ClusterPlay) -> None:
    body = consumer("P", deliver_subject="to.me", ack_policy="none")
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.P", 1, **body)
    client = cluster["n3"].connect("a")
    cluster.run(1)
    client.subscribe("to.me")
    cluster.run(0.5)
    heard = [payload for subject, _, payload in client.messages if payload]
    assert heard == [b"1", b"2", b"3", b"4", b"5"]


def test_a_consumer_that_nobody_uses_is_deleted(cluster: ClusterPlay) -> None:
    body = consumer("T", inactive_threshold=1_000_000_000)
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.T", 1, **body)
    cluster.wait(
        lambda: all(("A", "S", "T") not in one.engine.assets.consumers for one in cluster),
        "it is gone",
    )


def test_a_changed_configuration_is_answered_when_it_counts(cluster: ClusterPlay) -> None:
    body = consumer(ack_wait=2_000_000_000, description="new", max_deliver=3)
    (answer,) = cluster["n2"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **body)
    assert answer["config"]["description"] == "new"
    cluster.run(0.5)
    for server in cluster:
        unit = server.engine.assets.consumers[("A", "S", "C")]
        assert unit.consumer.config.description == "new"


def test_acks_count_that_come_while_leadership_is_offered_in_vain(cluster: ClusterPlay) -> None:
    leader = led(cluster)
    group = leader.engine.groups.by_name[cluster.group_of("S", "C")]
    client = leader.connect("a")
    taken = pull(client, 2)
    other = next(one for one in cluster if one is not leader)
    cluster.cut.add(frozenset((leader.name, other.name)))
    assert group.raft.transfer(other.engine.options.me)
    for reply, _ in taken:
        client.publish(reply, b"+ACK")
    assert group.raft.transferee is not None
    cluster.wait(lambda: group.raft.transferee is None, "the offer is withdrawn")
    cluster.cut.clear()
    later = pull(client, 2)[2:]
    info = leader.request_all("$JS.API.CONSUMER.INFO.S.C", 0.5)[0]
    assert led(cluster) is leader
    assert info["ack_floor"]["stream_seq"] == 2 and info["num_ack_pending"] == 2
    assert [payload for _, payload in later] == [b"3", b"4"]
    for server in cluster:
        assert [*server.engine.assets.consumers["A", "S", "C"].consumer.state.pending] == [3, 4]


@pytest.mark.parametrize("policy", ["new", "last"])
def test_a_start_is_not_chosen_where_the_stream_is_behind(
    cluster: ClusterPlay, policy: str
) -> None:
    """The messages that a server missed are not new to a consumer that begins there."""
    leader = cluster.leader(cluster.group_of("S"))
    late, other = (server for server in cluster if server is not leader)
    late.halt()
    (ack,) = leader.connect("a").request("s.x", b"6")
    assert b'"seq"' in ack
    if cluster.leader() is leader:
        meta = leader.engine.meta.group
        assert meta.raft.transfer(other.peer)
        leader.engine.groups.touch(meta)
    cluster.cut.add(frozenset((leader.name, late.name)))
    late.begin()
    cluster.run(0.4)
    client = other.connect("a")
    for number in range(12):
        body = json.dumps(consumer(f"R{number}", deliver_policy=policy, num_replicas=1))
        client.publish(f"$JS.API.CONSUMER.CREATE.S.R{number}", body.encode(), "answer")
    cluster.run(0.4)
    begun = list(late.engine.assets.consumers.values())
    begun = [one for one in begun if one.leader and one.assignment.name.startswith("R")]
    assert begun, "consumers begin where the stream is behind"
    assert late.engine.assets.streams[("A", "S")].store.last_seq < 6
    cluster.cut.clear()
    cluster.wait(lambda: all(one.consumer.state.started for one in begun), "they start", 30)
    assert {one.consumer.state.next_stream for one in begun} == {7 if policy == "new" else 6}


def test_an_ack_is_not_lost_where_a_config_took_the_room_that_the_log_had(
    cluster: ClusterPlay,
) -> None:
    replica = led(cluster).engine.assets.consumers[("A", "S", "C")]
    client = cluster["n1"].connect("a")
    ((reply, _),) = pull(client, 1)
    raft = replica.group.raft
    raft.limits = replace(raft.limits, proposal_bytes_max=0)
    body = consumer(ack_wait=2_000_000_000, description="new")
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 0.5, **body)
    client.publish(reply, b"+ACK")
    cluster.run(0.5)
    raft.limits = replace(raft.limits, proposal_bytes_max=1)
    cluster.wait(lambda: replica.consumer.config.description == "new", "the log has the config")
    cluster.run(0.5)
    states = [one.engine.assets.consumers[("A", "S", "C")].consumer.state for one in cluster]
    assert [list(state.pending) for state in states] == [[], [], []]


def test_a_pull_that_comes_while_leadership_is_handed_over_is_told_so(cluster: ClusterPlay) -> None:
    leader = led(cluster)
    replica = leader.engine.assets.consumers[("A", "S", "C")]
    client = leader.connect("a")
    client.subscribe("next")
    replica.group.raft.transfer()
    leader.engine.groups.touch(replica.group)
    client.publish("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":1,"expires":60000000000}', "next")
    cluster.wait(lambda: replica.leader is None, "another server leads")
    cluster.run(1)
    assert [subject for subject, _, _ in client.messages] == ["next"]
