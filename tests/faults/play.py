"""One run of one row."""

import asyncio
import random
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from jsctl.testing import Cluster
from tests.faults.links import links
from tests.faults.readers import CONFIG, CONSUMER, Readers
from tests.faults.rig import STREAM, Rig
from tests.faults.rows import Row
from tests.faults.verdict import Outcome, judge
from tests.faults.volumes import Volume, volumes
from tests.support.load import Load
from tests.support.waiting import eventually

WORKERS = 4
DRAIN_S = 60.0
BEFORE = 300
"""Messages that are there before the first fault."""


def play(row: Row, seed: int, rounds: int, patience: float, notes: list[str]) -> Outcome:
    """Start servers, break things, look. Raises NoVolumes where the row needs what is not there.

    It is waited until everything is whole for twice the row's target, times `patience`.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-")))
        names = [f"n{number}" for number in range(1, row.servers + 1)]
        given = stack.enter_context(volumes(directory, names)) if row.volumes else {}
        cluster = Cluster(row.servers, directory=directory)
        cut = stack.enter_context(links(cluster)) if row.links else None
        stack.enter_context(cluster)
        rng = random.Random(seed)
        load = Load(cluster.urls, "s.x", workers=WORKERS)
        rig = Rig(cluster, rng, row.replicas, load, links=cut, notes=notes)
        return asyncio.run(_run(row, rig, rounds, 2 * patience * row.whole_s, given))


async def _run(
    row: Row, rig: Rig, rounds: int, limit_s: float, given: dict[str, Volume]
) -> Outcome:
    await rig.create()
    try:
        if not row.readers:
            return await _under_load(row, rig, rounds, limit_s, given)
        await make_consumer(rig)
        async with Readers(rig.cluster.urls) as readers:
            outcome = await _under_load(row, rig, rounds, limit_s, given)
            await readers.drained({one.seq for one in rig.load.acked}, DRAIN_S)
        rig.notes.append(f"{len(readers.confirmed)} confirmed, {readers.repeated} asked again")
        return replace(outcome, again=len(readers.again))
    finally:
        await rig.close()


async def _under_load(
    row: Row, rig: Rig, rounds: int, limit_s: float, given: dict[str, Volume]
) -> Outcome:
    async with rig.load:
        await rig.load.more(BEFORE)
        began_s = time.monotonic()
        for _ in range(rounds):
            await row.fault(rig, given)
    whole_s = await rig.whole_s(limit_s)
    return await judge(rig, began_s, whole_s)


async def make_consumer(rig: Rig) -> None:
    """The one that readers read from."""

    async def made() -> bool:
        subject = f"CONSUMER.CREATE.{STREAM}.{CONSUMER}"
        return "config" in await rig.ask(subject, stream_name=STREAM, config=CONFIG)

    await eventually(made, "the consumer is made")
