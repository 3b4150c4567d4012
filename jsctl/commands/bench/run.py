"""Runs benchmarks: shares the messages out, starts all clients together, prints the result."""

import random
from collections.abc import Sequence
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS
from jsctl.client.addresses import is_websocket, shown_urls
from jsctl.client.requests import api_prefix
from jsctl.commands.bench.assets import (
    check_bucket_there,
    prepare_bucket,
    prepare_consumer,
    prepare_stream,
    purge_stream,
    stream_of,
)
from jsctl.commands.bench.job import FLOW_MAX, Job, Pace
from jsctl.commands.bench.kinds import Benchmark, banner
from jsctl.commands.bench.workers import ClientFailed, run_clients
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.content.bodies import check_subject, headers_of
from jsctl.commands.toolkit.content.templates import unique_id
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import SHARED_MODE, save
from jsctl.errors import JsctlError, UsageError
from jsctl.render.humanize import number
from jsctl.render.reports.bench import as_bench_csv, documents_of, result_lines

if TYPE_CHECKING:
    from jsctl.render.reports.bench import Sample

SIZE_MAX = (1 << 31) - 1
MESSAGES_MAX = (1 << 63) - 1
HISTORY_MAX = 255


async def core_pub(call: Call) -> None:
    """`bench pub`."""
    await _publish(call, Benchmark.CORE_PUB)


async def core_sub(call: Call) -> None:
    """`bench sub`."""
    check(call)
    start(call, Benchmark.CORE_SUB)
    await run_jobs(call, Benchmark.CORE_SUB, jobs_of(call, Benchmark.CORE_SUB))


async def service_request(call: Call) -> None:
    """`bench service request`."""
    await _publish(call, Benchmark.REQUEST)


async def service_serve(call: Call) -> None:
    """`bench service serve`, until it is stopped."""
    check(call)
    start(call, Benchmark.SERVE)
    await run_jobs(call, Benchmark.SERVE, jobs_of(call, Benchmark.SERVE))


async def js_pub_sync(call: Call) -> None:
    """`bench js pub sync`."""
    await _publish_stream(call, Benchmark.JS_SYNC)


async def js_pub_async(call: Call) -> None:
    """`bench js pub async`."""
    await _publish_stream(call, Benchmark.JS_ASYNC)


async def js_pub_atomic(call: Call) -> None:
    """`bench js pub atomic`."""
    if call.flag("persistasync") and call.integer("replicas") != 1:
        raise UsageError(
            "async persist mode is only supported for streams with 1 replica and incompatible "
            "with atomic batch publishing"
        )
    await _publish_stream(call, Benchmark.JS_ATOMIC)


async def js_pub_fast(call: Call) -> None:
    """`bench js pub fast`."""
    _acks_max(call)
    await _publish_stream(call, Benchmark.JS_FAST)


async def js_ordered(call: Call) -> None:
    """`bench js ordered`; each client has all messages, from a consumer of its own."""
    check(call)
    _check_batch(call)
    start(call, Benchmark.ORDERED)
    await purge_stream(call)
    jobs = jobs_of(call, Benchmark.ORDERED, acks="ordered")
    async with call.manager("") as manager:
        made = [await prepare_consumer(call, manager, ordered=True) for _ in jobs]
    named = [with_consumer(job, name) for job, name in zip(jobs, made, strict=True)]
    await run_jobs(call, Benchmark.ORDERED, named)


async def js_consume(call: Call) -> None:
    """`bench js consume`."""
    await _consume(call, Benchmark.CONSUME)


async def js_fetch(call: Call) -> None:
    """`bench js fetch`."""
    await _consume(call, Benchmark.FETCH)


async def _consume(call: Call, kind: Benchmark) -> None:
    check(call)
    _check_batch(call)
    start(call, kind)
    await purge_stream(call)
    async with call.manager("") as manager:
        await prepare_consumer(call, manager, ordered=False)
    await run_jobs(call, kind, jobs_of(call, kind, acks=call.text("acks")))


async def js_get_sync(call: Call) -> None:
    """`bench js get sync`, from the first message on."""
    check(call)
    start(call, Benchmark.GET_SYNC)
    first = (await stream_of(call)).state.first_seq
    await run_jobs(call, Benchmark.GET_SYNC, jobs_of(call, Benchmark.GET_SYNC, offset=first))


