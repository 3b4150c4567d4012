"""Counters: whole numbers of any size, one a subject, added up by their stream.

Source: NATS ADR 49.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from jsctl.api import jsontext
from jsctl.api.errors import ApiError
from jsctl.client.manager import Manager
from jsctl.client.stored import header_of
from jsctl.client.worded import library_words, worded
from jsctl.commands.toolkit.assets.picking import check_stream
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, NotFound, UsageError
from jsctl.render.details import Details
from jsctl.render.humanize import number
from jsctl.render.reports.objects import pairs

STREAM_NOT_FOUND = ApiError(404, 10059, "stream not found")
NO_MESSAGE = 10037
DIGITS_MAX = 4000
"""Longer numbers cost more to read than anybody counts."""
_NUMBER = re.compile(rf"[+-]?[0-9]{{1,{DIGITS_MAX}}}")


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter; `sources` are what other streams have added, by stream and subject."""

    subject: str
    value: int
    increment: int | None
    sources: Mapping[str, Mapping[str, str]]


@asynccontextmanager
async def _opened(call: Call) -> AsyncIterator[tuple[Manager, str]]:
    """A connection and the stream that counts. Raises NotFound, and JsctlError for any other."""
    async with call.manager("") as manager:
        name = call.text("stream")
        with library_words():
            if name:
                check_stream(name)
            else:
                names = await manager.stream_names(call.text("subject"))
                if not names:
                    raise STREAM_NOT_FOUND
                name = names[0]
            config = (await manager.stream_info(name)).config
        if not (config.allow_msg_counter and config.allow_direct):
            raise JsctlError(f'"{name}" is not a valid counter stream')
        yield manager, name


def _subject(call: Call) -> str:
    """Raises UsageError for what is none."""
    subject = call.text("subject")
    if not subject:
        raise UsageError("nats: invalid subject name: subject cannot be empty")
    tokens = subject.split(".")
    if " " in subject or "" in tokens or ">" in tokens[:-1]:
        raise UsageError(f"nats: invalid subject name: {subject}")
    return subject


async def _counter(call: Call, missing: str) -> Counter:
    """The counter of the subject argument; `missing` is said of one that never counted."""
    subject = _subject(call)
    async with _opened(call) as (manager, stream):
        try:
            message = await manager.direct_message(stream, last_for=subject)
        except ApiError as error:
            if error.err_code != NO_MESSAGE:
                what = f"failed to get last message for subject {subject}"
                raise worded(error, what) from None
            raise NotFound(missing.format(subject)) from None
    step = header_of(message, "Nats-Incr")
    return Counter(
        message.subject,
        _value(message.data, subject),
        _number(step) if step else None,
        _sources(header_of(message, "Nats-Counter-Sources")),
    )


def _value(data: bytes, subject: str) -> int:
    try:
        return _number(str(jsontext.parse_object(data)["val"]))
    except (ValueError, KeyError, TypeError):
        raise JsctlError(f"failed to parse counter value for subject {subject}") from None


def _number(text: str) -> int:
    """A whole number; raises ValueError."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _sources(text: str) -> dict[str, dict[str, str]]:
    try:
        found: dict[str, Any] = jsontext.parse_object(text or "{}")
        return {str(key): {str(k): str(v) for k, v in one.items()} for key, one in found.items()}
    except (ValueError, AttributeError):
        raise JsctlError("failed to parse sources: the header is not what it should be") from None


async def get(call: Call) -> None:
    """The value alone."""
    found = await _counter(call, "counter not initialized for subject: {}")
    if call.as_data:
        call.output.json({"subject": found.subject, "value": str(found.value)})
    else:
        call.output.print(str(found.value))


async def view(call: Call) -> None:
    """Value, last step, and what other streams have added."""
    found = await _counter(call, "counter not initialized for subject")
    if call.as_json:
        step = None if found.increment is None else str(found.increment)
        document = {"subject": found.subject, "value": str(found.value), "increment": step}
        call.output.json({**document, "sources": found.sources})
        return
    screen = Details(f"Counter {call.text('subject')}")
    screen.row("Value", number(found.value))
    screen.row("Increment", "<nil>" if found.increment is None else number(found.increment))
    screen.row("Subject", found.subject)
    if found.sources:
        screen.section("Sources")
    for source in sorted(found.sources):
        screen.rows(source, pairs(found.sources[source]))
    if not found.sources:
        screen.text("No source information found")
    call.output.details(screen)


async def increment(call: Call) -> None:
    """Adds a number."""
    await _add(call, negative=False)


async def decrement(call: Call) -> None:
    """Takes a number away."""
    await _add(call, negative=True)


async def _add(call: Call, *, negative: bool) -> None:
    subject = _subject(call)
    async with _opened(call) as (manager, _):
        try:
            step = _number(call.text("value"))
        except ValueError:
            raise UsageError("invalid value") from None
        try:
            headers = {"Nats-Incr": str(-step if negative else step)}
            made = await manager.store(subject, b"", headers)
        except ApiError as error:
            raise worded(error, "failed to publish counter increment") from None
    if not made.val:
        raise JsctlError("counter increment response missing value")
    if call.as_data:
        call.output.json({"subject": subject, "value": made.val})
    else:
        call.output.print(made.val)


async def ls(call: Call) -> None:
    """The subjects that count."""
    subject = call.text("subject")
    if not subject and not call.text("stream"):
        raise UsageError("no stream or subject specified")
    async with _opened(call) as (manager, stream):
        with library_words():
            found = sorted(await manager.stream_subjects(stream, subject or ">"))
    if not found:
        raise NotFound("no counters found")
    if call.as_data:
        call.output.json(found)
        return
    call.output.names(found)
