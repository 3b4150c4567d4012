"""One run of one row."""

import asyncio
import random
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from jsctl.testing import Cluster
from tests.faults.rig import Rig
from tests.faults.rows import Row
from tests.faults.verdict import Outcome, judge
from tests.faults.volumes import Volume, volumes
from tests.support.load import Load

WORKERS = 4
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
        cluster = stack.enter_context(Cluster(row.servers, directory=directory))
        rng = random.Random(seed)
        load = Load(cluster.urls, "s.x", workers=WORKERS)
        rig = Rig(cluster, rng, row.replicas, load, notes=notes)
        return asyncio.run(_run(row, rig, rounds, 2 * patience * row.whole_s, given))


async def _run(
    row: Row, rig: Rig, rounds: int, limit_s: float, given: dict[str, Volume]
) -> Outcome:
    await rig.create()
    try:
        async with rig.load:
            await rig.load.more(BEFORE)
            began_s = time.monotonic()
            for _ in range(rounds):
                await row.fault(rig, given)
        whole_s = await rig.whole_s(limit_s)
        return await judge(rig, began_s, whole_s)
    finally:
        await rig.close()
