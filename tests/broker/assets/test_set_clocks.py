"""Machines whose clocks are set: leases and promises go by a clock that nobody sets."""

import pytest

from tests.support.cluster_play import ClusterPlay
from tests.support.node_play import SECOND_NS

STEADY_NS = 5_000 * SECOND_NS
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
    engine.tick_early(now_ns, STEADY_NS)
    engine.tick_late()
    before = group.raft.now
    engine.tick_early(now_ns + seen_ns, STEADY_NS + passed_ns)
    engine.tick_late()
    assert group.raft.now - before == ticks
    assert engine.context.now_ns == now_ns + seen_ns
    due_ns = engine.urgent_ns()
    assert due_ns is not None and due_ns <= engine.context.now_ns + TICK_NS
