"""What connections cost that do nothing."""

import sys
from types import FrameType
from typing import Any

from tests.support.node_play import NodePlay

FEW, MANY = 5, 100
FIRST_PING_NS = 2_000_000_000
STEP_NS = 1_000_000
STEPS = 420
"""In this time, at another moment for each, all are pinged that came at once."""
SPREAD = 60
"""Lines that differ between turns."""


def lines_in(play: NodePlay) -> int:
    """How many lines of Python one turn runs."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        play.turn()
    finally:
        sys.settrace(None)
    return lines


def cost_of_a_ping(count: int) -> int:
    play = NodePlay()
    clients = [play.connect("a") for _ in range(count)]
    pinged, costs = 0, []
    play.now_ns += FIRST_PING_NS - STEP_NS
    for _ in range(STEPS):
        play.now_ns += STEP_NS
        lines = lines_in(play)
        before, pinged = pinged, sum(client.lines.count(b"PING") for client in clients)
        if pinged == before + 1:
            costs.append(lines)
    assert pinged == count
    return min(costs)


def test_a_turn_with_a_ping_looks_at_no_other_connection() -> None:
    """Each is looked at when its own time comes."""
    assert cost_of_a_ping(MANY) - cost_of_a_ping(FEW) < SPREAD
