"""Runs `jsctl publish`."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS
from jsctl.client.requests import Requester
from jsctl.client.stored import stored_answer
from jsctl.commands.messages.publish.schedules import schedule_headers
from jsctl.commands.toolkit.content.bodies import (
    HeaderPairs,
    bodies_of,
    check_subject,
    filled_headers,
    header_pairs,
)
from jsctl.commands.toolkit.content.templates import fill
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Unreachable, UsageError
from jsctl.render.humanize import counted, number

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

LINES_MAX = 20
"""More messages than this are told in one line at the end."""
AHEAD_BYTES_MAX, MESSAGE_BYTES = 1024 * 1024, 64
"""So much may be on its way; about so much is a message without its body."""


async def publish(call: Call) -> None:
    """Sends the body, `--count` times, or every line that comes in."""
    if not _is_template(call):
        check_subject(call.text("subject"))
    if call.text("reply"):
        check_subject(call.text("reply"))
    headers, schedule = header_pairs(call), schedule_headers(call)
    if call.flag("atomic"):
        if schedule:
            raise UsageError("atomic batch publishing does not support schedules")
        from jsctl.commands.messages.publish.batches import publish_batch

        await publish_batch(call, headers)
        return
    count = max(1, call.integer("count", 1))
    quiet = call.flag("quiet") or call.output.asked or count > LINES_MAX
    log: Callable[[str], None] = silent if quiet else call.output.log
    sent = total_bytes = 0
    began_s = 0.0
    async with call.client() as client:
        sender = _Sender(client, call, headers, schedule, log)
        for body in bodies_of(call):
            for number in range(1, count + 1):
                began_s = await _pause(call, began_s)
                total_bytes += await sender.send(body, number)
                sent += 1
        await client.flush()
    if call.output.asked:
        sender.tell()
    elif count > LINES_MAX and not call.flag("quiet"):
        call.output.log(f"Published {counted(sent, 'message')}, {counted(total_bytes, 'byte')}")


async def _pause(call: Call, before_s: float) -> float:
    """Waits as long after the last message's beginning as is asked; when this one begins."""
    jitter_s = random.random() * call.duration("jitter") / SECOND_NS
    left_s = before_s + call.duration("sleep") / SECOND_NS + jitter_s - time.monotonic()
    if before_s and left_s > 0:
        await asyncio.sleep(left_s)
    return time.monotonic()


def _is_template(call: Call) -> bool:
    """Whether the subject has to be filled in before it can be judged."""
    return call.flag("templates") and "{{" in call.text("subject")


def filled(call: Call, body: str, number: int) -> tuple[str, bytes]:
    """Subject and body of the message of that number, from 1. Raises UsageError."""
    subject = call.text("subject")
    if call.flag("templates"):
        body = fill(body, number, what="body", log=call.output.log)
        subject = fill(subject, number, what="subject", log=call.output.log)
    if _is_template(call):
        check_subject(subject)
    return subject, body.encode("utf-8", "surrogateescape")


def silent(_text: str) -> None:
    """Nobody wants to hear it."""


class _Sender:
    """Sends one message after the other, by JetStream if asked."""

    def __init__(
        self,
        client: "NatsClient",
        call: Call,
        headers: HeaderPairs,
        schedule: HeaderPairs,
        log: Callable[[str], None],
    ) -> None:
        self._client = client
        self._call = call
        self._headers, self._schedule = headers, schedule
        self._stores = call.flag("jetstream") or bool(schedule)
        self._log = log
        self._told: list[dict[str, object]] = []
        self._ahead_bytes = 0
        self._requests = Requester(client, call.settings)

    async def send(self, body: str, number: int) -> int:
        """The size of the body that was sent."""
        call = self._call
        subject, payload = filled(call, body, number)
        headers = filled_headers(self._headers, number, behind=self._schedule)
        if not self._stores:
            await self._client.publish(subject, payload, call.text("reply"), headers)
            # What is told one by one is proved one by one. Others are proved now and then: else all
            # of them would wait in memory for the loop to go on, and an interrupt as well.
            self._ahead_bytes += len(payload) + MESSAGE_BYTES
            if self._log is not silent or self._ahead_bytes > AHEAD_BYTES_MAX:
                await self._client.flush()
                self._ahead_bytes = 0
            self._log(f'Published {len(payload)} bytes to "{subject}"')
            self._note(subject, payload)
            return len(payload)
        self._log(f'Published {len(payload)} bytes to "{subject}"')
        answer = await stored(self._requests, subject, payload, headers)
        self._log(stored_text(answer))
        self._note(subject, payload, answer)
        return len(payload)

    def _note(
        self, subject: str, payload: bytes, answer: Mapping[str, object] | None = None
    ) -> None:
        """For programs, which hear of all messages together, or line by line."""
        output = self._call.output
        if not output.asked:
            return
        document = {"subject": subject, "bytes": len(payload), **(answer or {})}
        if output.form == "jsonl":
            output.json_line(document)
        else:
            self._told.append(document)

    def tell(self) -> None:
        """The list of what was noted."""
        if self._call.output.form != "jsonl":
            self._call.output.json(self._told)


async def stored(
    requests: Requester, subject: str, payload: bytes, headers: dict[str, str] | None
) -> dict[str, object]:
    """JetStream's answer to a message. Raises ApiError and Unreachable."""
    return stored_answer(await answered(requests, subject, payload, headers))


async def answered(
    requests: Requester, subject: str, payload: bytes, headers: dict[str, str] | None
) -> bytes:
    """The same as it came; a message that a batch goes on behind has an empty one."""
    try:
        return await requests.exchange(subject, payload, headers)
    except Unreachable as error:
        hints = (f"no stream listens on {subject}",)
        raise Unreachable(str(error), hints=hints) from None


def stored_text(document: dict[str, object]) -> str:
    """Where a message went."""
    sequence = counted_sequence(document.get("seq"))
    text = f"Stored in Stream: {document.get('stream')} Sequence: {sequence}"
    if document.get("domain"):
        text += f' Domain: "{document["domain"]}"'
    if document.get("duplicate"):
        text += " Duplicate: true"
    if document.get("val"):
        text += f" Counter Value: {document['val']}"
    return text


def counted_sequence(seq: object) -> str:
    """A sequence of an answer, which may be anything."""
    return number(seq) if isinstance(seq, int) else str(seq)
