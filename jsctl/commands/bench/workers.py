"""The clients of a benchmark in processes of their own, so that none waits for another one.

Each process has some of the clients. All of them connect, wait for each other, and begin together;
the clock is that of the machine, so their times can be compared. One client needs no other process.
"""

import asyncio
import multiprocessing
import os
import queue
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from multiprocessing.connection import wait
from threading import BrokenBarrierError, Event, Thread
from typing import TYPE_CHECKING

from jsctl.client.connection import open_client
from jsctl.client.raw import RawConnection, closed
from jsctl.commands.bench.job import Job
from jsctl.errors import JsctlError, Unreachable, sentence_of
from jsctl.settings import Settings

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier

    from jsctl.render.reports.bench import Sample

    Told = tuple[int, Sample | None, str, str]
    """A client's number, and its sample, or the kind and text of its error; nothing of that says
    that it is connected."""

READY_S = 60.0
"""All clients have to be connected by then."""
LOOK_S = 0.5
"""How often it is seen whether the processes still run."""


async def run_clients(
    settings: Settings, kind: str, jobs: Sequence[Job], connected: Callable[[], None]
) -> "list[Sample]":
    """Runs all jobs at the same time; `kind` names their function as `module:name`.

    `connected` is called, perhaps in another thread, when all have connections. Raises the first
    error, with the number of its client.
    """
    if len(jobs) == 1:

        async def at_once() -> None:
            connected()

        return await _run_here(settings, kind, jobs, at_once)
    loop = asyncio.get_running_loop()
    stopped = Event()
    try:
        return await loop.run_in_executor(
            None, _run_processes, settings, kind, list(jobs), stopped, connected
        )
    finally:
        stopped.set()  # the thread would wait for processes that nobody asks for any more


async def _run_here(
    settings: Settings, kind: str, jobs: Sequence[Job], ready: Callable[[], "object"]
) -> "list[Sample]":
    module, _, name = kind.partition(":")
    function = getattr(import_module(f"jsctl.commands.bench.{module}"), name)
    async with AsyncExitStack() as stack:
        connections: list[RawConnection] = []
        for job in jobs:
            client = await open_client(
                settings, what=f"client number {job.number} failed to connect"
            )
            stack.push_async_callback(client.close)
            connection = await RawConnection.take_over(client)
            connection.alone = len(jobs) == 1
            stack.push_async_callback(closed, connection)
            connections.append(connection)
        waiting = ready()
        assert asyncio.iscoroutine(waiting)
        await waiting
        try:
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(_one(function, connection, job))
                    for connection, job in zip(connections, jobs, strict=True)
                ]
        except* ClientFailed as group:
            raise group.exceptions[0] from None
        return [task.result() for task in running]


class ClientFailed(Exception):
    """A client's error, and which one it was."""

    def __init__(self, number: int, error: JsctlError) -> None:
        self.number = number
        self.error = error
        super().__init__(str(error))


async def _one(
    function: "Callable[[RawConnection, Job], object]", connection: RawConnection, job: Job
) -> "Sample":
    running = function(connection, job)
    assert asyncio.iscoroutine(running)
    try:
        sample: Sample = await running
    except JsctlError as error:
        raise ClientFailed(job.number, error) from None
    except OSError as error:
        raise ClientFailed(job.number, Unreachable(f"nats: {sentence_of(error)}")) from None
    return sample


def _run_processes(
    settings: Settings, kind: str, jobs: list[Job], stopped: Event, connected: Callable[[], None]
) -> "list[Sample]":
    context = multiprocessing.get_context("spawn")
    count = min(len(jobs), max(2, os.cpu_count() or 1))
    ready, told = context.Barrier(count), context.Queue()
    running = [
        context.Process(target=_work, args=(settings, kind, jobs[at::count], ready, told))
        for at in range(count)
    ]
    for process in running:
        process.start()
    try:
        return _samples(jobs, running, told, stopped, connected)
    finally:
        for process in running:
            process.terminate()
            process.join()


def _samples(
    jobs: list[Job],
    running: "Sequence[BaseProcess]",
    told: "Queue[Told]",
    stopped: Event,
    connected: Callable[[], None],
) -> "list[Sample]":
    """What all clients told; nothing when it is `stopped`."""
    found: dict[int, Sample] = {}
    missing = len(jobs)  # Connections: of two processes the one may tell its results before.
    while missing or len(found) < len(jobs):
        try:
            number, sample, kind, text = told.get(timeout=LOOK_S)
        except queue.Empty:
            if stopped.is_set():
                return []
            if all(process.exitcode is not None for process in running) and told.empty():
                raise JsctlError("a process of the benchmark has ended without a result") from None
            continue
        if sample is None and not kind:
            missing -= 1
            if not missing:
                connected()
            continue
        if sample is None:
            module = import_module("jsctl.errors")
            error = getattr(module, kind, JsctlError)(text)
            raise error if missing else ClientFailed(number, error)
        found[number] = sample
    return [found[number] for number in sorted(found)]


def _work(
    settings: Settings, kind: str, jobs: list[Job], ready: "Barrier", told: "Queue[Told]"
) -> None:
    """What a process does."""
    Thread(target=_end_with_the_first, daemon=True).start()

    async def all_ready() -> None:
        for job in jobs:
            told.put((job.number, None, "", ""))
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, ready.wait, READY_S)

    try:
        samples = asyncio.run(_run_here(settings, kind, jobs, all_ready))
    except (ClientFailed, JsctlError, BrokenBarrierError) as error:
        ready.abort()
        _tell_failure(told, jobs[0].number, error)
        return
    except KeyboardInterrupt:
        return
    for job, sample in zip(jobs, samples, strict=True):
        told.put((job.number, sample, "", ""))


def _end_with_the_first() -> None:
    """A process that began others and is killed cannot end them: they would go on for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _tell_failure(told: "Queue[Told]", number: int, error: BaseException) -> None:
    if isinstance(error, BrokenBarrierError):
        error = Unreachable("not all clients could connect")
    if isinstance(error, ClientFailed):
        number, error = error.number, error.error
    told.put((number, None, type(error).__name__, str(error)))
