"""Services as NATS ADR 32 describes them: who is there, what they offer, how they do.

Anybody can answer these questions: what is not such an answer is passed over.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from time import perf_counter_ns
from typing import TYPE_CHECKING

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError
from jsctl.api.times import SECOND_NS
from jsctl.client.headers import status_of
from jsctl.dataclass import dataclass
from jsctl.errors import JsctlError, Unreachable

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

PREFIX = "$SRV"
SILENCE_SECONDS = 0.3
"""So long after an answer nobody else is expected."""
ANSWERS_MAX = 100_000
_TYPE = "io.nats.micro.v1.{}_response"

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; `rtt_ns` is the time since the question."""

    document: Document
    rtt_ns: int


def subject_of(verb: str, service: str = "", instance: str = "") -> str:
    """Where a question goes: to all, to those of a name, to one."""
    return ".".join(
        [PREFIX, verb, *([service] if service else []), *([instance] if instance else [])]
    )


async def answers(
    client: "NatsClient", subject: str, timeout_s: float, silence_s: float = SILENCE_SECONDS
) -> AsyncGenerator[Answer, None]:
    """All answers until nobody says anything more. Raises Unreachable when nobody listens."""
    inbox = client.new_inbox()
    arrived: asyncio.Queue[Msg] = asyncio.Queue()
    subscription = await client.subscribe(inbox, cb=arrived.put)
    started_ns = perf_counter_ns()
    await client.publish(subject, b"", reply=inbox)
    verb = subject.split(".")[1].lower()
    ends_ns = started_ns + int(timeout_s * SECOND_NS)
    try:
        for number in range(ANSWERS_MAX):
            left = (ends_ns - perf_counter_ns()) / SECOND_NS
            wait = min(left, silence_s) if number and silence_s else left
            try:
                async with asyncio.timeout(max(0.0, wait)):
                    message = await arrived.get()
            except TimeoutError:
                return
            if not message.data and status_of(message.headers) == "503":
                raise Unreachable("no service instances found")
            document = _document(message.data, verb)
            if document is not None:
                yield Answer(document, perf_counter_ns() - started_ns)
    finally:
        await subscription.unsubscribe()


async def first(client: "NatsClient", subject: str, timeout_s: float) -> Document | None:
    """The first answer; None when none came. Raises Unreachable when nobody listens."""
    async with aclosing(answers(client, subject, timeout_s)) as found:
        async for one in found:
            return one.document
    return None


def _document(data: bytes, verb: str) -> Document | None:
    """An answer to that question, or None for anything else."""
    try:
        found = jsontext.parse(data)
    except DecodeError:
        return None
    if not isinstance(found, dict) or found.get("type") != _TYPE.format(verb):
        return None
    return found if all(isinstance(found.get(key), str) for key in ("name", "id")) else None


def endpoints(document: Document) -> list[Document]:
    """What a service offers, or how that does."""
    listed = document.get("endpoints")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def text_of(document: Document, key: str) -> str:
    """A text, empty when there is none."""
    value = document.get(key)
    return value if isinstance(value, str) else ""


def number_of(document: Document, key: str) -> int:
    """A number, 0 when there is none."""
    value = document.get(key)
    return int(value) if isinstance(value, int | float) else 0


def endpoint_named(document: Document, name: str) -> Document:
    """The endpoint of that name. Raises JsctlError with those that there are."""
    found = endpoints(document)
    for one in found:
        if text_of(one, "name") == name:
            return one
    service = text_of(document, "name")
    if not found:
        raise JsctlError(f'service "{service}" has no endpoints')
    names = ", ".join(text_of(one, "name") for one in found)
    raise JsctlError(f'service "{service}" has no endpoint "{name}" (available: {names})')
