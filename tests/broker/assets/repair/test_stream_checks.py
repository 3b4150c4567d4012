"""Checks on demand, and replicas that are compared."""

import json
from typing import Any

import pytest

from jsctl.broker.assets.engine_options import ScrubLimits
from jsctl.broker.assets.repair.differences import Differences, Search
from jsctl.broker.peers.items import RangeAnswer
from jsctl.broker.store.record import Record
from tests.broker.assets.repair.test_damaged_reads import ask, zero_all
from tests.broker.assets.repair.test_repairs import COUNT, filled, follower, segments, whole
from tests.broker.assets.test_damaged_replica import fill, keep, store_of
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.forging import forged
from tests.support.node_play import NodePlay
from tests.support.stream_requests import stream

pytestmark = pytest.mark.slow

SUBJECT = "$JS.API.STREAM.CHECK.S"


@pytest.fixture(scope="module")
def scene() -> ClusterPlay:
    return filled()


def checked(cluster: ClusterPlay) -> Any:
    """The end of a check, asked for at a server that need not lead."""
    server = follower(cluster)
    (answer,) = ask(cluster, server, SUBJECT, 0.3, start=True)
    for _ in range(50):
        check = json.loads(answer)["check"]
        if check["done"]:
            return check
        (answer,) = ask(cluster, server, SUBJECT, 0.3)
    raise AssertionError(check)


def test_before_the_first_check_there_is_nothing_to_tell() -> None:
    cluster = filled()
    (answer,) = ask(cluster, cluster["n1"], SUBJECT, 0.3)
    assert "check" not in json.loads(answer)
    (answer,) = ask(cluster, cluster["n1"], "$JS.API.STREAM.CHECK.T", 0.3, start=True)
    assert json.loads(answer)["error"]["err_code"] == 10059


def test_sound_replicas_are_whole_and_equal(scene: ClusterPlay) -> None:
    check = checked(scene)
    assert [one["name"] for one in check["replicas"]] == ["n1", "n2", "n3"]
    assert len({(one["applied"], one["digest"]) for one in check["replicas"]}) == 1
    assert "different" not in check
    for one in check["replicas"]:
        assert one["bytes"] == one["total"] > 10_000
        assert not one["findings"] and "damaged" not in one


def test_damage_is_found_told_and_repaired(scene: ClusterPlay) -> None:
    victim = follower(scene)
    zero_all(victim.disk, segments(victim)[0])
    check = checked(scene)
    found = {one["name"]: one for one in check["replicas"]}
    assert found[victim.name]["findings"] == 1
    assert found[victim.name]["repaired"] == COUNT
    assert "damaged" not in found[victim.name]
    assert sum(one["findings"] for one in found.values()) == 1
    whole(scene)
    scene.run(1)
    again = checked(scene)
    assert again["id"] > check["id"]
    assert not any(one["findings"] for one in again["replicas"])


def test_what_is_lost_for_good_is_told() -> None:
    cluster = filled()
    for one in cluster:
        zero_all(one.disk, segments(one)[0])
        one.halt()
        one.begin()
    cluster.run(8)
    check = checked(cluster)
    for one in check["replicas"]:
        assert one["damaged"] == one["lost"] == [{"first": 1, "last": COUNT}]


def test_a_server_that_is_away_is_named_and_not_waited_for() -> None:
    cluster = filled()
    victim = follower(cluster)
    victim.halt()
    cluster.run(3)
    server = cluster.leader(cluster.group_of("S"))
    ask(cluster, server, SUBJECT, 3, start=True)
    (answer,) = ask(cluster, server, SUBJECT, 0.3)
    check = json.loads(answer)["check"]
    assert check["done"]
    assert [one["name"] for one in check["replicas"] if one.get("offline")] == [victim.name]


