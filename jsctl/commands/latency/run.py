"""Runs `jsctl latency`: messages with the time in them, from one server to another."""

import asyncio
import os
import struct
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS, format_duration
from jsctl.client.connection import connect
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.files import SHARED_MODE, save
from jsctl.dataclass import dataclass
from jsctl.errors import Unreachable, UsageError
from jsctl.render.reports.bench import at_rank

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

SIZE_MIN = 8
ROUTED_S = 2.0
TRY_AGAIN_S = 0.01
LINE = "=" * 30
SHOWN = ("10", "50", "75", "90", "99", "99.9", "99.99", "99.999", "99.9999", "99.99999", "100")
STORED = ("10", "25", "50", "75", "90", "99", "99.9", "99.99", "99.999", "99.9999", "99.99999")


@dataclass(slots=True)
class _Run:
    """What is measured; times in nanoseconds."""

    count: int
    size: int
    rate: int
    latencies: list[int]
    began_ns: int
    publishing_ns: int = 0
    sent_ns: int = 0
    received_ns: int = 0


async def latency(call: Call) -> None:
    """Publishes at a rate, and tells how long messages are on their way."""
    run = _Run(
        count=call.duration("duration") * call.integer("rate") // SECOND_NS,
        size=call.integer("size"),
        rate=call.integer("rate"),
        latencies=[],
        began_ns=perf_counter_ns(),
    )
    if run.size < SIZE_MIN:
        raise UsageError(f"message Payload Size must be at least {SIZE_MIN} bytes")
    if run.count < 1:
        raise UsageError("--duration and --rate leave no message to send")
    own = call.settings.connection
    other = replace(own, url=call.text("server-b") or own.url)
    settings = replace(call.settings, connection=other)
    log = call.output.log
    async with (
        connect(call.settings, log, what="first connection failed") as sender,
        connect(settings, log, what="second connection failed") as receiver,
    ):
        _say(call, LINE, f"Pub Server RTT : {await _rtt(sender)}")
        _say(call, f"Sub Server RTT : {await _rtt(receiver)}")
        await _routed(sender, receiver)
        _tell_plan(call, run)
        await _measure(sender, receiver, run, call.settings.timeout)
    _tell(call, run)


def _say(call: Call, *lines: str) -> None:
    """To people only: programs get a document in the end."""
    if not call.output.asked:
        for line in lines:
            call.output.log(line)


async def _rtt(client: "NatsClient") -> str:
    before = perf_counter_ns()
    await client.flush()
    return _short(perf_counter_ns() - before)


async def _routed(sender: "NatsClient", receiver: "NatsClient") -> None:
    """Until what one server takes arrives at the other. Raises Unreachable."""
    if sender._server_info.get("server_id") == receiver._server_info.get("server_id"):
        return
    arrived = asyncio.Event()

    async def take(_message: "Msg") -> None:
        arrived.set()

    subject = receiver.new_inbox()
    subscription = await receiver.subscribe(subject, cb=take)
    await receiver.flush()
    try:
        async with asyncio.timeout(ROUTED_S):
            while not arrived.is_set():
                await sender.publish(subject)
                await asyncio.sleep(TRY_AGAIN_S)
    except TimeoutError:
        raise Unreachable("couldn't receive end-to-end test message") from None
    finally:
        await subscription.unsubscribe()


async def _measure(
    sender: "NatsClient", receiver: "NatsClient", run: _Run, patience_s: float
) -> None:
    """Raises Unreachable where no message has come for so long, and some are still on their way."""
    if run.size > sender.max_payload:
        raise UsageError("nats: maximum payload exceeded")
    done = asyncio.Event()

    async def take(message: "Msg") -> None:
        (sent_ns,) = struct.unpack_from("<q", message.data)
        run.latencies.append(time.time_ns() - sent_ns)
        if len(run.latencies) >= run.count:
            done.set()

    subject = receiver.new_inbox()
    await receiver.subscribe(subject, cb=take, pending_msgs_limit=-1, pending_bytes_limit=-1)
    await receiver.flush()
    payload = bytearray(os.urandom(run.size))
    run.publishing_ns = perf_counter_ns()
    for at in range(run.count):
        due_ns = run.publishing_ns + at * SECOND_NS // run.rate
        # Without a wait, too, where a rate cannot be had: messages arrive, and Ctrl-C is heard.
        await asyncio.sleep(max(0, due_ns - perf_counter_ns()) / SECOND_NS)
        struct.pack_into("<q", payload, 0, time.time_ns())
        await sender.publish(subject, bytes(payload))
        await sender._flush_pending()
    run.sent_ns = perf_counter_ns()
    came = -1
    while not done.is_set():
        if came == len(run.latencies):
            raise Unreachable(f"{run.count - came} of {run.count} messages did not arrive")
        came = len(run.latencies)
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await done.wait()
    run.received_ns = perf_counter_ns()


