"""Machines whose clocks are set: leases and promises go by a clock that nobody sets."""

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import SECOND_NS

TICK_NS = 50_000_000


@pytest.mark.parametrize(
    ("seen_ns", "passed_ns", "ticks"),
    [
        (10 * SECOND_NS, TICK_NS, 1),
        (0, 3 * TICK_NS, 3),
        (SECOND_NS // 2, 20 * TICK_NS, 20),
        (0, TICK_NS - 1, 0),
    ],
)
def test_ticks_follow_what_really_went_by(seen_ns: int, passed_ns: int, ticks: int) -> None:
    """The turn's own time follows a clock that is set forward, and is slow where it is set back."""
    engine = ClusterPlay().leader().engine
    group, now_ns = engine.meta.group, engine.context.now_ns
    engine.groups.read(group, 1)
    engine.tick_early(now_ns, now_ns)
    engine.tick_late()
    before = group.raft.now
    engine.tick_early(now_ns + seen_ns, now_ns + passed_ns)
    engine.tick_late()
    assert group.raft.now - before == ticks
    assert engine.context.now_ns == now_ns + seen_ns
    due_ns = engine.urgent_ns()
    assert due_ns is not None and due_ns <= engine.context.now_ns + TICK_NS


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
