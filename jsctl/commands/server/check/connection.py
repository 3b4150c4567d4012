"""`server check connection`: how long connecting, a ping and a round trip take."""

import asyncio
import secrets
from time import perf_counter_ns

from jsctl.api.times import SECOND_NS, format_duration
from jsctl.commands.server.check.run import checked, client_for, critical_if_it_fails, seconds
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.server.check import CheckResult, short_float

PAYLOAD_BYTES = 100


async def connection(call: Call) -> int:
    """Checks basic server connection."""
    return await checked(call, "connections", "Connection", body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    from jsctl.client import library, login  # loading them is no part of connecting
    from jsctl.client.facts import connection_facts

    del library, login
    started = perf_counter_ns()
    async with client_for(call, result) as client:
        took = perf_counter_ns() - started
        with critical_if_it_fails(result, "rtt failed"):
            facts = await connection_facts(client, call.settings.timeout)
        where = f"connected to {facts.url}"
        _judged(
            call,
            result,
            ("connect", "connect_time", "Time taken to connect to NATS"),
            took,
            f"{where}, connect time exceeded",
            f"{where} in {format_duration(took)}",
        )
        _judged(
            call,
            result,
            ("rtt", "rtt", "The round-trip-time of the connection"),
            facts.rtt_ns,
            "rtt time exceeded",
            f"rtt time {format_duration(facts.rtt_ns)}",
        )
        inbox, payload = client.new_inbox(), secrets.token_hex(PAYLOAD_BYTES // 2).encode()
        subscription = await client.subscribe(inbox)
        started = perf_counter_ns()
        try:
            async with asyncio.timeout(call.settings.timeout):
                await client.publish(inbox, payload)
                message = await subscription.next_msg(timeout=call.settings.timeout)
        except TimeoutError:
            result.critical(f"did not receive from {inbox}: nats: timeout")
            return
        took = perf_counter_ns() - started
        if message.data != payload:
            result.critical("did not receive expected message")
        _judged_trip(call, result, took)


def _judged(
    call: Call,
    result: CheckResult,
    names: tuple[str, str, str],
    took_ns: int,
    exceeded: str,
    fine: str,
) -> None:
    """One length of time against its two thresholds; 0 is none."""
    flag, key, text = names
    warn_ns, critical_ns = call.duration(f"{flag}-warn"), call.duration(f"{flag}-critical")
    result.measure(
        key,
        took_ns / SECOND_NS,
        warning=warn_ns / SECOND_NS,
        critical=critical_ns / SECOND_NS,
        unit="s",
        help=text,
    )
    if critical_ns and took_ns >= critical_ns:
        result.critical(f"{exceeded} {short_float(critical_ns / SECOND_NS)}")
    elif warn_ns and took_ns >= warn_ns:
        result.warn(f"{exceeded} {short_float(warn_ns / SECOND_NS)}")
    else:
        result.ok(fine)


def _judged_trip(call: Call, result: CheckResult, took_ns: int) -> None:
    warn, critical, took = (
        seconds(call, "req-warn"),
        seconds(call, "req-critical"),
        took_ns / SECOND_NS,
    )
    text = "Time taken for a full Request-Reply operation"
    result.measure("request_time", took, warning=warn, critical=critical, unit="s", help=text)
    if critical and took >= critical:
        result.critical(f"round trip request took {took:f}")
    elif warn and took >= warn:
        result.warn(f"round trip request took {took:f}")
    else:
        result.ok(f"round trip took {took:f}s")