async def js_get_batch(call: Call) -> None:
    """`bench js get batch`."""
    check(call)
    start(call, Benchmark.GET_BATCH)
    check_name(call.text("stream"), "stream", about="doing a direct get on the stream")
    await run_jobs(call, Benchmark.GET_BATCH, jobs_of(call, Benchmark.GET_BATCH))


async def kv_put(call: Call) -> None:
    """`bench kv put`."""
    check(call)
    if call.integer("history") > HISTORY_MAX:
        raise UsageError(f"history: must be less than or equal to {HISTORY_MAX}")
    start(call, Benchmark.KV_PUT)
    await prepare_bucket(call)
    await run_jobs(call, Benchmark.KV_PUT, jobs_of(call, Benchmark.KV_PUT))


async def kv_get(call: Call) -> None:
    """`bench kv get`."""
    check(call)
    start(call, Benchmark.KV_GET)
    await check_bucket_there(call)
    await run_jobs(call, Benchmark.KV_GET, jobs_of(call, Benchmark.KV_GET))


async def _publish(call: Call, kind: Benchmark) -> None:
    check(call)
    start(call, kind)
    await run_jobs(call, kind, jobs_of(call, kind))


async def _publish_stream(call: Call, kind: Benchmark) -> None:
    check(call)
    start(call, kind)
    if kind is Benchmark.JS_FAST and call.integer("batch") > FLOW_MAX:
        most = (
            f"exceeds the fast publisher flow window maximum of {FLOW_MAX}; capping at {FLOW_MAX}"
        )
        call.output.log(f"WARNING: --batch {call.integer('batch')} {most}")
    await prepare_stream(call, kind)
    await run_jobs(call, kind, jobs_of(call, kind))


def check(call: Call) -> None:
    """Raises UsageError for numbers, a subject and servers that make no benchmark."""
    _check_servers(call)
    if call.given("subject"):
        check_subject(call.text("subject"))
    total = _total(call)
    if total < 1:
        raise UsageError("number of messages should be greater than 0")
    if call.integer("clients", 1) < 1:
        raise UsageError("number of clients should be greater than 0")
    if call.flag("multisubjectrandomize") and call.integer("multisubjectmax") < 0:
        raise UsageError("--multisubjectmax must be >= 0")
    if not 0 < _bytes(call, "size") <= SIZE_MAX:
        text = call.text("size")
        raise UsageError(
            f"can not parse or invalid the value specified for the message size: {text}"
        )
    if call.text("maxbytes") and _bytes(call, "maxbytes") < 1:
        text = call.text("maxbytes")
        raise UsageError(
            "can not parse or invalid the value specified for the max stream/bucket size: " + text
        )


def _check_servers(call: Call) -> None:
    """What is measured are the bytes of a connection itself."""
    if any(is_websocket(url) for url in call.settings.urls):
        raise UsageError(
            "a benchmark does not go through websockets",
            hints=(f"name a nats:// or tls:// URL in place of {shown_urls(call.settings.urls)}",),
        )


def _check_batch(call: Call) -> None:
    """Of messages that a consumer delivers: it would wait for ever with none."""
    if call.integer("batch") < 1:
        raise UsageError("--batch must be >= 1")


def _bytes(call: Call, name: str) -> int:
    """A size, -1 for what is none."""
    try:
        return call.size(name)
    except UsageError:
        return -1


