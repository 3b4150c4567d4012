"""Streams and consumers of all kinds, plain publishing, disks that fail, clocks that are set."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.simulation.hunting import drawn, hunt_build
from tests.simulation.kept import kept
from tests.simulation.outcomes import outcome
from tests.simulation.plan import (
    ConsumerKind,
    Item,
    Plan,
    StreamKind,
    draw_changes,
    draw_kinds,
    draw_storage,
    draw_turmoil,
    shrink,
)
from tests.simulation.run import Simulation, failure
from tests.simulation.test_simulation_kind_mutants import IgnoresFailedDisks

BLOCK = 5
FOUND = [
    # A log ended within what founds a group.
    (draw_storage, 20000039, 3),
    # A checkpoint that had found no room wrote a catalogue once more, with a wrong checksum.
    (draw_storage, 52000002, 3),
    # Messages were stored behind a config in the log that does not allow them.
    (draw_changes, 14, 5),
    (draw_changes, 21, 3),
    # A message that takes the place of another one is stored above the limit.
    (draw_changes, 2, 5),
    # What was on its way of a consumer counted for the one that was made in its place.
    (draw_kinds, 8000032, 3),
    (draw_storage, 10000042, 5),
    (draw_kinds, 88002, 3),
    # A stream's leader did not know yet of a consumer, and let go of what was for it.
    (draw_turmoil, 96000010, 5),
    # What stood in a state was not founded again.
    (draw_turmoil, 150000037, 5),
    # What is acknowledged in the log of a consumer that is deleted goes, committed or not.
    (draw_turmoil, 700000028, 5),
]
"""(drawing, seed, servers)"""


AGAIN_MS = (1346, 1597, 1825, 1958, 2219, 2557, 2797, 3066)


def _made_again(seed: int) -> Plan:
    """Consumers of a work queue and of a stream with interest are deleted and made all the time."""
    return Plan(
        seed,
        3,
        delay_ms=0.3,
        sync_ms=15.0,
        streams=((3, "file", -1), (3, "memory", -1)),
        kinds=(
            StreamKind("workqueue"),
            StreamKind("interest", consumers=(ConsumerKind(push=True),)),
        ),
        chaos_ms=3_500,
        items=tuple(Item(at, "consumer", number, 0, 10) for number, at in enumerate(AGAIN_MS)),
    )


BEHIND = Plan(
    4,
    3,
    loss=0.02,
    delay_ms=0.3,
    quiet_ticks=0,
    checkpoint_entries=80,
    entries_kept=40,
    streams=((3, "file", -1), (3, "file", -1)),
    kinds=(
        StreamKind(per_subject=4, window_ms=400, consumers=(ConsumerKind(), ConsumerKind("none"))),
        StreamKind(
            max_age_ms=1000,
            per_subject=4,
            window_ms=400,
            discard="new",
            consumers=(ConsumerKind(push=True, max_deliver=3), ConsumerKind("none")),
        ),
    ),
    chat=True,
    chaos_ms=3000,
    items=(
        Item(1317, "sync_fails", 4, 2597, 300),
        Item(1483, "sync_fails", 6, 51912, 300),
        Item(1536, "sync_fails", 59, 3360, 800),
        Item(2065, "sync_fails", 17, 22631, 50),
        Item(2125, "sync_fails", 51, 7713, 50),
    ),
)


@pytest.mark.parametrize(
    ("servers", "first"),
    [(3, 0), (5, 0)]
    + [pytest.param(3, first, marks=pytest.mark.mutants) for first in (5, 10, 15, 20)],
)
def test_fixed_seeds_of_all_kinds(servers: int, first: int) -> None:
    for seed in range(first, first + BLOCK):
        plan = draw_kinds(seed, servers)
        assert not outcome(plan).failure, plan


@pytest.mark.parametrize("first", [0, pytest.param(5, marks=pytest.mark.mutants)])
def test_fixed_seeds_of_failing_disks(first: int) -> None:
    for seed in range(first, first + BLOCK):
        plan = draw_storage(seed)
        assert not outcome(plan).failure, plan


@pytest.mark.parametrize(("drawing", "seed", "servers"), kept(FOUND, 6))
def test_seeds_of_all_kinds_that_failed_once(
    drawing: Callable[[int, int], Plan], seed: int, servers: int
) -> None:
    plan = drawing(seed, servers)
    assert not failure(plan), plan


@pytest.mark.parametrize("seed", [1, 13])
def test_what_is_consumed_before_the_streams_leader_applied_it_goes(seed: int) -> None:
    assert not failure(_made_again(seed))


@pytest.mark.parametrize("first", [0, pytest.param(5, marks=pytest.mark.mutants)])
def test_fixed_seeds_of_changes(first: int) -> None:
    for seed in range(first, first + BLOCK):
        plan = draw_changes(seed)
        assert not failure(plan), plan


def test_a_leading_consumer_waits_for_its_streams_replica() -> None:
    """What it delivered before is not taken for removed when the stream there is behind."""
    assert not failure(BEHIND)


@pytest.mark.planted
def test_a_failed_disk_that_is_ignored_is_found() -> None:
    hunt_build(IgnoresFailedDisks, drawn(draw_storage, 1, BLOCK))


def test_a_client_that_does_not_read_is_let_go() -> None:
    plan = replace(draw_kinds(0), items=(), chaos_ms=10_000)
    assert Simulation(plan).run().hub.slow == len(Simulation(plan).machines)


def test_a_plan_with_a_planted_bug_is_made_smaller() -> None:
    """Items that have nothing to do with it go; the bug is still found."""
    rng = random.Random(1)
    items = tuple(Item(1_000 + 50 * at, "pause", rng.randrange(9), 0, 50) for at in range(8))
    plan = replace(draw_kinds(0), items=(*items, Item(1_500, "sync_fails", 1, 0, 0)))
    assert not failure(plan)

    small = shrink(plan, lambda one: bool(failure(one, IgnoresFailedDisks)), 20)

    assert [item.kind for item in small.items] == ["sync_fails"]


def test_runs_of_kinds_are_busy() -> None:
    """The models see something: deliveries, acks, removals, talk."""
    runs = [outcome(draw_kinds(seed)) for seed in (2, 4, 5)]

    assert sum(run.heard for run in runs) > 3_000
    assert sum(run.done for run in runs) > 200
