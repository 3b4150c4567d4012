"""Counters under all faults: each increment counts once, and sums are those of their parts."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from jsctl.broker.jetstream.streams import counters
from jsctl.broker.jetstream.streams.counters import CounterTotals, Counting
from tests.simulation.adders import Adder
from tests.simulation.hunting import drawn, hunt
from tests.simulation.plan import draw_counters
from tests.simulation.run import Simulation

Patch = pytest.MonkeyPatch
FIXED = 4
HUNTED = 8


def test_fixed_seeds_with_counters() -> None:
    done = 0
    for seed in range(FIXED):
        run = Simulation(draw_counters(seed)).run()
        done += sum(one.done for one in run.publishers if isinstance(one, Adder))
    assert done > 400, "increments were acknowledged"


def _forgets_what_is_in_flight(patch: Patch) -> None:
    patch.setattr(CounterTotals, "note", lambda self, seq, subject, total: None)
    find = CounterTotals.find

    def applied(self: CounterTotals, subject: bytes, last_seq: int) -> object:
        return find(self, subject, self._store.last_for(subject) or 0)

    patch.setattr(CounterTotals, "find", applied)


def _begins_again(patch: Patch) -> None:
    """A new leader knows no totals."""
    find = CounterTotals.find

    def forgetful(self: CounterTotals, subject: bytes, last_seq: int) -> object:
        return find(self, subject, last_seq if subject in self._known else 0)

    patch.setattr(CounterTotals, "find", forgetful)


def _adds_what_sources_say(patch: Patch) -> None:
    """The increment of an origin counts, whatever was missed before it."""
    advanced = counters._advanced

    def naive(origins: object, header: bytes, taken: object) -> object:
        found = advanced(origins, header, taken)  # type: ignore[arg-type]
        text = counters.blocks.get(taken.headers, b"Nats-Incr")  # type: ignore[attr-defined]
        return found and (Decimal(text.decode()), found[1])

    patch.setattr(counters, "_advanced", naive)


def _forgets_origins(patch: Patch) -> None:
    patch.setattr(counters, "_origins", lambda header: {})
    write = Counting.write

    def bare(self: Counting, taken: object, last_seq: int, seq: int) -> object:
        self._totals._known.clear()
        return write(self, taken, last_seq, seq)  # type: ignore[arg-type]

    patch.setattr(Counting, "write", bare)


@pytest.mark.planted
@pytest.mark.mutants
@pytest.mark.parametrize(
    "plant",
    [_forgets_what_is_in_flight, _begins_again, _adds_what_sources_say, _forgets_origins],
)
def test_a_total_that_is_wrong_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    hunt(plant, drawn(draw_counters, 0, HUNTED), monkeypatch)
