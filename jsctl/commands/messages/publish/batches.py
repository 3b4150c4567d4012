"""`publish --atomic`: messages that are stored together or not at all."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from jsctl.client.requests import Requester
from jsctl.client.stored import stored_answer
from jsctl.client.worded import library_words
from jsctl.commands.messages.publish.sending import (
    AHEAD_BYTES_MAX,
    MESSAGE_BYTES,
    answered,
    counted_sequence,
    filled,
    silent,
)
from jsctl.commands.toolkit.content.bodies import HeaderPairs, bodies_of, filled_headers
from jsctl.commands.toolkit.content.templates import unique_id
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, UsageError
from jsctl.render.humanize import number

if TYPE_CHECKING:
    from jsctl.client.headers import Headers

BATCH_ID, BATCH_SEQUENCE, BATCH_COMMIT = (
    "Nats-Batch-Id",
    "Nats-Batch-Sequence",
    "Nats-Batch-Commit",
)


async def publish_batch(call: Call, headers: HeaderPairs) -> None:
    """All lines of stdin, stored together or not at all."""
    if call.text("send-on") != "newline" or call.given("body"):
        raise UsageError(
            "atomic batch publishing requires JetStream and STDIN with --send-on=newline"
        )
    count = max(1, call.integer("count", 1))
    log: Callable[[str], None] = silent if call.flag("quiet") else call.output.log
    async with AsyncExitStack() as ending:
        batch = _Batch(call, headers, ending)
        for body in bodies_of(call):
            for nth in range(1, count + 1):
                subject, payload = filled(call, body, nth)
                log(f'Adding {len(payload)} bytes to batch on subject "{subject}"')
                await batch.add(nth, subject, payload)
        answer = await batch.commit()
    stored_as = f"Messages: {number(batch.count)} Sequence: {counted_sequence(answer.get('seq'))}"
    log(f"Wrote batch ID: {batch.id} {stored_as}")
    if call.output.asked:
        call.output.json({**answer, "batch": batch.id, "count": batch.count})


class _Batch:
    """Messages of a batch. It is connected when they are complete, or too many to be kept: who
    types slowly has no batch on a server that gives it up meanwhile."""

    def __init__(self, call: Call, headers: HeaderPairs, ending: AsyncExitStack) -> None:
        self.id, self.count = unique_id(), 0
        self._call, self._headers, self._ending = call, headers, ending
        self._kept: list[tuple[int, str, bytes]] = []
        self._kept_bytes = 0
        self._requests: Requester | None = None

    async def add(self, nth: int, subject: str, payload: bytes) -> None:
        """Takes one more. Raises RequestFailed when those before are refused."""
        if self._kept_bytes > AHEAD_BYTES_MAX:
            await self._send()
        self._kept.append((nth, subject, payload))
        self._kept_bytes += len(payload) + MESSAGE_BYTES

    async def commit(self) -> dict[str, object]:
        """The answer to all of them. Raises RequestFailed, and JsctlError when there are none."""
        if not self._kept:
            raise JsctlError("no messages to publish in atomic batch")
        with library_words():
            return stored_answer(await self._send(BATCH_COMMIT))

    async def _send(self, *commit: str) -> bytes:
        """Sends what is kept; the answer to the last of them."""
        if self._requests is None:
            client = await self._ending.enter_async_context(self._call.client())
            self._requests = Requester(client, self._call.settings)
        *before, last = self._kept
        self._kept, self._kept_bytes = [], 0
        for nth, subject, payload in before:
            headers = self._next(nth)
            await self._requests.client.publish(subject, payload, headers=headers)
        nth, subject, payload = last
        headers = self._next(nth, *commit)
        answer = await answered(self._requests, subject, payload, headers)
        if answer and not commit:
            with library_words():
                stored_answer(answer)
        return answer

    def _next(self, nth: int, *flags: str) -> "Headers | None":
        """The headers of the next one of the batch."""
        self.count += 1
        place = [(BATCH_ID, self.id), (BATCH_SEQUENCE, str(self.count))]
        return filled_headers(self._headers, nth, behind=[*place, *((one, "1") for one in flags)])
