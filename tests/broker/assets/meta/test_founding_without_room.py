"""Who founds, joins or leaves a cluster when the disk has no room for it waits for some."""

import pytest

from tests.broker.assets.meta.test_founding_of_two import Early, has_founded, works
from tests.support.cluster_play import ServerPlay

ROOM = 1 << 40


def fill(server: ServerPlay, left: int) -> None:
    server.disk.capacity -= server.disk.free_bytes() - left


@pytest.mark.parametrize("left", [0, 200, 330])
@pytest.mark.parametrize("victim", ["n1", "n2", "n3"])
def test_who_has_no_room_takes_part_as_soon_as_there_is_some(victim: str, left: int) -> None:
    cluster = Early(3)
    fill(cluster[victim], left)
    cluster.begun = True
    cluster.run(5)
    assert not has_founded(cluster[victim])
    said = [line for line in cluster[victim].logs if "waits for room" in line]
    assert len(said) == 1 and "founding" in said[0]
    assert any(has_founded(one) for one in cluster) == (victim != founder(cluster).name)
    cluster[victim].disk.capacity = ROOM
    works(cluster, cluster[victim], 3)


def founder(cluster: Early) -> ServerPlay:
    return min(cluster, key=lambda one: one.peer)


def takes_part(server: ServerPlay) -> bool:
    return server.engine.meta.takes_part


def test_who_is_removed_goes_as_soon_as_that_can_be_written_down() -> None:
    cluster = Early(3)
    cluster.begun = True
    cluster.run(2)
    works(cluster, cluster["n1"], 3)
    leader = cluster.maybe_leader("_meta_")
    gone = next(one for one in cluster if one is not leader)
    fill(gone, 0)
    gone.engine.meta.told_to_go()
    cluster.run(0.2)
    assert takes_part(gone)
    gone.disk.capacity = ROOM
    cluster.run(0.2)
    assert not takes_part(gone)
    gone.halt()
    gone.begin()
    assert not takes_part(gone)
