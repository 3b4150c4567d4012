"""`server stream-check` and `consumer-check`: replicas of all servers side by side."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TypeVar

from jsctl.api.codec import encode
from jsctl.api.monitoring.health import Healthz
from jsctl.api.monitoring.jsz import Jsz, JSzOptions
from jsctl.api.server import ServerInfo
from jsctl.api.times import SECOND_NS
from jsctl.client.facts import known_servers
from jsctl.client.system import NatsSystem, NoSystemRights
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.reading import interruptible
from jsctl.commands.toolkit.monitoring.asking import NO_RESULTS
from jsctl.errors import UsageError, prefixed
from jsctl.render.column import Column
from jsctl.render.formats import as_csv
from jsctl.render.reports.server.replicas import (
    EMPTY,
    IN_SYNC,
    ConsumerReplica,
    Replies,
    StreamReplica,
    consumer_columns,
    consumer_replicas,
    judged_streams,
    stream_columns,
    stream_replicas,
)

R = TypeVar("R")
STDIN_CHARACTERS_MAX = 512 * 1024 * 1024
ACCOUNT_STREAMS_MAX = 10_000


async def streams(call: Call) -> None:
    """Streams; those of one name or group only, or only what differs."""
    name, group = call.text("stream"), call.text("raft-group")
    async with call.one_connection():
        replies = await _replies(call, consumers=False)
        rows = [
            one
            for one in judged_streams(stream_replicas(replies))
            if (not name or one.stream.name == name)
            and (not group or one.group == group)
            and (not call.flag("unsynced") or one.status != IN_SYNC)
        ]
        if call.flag("health"):
            rows = [replace(one, health=await _health(call, one)) for one in rows]
    _show(call, rows, stream_columns(health=call.flag("health")), "Streams", _name_of_stream)


async def consumers(call: Call) -> None:
    """Consumers, alike."""
    stream, name, group = call.text("stream"), call.text("consumer"), call.text("raft-group")
    async with call.one_connection():
        replies = await _replies(call, consumers=True)
        rows = [
            one
            for one in consumer_replicas(replies)
            if (not stream or one.of.stream.name == stream)
            and (not name or one.consumer.name == name)
            and (not group or one.group == group)
            and (not call.flag("unsynced") or set(one.statuses) - {EMPTY})
        ]
        if call.flag("health"):
            rows = [
                replace(one, health=await _health(call, one.of, one.consumer.name)) for one in rows
            ]
    columns = consumer_columns(health=call.flag("health"))
    _show(call, rows, columns, "Consumers", _name_of_consumer)


def _name_of_stream(row: StreamReplica) -> tuple[str, str]:
    return row.account.name, row.stream.name


def _name_of_consumer(row: ConsumerReplica) -> tuple[str, str]:
    return row.of.account.name, row.consumer.name


async def _replies(call: Call, *, consumers: bool) -> Replies:
    """What all servers have; from standard input if that is asked for."""
    expected, started = call.integer("expected"), perf_counter()
    if call.flag("stdin"):
        found = _read(expected)
    else:
        options = JSzOptions(
            accounts=True, streams=True, raft=True, consumer=consumers, limit=ACCOUNT_STREAMS_MAX
        )
        settings = call.settings
        if call.given("read-timeout"):
            settings = replace(settings, timeout_ns=call.integer("read-timeout") * SECOND_NS)
        async with call.client() as client:
            _tell(call, f"Connected in {perf_counter() - started:.3f}s")
            system, started = NatsSystem(client, settings), perf_counter()
            expected = expected or await _servers(system)
            answers = await system.gather("JSZ", encode(options), expected=expected)
        found = [(one.server, one.as_(Jsz)) for one in answers if one.error is None]
    if not found:
        raise NoSystemRights(NO_RESULTS)
    _tell(call, f"Response took {perf_counter() - started:.3f}s")
    _tell(call, f"Servers: {len(found)}")
    if len(found) < expected:
        _tell(call, f"Warning: expected {expected} responses got {len(found)}")
    return found


async def _servers(system: NatsSystem) -> int:
    try:
        return await known_servers(system)
    except NoSystemRights as error:
        raise prefixed(error, "failed to get current active servers") from None


def _tell(call: Call, text: str) -> None:
    if not call.flag("csv") and not call.output.machine:
        call.output.print(text)


def _read(expected: int) -> list[tuple[ServerInfo, Jsz]]:
    """Documents one after the other, as `server request jsz` prints them. Raises UsageError."""
    from jsctl.api.codec import DecodeError, decode

    text = interruptible(lambda: sys.stdin.read(STDIN_CHARACTERS_MAX))
    decoder = json.JSONDecoder()
    found: list[tuple[ServerInfo, Jsz]] = []
    at = 0
    try:
        while (at := _skipped(text, at)) < len(text) and (not expected or len(found) < expected):
            document, at = decoder.raw_decode(text, at)
            found.append((decode(ServerInfo, document["server"]), decode(Jsz, document["data"])))
    except (ValueError, KeyError, TypeError, DecodeError, RecursionError) as error:
        raise UsageError(f"standard input is no list of JSZ documents: {error}") from None
    return found


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


async def _health(call: Call, one: StreamReplica, consumer: str = "") -> str:
    """What the server says of its replica."""
    options = {"account": one.account.name, "stream": one.stream.name}
    if consumer:
        options["consumer"] = consumer
    async with call.client() as client:
        system = NatsSystem(client, call.settings)
        replies = await system.gather("HEALTHZ", options, server_id=one.server.id)
    if not replies:
        return "no answer"
    found = replies[0].as_(Healthz)
    return f":{found.status}:{found.error}"


def _show(
    call: Call,
    rows: Sequence[R],
    columns: Sequence[Column[R]],
    title: str,
    name: Callable[[R], tuple[str, str]],
) -> None:
    """A table with a rule between what has different names, or CSV."""
    if call.flag("csv"):
        call.output.print(as_csv(rows, columns))
        return
    _tell(call, f"{title}: {len(rows)}")
    rules = [at for at in range(len(rows) - 1) if name(rows[at]) != name(rows[at + 1])]
    call.output.table(rows, columns, title, rules_after=rules)
    if not call.output.machine:
        call.output.print()
