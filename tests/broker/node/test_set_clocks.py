"""Clocks that somebody sets while a cluster runs."""

from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import SECOND_NS


def all_up(play: ClusterPlay) -> bool:
    """Whether each server hears all others."""
    return all(
        server.engine.cluster.liveness.is_up(other.peer)
        for server in play
        for other in play
        if other is not server
    )


def test_a_clock_that_is_set_forward_makes_nobody_silent() -> None:
    play = ClusterPlay()
    leader = play.leader()
    term = leader.engine.meta.group.raft.term
    for _ in range(3):
        play.now_ns += 10 * SECOND_NS
        play.set_ns += 10 * SECOND_NS
        for _ in range(30):
            play.run(0.05)
            assert all_up(play)
    assert play.leader() is leader
    assert leader.engine.meta.group.raft.term == term


def test_time_that_went_by_makes_silent_ones_known() -> None:
    play = ClusterPlay()
    play.isolate("n3")
    play.run(1.5)
    assert not play["n1"].engine.cluster.liveness.is_up(play["n3"].peer)
