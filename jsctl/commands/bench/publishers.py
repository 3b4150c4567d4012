"""Clients of a benchmark that send: messages, requests, batches, values of keys.

Each takes a connection that is already made; its time begins when the others begin, too.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from time import perf_counter_ns

from jsctl.api import jsontext
from jsctl.api.errors import ApiError
from jsctl.client.raw import Frame, RawConnection
from jsctl.client.wire.frames import frame_of
from jsctl.client.worded import worded
from jsctl.commands.bench.job import FLOW_MAX, TRY_AGAIN_S, Job
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.reports.bench import Sample

BLOCK_BYTES = 64 * 1024
BLOCK_MESSAGES_MAX = 1024
NO_RESPONDERS = b"503"
START, ADD, COMMIT, END = 0, 1, 2, 3
"""What a message means to a fast batch."""
CORE, REQUEST = "publishing: publishing", "requesting: requesting"
SYNC, BUCKET = "publishing: publishing synchronously", "putting: putting"
ASYNC = "publishing: publishing asynchronously"
ASYNC_ANSWER = "publishing: async publish acknowledgement is an error"
ATOMIC, FAST = "publishing: publishing with batch commit", "publishing: fast batch publishing"
"""What a client says that it did, before what went wrong, in the words of `nats`."""


def inbox() -> str:
    """Where answers come in."""
    return f"_INBOX.{os.urandom(11).hex()}"


async def core_publisher(connection: RawConnection, job: Job) -> Sample:
    """Publishes and flushes in the end; a latency is a message's share of one write."""
    _check_room(connection, job, CORE)
    latencies: list[int] = []
    started = perf_counter_ns()
    size = len(job.frame_of(0))
    block = max(1, min(BLOCK_MESSAGES_MAX, BLOCK_BYTES // size)) if job.pace.free else 1
    same = job.frame_of(0) * block if job.always_the_same else b""
    for first in range(0, job.messages, block):
        if block == 1:
            await job.pace.wait(first, started)
        count = min(block, job.messages - first)
        before = perf_counter_ns()
        if same:
            connection.write(same[: len(same) // block * count])
        else:
            connection.write(b"".join(job.frame_of(at) for at in range(first, first + count)))
        await connection.drain()
        latencies.append((perf_counter_ns() - before) // count)
        job.tell(first + count)
    await connection.flush()
    return _sample(job, started, latencies)


async def requester(connection: RawConnection, job: Job) -> Sample:
    """One request at a time; a latency is that of its answer."""
    return await _one_by_one(connection, job, REQUEST, job.frame_of, _any)


async def stream_sync_publisher(connection: RawConnection, job: Job) -> Sample:
    """One message at a time; a latency is that of its acknowledgement."""
    return await _one_by_one(connection, job, SYNC, job.frame_of, _stored)


async def kv_putter(connection: RawConnection, job: Job) -> Sample:
    """One value at a time."""

    def frame(at: int, reply: bytes) -> bytes:
        subject = f"$KV.{job.bucket}.{job.key_of(at)}".encode()
        return frame_of(subject, job.payload, reply)

    return await _one_by_one(connection, job, BUCKET, frame, _stored)


Made = Callable[[int, bytes], bytes]
Judged = Callable[[Frame, str], bool]


def _check_room(connection: RawConnection, job: Job, what: str) -> None:
    """Raises JsctlError for messages that the server does not take: it would close the connection,
    and who still writes then hears of nothing else."""
    if 0 < connection.payload_max < len(job.header_of(0)) + len(job.payload):
        raise JsctlError(f"{what}: nats: maximum payload exceeded")


def _any(answer: Frame, what: str) -> bool:
    """Whether there is an answer. Raises Unreachable when nobody listens."""
    if answer.status == NO_RESPONDERS:
        raise Unreachable(f"{what}: nats: no responders available for request")
    return True


def _stored(answer: Frame, what: str) -> bool:
    """Whether a stream took the message; raises JsctlError when it refuses."""
    if answer.status == NO_RESPONDERS:
        return False
    check_stored(answer.payload, what if what is ASYNC_ANSWER else f"{what}: nats")
    return True


def check_stored(data: bytes, what: str) -> None:
    """Raises JsctlError unless the answer says that the message is stored."""
    if b'"error"' not in data and b'"seq"' in data:
        return
    try:
        problem = jsontext.parse_object(data).get("error")
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        raise JsctlError(f"{what}: the answer is not one of JetStream")
    error = ApiError(
        _count(problem.get("code")),
        _count(problem.get("err_code")),
        str(problem.get("description", "")),
    )
    raise JsctlError(f"{what}: {worded(error)}")


async def _one_by_one(
    connection: RawConnection, job: Job, what: str, made: Made, judged: Judged
) -> Sample:
    _check_room(connection, job, what)
    prefix = inbox()
    connection.subscribe(f"{prefix}.*")
    await connection.flush()
    await connection.wait_at_the_socket()
    latencies: list[int] = []
    started = perf_counter_ns()
    for at in range(job.messages):
        await job.pace.wait(at, started)
        before = perf_counter_ns()
        for attempt in range(job.tries_max):
            if attempt:
                await asyncio.sleep(TRY_AGAIN_S)
            reply = f"{prefix}.{at}".encode()
            connection.write(made(at, reply))
            if judged(await _answer(connection, job.timeout, reply, what), what):
                break
        else:
            raise Unreachable(f"{what}: nats: no response from stream")
        latencies.append(perf_counter_ns() - before)
        job.tell(at + 1)
    return _sample(job, started, latencies)


async def _answer(connection: RawConnection, timeout: float, reply: bytes, what: str) -> Frame:
    """The one to that request: where several answer, those to earlier ones may come now."""
    try:
        async with asyncio.timeout(timeout):
            while True:
                for frame in await connection.read():
                    if frame.subject == reply:
                        return frame
    except TimeoutError:
        raise Unreachable(f"{what}: nats: timeout") from None


async def stream_async_publisher(connection: RawConnection, job: Job) -> Sample:
    """A batch at a time; a latency is the time until all answers of a batch are there."""
    _check_room(connection, job, ASYNC)
    prefix = inbox()
    connection.subscribe(f"{prefix}.*")
    await connection.flush()
    latencies: list[int] = []
    started = perf_counter_ns()
    size = max(1, job.batch)
    for first in range(0, job.messages, size):
        before = perf_counter_ns()
        last = min(first + size, job.messages)
        waiting = list(range(first, last))
        for attempt in range(job.tries_max):
            if attempt:
                await asyncio.sleep(TRY_AGAIN_S)
            await _send_all(connection, job, waiting, prefix, started)
            waiting = await _untaken(connection, len(waiting), job.timeout)
            if not waiting:
                break
        else:
            raise Unreachable(f"{ASYNC_ANSWER}: nats: no response from stream")
        latencies.append(perf_counter_ns() - before)
        job.tell(last)
    return _sample(job, started, latencies)


async def _send_all(
    connection: RawConnection, job: Job, numbers: list[int], prefix: str, started: int
) -> None:
    frames: list[bytes] = []
    for at in numbers:
        if not job.pace.free:
            await job.pace.wait(at, started)
        frames.append(job.frame_of(at, f"{prefix}.{at}".encode()))
        if not job.pace.free or len(frames) >= BLOCK_MESSAGES_MAX:
            connection.write(b"".join(frames))
            frames.clear()
            await connection.drain()  # at a slow pace it tells at once that nobody is there
    connection.write(b"".join(frames))
    await connection.drain()


async def _untaken(connection: RawConnection, count: int, timeout: float) -> list[int]:
    """Checks so many answers; the numbers of the messages that nobody took."""
    untaken: list[int] = []
    try:
        async with asyncio.timeout(timeout):
            while count:
                for answer in await connection.read():
                    count -= 1
                    if not _stored(answer, ASYNC_ANSWER):
                        untaken.append(int(answer.subject.rpartition(b".")[2]))
    except TimeoutError:
        raise Unreachable("did not receive all answers of the stream in time") from None
    return untaken


async def stream_atomic_publisher(connection: RawConnection, job: Job) -> Sample:
    """A batch at a time, all of it stored together; a latency is that of a batch."""
    _check_room(connection, job, ATOMIC)
    prefix = inbox()
    connection.subscribe(f"{prefix}.*")
    await connection.flush()
    latencies: list[int] = []
    started = perf_counter_ns()
    for first in range(0, job.messages, max(1, job.batch)):
        before = perf_counter_ns()
        last = min(first + max(1, job.batch), job.messages)
        batch = f"{job.run_id}-{job.number}"
        frames: list[bytes] = []
        for at in range(first, last):
            if not job.pace.free:
                await job.pace.wait(at, started)
            more = {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(at - first + 1)}
            ending = at == last - 1
            if ending:
                more["Nats-Batch-Commit"] = "1"
            frames.append(job.frame_of(at, f"{prefix}.{at}".encode() if ending else b"", more))
        connection.write(b"".join(frames))
        await connection.drain()
        answer = await _answer(connection, job.timeout, f"{prefix}.{last - 1}".encode(), ATOMIC)
        if not _stored(answer, ATOMIC):
            raise Unreachable(f"{ATOMIC}: nats: no response from stream")
        latencies.append(perf_counter_ns() - before)
        job.tell(last)
    return _sample(job, started, latencies)


async def stream_fast_publisher(connection: RawConnection, job: Job) -> Sample:
    """One batch that the stream paces; a latency is the time between two of its answers."""
    _check_room(connection, job, f"{FAST}: batch message 1 publish failed")
    flow = _Flow(connection, job)
    await flow.begin()
    latencies: list[int] = []
    started = before = perf_counter_ns()
    for at in range(job.messages):
        if not job.pace.free:
            await job.pace.wait(at, started)
        if await flow.send(at):
            now = perf_counter_ns()
            latencies.append(now - before)
            before = now
        job.tell(at + 1)
    await flow.finish()
    latencies.append(perf_counter_ns() - before)
    return _sample(job, started, latencies)


def _count(value: object) -> int:
    """Nothing where none is told."""
    return value if isinstance(value, int) else 0


class _Flow:
    """A fast batch (NATS ADR 50): what may be sent before the stream has answered."""

    def __init__(self, connection: RawConnection, job: Job) -> None:
        self._connection = connection
        self._job = job
        self._flow = min(max(1, job.batch), FLOW_MAX)
        self._asked = self._flow
        self._inbox = inbox()
        self._acked = self._answers = 0
        self._stored: bytes | None = None
        self._frames: list[bytes] = []

    async def begin(self) -> None:
        """Listens for the stream's answers."""
        self._connection.subscribe(f"{self._inbox}.>")
        await self._connection.flush()

    def _reply(self, sequence: int, operation: int) -> bytes:
        return f"{self._inbox}.{self._asked}.fail.{sequence}.{operation}.$FI".encode()

    async def send(self, at: int) -> bool:
        """Message number `at`; tells whether the stream has answered since the last one."""
        operation = START if not at else ADD
        self._frames.append(self._job.frame_of(at, self._reply(at + 1, operation)))
        before, answers = self._acked, self._answers
        full = self._acked + self._flow * self._job.acks_max <= at + 1
        if full or not at or not self._job.pace.free or len(self._frames) >= BLOCK_MESSAGES_MAX:
            await self._write()
        while (full or not at) and self._answers == answers:
            await self._hear()
        return self._acked != before

    async def _write(self) -> None:
        self._connection.write(b"".join(self._frames))
        self._frames.clear()
        await self._connection.drain()

    async def _hear(self) -> None:
        """One answer or more. Raises JsctlError for a refusal, Unreachable for silence."""
        try:
            async with asyncio.timeout(self._job.timeout):
                found = await self._connection.read()
        except TimeoutError:
            raise Unreachable(f"{FAST}: nats: timeout") from None
        for frame in found:
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        if frame.status == NO_RESPONDERS:
            raise Unreachable(f"{FAST}: nats: no response from stream")
        try:
            document = jsontext.parse_object(frame.payload)
        except ValueError:
            document = {}
        kind = document.get("type")
        if kind == "ack":
            self._answers += 1
            self._acked = _count(document.get("seq")) or self._acked
            self._flow = _count(document.get("msgs")) or self._flow
        elif kind == "gap":
            raise JsctlError(f"{FAST}: the stream has missed messages")
        else:
            check_stored(frame.payload, FAST)
            self._stored = frame.payload

    async def finish(self) -> None:
        """Ends the batch, and waits until all of it is stored."""
        await self._write()
        reply = self._reply(self._job.messages + 1, END)
        self._connection.write(frame_of(self._job.subject_of(0), b"", reply))
        await self._connection.drain()
        while self._stored is None:
            await self._hear()


def _sample(job: Job, started: int, latencies: list[int]) -> Sample:
    size = job.messages * len(job.payload)
    return Sample(job.messages, size, started, perf_counter_ns(), latencies)


Sender = Callable[[RawConnection, Job], Awaitable[Sample]]
