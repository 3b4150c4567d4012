"""What only reads does not wait for room, nor for what does."""

import asyncio
from itertools import count

from jsctl.broker.errors import DiskFull
from jsctl.broker.replication.side_jobs import SideJobs
from jsctl.broker.server.disk_worker import DiskWorker
from tests.broker.server.echo_node import Batch


async def test_a_full_disk_is_read() -> None:
    said: list[str] = []
    read, all_done = asyncio.Event(), asyncio.Event()
    jobs = SideJobs(count(-2, -1))

    def finished(tickets: list[int], failures: list[tuple[int, str]]) -> None:
        assert not failures
        for ticket in tickets:
            jobs.done(ticket)

    worker = DiskWorker(finished, lambda error: None)
    full = Batch(-1)
    full.failure = DiskFull("no room")
    worker.submit(full)
    jobs.run(lambda: said.append("written"), all_done.set)
    jobs.read(lambda: said.append("read"), read.set)
    for batch in jobs.seal():
        worker.submit(batch)
    async with asyncio.timeout(30):
        await read.wait()
        assert said == ["read"]
        full.failure = None
        await all_done.wait()
    assert said == ["read", "written"]
    assert worker.stop(5)
