"""Runs `jsctl publish`."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS
from jsctl.client.requests import Requester
from jsctl.commands.messages.publish.batches import publish_batch
from jsctl.commands.messages.publish.schedules import schedule_headers
from jsctl.commands.messages.publish.sending import (
    AHEAD_BYTES_MAX,
    MESSAGE_BYTES,
    filled,
    is_template,
    silent,
    stored,
    stored_text,
)
from jsctl.commands.toolkit.content.bodies import (
    HeaderPairs,
    bodies_of,
    check_subject,
    filled_headers,
    header_pairs,
)
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import UsageError
from jsctl.render.humanize import counted

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

LINES_MAX = 20
"""More messages than this are told in one line at the end."""


async def publish(call: Call) -> None:
    """Sends the body, `--count` times, or every line that comes in."""
    if not is_template(call):
        check_subject(call.text("subject"))
    if call.text("reply"):
        check_subject(call.text("reply"))
    headers, schedule = header_pairs(call), schedule_headers(call)
    if call.flag("atomic"):
        if schedule:
            raise UsageError("atomic batch publishing does not support schedules")
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
