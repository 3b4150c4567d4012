"""Audits: replicas are compared on demand, and whoever differs is named with the first sequence."""

import json
from typing import Any

import pytest

from jsctl.broker.assets.repair.differences import Outcome
from jsctl.broker.assets.replicas.stream_replica import Difference
from jsctl.broker.peers.items import RangeAnswer
from tests.broker.assets.repair.test_damaged_reads import ask, zero_all
from tests.broker.assets.repair.test_repairs import COUNT, filled, follower, segments
from tests.broker.assets.repair.test_stream_checks import altered
from tests.broker.assets.test_damaged_replica import fill, store_of
from tests.support.cluster_play import ClusterPlay
from tests.support.stream_requests import stream

pytestmark = pytest.mark.slow

SUBJECT = "$JS.API.STREAM.AUDIT.S"


def audited(cluster: ClusterPlay) -> Any:
    """The end of an audit, asked for at a server that need not lead."""
    server = follower(cluster)
    (answer,) = ask(cluster, server, SUBJECT, 0.3, start=True)
    for _ in range(100):
        audit = json.loads(answer)["audit"]
        if audit["done"]:
            return audit
        (answer,) = ask(cluster, server, SUBJECT, 0.3)
    raise AssertionError(audit)


def states(audit: Any) -> dict[str, str]:
    return {one["name"]: one["state"] for one in audit["replicas"]}


def leader_name(cluster: ClusterPlay) -> str:
    return cluster.leader(cluster.group_of("S")).name


def test_equal_replicas_are_the_same_up_to_the_end() -> None:
    cluster = filled()
    (answer,) = ask(cluster, cluster["n1"], SUBJECT, 0.3)
    assert "audit" not in json.loads(answer)
    audit = audited(cluster)
    told = states(audit)
    assert told.pop(leader_name(cluster)) == "leader"
    assert list(told.values()) == ["same", "same"]
    assert {(one["messages"], one["up_to"]) for one in audit["replicas"]} == {(COUNT, COUNT)}
    assert (audit["first_seq"], audit["last_seq"]) == (1, COUNT)


@pytest.mark.parametrize(
    ("subject", "code"),
    [("STREAM.AUDIT.NONE", 10059), ("STREAM.AUDIT.ALONE", 10051)],
)
def test_what_cannot_be_audited_is_refused(subject: str, code: int) -> None:
    cluster = filled()
    config = stream(name="ALONE", subjects=["alone"], num_replicas=1)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.ALONE", 1, **config)
    (answer,) = ask(cluster, cluster["n1"], f"$JS.API.{subject}", 0.5, start=True)
    assert json.loads(answer)["error"]["err_code"] == code


def test_other_bytes_with_right_checksums_are_named() -> None:
    cluster = filled()
    victim = follower(cluster)
    altered(victim, 3)
    cluster.run(3)
    audit = audited(cluster)
    found = {one["name"]: one for one in audit["replicas"]}
    assert (found[victim.name]["state"], found[victim.name]["first"]) == ("different", 1)
    assert found[victim.name]["last"] == 3
    assert sorted(states(audit).values()) == ["different", "leader", "same"]


@pytest.mark.parametrize("gone", [[7], [COUNT - 1, COUNT]])
def test_a_replica_that_lacks_messages_is_named(gone: list[int]) -> None:
    cluster = filled()
    victim = follower(cluster)
    store = store_of(victim)
    store.remove(gone, store.mark)
    (found,) = [one for one in audited(cluster)["replicas"] if one["name"] == victim.name]
    assert (found["state"], found["first"], found["last"]) == ("different", gone[0], gone[-1])


def test_what_the_leader_lacks_is_found_on_all_others() -> None:
    cluster = filled()
    store = store_of(cluster.leader(cluster.group_of("S")))
    store.remove([20, 21], store.mark)
    others = [one for one in audited(cluster)["replicas"] if one["state"] != "leader"]
    assert [(one["state"], one["first"], one["last"]) for one in others] == [
        ("different", 20, 21)
    ] * 2


def test_who_is_away_is_never_the_same() -> None:
    cluster = filled()
    victim = follower(cluster)
    victim.halt()
    cluster.run(3)
    server = cluster.leader(cluster.group_of("S"))
    ask(cluster, server, SUBJECT, 3, start=True)
    (answer,) = ask(cluster, server, SUBJECT, 0.3)
    audit = json.loads(answer)["audit"]
    assert audit["done"]
    assert states(audit)[victim.name] == "offline"
    assert sorted(states(audit).values()) == ["leader", "offline", "same"]


