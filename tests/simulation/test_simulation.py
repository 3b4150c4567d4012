"""Seeded runs of whole clusters: see `faults` for what happens, `checks` for what must hold.

A failing seed is printed with its plan, made smaller; it is reproduced by `draw(seed, servers)`.
`JSCTL_SIMULATION_SEEDS` is how many fresh seeds the slow test runs.
"""

import os
import random

import pytest

from jsctl.broker.errors import BrokerError
from tests.simulation.plan import Plan, draw, shrink
from tests.simulation.run import Simulation, fails

FIXED = {3: 120, 5: 80}
BLOCK = 10
OPEN = {
    (1043972972, 3): "an acknowledgement around the restart of a stream",
    (1671885297, 3): "an acknowledgement around the restart of a stream",
    (2140854850, 3): "an acknowledgement around the restart of a stream",
    (
        1775486928,
        5,
    ): "a state older than the log's base: the log is not believed, though no disk lied",
    (2114140619, 5): "a leader of a consumer's group lacks a committed entry",
}
"""(seed, servers) that still fail, and how. To be emptied: a bug that is fixed stays as a seed."""
FRESH = 4
SHRINK_RUNS = 60


def check(seed: int, servers: int) -> None:
    """One run; when it fails, its plan is printed with what is needed of it."""
    plan = draw(seed, servers)
    try:
        Simulation(plan).run()
    except (AssertionError, BrokerError):
        print(f"seed {seed} with {servers} servers fails; what is needed of its plan:")
        print(shrink(plan, fails, SHRINK_RUNS))
        raise


@pytest.mark.parametrize(
    ("servers", "first"),
    [(servers, first) for servers, count in FIXED.items() for first in range(0, count, BLOCK)],
)
def test_fixed_seeds(servers: int, first: int) -> None:
    for seed in range(first, first + BLOCK):
        check(seed, servers)


@pytest.mark.parametrize(("seed", "servers"), sorted(OPEN))
@pytest.mark.xfail(raises=(AssertionError, BrokerError), strict=False, reason="see OPEN")
def test_open_seeds(seed: int, servers: int) -> None:
    Simulation(draw(seed, servers)).run()


@pytest.mark.parametrize("servers", [3, 5])
@pytest.mark.xfail(
    raises=(AssertionError, BrokerError), strict=False, reason="about 2 % do not hold yet: see OPEN"
)
def test_fresh_seeds(servers: int) -> None:
    for _ in range(FRESH):
        check(random.SystemRandom().randrange(1 << 31), servers)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.skipif("JSCTL_SIMULATION_SEEDS" not in os.environ, reason="asks for a number of seeds")
def test_many_fresh_seeds() -> None:
    for _ in range(int(os.environ["JSCTL_SIMULATION_SEEDS"])):
        check(random.SystemRandom().randrange(1 << 31), random.SystemRandom().choice([3, 5]))


def test_same_seed_same_run() -> None:
    one, other = Simulation(draw(7, 3)).run(), Simulation(draw(7, 3)).run()

    assert one.world.count == other.world.count
    assert {name: known.entries for name, known in one.checker.groups.items()} == {
        name: known.entries for name, known in other.checker.groups.items()
    }


def test_runs_are_busy() -> None:
    """What is checked happens: acks, deliveries, confirmed acks."""
    runs = [Simulation(draw(seed, 3)).run() for seed in range(4)]

    assert sum(run.checker.acknowledged for run in runs) > 200
    assert sum(run.hub.delivered for run in runs) > 200
    assert sum(len(run.hub.confirmed) for run in runs) > 50


def test_a_plan_is_made_smaller() -> None:
    plan = draw(34, 3)

    def needs_the_third(one: Plan) -> bool:
        return plan.items[2] in one.items

    assert shrink(plan, needs_the_third).items == (plan.items[2],)
