"""What rests on the disk is read for damage, and what is found there is mended."""

from dataclasses import replace

import pytest

from jsctl.broker.assets.assigned_files import DIRECTORY, read_all
from jsctl.broker.assets.repair.scrub_targets import ServerTarget
from jsctl.broker.options import SECOND_NS
from jsctl.broker.store.scrub import READ_TRIES
from tests.broker.assets.repair.test_repairs import COUNT, contents, follower, segments, whole
from tests.broker.assets.test_damaged_replica import fill, keep
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.node_play import NodePlay, node_options
from tests.support.stream_requests import consumer, stream

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scene() -> ClusterPlay:
    """A stream and a consumer, all of it at rest; used again by each test, as all is mended."""
    jetstream = replace(node_options().jetstream, scrub_ns=5 * SECOND_NS)
    cluster = ClusterPlay(jetstream=jetstream)
    cluster["n1"].request_all("$JS.API.STREAM.CREATE.S", 1, **stream(max_msgs=COUNT))
    cluster["n1"].request_all("$JS.API.CONSUMER.CREATE.S.C", 1, **consumer(max_deliver=3))
    fill(cluster, cluster.leader(cluster.group_of("S")), 0, COUNT)
    keep(cluster)
    for one in cluster:
        for group in one.engine.groups.by_name.values():
            group.unit.state_overtaken()
            one.engine.groups.checkpoints.soon(group)
    cluster.run(1)
    return cluster


def chosen(server: ServerPlay, what: str) -> str:
    return next(one for one in server.disk.paths() if what in one)


def flip(server: ServerPlay, path: str, part: float = 0.5) -> None:
    server.disk.flip_bit(path, int(8 * len(server.disk.content(path)) * part))


def findings(server: ServerPlay) -> list[str]:
    return [one.text for one in server.engine.upkeep.scrubber.report.findings]


def passes(cluster: ClusterPlay, count: int) -> None:
    """Run until each server has read everything so often again."""
    want = [one.engine.upkeep.scrubber.report.passes + count for one in cluster]
    for _ in range(40):
        if all(
            one.engine.upkeep.scrubber.report.passes >= number
            for one, number in zip(cluster, want, strict=True)
        ):
            return
        cluster.run(1)
    raise AssertionError("a pass takes too long")


def test_what_is_sound_has_no_findings(scene: ClusterPlay) -> None:
    passes(scene, 2)
    for one in scene:
        assert findings(one) == []
        assert one.engine.upkeep.scrubber.report.bytes_read > 1000


@pytest.mark.parametrize(
    ("what", "part"),
    [
        (".seg", 0.5),
        (".seg", 0.001),
        (".seg", 0.999),
        (".cat", 0.5),
        ("/durable", 0.01),
        ("/state.0", 0.5),
        ("consumers/", 0.5),
        ("meta/state.", 0.5),
        ("founding/", 0.5),
        ("identity.1", 0.5),
    ],
)
def test_damage_is_found_and_mended(scene: ClusterPlay, what: str, part: float) -> None:
    victim = follower(scene)
    before = contents(victim)
    path = chosen(victim, what)
    flip(victim, path, part)
    known = len(findings(victim))
    passes(scene, 2)
    found = findings(victim)[known:]
    assert len(found) == 1, found
    assert path in found[0] or path.rpartition("/")[0] in found[0]
    assert any("Scrub found damage" in line for line in victim.logs)
    scene.run(2)
    known = len(findings(victim))
    passes(scene, 2)
    assert len(findings(victim)) == known, "it is written anew"
    whole(scene)
    assert contents(victim) == before


@pytest.mark.parametrize(
    "what", [".seg", ".cat", ".wal", "/durable", "/state.0", "founding/", "identity.1"]
)
@pytest.mark.parametrize("errors", [1, READ_TRIES - 1])
def test_a_read_that_fails_now_and_then_is_no_damage(
    scene: ClusterPlay, what: str, errors: int
) -> None:
    victim = follower(scene)
    path = chosen(victim, what)
    known = len(findings(victim))
    victim.disk.read_errors[path] = errors
    passes(scene, 2)
    assert victim.disk.read_errors.pop(path) == 0
    assert findings(victim)[known:] == []


def test_a_read_that_always_fails_is_damage(scene: ClusterPlay) -> None:
    victim = follower(scene)
    path = chosen(victim, ".seg")
    known = len(findings(victim))
    victim.disk.read_errors[path] = READ_TRIES
    passes(scene, 2)
    assert [path in one for one in findings(victim)[known:]] == [True]
    scene.run(2)
    whole(scene)


