"""Planted bugs: one of some plans has to show each of them, and which one did is noted."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from jsctl.dataclass import dataclass
from tests.simulation.outcomes import outcome
from tests.simulation.plan import Plan
from tests.simulation.run import failure
from tests.simulation.settings import Build

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class Found:
    """What became of the search for one planted bug."""

    bug: str
    plan: str
    told: str
    """By which check."""


found: list[Found] = []
"""Since whoever takes them cleared this."""


def drawn(
    drawing: Callable[..., Plan], first: int, count: int, servers: Sequence[int] = (3,)
) -> Iterator[tuple[str, Plan]]:
    """Plans of some seeds with their names. A search begins at the seed that showed the bug last,
    as that saves time, and goes on, as timings may have moved."""
    for seed in range(first, first + count):
        for size in servers:
            yield f"{drawing.__name__}({seed}, {size})", drawing(seed, size)


def hunt(
    plant: Plant,
    plans: Iterable[tuple[str, Plan]],
    patch: Patch,
    *,
    asserted: bool = False,
    around: Plant | None = None,
) -> None:
    """A bug that is planted by a patch; see `hunt_by`. `around`: what else is another way, with the
    bug and without."""

    def attempt(plan: Plan) -> str:
        with patch.context() as planted:
            if around is not None:
                around(planted)
            plant(planted)
            return failure(plan)

    def without(plan: Plan) -> str:
        if around is None:
            return outcome(plan).failure
        # Others must not take this for what the plan comes to.
        with patch.context() as changed:
            around(changed)
            return failure(plan)

    hunt_by(attempt, plant.__name__, plans, without, asserted=asserted)


def hunt_build(build: Build, plans: Iterable[tuple[str, Plan]]) -> None:
    """A bug that is planted around the node, by what builds it; see `hunt_by`."""
    hunt_by(lambda plan: failure(plan, build), getattr(build, "__name__", ""), plans)


def hunt_by(
    attempt: Callable[[Plan], str],
    bug: str,
    plans: Iterable[tuple[str, Plan]],
    without: Callable[[Plan], str] = lambda plan: outcome(plan).failure,
    *,
    asserted: bool = False,
) -> None:
    """A check finds the bug in a plan that passes without it; else the test fails. `asserted`: an
    assertion of the broker itself does as well; other errors are mistakes of what is planted."""
    finds = ("Violation", "AssertionError") if asserted else ("Violation",)
    count = 0
    for name, plan in plans:
        told = attempt(plan)
        if told.startswith(finds) and not without(plan):
            note(bug, name, told)
            return
        count += 1
    pytest.fail(f"not found in {count} plans")


def note(bug: str, plan: str, told: str) -> None:
    """A planted bug was found."""
    found.append(Found(bug.strip("_"), plan, told))
