"""Planted bugs: one of some plans has to show each of them."""

from collections.abc import Callable

import pytest

from tests.simulation.plan import Plan
from tests.simulation.run import failure


def hunt(
    plant: Callable[[pytest.MonkeyPatch], None],
    drawing: Callable[[int], Plan],
    monkeypatch: pytest.MonkeyPatch,
    seeds: int,
) -> None:
    """A check finds the bug in a plan that passes without it; else the test fails."""
    for seed in range(seeds):
        plan = drawing(seed)
        with monkeypatch.context() as planted:
            plant(planted)
            told = failure(plan)
        if told.startswith("Violation") and not failure(plan):
            print(f"found with seed {seed}: {told}")
            return
    pytest.fail(f"not found in {seeds} seeds")