def test_a_server_that_begins_anew_in_the_middle_of_a_check_is_asked_again() -> None:
    cluster = filled()
    group = cluster.group_of("S")
    leader, victim = cluster.leader(group), follower(cluster)
    scrubber = victim.engine.upkeep.scrubber
    scrubber.limits = ScrubLimits(scrubber.limits.interval_ns, 1000)
    ask(cluster, leader, SUBJECT, 0.3, start=True)
    checkup = leader.engine.upkeep.checks.checkups[group]
    cluster.wait(lambda: checkup.reports[victim.peer] is not None, "it has said how far it is")
    assert not checkup.is_done
    victim.halt()
    victim.begin()
    cluster.wait(lambda: checkup.is_done, "the check is done", 15)


def test_who_asks_while_a_check_goes_on_has_all_read_anew() -> None:
    cluster = filled()
    group = cluster.group_of("S")
    leader = cluster.leader(group)
    victim, slow = (one for one in cluster if one is not leader)
    scrubber = slow.engine.upkeep.scrubber
    limits = scrubber.limits
    scrubber.limits = ScrubLimits(limits.interval_ns, 1000)
    ask(cluster, leader, SUBJECT, 0.3, start=True)
    checkup = leader.engine.upkeep.checks.checkups[group]

    def read() -> bool:
        report = checkup.reports[victim.peer]
        return report is not None and report.done

    cluster.wait(read, "one of them is read")
    cluster.run(1)
    assert not checkup.is_done
    scrubber.limits = limits
    zero_all(victim.disk, segments(victim)[0])
    check = checked(cluster)
    found = {one["name"]: one for one in check["replicas"]}
    assert found[victim.name]["findings"] == 1 and "damaged" not in found[victim.name]
    whole(cluster)


def test_the_check_of_a_leader_that_leads_no_more_is_in_nobodys_way() -> None:
    cluster = filled()
    group = cluster.group_of("S")
    leader, slow = cluster.leader(group), follower(cluster)
    scrubber = slow.engine.upkeep.scrubber
    scrubber.limits = ScrubLimits(scrubber.limits.interval_ns, 8000)
    ask(cluster, leader, SUBJECT, 0.3, start=True)
    assert not leader.engine.upkeep.checks.checkups[group].is_done
    while cluster.leader(group) is leader:
        cluster["n1"].request_all("$JS.API.STREAM.LEADER.STEPDOWN.S", 1)
    assert checked(cluster)["done"], "reading takes longer than who asks waits for a report"


def test_an_answer_that_is_ahead_of_who_leads_no_more_is_not_waited_for() -> None:
    cluster = filled()
    server = follower(cluster)
    replica = server.engine.assets.streams["A", "S"]
    differences = server.engine.upkeep.checks.differences
    ended: list[object] = []
    bounds = 1, replica.store.last_seq
    search = Search(replica, "other", bounds[0], lambda: True, ended.append, bounds[1])
    differences._searches[replica.group.name, "other", True] = search
    search.held = RangeAnswer(replica.group.key, 1, 10**9, bounds[1], [], [])
    search.until_ns = 0
    differences.tick(cluster.now_ns)
    assert len(ended) == 1 and differences.next_due_ns() is None


def test_what_was_checked_is_not_kept_when_it_is_deleted() -> None:
    """Its messages may be in memory."""
    play = NodePlay()
    client = play.connect("a")
    chained = {"metadata": {"jsctl.chain": "sha256"}}
    client.ask("$JS.API.STREAM.CREATE.S", **stream("S", 1, storage="memory"))
    client.ask("$JS.API.STREAM.CREATE.T", **stream("T", 1, **chained))
    client.ask("$JS.API.STREAM.CHECK.S", start=True)
    client.ask("$JS.API.STREAM.VERIFY.T", start=True)
    play.run(1)
    assert client.ask("$JS.API.STREAM.CHECK.S")["check"]["done"]
    assert client.ask("$JS.API.STREAM.VERIFY.T")["audit"]["done"]
    for name in "ST":
        client.ask(f"$JS.API.STREAM.DELETE.{name}")
    play.run(1)
    assert play.node.engine is not None
    upkeep = play.node.engine.upkeep
    assert not upkeep.checks.checkups and not upkeep.audits.audits


