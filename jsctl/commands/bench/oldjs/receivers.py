"""Clients that consumers push to."""

import asyncio
from time import perf_counter_ns

from jsctl.client.raw import Frame, RawConnection
from jsctl.client.wire.frames import frame_of
from jsctl.commands.bench.inflow import Inflow
from jsctl.commands.bench.job import Job
from jsctl.commands.bench.publishers import inbox
from jsctl.commands.bench.receivers import fetching
from jsctl.errors import JsctlError
from jsctl.render.reports.bench import Sample

NAK = b"-NAK"
STALLED = b"\r\nNats-Consumer-Stalled: "


async def pushed(connection: RawConnection, job: Job) -> Sample:
    """Takes what is delivered, up to its share, and acknowledges it.

    The first one of a queue group may be sent all that there is before others listen. What is more
    than its share it gives back, so that they need not wait until the server sends that anew; where
    nothing is acknowledged nothing can be given back, and it asks for no more than its share.
    """
    started = perf_counter_ns()
    kept = bool(job.group) and job.acks == "none"
    sid = connection.subscribe(job.subject, job.group, most=job.messages if kept else 0)
    inflow = Inflow(connection, inbox(), double=job.double_ack)
    await inflow.listen()
    count = total_bytes = 0
    more: list[Frame] = []
    while count < job.messages:
        for frame in await inflow.read():
            if frame.status:
                _keep_flowing(connection, frame)
            elif count < job.messages:
                count += 1
                total_bytes += len(frame.payload)
                await _taken(inflow, job, frame, count)
                job.tell(count)
            else:
                more.append(frame)
        await connection.drain()
    ended = perf_counter_ns()
    connection.unsubscribe(sid)
    more += await inflow.rest()
    if job.group:
        connection.write(b"".join(frame_of(frame.reply, NAK) for frame in more if frame.reply))
    await connection.flush()
    return Sample(count, total_bytes, started, ended)


async def pulled(connection: RawConnection, job: Job) -> Sample:
    """A batch at a time; of these no latencies are told."""
    sample = await fetching(connection, job)
    return Sample(sample.messages, sample.bytes, sample.started_ns, sample.ended_ns)


def _keep_flowing(connection: RawConnection, frame: Frame) -> None:
    """Answers flow control: a server that hears nothing sends no more."""
    subject = frame.reply
    if not subject and STALLED in frame.header:
        subject = frame.header.partition(STALLED)[2].partition(b"\r\n")[0]
    if subject:
        connection.write(frame_of(subject, b""))


async def _taken(inflow: Inflow, job: Job, frame: Frame, count: int) -> None:
    if job.pace.sleep_seconds:
        await asyncio.sleep(job.pace.sleep_seconds)
    if job.acks == "ordered":
        if int(frame.reply.split(b".")[-3]) != count:
            raise JsctlError("the consumer has missed a message")
    elif job.acks != "none":
        await inflow.acknowledge(frame)