def _total(call: Call) -> int:
    """How many messages there are to be. Raises UsageError."""
    rate, run_ns = call.integer("throughput"), call.duration("duration")
    if run_ns < 0:
        raise UsageError("--duration cannot be negative")
    if run_ns and rate <= 0:
        raise UsageError("--duration requires --throughput to be set")
    if run_ns:
        found = (rate * run_ns + SECOND_NS // 2) // SECOND_NS
        if found > MESSAGES_MAX:
            raise UsageError(
                f"number of messages {found} exceeds the maximum supported ({MESSAGES_MAX})"
            )
        if not found:
            raise UsageError(
                f"the combination of --throughput={rate} and --duration={call.text('duration')} "
                "results in zero messages"
            )
        return found
    return call.integer("msgs")


def start(call: Call, kind: Benchmark) -> None:
    """Says what is measured."""
    call.output.log(banner(call, kind, _total(call), _clients(call, kind)))


def _clients(call: Call, kind: Benchmark) -> int:
    """No more than there are messages to share."""
    clients = call.integer("clients", 1)
    return min(clients, _total(call)) if kind.shared else clients


def jobs_of(call: Call, kind: Benchmark, *, acks: str = "", offset: int = 0) -> list[Job]:
    """The part of each client."""
    total, clients = _total(call), _clients(call, kind)
    counts = (
        [total // clients + (at < total % clients) for at in range(clients)]
        if kind.shared
        else [total] * clients
    )
    payload, run_id = _payload(call), f"{time_ns() // 1_000_000:x}"
    return [
        _job(call, at, count, payload, run_id, acks, sum(counts[:at]) if kind.shared else offset)
        for at, count in enumerate(counts)
    ]


def _job(
    call: Call, at: int, count: int, payload: bytes, run_id: str, acks: str, offset: int
) -> Job:
    sleep_ns = call.duration("sleep")
    filters = (call.text("filter"),) if call.text("filter") else call.texts("filter")
    return Job(
        number=at,
        messages=count,
        subject=call.text("subject"),
        payload=payload,
        headers=headers_of(call),
        offset=offset,
        subjects=call.integer("multisubjectmax") if call.flag("multisubject") else None,
        random_subjects=call.flag("multisubjectrandomize"),
        batch=max(1, call.integer("batch", 500)),
        acks_max=_acks_max(call),
        pace=Pace(
            sleep_seconds=sleep_ns / SECOND_NS,
            offset_seconds=random.random() * sleep_ns / SECOND_NS if at else 0.0,
            per_second=call.integer("throughput") / min(call.integer("clients", 1), _total(call)),
        ),
        timeout=call.settings.timeout,
        run_id=run_id,
        dedup=call.flag("dedup"),
        progress=bool(call.output.stderr.isatty() and call.flag("progress")),
        stream=call.text("stream"),
        bucket=call.text("bucket"),
        consumer=call.text("consumer"),
        acks=acks,
        double_ack=call.flag("doubleack"),
        filters=filters,
        keys=call.integer("randomize"),
        api_prefix=api_prefix(call.settings).decode(),
    )


def _acks_max(call: Call) -> int:
    most = call.integer("max-outstanding-acks", 1)
    if most < 1:
        raise UsageError("--max-outstanding-acks must be >= 1")
    return most


def with_consumer(job: Job, name: str) -> Job:
    """The job, of a consumer that was made for it."""
    from dataclasses import replace

    return replace(job, consumer=name)


def _payload(call: Call) -> bytes:
    name = call.text("payload")
    if not name:
        return bytes(call.size("size"))
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None


async def run_jobs(call: Call, kind: Benchmark, jobs: Sequence[Job]) -> None:
    """All clients at once, then what they did. Raises the first error."""

    try:
        samples = await run_clients(
            call.settings, kind.function, jobs, lambda: tell_begun(call, kind, jobs)
        )
    except ClientFailed as error:
        tell_failed(call, kind, error.number, error)
        raise error.error from None
    _print(call, kind, samples)


def tell_begun(call: Call, kind: Benchmark, jobs: Sequence[Job]) -> None:
    """Who begins, and with what."""
    for job in jobs:
        what = f"{kind.verb} {number(job.messages)} messages" if kind.verb else ""
        text = what or "hit control-c to stop"
        call.output.log(f"[{job.number + 1}] Starting {kind.label}, {text}")


def tell_failed(call: Call, kind: Benchmark, client: int, why: Exception) -> None:
    """What ended one of them."""
    call.output.log(f"{kind.failure} from client {client}: {why}")


def _print(call: Call, kind: Benchmark, samples: "list[Sample]") -> None:
    if call.output.asked:
        call.output.json(documents_of(kind.label, samples))
    else:
        for line in ["", *result_lines(kind.label, samples), ""]:
            call.output.print(line)
    target = call.text("csv")
    if not target:
        return
    try:
        save(Path(target), as_bench_csv(unique_id(), kind.letter, samples), mode=SHARED_MODE)
    except JsctlError as error:
        raise JsctlError(f"writing file {target}: {error}") from None
    call.output.note(f"Saved metric data in csv file {target}")
