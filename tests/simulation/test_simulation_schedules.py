"""Schedules under all faults: what is due is made once, and nothing that is over is."""

from collections.abc import Callable, Iterator

import pytest

from jsctl.broker.jetstream.scheduling.firing import Firing
from jsctl.broker.jetstream.scheduling.schedules import ScheduledMessage, Schedules
from jsctl.broker.jetstream.streams.entries import Scheduled
from jsctl.broker.jetstream.streams.stream import Stream
from tests.simulation.hunting import drawn, hunt
from tests.simulation.plan import draw_schedules
from tests.simulation.planners import Planner
from tests.simulation.run import Simulation

Patch = pytest.MonkeyPatch
FIXED = 7
HUNTED = 12


def test_fixed_seeds_with_schedules() -> None:
    done = made = 0
    for seed in range(FIXED):
        run = Simulation(draw_schedules(seed)).run()
        done += sum(one.done for one in run.publishers if isinstance(one, Planner))
        books = [one.books for one in run.checker.groups.values() if one.books is not None]
        made += sum(one.plans.made for one in books)
    assert done > 300, "publishes were acknowledged"
    assert made > 100, "schedules made messages"


def _looks_at_what_is_applied_only(patch: Patch) -> None:
    """What is on its way may end a schedule."""

    def ready(
        self: Firing, due: list[ScheduledMessage], time_ns: int
    ) -> Iterator[ScheduledMessage]:
        yield from due

    patch.setattr(Firing, "_ready", ready)


def _keeps_the_time_to_itself(patch: Patch) -> None:
    """The leader knows when a schedule is due next, and the others do not."""

    def forgetful(self: Stream, index: int, entry: Scheduled) -> None:
        pass

    patch.setattr(Stream, "_reschedule", forgetful)


def _snapshots_know_of_none(patch: Patch) -> None:
    patch.setattr(Schedules, "snapshot", lambda self: bytes(12))


def _a_message_ends_none(patch: Patch) -> None:
    patch.setattr(Schedules, "overwritten", lambda self, subjects: None)


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize(
    "plant",
    [
        _looks_at_what_is_applied_only,
        _keeps_the_time_to_itself,
        _snapshots_know_of_none,
        _a_message_ends_none,
    ],
)
def test_a_schedule_that_goes_wrong_is_found(
    plant: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_schedules, 0, HUNTED), monkeypatch)
