"""Operators see damage wherever they look: in the info of the stream, on pages, as advisories."""

import json
from typing import Any

import pytest

from jsctl.broker.assets.repair.repairs import Repairs
from jsctl.broker.assets.repair.scrub_targets import StreamTarget
from tests.broker.assets.repair.test_damaged_reads import ask, zero_all
from tests.broker.assets.repair.test_repairs import COUNT, filled, follower, segments, spoil_at_rest
from tests.broker.assets.test_damaged_replica import keep
from tests.support.cluster_play import ClusterPlay, ServerPlay

ADVISORY = "$JS.EVENT.ADVISORY.STREAM.DAMAGE.S"
ALL = [{"first": 1, "last": COUNT}]


def info(cluster: ClusterPlay) -> Any:
    leader = cluster.leader(cluster.group_of("S"))
    (answer,) = ask(cluster, leader, "$JS.API.STREAM.INFO.S", 0.1)
    return json.loads(answer)


def scrub(server: ServerPlay) -> Any:
    return server.get("/jsz")[1]["jsctl_scrub"]


def advisories(cluster: ClusterPlay, server: ServerPlay) -> list[Any]:
    """What a listener at a server hears from now on; to be read later."""
    client = server.connect("a")
    client.subscribe(ADVISORY)
    cluster.run(0.2)
    return client.messages


def told(messages: list[Any]) -> list[tuple[str, str, int, Any]]:
    """(action, server, messages, ranges)"""
    found = [json.loads(payload) for _, _, payload in messages]
    return [(one["action"], one["server"], one["messages"], one.get("ranges", [])) for one in found]


def test_what_is_repaired_at_once_was_told_of_with_its_range() -> None:
    cluster = filled()
    victim = follower(cluster)
    heard = advisories(cluster, cluster.leader(cluster.group_of("S")))
    victim.disk.flip_bit(segments(victim)[0], 8 * 2000)
    target = StreamTarget(victim.engine.assets.streams[("A", "S")], victim.engine.upkeep.repairs)
    (check, *_) = target.checks()
    check.step(victim.disk, 1 << 20)
    assert check.damage and target.found(check)
    cluster.run(2)
    found, repaired = told(heard)
    assert found[:2] == ("found", victim.name) and found[3]
    assert sum(one["last"] - one["first"] + 1 for one in found[3]) == found[2]
    assert repaired == ("repaired", victim.name, found[2], [])
    assert any("damaged on this server" in line for line in victim.logs)


def test_damage_is_told_until_it_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = filled()
    victim = follower(cluster)
    heard = advisories(cluster, cluster.leader(cluster.group_of("S")))
    assert "jsctl_damage" not in info(cluster)
    with monkeypatch.context() as patch:
        # Nobody answers who is asked for a message.
        patch.setattr(Repairs, "asked", lambda self, peer, request: None)
        spoil_at_rest(victim, lambda disk, path: zero_all(disk, path))
        cluster.run(3)
        damage = {"name": victim.name, "messages": COUNT, "ranges": ALL}
        assert info(cluster)["jsctl_damage"] == [damage]
        status, page = victim.get("/healthz", account="A", stream="S")
        assert status == 503
        assert f"stream 'A > S' is not current: messages 1 to {COUNT} are damaged" in page["error"]
        known = {"account": "A", "stream": "S", "messages": COUNT, "lost": 0, "ranges": ALL}
        assert scrub(victim)["damaged"] == [known]
        leader = cluster.leader(cluster.group_of("S"))
        assert scrub(leader)["damaged"] == []
        assert told(heard) == [("found", victim.name, COUNT, ALL)]
        (detail,) = leader.get("/jsz", streams="1")[1]["account_details"][0]["stream_detail"]
        assert detail["jsctl_damage"] == [damage]
    cluster.run(4)
    assert "jsctl_damage" not in info(cluster)
    assert victim.get("/healthz", account="A", stream="S")[0] == 200
    assert scrub(victim)["damaged"] == [] and scrub(victim)["repaired"] == COUNT
    assert told(heard)[1:] == [("repaired", victim.name, COUNT, [])]


def test_what_is_lost_on_all_replicas_is_told_as_such() -> None:
    cluster = filled()
    heard = [(one.name, advisories(cluster, one)) for one in cluster]
    keep(cluster)
    for one in cluster:
        raft = one.engine.groups.by_name[cluster.group_of("S")].raft
        raft.compact(raft.applied)
        zero_all(one.disk, segments(one)[0])
    # Somebody reads them.
    for one in cluster:
        store = one.engine.assets.streams[("A", "S")].store
        store.close()
        store.excerpt(1, COUNT, 1 << 30)
    cluster.run(8)
    damage = [
        {"name": name, "messages": COUNT, "lost": COUNT, "ranges": ALL}
        for name in ("n1", "n2", "n3")
    ]
    assert info(cluster)["jsctl_damage"] == damage
    for _, messages in heard:
        assert sorted(told(messages)) == [
            (action, name, COUNT, ALL)
            for action in ("found", "lost")
            for name in ("n1", "n2", "n3")
        ]
    for one in cluster:
        assert f"{COUNT} of them on all replicas" in one.get("/healthz")[1]["error"]


def test_damage_that_a_start_finds_is_one_line() -> None:
    cluster = filled()
    victim = follower(cluster)
    spoil_at_rest(victim, lambda disk, path: zero_all(disk, path))
    cluster.run(3)
    lines = [line for line in victim.logs if "are damaged on this server" in line]
    assert lines == [f"Stream 'A > S': {COUNT} messages are damaged on this server: 1 to {COUNT}"]


@pytest.mark.slow
def test_a_scrub_tells_how_far_it_is() -> None:
    cluster = filled()
    victim = follower(cluster)
    page = scrub(victim)
    assert (page["running"], page["passes"], page["findings"]) == (False, 0, [])
    assert page["interval"] == 86_400_000_000_000 and page["rate"] == 32 << 20
    zero_all(victim.disk, segments(victim)[0])
    cluster.run(60)
    page = scrub(victim)
    assert page["passes"] == 1 or page["running"]
    assert "began" in page and 0 < page["bytes"] <= page["total"]
    cluster.run(60)
    page = scrub(victim)
    assert page["passes"] == 1 and page["began"] < page["ended"]
    (finding,) = page["findings"]
    assert (finding["account"], finding["stream"], page["found"]) == ("A", "S", 1)
    assert ".seg" in finding["text"]
    assert page["repaired"] == COUNT
