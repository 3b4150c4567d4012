"""Messages with a time to live of their own: they go in time, not before, and nothing else goes."""

from collections.abc import Callable

import pytest

from jsctl.broker.jetstream.streams.ttl import Ttls
from tests.simulation.hunting import drawn, hunt
from tests.simulation.plan import draw_ttl
from tests.simulation.run import Simulation
from tests.simulation.world import SECOND

Patch = pytest.MonkeyPatch
FIXED = 5


def test_fixed_seeds_with_times_to_live() -> None:
    over = 0
    for seed in range(FIXED):
        run = Simulation(draw_ttl(seed)).run()
        books = [known.books for known in run.checker.groups.values() if known.books is not None]
        over += sum(len(one.model.over) for one in books)
    assert over > 20, "some messages have a time to live"


def _too_early(patch: Patch) -> None:
    due = Ttls.due
    patch.setattr(Ttls, "due", lambda self, now_ns, most: due(self, now_ns + 9 * SECOND, most))
    next_due_ns = Ttls.next_due_ns

    def early(self: Ttls) -> int | None:
        found = next_due_ns(self)
        return None if found is None else found - 9 * SECOND

    patch.setattr(Ttls, "next_due_ns", early)


def _never(patch: Patch) -> None:
    patch.setattr(Ttls, "next_due_ns", lambda self: None)
    patch.setattr(Ttls, "due", lambda self, now_ns, most: [])


def _the_one_behind(patch: Patch) -> None:
    add = Ttls.add
    patch.setattr(Ttls, "add", lambda self, seq, time_ns, ttl: add(self, seq + 1, time_ns, ttl))


@pytest.mark.planted
@pytest.mark.parametrize(
    ("plant", "first"),
    [(_too_early, 3), pytest.param(_never, 2, marks=pytest.mark.mutants), (_the_one_behind, 2)],
)
def test_a_time_to_live_that_is_not_kept_is_found(
    plant: Callable[[Patch], None], first: int, monkeypatch: Patch
) -> None:
    hunt(plant, drawn(draw_ttl, first, FIXED), monkeypatch)
