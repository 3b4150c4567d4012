"""Runs `jsctl rtt`: every address of every server, one after the other."""

import asyncio
import ipaddress
import socket
import time
from dataclasses import field, replace
from time import perf_counter_ns
from urllib.parse import urlsplit

from jsctl.api.times import format_time
from jsctl.client.addresses import checked_url, shown_url
from jsctl.client.connection import connect
from jsctl.commands.toolkit.grammar.values import is_count
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, Unreachable, UsageError
from jsctl.render.humanize import duration

PORT = 4222
INDENT = 3


@dataclass(slots=True)
class _Result:
    """One address; without a round trip it failed."""

    address: str
    rtt_ns: int = 0
    started: str = ""
    failed: bool = False


@dataclass(slots=True)
class _Target:
    """One server; `name` is what its certificate has to say when its addresses are used."""

    url: str
    name: str = ""
    results: list[_Result] = field(default_factory=list)


async def rtt(call: Call) -> None:
    """The mean of some round trips to each address."""
    text = call.text("iterations")
    if not is_count(text) or int(text) < 1:
        raise UsageError(f'strconv.ParseFloat: parsing "{text}": invalid syntax')
    targets = [await _target(url) for url in call.settings.urls]
    if not targets:
        raise Unreachable("setup failed: nats: no servers available for connection")
    for target in targets:
        for result in target.results:
            await _measure(call, target, result, int(text))
    if call.as_json:
        call.output.json([_document(target) for target in targets])
        return
    if call.output.asked:
        call.output.json([one for target in targets for one in _rows(target)])
        return
    width = max(len(result.address) for target in targets for result in target.results) + INDENT
    for target in targets:
        call.output.print(f"{shown_url(target.url)}:\n")
        for result in target.results:
            shown = "failed" if result.failed else duration(result.rtt_ns)
            call.output.print(f"{result.address:>{width}}: {shown}")
        call.output.print()


async def _target(text: str) -> _Target:
    """The addresses of a server: one, or all that its name has."""
    url = checked_url(text)
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or PORT
    try:
        ipaddress.ip_address(host)
        return _Target(url, results=[_Result(_address(parts.scheme, host, port))])
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    try:
        known = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return _Target(url, results=[_Result(_address(parts.scheme, host, port))])
    hosts = dict.fromkeys(str(one[4][0]) for one in known)
    return _Target(url, host, [_Result(_address(parts.scheme, one, port)) for one in hosts])


def _address(scheme: str, host: str, port: int) -> str:
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


async def _measure(call: Call, target: _Target, result: _Result, count: int) -> None:
    result.started = format_time(time.time_ns())
    login = target.url.rpartition("@")[0].partition("://")[2]
    url = result.address.replace("://", f"://{login}@", 1) if login else result.address
    context = replace(call.settings.connection, url=url)
    settings = replace(call.settings, connection=context)
    try:
        async with connect(settings, call.output.log, tls_name=target.name) as client:
            total_ns = 0
            for number in range(1, count + 1):
                before = perf_counter_ns()
                await client.flush(call.settings.timeout)
                took_ns = perf_counter_ns() - before
                total_ns += took_ns
                if call.settings.trace:
                    call.output.print(f"#{number}:\trtt={duration(took_ns)}")
    except JsctlError as error:
        result.failed = True
        call.output.log(f"Failed to compute rtt for {result.address}: {error}")
        return
    result.rtt_ns = total_ns // count


def _rows(target: _Target) -> list[dict[str, object]]:
    """An address in each; one that failed has no time."""
    return [
        {"url": shown_url(target.url), "address": one.address, "rtt": one.rtt_ns or None}
        for one in target.results
    ]


def _document(target: _Target) -> dict[str, object]:
    results = [
        {
            "time": result.started,
            "address": result.address,
            "rtt": result.rtt_ns,
            "url": "" if result.failed else result.address,
        }
        for result in target.results
    ]
    return {"url": shown_url(target.url), "results": results}
