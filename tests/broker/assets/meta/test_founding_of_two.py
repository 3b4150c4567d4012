"""Two servers found a cluster, and one of them dies at once: it goes on when that is back."""

from collections.abc import Callable

import pytest

from jsctl.broker.assets.meta.group_file import META_GROUP
from tests.support.cluster_play import ClusterPlay, ServerPlay
from tests.support.stream_requests import stream


class Early(ClusterPlay):
    """Servers whose time has not begun when they are made."""

    begun = False

    def run(self, seconds: float) -> None:
        if self.begun:
            super().run(seconds)

    def until(self, fact: Callable[[], bool]) -> None:
        """Let time go by in the smallest steps until something is so."""
        self.begun = True
        for _ in range(200):
            if fact():
                return
            self.run(0.05)
        raise AssertionError("it does not come to that")


def has_founded(server: ServerPlay) -> bool:
    return server.engine.meta.founding is not None


def voters(server: ServerPlay) -> int:
    return len(server.engine.groups.by_name[META_GROUP].raft.members.voters)


def works(cluster: ClusterPlay, asked: ServerPlay, replicas: int) -> None:
    """There is a leader, and a stream can be made."""
    cluster.wait(lambda: cluster.maybe_leader("_meta_") is not None, "a meta leader")
    cluster.run(1)
    config = stream("S", replicas)
    (answer,) = asked.request_all("$JS.API.STREAM.CREATE.S", 2, **config)
    assert "error" not in answer
    assert len({one.engine.meta.founding for one in cluster}) == 1


@pytest.mark.parametrize("steps", [0, 1, 3, 6, 12])
@pytest.mark.parametrize("victim", ["n1", "n2"])
def test_one_of_two_dies_right_after_they_founded(victim: str, steps: int) -> None:
    cluster = Early(2)
    cluster.until(lambda: any(map(has_founded, cluster)))
    cluster.run(0.05 * steps)
    cluster[victim].halt()
    cluster[victim].disk.crash()
    cluster.run(2)
    cluster[victim].begin()
    works(cluster, cluster["n2"], 2)


def test_a_third_one_that_comes_meanwhile_is_taken_in_later() -> None:
    cluster = Early(3)
    cluster["n3"].halt()
    cluster.until(lambda: has_founded(cluster["n1"]) and has_founded(cluster["n2"]))
    cluster["n2"].halt()
    cluster["n3"].begin()
    cluster.run(8)
    assert cluster.maybe_leader("_meta_") is None, "one of two is no majority"
    cluster["n2"].begin()
    works(cluster, cluster["n3"], 3)
    cluster.wait(lambda: all(voters(one) == 3 for one in cluster), "three voters")
    cluster["n1"].halt()
    cluster.wait(lambda: cluster.maybe_leader("_meta_") is not None, "two of three go on")
