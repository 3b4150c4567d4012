"""Servers that sync in their own loops: while the disk works they do nothing else (decision 21).

Processes end and power goes while such a sync runs, syncs fail, and there is no room for them.
"""

from dataclasses import replace

import pytest

from jsctl.broker.turn import DiskBatch
from tests.simulation.disk_queue import DiskQueue
from tests.simulation.hunting import drawn, hunt, hunt_build
from tests.simulation.machine import Process
from tests.simulation.outcomes import outcome
from tests.simulation.plan import draw_loop
from tests.simulation.run import Simulation, failure
from tests.simulation.test_simulation_kind_mutants import IgnoresFailedDisks

BLOCK = 5
Patch = pytest.MonkeyPatch


@pytest.mark.parametrize(
    ("servers", "first"),
    [(3, 0), (5, 0)] + [pytest.param(3, first, marks=pytest.mark.mutants) for first in (5, 10, 15)],
)
def test_fixed_seeds(servers: int, first: int) -> None:
    for seed in range(first, first + BLOCK):
        plan = draw_loop(seed, servers)
        assert not outcome(plan).failure, plan


def test_who_hears_late_of_an_election_in_a_term_that_is_over_lacks_what_came_since() -> None:
    assert not failure(draw_loop(5015))


def test_syncs_run_in_loops_and_are_interrupted_there(monkeypatch: Patch) -> None:
    """The runs above are of what they say: by kills and by power cuts, within a few of them."""
    here: list[DiskBatch] = []
    cut: list[bool] = []

    def run_here(self: DiskQueue, batch: DiskBatch) -> None:
        here.append(batch)
        start(self, batch)

    def interrupt(self: DiskQueue, *, power: bool) -> None:
        if self.here:
            cut.append(power)
        end(self, power=power)

    start, end = DiskQueue.run_here, DiskQueue.interrupt
    monkeypatch.setattr(DiskQueue, "run_here", run_here)
    monkeypatch.setattr(DiskQueue, "interrupt", interrupt)
    for seed in range(11, 11 + 4 * BLOCK):
        Simulation(replace(draw_loop(seed), sync_ms=40)).run()
        if len(here) > 100 and {True, False} <= set(cut):
            return
    pytest.fail(f"{len(here)} syncs, interrupted by {cut}")


@pytest.mark.planted
def test_a_failed_sync_that_is_ignored_is_found() -> None:
    hunt_build(IgnoresFailedDisks, drawn(draw_loop, 1, 8 * BLOCK))


@pytest.mark.planted
def test_going_on_before_the_sync_has_ended_is_found(monkeypatch: Patch) -> None:
    """As if the loop told the node of its own sync before that returned."""

    told: set[tuple[Process, int]] = set()

    def hasty(self: DiskQueue, batch: DiskBatch) -> None:
        start(self, batch)
        process = self._process
        process.ran(batch.ticket, "")
        process.follow()

    def once(self: Process, ticket: int, failed: str) -> None:
        if (self, ticket) not in told:
            told.add((self, ticket))
            ran(self, ticket, failed)

    def goes_on_before_the_sync_has_ended(patch: Patch) -> None:
        patch.setattr(DiskQueue, "run_here", hasty)
        patch.setattr(Process, "ran", once)

    start, ran = DiskQueue.run_here, Process.ran
    plans = drawn(draw_loop, 0, 4 * BLOCK)
    hunt(goes_on_before_the_sync_has_ended, plans, monkeypatch, asserted=True)
