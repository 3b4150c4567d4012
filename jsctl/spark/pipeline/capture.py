"""Keeps history: advisories as they come, stream and consumer states at intervals, in a stream.

    jsctl.telemetry.advisory.<what follows $JS.EVENT in the advisory's subject>
    jsctl.telemetry.stream.<stream>
    jsctl.telemetry.consumer.<stream>.<consumer>
    jsctl.telemetry.capture            start, alive and end of a capture

Bodies of advisories are as they came; states are {"at": time, "info": the API's own document}.
The audit advisories that capturing itself causes, and those of other mere looks, are left out.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jsctl.api.codec import encode
from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamConfig
from jsctl.api.times import format_time
from jsctl.client.failures import foreign_errors
from jsctl.client.manager import Manager
from jsctl.client.stored import stored_answer
from jsctl.errors import JsctlError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

ROOT = "jsctl.telemetry"
TELEMETRY = "JSCTL_TELEMETRY"
EVENTS = ("$JS.EVENT.ADVISORY.>", "$JS.EVENT.METRIC.>")
EVENT_PREFIX = "$JS.EVENT."
API_AUDIT = "$JS.EVENT.ADVISORY.API"
_LOOKS = re.compile(
    r"\$JS\.(?:[^.]+\.)?API\."
    r"(?:INFO|DIRECT\.GET|(?:STREAM|CONSUMER)\.(?:INFO|LIST|NAMES|MSG\.GET|MSG\.NEXT))(?:\.|$)"
)
"""API requests that change nothing; their audit advisories are not kept."""
QUEUE_MAX = 10_000
"""Advisories that wait to be stored; newer ones are dropped and counted."""
NO_STREAM = 10059
Told = Callable[["Counts"], None]


@dataclass(slots=True)
class Counts:
    """What was stored so far."""

    advisories: int = 0
    looks: int = 0
    states: int = 0
    dropped: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Capture:
    """What to capture. `every_ns` between two looks; `for_ns` 0 means until it is stopped."""

    into: str = TELEMETRY
    streams: tuple[str, ...] = ()
    every_ns: int = 10_000_000_000
    for_ns: int = 0
    max_age_ns: int = 30 * 86_400_000_000_000
    replicas: int = 1
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


async def capture(manager: Manager, what: Capture, told: Told) -> Counts:
    """Capture until the end. Raises JsctlError when the stream cannot be made."""
    await _ensure(manager, what)
    counts = Counts()
    queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(QUEUE_MAX)

    async def heard(message: "Msg") -> None:
        if message.subject == API_AUDIT and _is_a_look(message.data):
            return
        subject = f"{ROOT}.advisory.{message.subject.removeprefix(EVENT_PREFIX)}"
        try:
            queue.put_nowait((subject, message.data))
        except asyncio.QueueFull:
            counts.dropped += 1

    for subject in EVENTS:
        await manager.client.subscribe(subject, cb=heard)
    await manager.client.flush()
    await _store(manager, counts, f"{ROOT}.capture", _note("start", what))
    end = time.monotonic() + what.for_ns / 1e9 if what.for_ns else None
    async with asyncio.TaskGroup() as group:
        keeper = group.create_task(_keep(manager, what, queue, counts))
        try:
            await _look_on(manager, what, counts, told, end)
            await queue.join()
        finally:
            keeper.cancel()
    await _store(manager, counts, f"{ROOT}.capture", _note("end", what))
    told(counts)
    return counts


async def _look_on(
    manager: Manager, what: Capture, counts: Counts, told: Told, end: float | None
) -> None:
    while True:
        try:
            await _look(manager, what, counts)
        except (JsctlError, ApiError):
            counts.failed += 1
        told(counts)
        pause = what.every_ns / 1e9
        if end is not None:
            pause = min(pause, end - time.monotonic())
        if pause <= 0:
            return
        try:
            await asyncio.wait_for(what.stopping.wait(), pause)
        except TimeoutError:
            continue
        return


async def _keep(
    manager: Manager,
    what: Capture,
    queue: "asyncio.Queue[tuple[str, bytes]]",
    counts: Counts,
) -> None:
    """Stores what comes. At the end what waits is dropped as soon as one is not taken: nobody is to
    wait for a server that is gone once for each."""
    gone = False
    while True:
        subject, body = await queue.get()
        try:
            if gone:
                counts.dropped += 1
                continue
            kept = await _store(manager, counts, subject, body)
            counts.advisories += kept
            gone = what.stopping.is_set() and not kept
        finally:
            queue.task_done()


async def _look(manager: Manager, what: Capture, counts: Counts) -> None:
    """One round over all streams and their consumers."""
    now = format_time(time.time_ns())
    listing = await manager.streams()
    for info in listing.items:
        name = info.config.name
        if what.stopping.is_set():
            return
        if name == what.into or (what.streams and name not in what.streams):
            continue
        body = json.dumps({"at": now, "info": encode(info)}).encode()
        counts.states += await _store(manager, counts, f"{ROOT}.stream.{name}", body)
        for consumer in (await manager.consumers(name)).items:
            if what.stopping.is_set():
                return
            body = json.dumps({"at": now, "info": encode(consumer)}).encode()
            subject = f"{ROOT}.consumer.{name}.{consumer.name}"
            counts.states += await _store(manager, counts, subject, body)
    await _store(manager, counts, f"{ROOT}.capture", _note("alive", what))
    counts.looks += 1


async def _store(manager: Manager, counts: Counts, subject: str, body: bytes) -> bool:
    """Whether it is stored; what is not is counted."""
    try:
        reply = await manager.client.request(subject, body, timeout=manager.settings.timeout)
        kept = bool(stored_answer(bytes(reply.data)).get("stream"))
    except (ApiError, JsctlError):
        kept = False
    except foreign_errors():
        kept = False
    if not kept:
        counts.failed += 1
    return kept


def _is_a_look(body: bytes) -> bool:
    try:
        subject = str(json.loads(body).get("subject", ""))
    except (ValueError, AttributeError):
        return False
    return _LOOKS.match(subject) is not None


def _note(event: str, what: Capture) -> bytes:
    at = format_time(time.time_ns())
    return json.dumps({"event": event, "at": at, "every_ns": what.every_ns}).encode()


async def _ensure(manager: Manager, what: Capture) -> None:
    """Make the telemetry stream unless it is there; one made otherwise must take the subjects."""
    try:
        info = await manager.stream_info(what.into)
    except ApiError as error:
        if error.err_code != NO_STREAM:
            raise
    else:
        if f"{ROOT}.>" not in info.config.subjects:
            raise JsctlError(f"stream {what.into} does not take {ROOT}.>")
        return
    config = StreamConfig(
        name=what.into,
        description="History for jsctl pipeline reports",
        subjects=(f"{ROOT}.>",),
        max_age=what.max_age_ns,
        num_replicas=what.replicas,
    )
    await manager.create_stream(config)
