"""What a plan comes to is found out once, by one of all workers."""

from pathlib import Path

import pytest

from tests.simulation import outcomes
from tests.simulation.outcomes import Outcome, Outcomes
from tests.simulation.plan import Plan

PLAN = Plan(1, 3, chaos_ms=1_000)


def test_others_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, stranger = Outcomes(), Outcomes(), Outcomes()
    with one.shared(tmp_path / "told"), other.shared(tmp_path / "told"):
        found = one.of(PLAN)
        assert not found.failure and found.acknowledged > 0 and found.digest
        monkeypatch.setattr(outcomes, "_run", lambda plan: Outcome(f"run: {plan.seed}"))
        assert one.of(PLAN) == other.of(PLAN) == found
        assert other.of(Plan(2, 3)) == one.of(Plan(2, 3)) == Outcome("run: 2")
    assert other.of(PLAN) == found
    assert stranger.of(PLAN) == Outcome("run: 1")