def test_replicas_that_differ_without_damage_are_told_of() -> None:
    cluster = filled()
    leader, victim = cluster.leader(cluster.group_of("S")), follower(cluster)
    cluster.run(11)
    store = store_of(victim)
    store.remove([7], store.mark)
    fill(cluster, leader, COUNT, 30)
    cluster.run(11)
    assert [line for line in leader.logs if "other messages than this leader" in line]
    check = checked(cluster)
    assert check["different"] == [victim.name]
    (found,) = check["differences"]
    assert (found["name"], found["first"], found["last"]) == (victim.name, 7, 7)
    assert found["entry"] > 0
    assert [line for line in leader.logs if line.endswith("the first is 7")]
    assert store.load(7) is None, "nothing is done about it"
    for one in cluster:
        if one is not leader:
            assert not any("other messages" in line for line in one.logs)


def altered(server: ServerPlay, count: int) -> None:
    """Other bytes in the first messages of a server, with all checksums right."""
    server.halt()
    (path,) = segments(server)
    done = 0

    def change(rows: list[Record]) -> list[Record]:
        nonlocal done
        many = max(count - done, 0)
        done += len(rows)
        changed = [one._replace(payload=b"?" + one.payload[1:]) for one in rows[:many]]
        return [*changed, *rows[many:]]

    server.disk.overwrite(path, forged(server.disk.content(path), change))
    for one in server.disk.paths():
        if one.endswith(("/index", ".cat")):
            server.disk.remove(one)
    server.begin()


def differences(cluster: ClusterPlay) -> list[tuple[str, int, int]]:
    """As the leader tells them after a check."""
    fill(cluster, cluster.leader(cluster.group_of("S")), COUNT, 30)
    check = checked(cluster)
    return [(one["name"], one["first"], one["last"]) for one in check.get("differences", [])]


def test_what_the_leader_lacks_is_found() -> None:
    cluster = filled()
    leader = cluster.leader(cluster.group_of("S"))
    store = store_of(leader)
    store.remove([20, 21, 22, 90], store.mark)
    others = [one.name for one in cluster if one is not leader]
    assert differences(cluster) == [(name, 20, 22) for name in others]


def test_other_bytes_are_found() -> None:
    cluster = filled()
    victim = follower(cluster)
    altered(victim, 3)
    cluster.run(3)
    assert differences(cluster) == [(victim.name, 1, 3)]


def test_what_limits_remove_meanwhile_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = filled(max_msgs=COUNT)
    leader, victim = cluster.leader(cluster.group_of("S")), follower(cluster)
    store = store_of(victim)
    store.remove([150], store.mark)
    asked: list[int] = []
    ask_peer = Differences._ask

    def busy(self: Differences, search: Search) -> None:
        """The leader removes before each answer what the peer still told of."""
        asked.append(search.begin)
        ask_peer(self, search)
        if len(asked) < 4:
            client = leader.connect("a")
            for _ in range(5):
                client.publish("s.1", b"x")

    monkeypatch.setattr(Differences, "_ask", busy)
    fill(cluster, leader, COUNT, 30)
    check = checked(cluster)
    (found,) = check["differences"]
    assert (found["first"], found["last"]) == (150, 150)
    assert asked


def test_replicas_are_equal_under_load_and_after_removals() -> None:
    cluster = filled(max_msgs=150, max_msgs_per_subject=20)
    leader = cluster.leader(cluster.group_of("S"))
    for first in (COUNT, COUNT + 100):
        fill(cluster, leader, first, 77)
        leader.request_all("$JS.API.STREAM.PURGE.S", 0.2, filter="s.3", keep=1)
    keep(cluster)
    victim = follower(cluster)
    victim.halt()
    victim.begin()
    cluster.run(12)
    fill(cluster, cluster.leader(cluster.group_of("S")), COUNT + 300, 40)
    cluster.run(12)
    assert "different" not in checked(cluster)
    assert not any("other messages" in line for one in cluster for line in one.logs)
