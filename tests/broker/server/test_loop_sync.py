"""A brief batch that is alone is synced in the loop's thread, as long as syncs are quick."""

import asyncio
import os
import select
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from jsctl.broker.accel.choice import made_syncer
from jsctl.broker.errors import DiskError, DiskFull
from jsctl.broker.options import EdgeLimits, Listen, Options
from jsctl.broker.ports import Syncer
from jsctl.broker.server import turns
from jsctl.broker.server.disk_worker import MEAN_OF, DiskWorker
from tests.broker.server.echo_node import Batch
from tests.broker.server.harness import LineClient, Running, looking, running
from tests.support.waiting import eventually

OPTIONS = Options(listen=Listen("127.0.0.1", -1))
HERE, DISK, BESIDE = "MainThread", "disk", "beside"
ELSEWHERE = {DISK, BESIDE}
PATIENT = EdgeLimits(loop_sync_ns_max=10_000_000_000)
"""However slow this machine is, a batch that does nothing counts as quick."""
WARM = 8 * MEAN_OF


class Worker:
    """A worker, and what it told."""

    def __init__(self, here_ns_max: int) -> None:
        self.synced: list[int] = []
        self.failed: list[tuple[int, str]] = []
        self._told = asyncio.Event()
        self.worker = DiskWorker(self._finished, self._crashed, here_ns_max)

    def _finished(self, synced: list[int], failed: list[tuple[int, str]]) -> None:
        self.synced += synced
        self.failed += failed
        self._told.set()

    def _crashed(self, error: BaseException) -> None:
        raise AssertionError from error

    async def until(self, wanted: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not wanted():
                self._told.clear()
                await self._told.wait()

    async def warm_up(self) -> None:
        """The thread runs some batches, and they are quick."""
        for ticket in range(1, WARM + 1):
            self.worker.submit(Batch(ticket))
        await self.until(lambda: len(self.synced) == WARM)


class Slow(Batch):
    """A sync that takes its time."""

    def promise(self) -> None:
        super().promise()
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass


async def test_nothing_runs_in_the_loop_before_syncs_were_seen_to_be_quick() -> None:
    here = Worker(PATIENT.loop_sync_ns_max)
    assert not here.worker.may_run_here([Batch(1)])
    await here.warm_up()
    assert here.worker.may_run_here([Batch(1)])
    assert here.worker.stop(5)


async def test_only_one_brief_batch_and_only_when_the_thread_has_none() -> None:
    here = Worker(PATIENT.loop_sync_ns_max)
    await here.warm_up()
    worker = here.worker
    assert not worker.may_run_here([])
    assert not worker.may_run_here([Batch(1), Batch(2)])
    assert not worker.may_run_here([Batch(1, is_brief=False)])
    worker.submit(Batch(-1, is_brief=False))
    assert not worker.may_run_here([Batch(1)])
    await here.until(lambda: -1 in here.synced)
    assert worker.may_run_here([Batch(1)])
    assert worker.stop(5)


async def test_what_runs_in_the_loop_is_durable_or_failed_at_once() -> None:
    here = Worker(PATIENT.loop_sync_ns_max)
    await here.warm_up()
    batch = Batch(1000)
    ran = here.worker.run_here(batch)
    assert ran is not None and (ran.ticket, ran.reason) == (1000, None)
    assert batch.ran == [HERE]
    ran = here.worker.run_here(Batch(1001, failure=DiskError("no disk")))
    assert ran is not None and ran.reason == "no disk"
    assert len(here.synced) == WARM and not here.failed
    assert here.worker.stop(5)


async def test_a_batch_without_room_goes_to_the_thread() -> None:
    here = Worker(PATIENT.loop_sync_ns_max)
    await here.warm_up()
    full = Batch(1000, failure=DiskFull("no room"))
    assert here.worker.run_here(full) is None
    assert not here.worker.may_run_here([Batch(1001)])
    full.failure = None
    await here.until(lambda: 1000 in here.synced)
    assert full.ran[0] == HERE and full.ran[-1] == DISK
    assert here.worker.stop(5)


@pytest.mark.parametrize("in_loop", [True, False])
async def test_one_slow_sync_keeps_them_away_from_the_loop(in_loop: bool) -> None:
    here = Worker(1_000_000)
    for _ in range(1000):
        await here.warm_up()
        if here.worker.may_run_here([Batch(1)]):
            break
        here.synced.clear()
    slow = Slow(1000)
    if in_loop:
        assert here.worker.run_here(slow) is not None
    else:
        here.worker.submit(slow)
        await here.until(lambda: 1000 in here.synced)
    assert not here.worker.may_run_here([Batch(1001)])
    assert here.worker.stop(5)


async def test_the_edge_syncs_for_one_client_in_the_loop_and_for_many_in_the_thread() -> None:
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await server.client()
        await client.line()
        for _ in range(WARM):
            assert await client.ask("DISK") == "SYNCED"
        assert server.node.ran[0] == DISK and server.node.ran[-1] == HERE
        before = len(server.node.seen)
        assert await client.ask("DISK") == "SYNCED"
        asked, synced = server.node.seen[before : before + 2]
        assert asked.chunks and not asked.synced and synced.synced and not synced.chunks
        server.node.ran.clear()
        client.writer.write(b"DISK\r\nDISK\r\n")
        assert [await client.line(), await client.line()] == ["SYNCED"] * 2
        assert server.node.ran == [DISK] * 2
        await client.close()


async def test_who_waits_is_told_before_the_rest_of_the_batch() -> None:
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await server.client()
        await client.line()
        for _ in range(WARM):
            assert await client.ask("DISK") == "SYNCED"
        told: list[bool] = []

        class Noting(Batch):
            def finish(self) -> None:
                ready, _, _ = select.select([client.writer.get_extra_info("socket")], [], [], 0)
                told.append(bool(ready))

        server.node.batch = Noting
        assert await client.ask("DISK") == "SYNCED"
        assert server.node.ran[-1] == HERE and told == [True]
        await client.close()


async def test_the_rest_of_a_batch_comes_before_the_next_one() -> None:
    """Also where the turn that is told of the sync has another batch."""
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await server.client()
        await client.line()
        for _ in range(WARM):
            assert await client.ask("DISK") == "SYNCED"
        steps: list[str] = []

        class Steps(Batch):
            def promise(self) -> None:
                super().promise()
                steps.append(f"promise {self.ran[-1]}")

            def finish(self) -> None:
                steps.append("finish")

        server.node.batch = Steps
        server.node.again = True
        assert await client.ask("DISK") == "SYNCED"
        assert await client.line() == "SYNCED"
        assert steps[:2] == [f"promise {HERE}", "finish"]
        assert steps[2] in {f"promise {place}" for place in ELSEWHERE}
        await client.close()


async def test_a_rest_that_fails_is_told_to_the_node() -> None:
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await server.client()
        await client.line()
        for _ in range(WARM):
            assert await client.ask("DISK") == "SYNCED"

        class Broken(Batch):
            def finish(self) -> None:
                raise DiskError("the disk is gone")

        server.node.batch = Broken
        assert await client.ask("DISK") == "SYNCED"

        assert await eventually(server.node.failures, "it hears of it") == ["the disk is gone"]


@looking
async def test_who_was_told_something_may_answer_while_the_loop_syncs() -> None:
    """One turn takes the answer and the sync, as of a follower that was sent an entry."""
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await server.client()
        await client.line()
        for _ in range(WARM):
            assert await client.ask("DISK") == "SYNCED"
        follower = await server.client()
        await follower.line()

        class Answered(Batch):
            def promise(self) -> None:
                super().promise()
                os.write(follower.writer.get_extra_info("socket").fileno(), b"PING\r\n")

        server.node.batch = Answered
        client.writer.write(b"PING\r\nDISK\r\n")
        assert [await client.line(), await client.line()] == ["PONG", "SYNCED"]
        both = [one for one in server.node.seen if one.synced][-1]
        assert server.node.ran[-1] == HERE
        assert [chunk for _, chunk in both.chunks] == [b"PING\r\n"]
        await follower.close()
        await client.close()


async def busy(server: Running, limits: pytest.MonkeyPatch) -> LineClient:
    """A client of a server that never waits for a sync, once syncs were seen to be quick."""
    limits.setattr(turns, "ALONE_CHUNKS_MAX", 0)
    client = await server.client()
    await client.line()
    for _ in range(WARM):
        assert await client.ask("DISK") == "SYNCED"
    assert HERE not in server.node.ran
    return client


async def test_a_busy_turn_leaves_its_sync_to_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await busy(server, monkeypatch)
        assert server.node.ran[-1] == (BESIDE if made_syncer() is not None else DISK)
        await client.close()


@looking
async def test_a_sync_beside_the_loop_is_told_by_the_look_at_the_sockets() -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        async with running(replace(OPTIONS, edge=PATIENT)) as server:
            client = await busy(server, monkeypatch)
            before = len(server.node.seen)
            assert await client.ask("DISK") == "SYNCED"
            asked, synced = server.node.seen[before:]
            assert asked.chunks and synced.synced and not synced.chunks
            await client.close()


async def test_a_failure_beside_the_loop_is_told_to_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await busy(server, monkeypatch)
        server.node.disk_failure = DiskError("the disk is gone")
        client.writer.write(b"DISK\r\n")
        assert await eventually(server.node.failures, "it hears of it") == ["the disk is gone"]


async def test_no_room_beside_the_loop_is_waited_for_by_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await busy(server, monkeypatch)

        class Full(Batch):
            def begin(self, syncer: Syncer | None) -> None:
                self.failure = None if syncer is None else DiskFull("no room")
                super().begin(syncer)

        server.node.batch = Full
        assert await client.ask("DISK") == "SYNCED"
        assert server.node.ran[-1] == DISK
        await client.close()


async def test_jobs_go_to_the_thread_while_the_log_is_synced_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if made_syncer() is None:
        pytest.skip("nobody syncs beside")
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await busy(server, monkeypatch)
        server.node.ran.clear()
        server.node.jobs = [Batch(-1, server.node.ran, is_brief=False)]
        assert await client.ask("DISK") == "SYNCED"

        async def both() -> bool:
            return sorted(server.node.ran) == [BESIDE, DISK]

        await eventually(both, "the job has run, too")
        await client.close()


async def test_a_failure_in_the_loop_is_told_to_the_node_at_once() -> None:
    async with running(replace(OPTIONS, edge=PATIENT)) as server:
        client = await server.client()
        await client.line()
        for _ in range(WARM):
            assert await client.ask("DISK") == "SYNCED"
        server.node.disk_failure = DiskError("the disk is gone")
        client.writer.write(b"DISK\r\n")
        assert await eventually(server.node.failures, "it hears of it") == ["the disk is gone"]
        assert server.node.ran[-1] == HERE


async def test_a_long_sync_in_the_loop_counts_as_a_stall() -> None:
    limits = replace(PATIENT, stall_warn_ns=40_000_000)
    async with running(replace(OPTIONS, edge=limits)) as server:
        client = await server.client()
        await client.line()
        for _ in range(WARM):
            assert await client.ask("DISK") == "SYNCED"
        server.node.batch = Slow
        assert await client.ask("DISK") == "SYNCED"
        await client.close()
    assert server.output.getvalue().count("A turn took") == 1
