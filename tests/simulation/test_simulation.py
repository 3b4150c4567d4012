"""Seeded runs of whole clusters: see `faults` for what happens, `checks` for what must hold.

A failing seed is printed with its plan, made smaller; it is reproduced by `draw(seed, servers)`.
`JSCTL_SIMULATION_SEEDS` is how many fresh seeds the slow test runs; those of other runs are fixed,
so that a change is not blamed for what chance found.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from jsctl.broker.options import ClusterOptions
from tests.simulation.kept import kept
from tests.simulation.outcomes import outcome
from tests.simulation.plan import Plan, draw, draw_rot, shrink
from tests.simulation.run import Simulation, fails
from tests.simulation.world import MS, SECOND

ROOT = Path(__file__).resolve().parent.parent.parent
FIXED = {3: 120, 5: 80}
BLOCK = 5
ALWAYS = 1
"""Blocks of each that `make test` runs; all are in `make test-mutants`, and the program of this
package runs fresh ones."""
ROUTE_PING_NS = ClusterOptions().ping_interval_ns
FOUND = [
    (1043972972, 3),
    (1671885297, 3),
    (2140854850, 3),
    (1775486928, 5),
    (2114140619, 5),
    (1171297568, 3),
    (1266180842, 5),
    (1459012480, 5),
    (201520743, 5),
    (789227451, 3),
    (740434879, 5),
    (1525708969, 3),
    (1392306932, 3),
    (83065427, 5),
    (2075368484, 5),
    (381766169, 3),
    (748320188, 3),
    (761608872, 5),
    (1956032189, 5),
    (677472080, 5),
    (500049, 3),
    (900003, 3),
    (4000001, 3),
    (7000012, 5),
]
"""Fresh seeds (seed, servers) that failed once."""
SHRINK_RUNS = 60


def check(seed: int, servers: int) -> None:
    """One run; when it fails, its plan is printed with what is needed of it."""
    plan = draw(seed, servers)
    told = outcome(plan).failure
    if told:
        print(f"seed {seed} with {servers} servers fails; what is needed of its plan:")
        print(shrink(plan, fails, SHRINK_RUNS))
    assert not told


@pytest.mark.parametrize(
    ("servers", "first"),
    [
        pytest.param(servers, first, marks=[pytest.mark.mutants] if first >= ALWAYS * BLOCK else [])
        for servers, count in FIXED.items()
        for first in range(0, count, BLOCK)
    ],
)
def test_fixed_seeds(servers: int, first: int) -> None:
    for seed in range(first, first + BLOCK):
        check(seed, servers)


@pytest.mark.parametrize(("seed", "servers"), kept(FOUND, 8))
def test_seeds_that_failed_once(seed: int, servers: int) -> None:
    check(seed, servers)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.skipif("JSCTL_SIMULATION_SEEDS" not in os.environ, reason="asks for a number of seeds")
def test_many_fresh_seeds() -> None:
    for _ in range(int(os.environ["JSCTL_SIMULATION_SEEDS"])):
        check(random.SystemRandom().randrange(1 << 31), random.SystemRandom().choice([3, 5]))


def test_same_seed_same_run_in_every_process() -> None:
    """Nothing depends on the order of sets or on anything else that a process brings along."""
    program = (
        "from tests.simulation.plan import draw, draw_rot;"
        "from tests.simulation.run import Simulation, digest;"
        "print(*[digest(Simulation(plan).run()) for plan in (draw(7, 3), draw_rot(123, 3))])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "1", "4711")
    }

    assert len(told) == 1
    here = [outcome(plan).digest for plan in (draw(7, 3), draw_rot(123, 3))]
    assert told == {" ".join(here) + "\n"}


def test_a_server_is_heard_again_whose_last_life_is_noticed_late() -> None:
    """An idle connection of its last life ends with the next ping, when new ones are long up."""
    simulation = Simulation(Plan(3, 3, chaos_ms=4_000))
    simulation.operator.calm = False  # The plan does not know of what follows
    machine = simulation.machines[0]
    simulation.world.at(2_000 * MS, lambda: machine.stop(power=True, noticed=False))
    simulation.world.at(2_100 * MS, machine.start)
    simulation.run()
    simulation.world.run(simulation.world.now_ns + ROUTE_PING_NS + 5 * SECOND)

    for one in simulation.machines:
        lives = one.process.engine.cluster.liveness.lives() if one.process is not None else []
        assert [life.up for life in lives] == [True, True]


def test_runs_are_busy() -> None:
    """What is checked happens: acks, deliveries, confirmed acks."""
    runs = [outcome(draw(seed, 3)) for seed in range(4)]

    assert sum(run.acknowledged for run in runs) > 200
    assert sum(run.delivered for run in runs) > 200
    assert sum(run.confirmed for run in runs) > 50


def test_a_plan_is_made_smaller() -> None:
    plan = draw(34, 3)

    def needs_the_third(one: Plan) -> bool:
        return plan.items[2] in one.items

    assert shrink(plan, needs_the_third).items == (plan.items[2],)