@pytest.mark.parametrize("what", ["founding/", "identity.1"])
def test_damage_waits_for_room(scene: ClusterPlay, what: str) -> None:
    victim = follower(scene)
    disk, path = victim.disk, chosen(victim, what)
    before = disk.content(path)
    flip(victim, path)
    target = ServerTarget(victim.engine.context, victim.engine.assets)
    (check,) = (one for one in target.checks() if one.path == path)
    check.step(disk, 1 << 20)
    assert check.damage
    room, disk.capacity = disk.capacity, 0
    assert target.found(check), "it is told"
    assert disk.content(path) != before
    disk.capacity = room
    assert target.found(check)
    assert disk.content(path) == before


@pytest.mark.parametrize("what", ["founding/", "identity."])
def test_a_disk_that_cannot_read_ends_nothing(scene: ClusterPlay, what: str) -> None:
    victim = follower(scene)
    disk = victim.disk
    disk.unreadable += [(one, 0, 1 << 20) for one in disk.paths() if one.startswith(what)]
    known = len(findings(victim))
    passes(scene, 2)
    assert len(findings(victim)) > known
    disk.unreadable.clear()
    scene.run(1)
    known = len(findings(victim))
    passes(scene, 2)
    assert victim.running and len(findings(victim)) == known


def test_it_stands_a_restart_afterwards(scene: ClusterPlay) -> None:
    victim = follower(scene)
    for what in (".seg", ".cat"):
        flip(victim, chosen(victim, what))
    passes(scene, 2)
    scene.run(2)
    before = contents(victim)
    victim.halt()
    victim.logs.clear()
    victim.begin()
    scene.run(3)
    assert not any("amaged" in line for line in victim.logs)
    assert contents(victim) == before


def test_a_segment_that_is_gone_is_found(scene: ClusterPlay) -> None:
    victim = follower(scene)
    before = contents(victim)
    victim.disk.remove(segments(victim)[0])
    passes(scene, 2)
    scene.run(2)
    whole(scene)
    assert contents(victim) == before


def test_damage_in_the_log_is_found_and_the_log_goes_on_elsewhere(scene: ClusterPlay) -> None:
    victim = follower(scene)
    (check, *_) = victim.engine.groups.wal.resting()
    victim.disk.flip_bit(check.path, 8 * 110)
    known = len(findings(victim))
    passes(scene, 2)
    found = findings(victim)[known:]
    assert found and all(".wal: frame 1 is damaged" in one for one in found)
    fill(scene, scene.leader(scene.group_of("S")), COUNT, 20)
    scene.run(5)
    known = len(findings(victim))
    passes(scene, 2)
    assert len(findings(victim)) == known, "no group needs that part of the log any more"
    victim.halt()
    victim.logs.clear()
    victim.begin()
    scene.run(3)
    assert not any("amaged" in line for line in victim.logs)
    whole(scene)


@pytest.mark.parametrize("way", ["flip", "zero", "cut", "remove"])
def test_what_says_whose_data_it_is_is_written_anew(way: str) -> None:
    """Only a server that stands alone has such files."""
    jetstream = replace(node_options().jetstream, scrub_ns=5 * SECOND_NS)
    play = NodePlay(node_options(jetstream=jetstream))
    engine, client = play.node.engine, play.connect("a")
    assert engine is not None
    for name in ("S", "T"):
        assert "error" not in client.ask(f"$JS.API.STREAM.CREATE.{name}", **stream(name, 1))
        made = consumer(stream_name=name)
        assert "error" not in client.ask(f"$JS.API.CONSUMER.DURABLE.CREATE.{name}.C", **made)
    play.run(12)
    report = engine.upkeep.scrubber.report
    assert report.passes >= 2 and not report.found
    before = list(read_all(play.disk))
    assert len(before) == 4 and all(made is not None for _, made in before)
    (path,) = (p for p in play.disk.paths() if p.startswith(f"{DIRECTORY}/"))
    data = play.disk.content(path)
    if way == "flip":
        play.disk.flip_bit(path, 300)
    elif way == "remove":
        play.disk.remove(path)
    else:
        play.disk.overwrite(path, bytes(len(data)) if way == "zero" else data[:-7])
    assert list(read_all(play.disk)) != before
    play.run(12)
    (finding,) = report.findings
    assert path in finding.text
    assert list(read_all(play.disk)) == before


def test_what_is_deleted_is_forgotten_with_a_pass() -> None:
    jetstream = replace(node_options().jetstream, scrub_ns=5 * SECOND_NS)
    play = NodePlay(node_options(jetstream=jetstream))
    client = play.connect("a")
    for name in "ST":
        client.ask(f"$JS.API.STREAM.CREATE.{name}", **stream(name, 1))
    play.run(10)
    assert play.node.engine is not None
    scrubber = play.node.engine.upkeep.scrubber
    both = set(scrubber.targets)
    client.ask("$JS.API.STREAM.DELETE.T")
    play.run(10)
    assert len(both) == 3 and len(set(scrubber.targets) & both) == 2