def _tell_plan(call: Call, run: _Run) -> None:
    _say(
        call,
        f"Message Payload: {_size(run.size)}",
        f"Target Duration: {format_duration(call.duration('duration'))}",
        f"Target Msgs/Sec: {run.rate}",
        f"Target Band/Sec: {_size(run.rate * run.size * 2)}",
        LINE,
    )


def _tell(call: Call, run: _Run) -> None:
    ordered = sorted(run.latencies)
    if call.text("histogram"):
        _write(call.text("histogram"), run.latencies, ordered)
    rate = run.count * SECOND_NS // max(1, run.sent_ns - run.publishing_ns)
    if call.output.asked:
        call.output.json(_document(run, ordered, rate))
        return
    _say(call, "HDR Percentiles:")
    for text in SHOWN:
        _say(call, f"{text + ':':<9} {_short(at_rank(ordered, float(text)))}")
    middle = len(ordered) // 2
    median_ns = (ordered[middle] + ordered[(len(ordered) - 1) // 2]) // 2
    _say(
        call,
        LINE,
        f"Actual Msgs/Sec: {rate}",
        f"Actual Band/Sec: {_size(rate * run.size * 2)}",
        f"Minimum Latency: {_short(ordered[0])}",
        f"Median Latency : {_short(median_ns)}",
        f"Maximum Latency: {_short(ordered[-1])}",
        f"1st Sent Wall Time : {_short(run.publishing_ns - run.began_ns)}",
        f"Last Sent Wall Time: {_short(run.sent_ns - run.publishing_ns)}",
        f"Last Recv Wall Time: {_short(run.received_ns - run.publishing_ns)}",
    )


def _document(run: _Run, ordered: Sequence[int], rate: int) -> dict[str, object]:
    """For programs; latencies in nanoseconds."""
    return {
        "messages": run.count,
        "size": run.size,
        "messages_per_second": rate,
        "percentiles": {text: at_rank(ordered, float(text)) for text in SHOWN},
        "min": ordered[0],
        "max": ordered[-1],
    }


def _write(name: str, raw: Sequence[int], ordered: Sequence[int]) -> None:
    """Each latency in its order, and their distribution, both in milliseconds."""
    lines = ["Value    \tPercentile    \tTotalCount    \t1/(1-Percentile)\n\n"]
    for text in (*STORED, "100"):
        share = float(text) / 100
        value = at_rank(ordered, float(text)) / 1e6
        count = sum(1 for one in ordered if one / 1e6 <= value)
        odds = "inf" if share == 1 else f"{1 / (1 - share):f}"
        lines.append(f"{value:f}\t{share:f}\t{count}\t{odds}\n")
    texts = {".raw": "".join(f"{one / 1e6:f}\n" for one in raw), ".histogram": "".join(lines)}
    for suffix, body in texts.items():
        save(Path(name + suffix), body, mode=SHARED_MODE)


def _short(duration_ns: int) -> str:
    """Without nanoseconds."""
    return format_duration(duration_ns // 1000 * 1000)


def _size(count: int) -> str:
    """`8B`, `15.6K`, `1.2M`."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len("BKMGT") - 1:
        value, unit = value / 1024, unit + 1
    value = int(value * 10 + 0.5) / 10
    letter = "BKMGT"[unit]
    return f"{value:.1f}{letter}" if value < 10 and count >= 10 else f"{value:.0f}{letter}"
