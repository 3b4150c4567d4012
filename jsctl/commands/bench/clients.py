"""What each client of a benchmark does with its connection."""

import asyncio
import json
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING

from jsctl.client.failures import foreign_errors, nobody_there, translate
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.reports.bench import Sample

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

YIELD_EVERY = 256
"""A publisher lets others run after so many messages."""
TRIES_MAX = 3
"""How often a message is sent that nobody takes: a new stream is not yet known everywhere."""
TRY_AGAIN_S = 0.25
BAR_CELLS = 40
BAR_STEPS = 50


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a client may go; zeros are no limit."""

    sleep_seconds: float = 0.0
    offset_seconds: float = 0.0
    per_second: float = 0.0

    async def wait(self, sent: int, started_ns: int) -> None:
        """Before message number `sent` (from 0)."""
        if self.sleep_seconds:
            await asyncio.sleep(self.offset_seconds if not sent else self.sleep_seconds)
        if self.per_second:
            due_ns = started_ns + int(sent / self.per_second * 1e9)
            left_ns = due_ns - perf_counter_ns()
            if left_ns > 0:
                await asyncio.sleep(left_ns / 1e9)


@dataclass(frozen=True, slots=True)
class Job:
    """The part of one client. `subjects` > 0 spreads messages over that many subjects."""

    number: int
    messages: int
    subject: str
    payload: bytes
    headers: Mapping[str, str] | None
    subjects: int
    random_subjects: bool
    batch: int
    pace: Pace
    timeout: float
    run_id: str
    progress: bool
    tries_max: int = TRIES_MAX

    def subject_of(self, at: int) -> str:
        """Where message number `at` goes."""
        if not self.subjects:
            return self.subject
        number = random.randrange(self.subjects) if self.random_subjects else at % self.subjects
        return f"{self.subject}.{number}"

    def headers_of(self, at: int) -> dict[str, str] | None:
        """What goes with it."""
        found = dict(self.headers or {})
        if self.run_id:
            found["Nats-Msg-Id"] = f"{self.run_id}-{self.number}-{at}"
        return found or None

    def tell(self, done: int) -> None:
        """Moves the progress bar, on a terminal and not too often."""
        if not self.progress or done % max(1, self.messages // BAR_STEPS):
            return
        share = done / self.messages
        bar = "=" * int(share * BAR_CELLS)
        end = "\n" if done == self.messages else ""
        sys.stderr.write(f"\r[{self.number + 1}] [{bar:-<{BAR_CELLS}}] {share:4.0%}{end}")


async def core_publisher(client: "NatsClient", job: Job) -> Sample:
    """Publishes and flushes in the end; a latency is the time of one call."""
    latencies: list[int] = []
    started = perf_counter_ns()
    for at in range(job.messages):
        await job.pace.wait(at, started)
        before = perf_counter_ns()
        await client.publish(job.subject_of(at), job.payload, headers=job.headers_of(at))
        latencies.append(perf_counter_ns() - before)
        if at % YIELD_EVERY == 0:
            await asyncio.sleep(0)
        job.tell(at + 1)
    await client.flush()
    return _sample(job, started, latencies)


async def core_subscriber(client: "NatsClient", job: Job) -> Sample:
    """Counts messages; its time starts with the first one."""
    done = asyncio.Event()
    count = total_bytes = started = 0

    async def take(message: "Msg") -> None:
        nonlocal count, total_bytes, started
        if not count:
            started = perf_counter_ns()
        count += 1
        total_bytes += len(message.data)
        job.tell(count)
        if count >= job.messages:
            done.set()

    subject = f"{job.subject}.*" if job.subjects else job.subject
    await client.subscribe(subject, cb=take, pending_msgs_limit=-1, pending_bytes_limit=-1)
    await client.flush()
    await done.wait()
    return Sample(count, total_bytes, started, perf_counter_ns())


async def stream_sync_publisher(client: "NatsClient", job: Job) -> Sample:
    """One message at a time; a latency is that of its answer."""
    latencies: list[int] = []
    started = perf_counter_ns()
    for at in range(job.messages):
        await job.pace.wait(at, started)
        before = perf_counter_ns()
        answer = await _request(client, job, at)
        _check(answer.data)
        latencies.append(perf_counter_ns() - before)
        job.tell(at + 1)
    return _sample(job, started, latencies)


async def _request(client: "NatsClient", job: Job, at: int) -> "Msg":
    """The answer to one message."""
    subject, headers = job.subject_of(at), job.headers_of(at)
    tries = 0
    while True:
        try:
            return await client.request(subject, job.payload, timeout=job.timeout, headers=headers)
        except foreign_errors() as error:
            tries += 1
            if tries >= job.tries_max or not nobody_there(error):
                raise translate(error, "publishing synchronously") from error
        await asyncio.sleep(TRY_AGAIN_S)


async def stream_async_publisher(client: "NatsClient", job: Job) -> Sample:
    """A batch at a time; a latency is the time until all answers of a batch are there."""
    answers: asyncio.Queue[Msg] = asyncio.Queue()
    inbox = client.new_inbox()
    await client.subscribe(
        f"{inbox}.*", cb=answers.put, pending_msgs_limit=-1, pending_bytes_limit=-1
    )
    await client.flush()

    async def send(at: int) -> None:
        await client.publish(
            job.subject_of(at), job.payload, reply=f"{inbox}.{at}", headers=job.headers_of(at)
        )

    latencies: list[int] = []
    size = max(1, job.batch)
    started = perf_counter_ns()
    for first in range(0, job.messages, size):
        before = perf_counter_ns()
        last = min(first + size, job.messages)
        for at in range(first, last):
            await job.pace.wait(at, started)
            await send(at)
        untaken = await _answers(answers, last - first, job.timeout)
        for _ in range(job.tries_max - 1):
            if not untaken:
                break
            await asyncio.sleep(TRY_AGAIN_S)
            for at in untaken:
                await send(at)
            untaken = await _answers(answers, len(untaken), job.timeout)
        if untaken:
            raise Unreachable("publishing: nats: no response from stream")
        latencies.append(perf_counter_ns() - before)
        job.tell(last)
    return _sample(job, started, latencies)


async def _answers(answers: "asyncio.Queue[Msg]", count: int, timeout: float) -> list[int]:
    """Checks so many answers; the numbers of the messages that nobody took."""
    untaken: list[int] = []
    try:
        async with asyncio.timeout(timeout):
            for _ in range(count):
                answer = await answers.get()
                if answer.data:
                    _check(answer.data)
                else:
                    untaken.append(int(answer.subject.rpartition(".")[2]))
    except TimeoutError:
        raise Unreachable("did not receive all answers of the stream in time") from None
    return untaken


def _check(data: bytes) -> None:
    """Raises JsctlError unless the answer says that the message is stored."""
    if b'"error"' not in data and b'"seq"' in data:
        return
    try:
        problem = json.loads(data).get("error") or {}
    except ValueError:
        problem = {}
    text = str(problem.get("description", "the answer is not one of JetStream"))
    raise JsctlError(f"publishing: {text} ({problem.get('err_code', 0)})")


def _sample(job: Job, started: int, latencies: list[int]) -> Sample:
    size = job.messages * len(job.payload)
    return Sample(job.messages, size, started, perf_counter_ns(), latencies)
