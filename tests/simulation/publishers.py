"""Who publishes to the streams of a run."""

from collections.abc import Iterator

from tests.simulation.adders import Adder
from tests.simulation.batchers import Batcher
from tests.simulation.clients import Hub, Publisher
from tests.simulation.fast_publishers import FastPublisher
from tests.simulation.plan import Plan
from tests.simulation.planners import Planner

AnyPublisher = Publisher | Batcher | FastPublisher | Adder | Planner


def publishers(plan: Plan, hub: Hub, number: int, first: int) -> Iterator[AnyPublisher]:
    """Those of one stream; the next one of all publishers is the `first`."""
    rng, kind, stream = hub.world.random, plan.kind(number), f"S{number}"
    if kind.counter:
        for at in (first, first + 1):
            yield Adder(hub, at, stream, pace_ms=rng.choice([20, 60, 150]))
        return
    if kind.schedules:
        for at in (first, first + 1):
            yield Planner(hub, at, stream, pace_ms=rng.choice([40, 100, 200]))
        return
    for at, ids in enumerate((True, False), first):
        yield Publisher(
            hub,
            at,
            stream,
            ids=ids,
            pace_ms=rng.choice([20, 60, 150]),
            more=kind.bytes_more,
            ttl=kind.ttl,
        )
    if plan.batches:
        yield Batcher(hub, first + 2, stream, pace_ms=rng.choice([40, 150]))
        yield FastPublisher(hub, first + 3, stream, pace_ms=rng.choice([10, 40]))
