"""Turns that leave JetStream alone change nothing: runs are the same without them."""

from collections.abc import Callable

import pytest

from jsctl.broker.node.agenda import Agenda
from tests.simulation.far_plan import draw_edge
from tests.simulation.plan import Plan, draw_copies, draw_kinds
from tests.simulation.run import Simulation, digest


@pytest.mark.parametrize("drawing", [draw_kinds, draw_copies, draw_edge])
def test_runs_are_the_same_without_quiet_turns(
    drawing: Callable[[int], Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = 0
    rest = Agenda.rest

    def counted(self: Agenda, *, busy: bool) -> None:
        nonlocal begun
        rest(self, busy=busy)
        begun += self.quiet_until_ns > 0

    monkeypatch.setattr(Agenda, "rest", counted)
    quiet = digest(Simulation(drawing(1)).run())
    monkeypatch.setattr(Agenda, "rest", lambda self, *, busy: None)
    assert digest(Simulation(drawing(1)).run()) == quiet
    assert begun > 100
