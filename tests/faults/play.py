"""One run of one row."""

import asyncio
import json
import random
import tempfile
import time
from contextlib import ExitStack, suppress
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
PAGES = ("/jsz?streams=true&raft=true", "/raftz", "/routez")
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
        rig = Rig(cluster, rng, row.replicas, load, row.bytes_max, links=cut, notes=notes)
        return asyncio.run(_run(row, rig, rounds, 2 * patience * row.whole_s, given))


def _keep(cluster: Cluster) -> Path:
    """What tells why a run failed: the servers' logs and pages, as they are."""
    place = Path(tempfile.mkdtemp(prefix="faults-failed-"))
    for broker in cluster:
        (place / f"{broker.name}.log").write_text(broker.logs)
        for path in PAGES:
            with suppress(OSError, ValueError):
                page = json.dumps(broker.monitor(path), indent=1)
                name = path[1:].replace("?", "_")
                (place / f"{broker.name}-{name}.json").write_text(page)
    return place


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
    except (AssertionError, ExceptionGroup):
        rig.notes.append(f"logs and pages are in {await rig.off_loop(_keep, rig.cluster)}")
        raise
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
