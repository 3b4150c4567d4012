"""Clients of a benchmark that receive: subscribers, consumers, getters, a service."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from time import perf_counter_ns, strftime

from jsctl.api.errors import ApiError
from jsctl.client.raw import Frame, RawConnection
from jsctl.client.stored import stored_answer
from jsctl.client.wire.frames import frame_of
from jsctl.client.worded import worded
from jsctl.commands.bench.inflow import Inflow
from jsctl.commands.bench.job import Job
from jsctl.commands.bench.publishers import inbox
from jsctl.errors import JsctlError, NotFound, Unreachable
from jsctl.render.reports.bench import Sample

SECOND_NS = 1_000_000_000
MISSING = ApiError(404, 10037, "message not found")
EXPIRES_S = 30
SERVICE_GROUP = "q"
NONE_FOUND, END_OF_BATCH, NO_RESPONDERS = b"404", b"204", b"503"
PASSING = (b"408", b"409", b"404", b"100")
"""What ends a pull request or keeps it alive; another one is made."""


async def core_subscriber(connection: RawConnection, job: Job) -> Sample:
    """Counts messages; its time starts with the first one."""
    connection.subscribe(job.listened)
    early = await connection.flush()  # of a publisher that is at work already
    began = perf_counter_ns()
    counted = await connection.count(job.messages - len(early))
    job.tell(job.messages)
    return Sample(
        len(early) + counted.messages,
        sum(len(frame.payload) for frame in early) + counted.bytes,
        began if early else counted.started_ns,
        perf_counter_ns(),
    )


async def server(connection: RawConnection, job: Job) -> Sample:
    """Answers requests until it is stopped."""
    connection.subscribe(job.subject, SERVICE_GROUP)
    found = await connection.flush()
    while True:
        replies = [frame.reply for frame in found if frame.reply]
        if job.pace.sleep_seconds:
            for reply in replies:
                await asyncio.sleep(job.pace.sleep_seconds)
                connection.write(frame_of(reply, b"ok"))
        else:
            connection.write(b"".join(frame_of(reply, b"ok") for reply in replies))
        await connection.drain()
        found = await connection.read()


async def consuming(connection: RawConnection, job: Job) -> Sample:
    """Pulls ahead of what it has, and acknowledges what comes."""
    pull = _Pull(connection, job)
    await pull.begin()
    count = total_bytes = started = 0
    wanted = min(job.batch, job.messages)
    await pull.ask(wanted)
    while count < job.messages:
        for frame in await pull.read():
            if frame.status:
                wanted = max(0, wanted - pull.ended(frame, wanted))
                continue
            if not count:
                started = perf_counter_ns()
            count += 1
            wanted -= 1
            total_bytes += len(frame.payload)
            await pull.take(frame)
            job.tell(count)
        more = min(job.batch, job.messages - count) - wanted
        if wanted <= job.batch // 2 and more > 0:  # no more than its share: others want theirs
            await pull.ask(more)
            wanted += more
        await connection.drain()
    await connection.flush()
    return Sample(count, total_bytes, started, perf_counter_ns())


async def fetching(connection: RawConnection, job: Job) -> Sample:
    """A batch at a time; a latency is the time until all of it is there."""
    pull = _Pull(connection, job)
    await pull.begin()
    latencies: list[int] = []
    count = total_bytes = 0
    started = perf_counter_ns()
    while count < job.messages:
        before = perf_counter_ns()
        left = min(job.batch, job.messages - count)
        await pull.ask(left)
        while left:
            for frame in await pull.read():
                if frame.status == b"100":
                    continue
                if frame.status:
                    what = f"fetching from the consumer '{job.consumer}' returned no messages"
                    raise NotFound(what)
                left -= 1
                count += 1
                total_bytes += len(frame.payload)
                await pull.take(frame)
        await connection.drain()
        latencies.append(perf_counter_ns() - before)
        job.tell(count)
    await connection.flush()
    return Sample(count, total_bytes, started, perf_counter_ns(), latencies)


_PENDING = re.compile(rb"\r\nNats-Pending-Messages: ?([0-9]{1,20})\r\n")


class _Pull:
    """Requests for messages of a consumer; an ordered one misses none."""

    def __init__(self, connection: RawConnection, job: Job) -> None:
        self._connection = connection
        self._job = job
        self._inbox = inbox()
        self._sequence = 0
        self._ordered = job.acks == "ordered"
        self._subject = f"{job.api_prefix}CONSUMER.MSG.NEXT.{job.stream}.{job.consumer}".encode()
        self._inflow = Inflow(connection, f"{self._inbox}.ack", double=job.double_ack)

    async def begin(self) -> None:
        """Listens for messages, and for answers to acknowledgements."""
        self._connection.subscribe(self._inbox)
        await self._inflow.listen()

    async def ask(self, count: int) -> None:
        """For so many more."""
        body = json.dumps({"batch": count, "expires": EXPIRES_S * SECOND_NS}).encode()
        self._connection.write(frame_of(self._subject, body, self._inbox.encode()))
        await self._connection.drain()

    def ended(self, frame: Frame, wanted: int) -> int:
        """How many of the messages that were asked for do not come, as a request has ended; all of
        them where it is not said. Raises what is no passing trouble."""
        if frame.status == b"100":
            return 0
        if frame.status == NO_RESPONDERS or frame.status not in PASSING:
            text = frame.header.split(b"\r\n")[0].decode("utf-8", "replace")
            raise Unreachable(f"consuming from '{self._job.consumer}': {text}")
        told = _PENDING.search(frame.header)
        return int(told[1]) if told else wanted

    async def read(self) -> list[Frame]:
        """Messages and the ends of requests."""
        return await self._inflow.read()

    async def take(self, frame: Frame) -> None:
        """A message: acknowledged, and in its order."""
        if self._job.pace.sleep_seconds:
            await asyncio.sleep(self._job.pace.sleep_seconds)
        if self._ordered:
            self._sequence += 1
            if int(frame.reply.split(b".")[-3]) != self._sequence:
                raise JsctlError("the consumer has missed a message")
        elif self._job.acks != "none":
            await self._inflow.acknowledge(frame)


async def sync_getter(connection: RawConnection, job: Job) -> Sample:
    """One stored message at a time, from the first one on."""
    asking = await _Asking.of(connection, job)
    latencies: list[int] = []
    total_bytes = 0
    started = perf_counter_ns()
    subject = f"{job.api_prefix}DIRECT.GET.{job.stream}"
    for at in range(job.messages):
        if at and job.pace.sleep_seconds:
            await asyncio.sleep(job.pace.sleep_seconds)
        before = perf_counter_ns()
        sequence = at + job.offset
        frame = await asking.one(subject, json.dumps({"seq": sequence}).encode())
        if frame.status:
            what = f"getting message sequence number {sequence} from the stream"
            raise NotFound(f"{what}: {worded(MISSING)}")
        total_bytes += len(frame.payload)
        latencies.append(perf_counter_ns() - before)
        job.tell(at + 1)
    return Sample(job.messages, total_bytes, started, perf_counter_ns(), latencies)


async def kv_getter(connection: RawConnection, job: Job) -> Sample:
    """One value at a time."""
    asking = await _Asking.of(connection, job)
    latencies: list[int] = []
    total_bytes = 0
    started = perf_counter_ns()
    for at in range(job.messages):
        await job.pace.wait(at, started)
        key = job.key_of(at)
        before = perf_counter_ns()
        subject = f"{job.api_prefix}DIRECT.GET.KV_{job.bucket}.$KV.{job.bucket}.{key}"
        frame = await asking.one(subject, b"")
        if frame.status:
            raise NotFound(f"getting key '{key}': nats: key not found")
        total_bytes += len(frame.payload)
        latencies.append(perf_counter_ns() - before)
        job.tell(at + 1)
    return Sample(job.messages, total_bytes, started, perf_counter_ns(), latencies)


async def batch_getter(connection: RawConnection, job: Job) -> Sample:
    """A batch of stored messages at a time."""
    asking = await _Asking.of(connection, job)
    latencies: list[int] = []
    count = total_bytes = 0
    sequence = 1
    subject = f"{job.api_prefix}DIRECT.GET.{job.stream}"
    started = perf_counter_ns()
    while count < job.messages:
        before = perf_counter_ns()
        wanted = min(job.batch, job.messages - count)
        filter_subject = job.filters[0] if job.filters else ">"
        body = {"batch": wanted, "seq": sequence, "next_by_subj": filter_subject}
        got = 0
        async for frame in asking.many(subject, json.dumps(body).encode()):
            got += 1
            total_bytes += len(frame.payload)
            sequence = _sequence_of(frame) + 1
        if not got:
            raise NotFound("getting message from the stream: no messages")
        if got < wanted:
            short = f"Warning: Got {got} (expected {wanted}) messages in this batch"
            sys.stderr.write(f"{strftime('%H:%M:%S')} [{job.number + 1}] {short}\n")
        count += got
        latencies.append(perf_counter_ns() - before)
        job.tell(min(count, job.messages))
        if job.pace.sleep_seconds:
            await asyncio.sleep(job.pace.sleep_seconds)
    return Sample(count, total_bytes, started, perf_counter_ns(), latencies)


def _refusal_in(frame: Frame) -> str:
    """What an answer says that is no message: those have headers."""
    try:
        stored_answer(bytes(frame.payload))
    except (ApiError, JsctlError) as error:
        return str(error)
    return "invalid stream response: response should have headers"


def _sequence_of(frame: Frame) -> int:
    mark = b"\r\nNats-Sequence: "
    at = frame.header.find(mark) + len(mark)
    return int(frame.header[at : frame.header.find(b"\r\n", at)])


class _Asking:
    """Requests whose answers come to one inbox, one request after the other."""

    def __init__(self, connection: RawConnection, job: Job) -> None:
        self._connection = connection
        self._timeout = job.timeout
        self._inbox = inbox()

    @classmethod
    async def of(cls, connection: RawConnection, job: Job) -> "_Asking":
        """Ready to ask."""
        asking = cls(connection, job)
        connection.subscribe(asking._inbox)
        await connection.flush()
        await connection.wait_at_the_socket()
        return asking

    async def one(self, subject: str, body: bytes) -> Frame:
        """The answer. Raises Unreachable when nobody gives one."""
        self._connection.write(frame_of(subject.encode(), body, self._inbox.encode()))
        frame = (await self._some())[-1]
        if frame.status == NO_RESPONDERS:
            raise Unreachable("nats: no responders available for request")
        return frame

    async def _some(self) -> list[Frame]:
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    found = await self._connection.read()
                    if found:
                        return found
        except TimeoutError:
            raise Unreachable("nats: timeout") from None

    async def many(self, subject: str, body: bytes) -> AsyncIterator[Frame]:
        """All answers of a batch."""
        self._connection.write(frame_of(subject.encode(), body, self._inbox.encode()))
        while True:
            for frame in await self._some():
                if frame.status in (END_OF_BATCH, NONE_FOUND):
                    return
                if frame.status == NO_RESPONDERS:
                    what = "nats: no responders available for request"
                    raise Unreachable(f"getting message from the stream: {what}")
                if frame.status:
                    text = frame.header.split(b"\r\n")[0].decode("utf-8", "replace")
                    raise Unreachable(f"doing a direct get on the stream: {text}")
                if not frame.header:
                    raise Unreachable(f"getting message from the stream: {_refusal_in(frame)}")
                yield frame