@pytest.mark.parametrize(("dies", "state"), [(True, "offline"), (False, "unanswered")])
def test_who_does_not_answer_is_never_the_same(
    monkeypatch: pytest.MonkeyPatch, dies: bool, state: str
) -> None:
    cluster = filled()
    victim, server = follower(cluster), cluster.leader(cluster.group_of("S"))
    monkeypatch.setattr(victim.engine.upkeep.audits, "asked", lambda peer, request: None)
    ask(cluster, server, SUBJECT, 1, start=True)
    if dies:
        victim.halt()
    cluster.run(25)
    (answer,) = ask(cluster, server, SUBJECT, 0.3)
    audit = json.loads(answer)["audit"]
    assert audit["done"]
    assert states(audit)[victim.name] == state


def test_damage_is_not_compared_and_told() -> None:
    cluster = filled()
    victim = follower(cluster)
    others = [one for one in cluster if one is not victim]
    zero_all(victim.disk, segments(victim)[0])
    store_of(victim).close()
    for one in others:
        zero_all(one.disk, segments(one)[0])
        store_of(one).close()
    audit = audited(cluster)
    assert set(states(audit).values()) == {"damaged"}
    for one in audit["replicas"]:
        assert one["damaged"] == [{"first": 1, "last": COUNT}]


@pytest.mark.slow
def test_under_load_and_removals_equal_replicas_are_the_same() -> None:
    cluster = filled(max_msgs=150, max_msgs_per_subject=20)
    leader = cluster.leader(cluster.group_of("S"))
    client = leader.connect("a")
    (answer,) = ask(cluster, leader, SUBJECT, 0.01, start=True)
    for number in range(60):
        client.publish(f"s.{number % 5}", b"x" * number)
        if number % 20 == 0:
            leader.request_all("$JS.API.STREAM.PURGE.S", 0.01, filter="s.3", keep=1)
    cluster.run(3)
    (answer,) = ask(cluster, leader, SUBJECT, 0.3)
    audit = json.loads(answer)["audit"]
    assert sorted(states(audit).values()) == ["leader", "same", "same"], audit
    fill(cluster, leader, COUNT + 300, 40)
    assert sorted(states(audited(cluster)).values()) == ["leader", "same", "same"]


def test_a_leader_that_changes_knows_nothing_of_it() -> None:
    cluster = filled()
    leader = cluster.leader(cluster.group_of("S"))
    audited(cluster)
    leader.request_all("$JS.API.STREAM.LEADER.STEPDOWN.S", 3)
    cluster.run(3)
    assert cluster.leader(cluster.group_of("S")) is not leader
    (answer,) = ask(cluster, leader, SUBJECT, 0.3)
    assert "audit" not in json.loads(answer)


def test_a_search_ends_with_its_stream_also_where_an_answer_waits() -> None:
    """An answer that speaks of entries which will not come here any more keeps nobody awake."""
    cluster = filled()
    leader, peer = cluster.leader(cluster.group_of("S")), follower(cluster).peer
    replica = leader.engine.assets.streams[("A", "S")]
    differences, outcomes = leader.engine.upkeep.checks.differences, list[Outcome]()
    differences.look_between(replica, peer, (1, 10), lambda: True, outcomes.append)
    (search,) = differences._searches.values()
    leader.engine.outbox.parcel(peer).wanted.clear()
    index = replica.standing_index + 1000
    differences.told(peer, RangeAnswer(replica.group.key, search.token, index, 10, [], []))
    leader.request_all("$JS.API.STREAM.DELETE.S", 1)
    cluster.run(1)
    assert outcomes == [Outcome(is_known=False)]
    assert differences.next_due_ns() is None


def test_a_search_does_not_begin_anew_where_the_peer_has_nothing_yet() -> None:
    cluster = filled()
    leader, peer = cluster.leader(cluster.group_of("S")), follower(cluster).peer
    replica = leader.engine.assets.streams[("A", "S")]
    replica.different[peer] = Difference(replica.standing_index)
    differences = leader.engine.upkeep.checks.differences
    differences.look(replica, peer)
    (search,) = differences._searches.values()
    search.begin, wanted = 150, leader.engine.outbox.parcel(peer).wanted
    for index in (replica.standing_index, 0):
        wanted.clear()
        token = search.token
        differences.told(peer, RangeAnswer(replica.group.key, token, index, 0, [], []))
        assert (search.begin, wanted) == (150, [])
    assert not differences.searching(cluster.group_of("S")), "it has no replica any more"
