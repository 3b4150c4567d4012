"""Runs benchmarks: shares the messages out, starts all clients together, prints the result."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS
from jsctl.commands.bench.clients import (
    Job,
    Pace,
    core_publisher,
    core_subscriber,
    stream_async_publisher,
    stream_sync_publisher,
)
from jsctl.commands.bench.stream import prepare_stream
from jsctl.commands.toolkit.content.bodies import headers_of
from jsctl.commands.toolkit.content.templates import unique_id
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, UsageError
from jsctl.render.humanize import duration, number, size
from jsctl.render.reports.bench import Sample, as_bench_csv, documents_of, result_lines

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

RunClient = Callable[["NatsClient", Job], Awaitable[Sample]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark: its label, what its clients do, and how the start line says it."""

    label: str
    client: RunClient
    verb: str
    letter: str
    shared: bool = True
    """Whether the clients share the messages; subscribers get all of them each."""


CORE_PUB = Benchmark("Core NATS publisher", core_publisher, "publishing", "P")
CORE_SUB = Benchmark("Core NATS subscriber", core_subscriber, "expecting", "S", shared=False)
JS_SYNC = Benchmark("JetStream synchronous publisher", stream_sync_publisher, "publishing", "P")
JS_ASYNC = Benchmark("JetStream asynchronous publisher", stream_async_publisher, "publishing", "P")


async def core_pub(call: Call) -> None:
    """`bench pub`."""
    await _run(call, CORE_PUB)


async def core_sub(call: Call) -> None:
    """`bench sub`."""
    await _run(call, CORE_SUB)


async def js_pub_sync(call: Call) -> None:
    """`bench js pub sync`."""
    await _run(call, JS_SYNC, stream=True)


async def js_pub_async(call: Call) -> None:
    """`bench js pub async`."""
    await _run(call, JS_ASYNC, stream=True)


async def _run(call: Call, kind: Benchmark, *, stream: bool = False) -> None:
    total = _total(call)
    clients = call.integer("clients", 1)
    if clients < 1 or total < clients:
        raise UsageError("number of messages and clients must be positive, and a message for each")
    facts = _facts(call, kind, total, stream=stream)
    listed = ", ".join(f"{key}={facts[key]}" for key in sorted(facts))
    call.output.log(f"Starting {kind.label} benchmark [{listed}]")
    if stream:
        await prepare_stream(call)
    payload = _payload(call)
    jobs = [
        _job(call, at, count, payload) for at, count in enumerate(_shares(total, clients, kind))
    ]
    for job in jobs:
        call.output.log(
            f"[{job.number + 1}] Starting {kind.label}, {kind.verb} {number(job.messages)} messages"
        )
    _print(call, kind, await _all_clients(call, kind, jobs))


def _total(call: Call) -> int:
    throughput, run_ns = call.integer("throughput"), call.duration("duration")
    if run_ns and not throughput:
        raise UsageError("--duration needs --throughput")
    return throughput * run_ns // SECOND_NS if run_ns else call.integer("msgs")


def _shares(total: int, clients: int, kind: Benchmark) -> list[int]:
    if not kind.shared:
        return [total] * clients
    return [total // clients + (at < total % clients) for at in range(clients)]


def _payload(call: Call) -> bytes:
    name = call.text("payload")
    if not name:
        return bytes(call.size("size"))
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None


def _job(call: Call, at: int, count: int, payload: bytes) -> Job:
    throughput = call.integer("throughput")
    clients = call.integer("clients", 1)
    sleep_ns = call.duration("sleep")
    return Job(
        number=at,
        messages=count,
        subject=call.text("subject"),
        payload=payload,
        headers=headers_of(call) or None,
        subjects=call.integer("multisubjectmax") if call.flag("multisubject") else 0,
        random_subjects=call.flag("multisubjectrandomize"),
        batch=call.integer("batch"),
        pace=Pace(
            sleep_seconds=sleep_ns / SECOND_NS,
            offset_seconds=random.random() * sleep_ns / SECOND_NS if at else 0.0,
            per_second=throughput / clients,
        ),
        timeout=call.settings.timeout,
        run_id=unique_id() if call.flag("dedup") else "",
        progress=bool(call.output.stderr.isatty() and call.flag("progress")),
    )


async def _all_clients(call: Call, kind: Benchmark, jobs: list[Job]) -> list[Sample]:
    """Connects all, then lets all run. The first error ends the benchmark."""
    async with AsyncExitStack() as stack:
        connected = [await stack.enter_async_context(call.client()) for _ in jobs]
        runs: list[asyncio.Task[Sample]] = []
        try:
            async with asyncio.TaskGroup() as tasks:
                for client, job in zip(connected, jobs, strict=True):
                    runs.append(tasks.create_task(_one(kind, client, job)))
        except* JsctlError as group:
            failed = next(
                (at for at, run in enumerate(runs) if run.done() and not run.cancelled()), 0
            )
            call.output.log(f"Error from client {failed}: {group.exceptions[0]}")
            raise group.exceptions[0] from None
    return [run.result() for run in runs]


async def _one(kind: Benchmark, client: "NatsClient", job: Job) -> Sample:
    return await kind.client(client, job)


def _facts(call: Call, kind: Benchmark, total: int, *, stream: bool) -> Mapping[str, str]:
    """What the first line lists."""
    subject, multi = call.text("subject"), call.flag("multisubject")
    facts = {
        "clients": number(call.integer("clients", 1)),
        "msg-size": size(call.size("size")),
        "msgs": number(total),
        "multi-subject": _word(multi),
        "subject": f"{subject}.*" if multi else subject,
    }
    if kind.letter == "P":
        facts.update(
            {
                "multi-subject-max": number(call.integer("multisubjectmax")),
                "multi-subject-randomize": _word(call.flag("multisubjectrandomize")),
                "sleep": duration(call.duration("sleep")),
            }
        )
    if call.integer("throughput"):
        facts["throughput"] = number(call.integer("throughput"))
    if call.duration("duration"):
        facts["duration"] = duration(call.duration("duration"))
    if stream:
        facts.update(_stream_facts(call))
    return facts


def _stream_facts(call: Call) -> dict[str, str]:
    facts = {
        "batch": number(call.integer("batch")),
        "purge": _word(call.flag("purge")),
        "stream": call.text("stream"),
    }
    if call.flag("create"):
        facts.update(
            {
                "dedup-window": duration(call.duration("dedupwindow")),
                "deduplication": _word(call.flag("dedup")),
                "max-bytes": number(call.size("maxbytes")),
                "replicas": str(call.integer("replicas")),
                "storage": call.text("storage"),
            }
        )
    return facts


def _word(value: bool) -> str:
    return "true" if value else "false"


def _print(call: Call, kind: Benchmark, samples: list[Sample]) -> None:
    if call.output.form in ("json", "jsonl", "yaml"):
        call.output.json(documents_of(kind.label, samples))
    else:
        for line in ["", *result_lines(kind.label, samples), ""]:
            call.output.print(line)
    target = call.text("csv")
    if not target:
        return
    try:
        Path(target).write_text(as_bench_csv(unique_id(), kind.letter, samples), encoding="utf-8")
    except OSError as error:
        raise JsctlError(f"cannot write {target}: {error.strerror}") from None
    call.output.note(f"Saved metric data in csv file {target}")
