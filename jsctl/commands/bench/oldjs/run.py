"""Benchmarks of consumers that servers push to, and of a durable one that is fetched from."""

from dataclasses import replace

from jsctl.api.consumer import ConsumerConfig
from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS
from jsctl.api.words import AckPolicy
from jsctl.client.manager import Manager
from jsctl.client.reading import passing_consumer
from jsctl.client.worded import worded
from jsctl.commands.bench.assets import CONSUMER_NOT_FOUND, OWN_CONSUMER
from jsctl.commands.bench.job import Job
from jsctl.commands.bench.kinds import Benchmark
from jsctl.commands.bench.publishers import inbox
from jsctl.commands.bench.run import (
    check,
    jobs_of,
    run_jobs,
    start,
    tell_begun,
    tell_failed,
)
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import NotFound, Unreachable

HEARTBEAT_NS = 5 * SECOND_NS
PENDING_MAX = 10_000
"""Of a consumer that is fetched from, however many clients there are."""


async def ordered(call: Call) -> None:
    """`bench oldjs ordered`; the stream is the one that has the subject."""
    check(call)
    start(call, Benchmark.OLD_ORDERED)
    jobs = jobs_of(call, Benchmark.OLD_ORDERED, acks="ordered")
    subject = jobs[0].listened
    async with call.manager("") as manager:
        names = await manager.stream_names(subject)
        if not names:
            about = f"subscribing to the ordered consumer on subject '{subject}'"
            why = NotFound(f"{about}: nats: no stream matches subject")
            tell_begun(call, Benchmark.OLD_ORDERED, jobs)
            for job in jobs:
                tell_failed(call, Benchmark.OLD_ORDERED, job.number, why)
            raise why
        made: list[str] = []
        try:
            listening = [await _ordered(manager, names[0], job, made) for job in jobs]
            await run_jobs(call, Benchmark.OLD_ORDERED, listening)
        finally:
            # A server notices seconds later that nobody listens any more.
            for name in made:
                await _remove(manager, names[0], name)


async def _ordered(manager: Manager, stream: str, job: Job, made: list[str]) -> Job:
    """With where its client has to listen. The server waits with messages until somebody does.

    `made` gets the consumer's name.
    """
    target = inbox()
    config = ConsumerConfig(
        ack_policy=AckPolicy.NONE,
        max_deliver=1,
        filter_subject=job.listened,
        deliver_subject=target,
        flow_control=True,
        idle_heartbeat=HEARTBEAT_NS,
        num_replicas=1,
        mem_storage=True,
    )
    info = await passing_consumer(manager, stream, config, action="")
    made.append(info.name)
    return replace(job, subject=target, subjects=None)


async def push(call: Call) -> None:
    """`bench oldjs push`; the clients are a queue group."""
    check(call)
    start(call, Benchmark.OLD_PUSH)
    name, acked = call.text("consumer"), call.flag("ack")
    clients = call.integer("clients", 1)
    wanted = ConsumerConfig(
        durable_name=name,
        deliver_subject=f"{name}-DELIVERY",
        deliver_group=f"{name}-GROUP",
        ack_policy=_policy(call),
        max_ack_pending=call.integer("maxacks") * clients if acked else 0,
    )
    async with call.manager("") as manager:
        made = await _prepared(call, manager, wanted)
        kind = "explicitly acked" if acked else "unacked"
        call.output.log(f"Defined durable {kind} push consumer: {name}")
        jobs = [
            replace(job, subject=made.deliver_subject, group=made.deliver_group)
            for job in jobs_of(call, Benchmark.OLD_PUSH, acks=_policy(call).value)
        ]
        await _run_and_remove(call, manager, Benchmark.OLD_PUSH, jobs)


async def pull(call: Call) -> None:
    """`bench oldjs pull`."""
    check(call)
    start(call, Benchmark.OLD_PULL)
    name = call.text("consumer")
    pending = min(call.integer("clients", 1) * call.integer("batch"), PENDING_MAX)
    wanted = ConsumerConfig(durable_name=name, ack_policy=_policy(call), max_ack_pending=pending)
    async with call.manager("") as manager:
        await _prepared(call, manager, wanted)
        if name == OWN_CONSUMER:
            call.output.log(f"Defined durable pull consumer: {name}")
        jobs = jobs_of(call, Benchmark.OLD_PULL, acks=_policy(call).value)
        await _run_and_remove(call, manager, Benchmark.OLD_PULL, jobs)


def _policy(call: Call) -> AckPolicy:
    return AckPolicy.EXPLICIT if call.flag("ack") else AckPolicy.NONE


async def _prepared(call: Call, manager: Manager, wanted: ConsumerConfig) -> ConsumerConfig:
    """The benchmark's own consumer is made; one of another name has to be there."""
    stream, name = call.text("stream"), wanted.durable_name
    what = f"{'creating' if name == OWN_CONSUMER else 'getting'} the durable consumer '{name}'"
    check_name(stream, "stream", about=what)
    check_name(name, "consumer", about=what)
    try:
        if name == OWN_CONSUMER:
            return (await manager.create_consumer(stream, wanted, action="")).config or wanted
        return (await manager.consumer_info(stream, name)).config or wanted
    except ApiError as error:
        raise worded(error, what) from None


async def _run_and_remove(call: Call, manager: Manager, kind: Benchmark, jobs: list[Job]) -> None:
    """The benchmark's own consumer goes with it."""
    stream, name = call.text("stream"), call.text("consumer")
    try:
        await run_jobs(call, kind, jobs)
    finally:
        if name == OWN_CONSUMER:
            gone = await _remove(manager, stream, name)
            words = "Deleted durable consumer" if gone else "Could not delete durable consumer"
            call.output.log(f"{words}: {name}")


async def _remove(manager: Manager, stream: str, name: str) -> bool:
    """Whether the consumer is gone, maybe by itself. That a server which has gone does not say so
    is not why the benchmark ended."""
    if not manager.client.is_connected:
        return False
    try:
        await manager.delete_consumer(stream, name)
    except ApiError as error:
        if error.err_code != CONSUMER_NOT_FOUND:
            raise
    except Unreachable:
        return False
    return True
