"""Runs `jsctl events`."""

import asyncio
import re
import time
from typing import TYPE_CHECKING

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.times import format_time
from jsctl.api.words import DeliverPolicy
from jsctl.client.manager import Manager
from jsctl.client.ordered import ordered
from jsctl.client.requests import event_prefix
from jsctl.client.worded import library_words
from jsctl.commands.toolkit.assets.picking import check_stream
from jsctl.commands.toolkit.grammar.regexps import compiled
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.render.formats import as_json
from jsctl.render.humanize import moment_ns
from jsctl.render.reports.events.rows import event_row
from jsctl.render.reports.events.text import cloud_event, compact, extended, indented, kind_of
from jsctl.render.table import safe

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

SERVER_EVENTS = (
    ("Client Connection", "$SYS.ACCOUNT.*.CONNECT"),
    ("Client Disconnection", "$SYS.ACCOUNT.*.DISCONNECT"),
    ("Authentication Errors", "$SYS.SERVER.*.CLIENT.AUTH.ERR"),
)


async def events(call: Call) -> None:
    """Shows what comes until it is stopped."""
    show = _Shown(call)
    chosen = call.flag("all") or call.flag("js-advisory") or call.flag("js-metric")
    chosen = chosen or bool(call.texts("subjects"))
    async with call.manager() as manager:
        if call.text("stream"):
            if chosen:
                raise UsageError(
                    "cannot specify both Stream and specific advisories or extra subjects"
                )
            await _from_stream(call, manager, show)
            return
        if not chosen and not call.flag("srv-advisory"):
            raise UsageError("no events were chosen")
        await _from_subjects(call, manager.client, show)


def _subjects(call: Call) -> list[tuple[str, str]]:
    """What is listened for, and where."""
    prefix = event_prefix(call.settings)
    every = call.flag("all")
    found: list[tuple[str, str]] = []
    for kind, wanted, below in (
        ("Advisories", "js-advisory", "ADVISORY"),
        ("Metrics", "js-metric", "METRIC"),
    ):
        if every or call.flag(wanted):
            found.append((kind, f"{prefix}.{below}.>"))
    if every or call.flag("srv-advisory"):
        found += [(f"{kind} events", subject) for kind, subject in SERVER_EVENTS]
    return found + [("advisories", subject) for subject in call.texts("subjects")]


async def _from_subjects(call: Call, client: "NatsClient", show: "_Shown") -> None:
    arrived: asyncio.Queue[Msg] = asyncio.Queue()
    for kind, subject in _subjects(call):
        show.say(f"Listening for {kind} on {subject}")
        await client.subscribe(
            subject, cb=arrived.put, pending_msgs_limit=-1, pending_bytes_limit=-1
        )
    await client.flush()
    call.output.stdout.flush()
    while True:
        message = await arrived.get()
        show.event(message.subject, bytes(message.data))


async def _from_stream(call: Call, manager: Manager, show: "_Shown") -> None:
    stream, since = call.text("stream"), ""
    config = ConsumerConfig()
    if call.duration("since") > 0:
        start_ns = time.time_ns() - call.duration("since")
        since = f" since {moment_ns(start_ns)}"
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_TIME, opt_start_time=format_time(start_ns)
        )
    show.say(f"Listening for Events in stream {stream}{since}")
    check_stream(stream)
    with library_words():
        async with ordered(manager, stream, config) as feed:
            while True:
                message, _ = await feed.next()
                show.event(message.subject, bytes(message.data))


class _Shown:
    """Prints events as the flags say."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._out = call.output
        self._cloud = call.flag("cloudevent")
        self._json = call.flag("json") or call.output.asked or call.output.machine
        try:
            self._wanted = compiled(call.text("filter"), re.IGNORECASE | re.DOTALL)
        except re.error as error:
            raise UsageError(f"invalid body regular expression: {error}") from None

    def say(self, text: str) -> None:
        """To people only."""
        if not (self._json or self._cloud):
            self._out.print(text)

    def event(self, subject: str, data: bytes) -> None:
        """One event, unless it is filtered out."""
        text = data.decode("utf-8", "replace")
        if not self._wanted.search(text):
            return
        if self._out.asked and self._out.form == "yaml":
            self._out.json_line(_parsed(text))
        elif self._out.asked and not self._call.as_json:
            self._out.json_line(event_row(subject, text))
        elif self._json and not self._cloud:
            self._out.print(text)
        else:
            self._out.print(self._formatted(subject, text))
        self._out.stdout.flush()

    def _formatted(self, subject: str, text: str) -> str:
        try:
            found = jsontext.parse(text)
        except DecodeError as error:
            return f"Event error: parsing failed: {error}\n\n{indented(text)}"
        if not isinstance(found, dict) or not kind_of(found):
            kind = found.get("type") if isinstance(found, dict) else None
            why = f"unknown event schema on subject {subject}"
            if isinstance(kind, str) and kind:
                why = f'event "{safe(kind)}" does not implement the Event interface'
            return f"Event error: {why}\n\n{indented(text)}"
        if self._cloud:
            return as_json(cloud_event(found))
        return compact(found) if self._call.flag("short") else extended(found)


def _parsed(text: str) -> object:
    """The document; what is none is a text."""
    try:
        return jsontext.parse(text)
    except DecodeError:
        return text
