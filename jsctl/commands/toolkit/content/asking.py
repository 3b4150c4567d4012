"""Requests that are sent and told about, with all their replies."""

import asyncio
from time import perf_counter_ns
from typing import TYPE_CHECKING

from jsctl.api.times import SECOND_NS, format_duration
from jsctl.client.headers import status_of
from jsctl.commands.toolkit.content.bodies import (
    bodies_of,
    check_subject,
    filled_headers,
    header_lines,
    header_pairs,
    message_document,
    print_body,
    translated,
)
from jsctl.commands.toolkit.content.templates import fill
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Unreachable, exit_code_of
from jsctl.render.table import safe

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

NO_RESPONDERS = "503"
UNCOUNTED = 32_767
"""Requests where none, or fewer, are asked for, as with `nats`."""


async def ask_all(
    client: "NatsClient", call: Call, subject: str, body: str = "body", *, typed: bool = True
) -> int:
    """Sends every body, `--count` times; without responders the exit status is 0, as with `nats`.

    `body` names the argument that a body may stand in, `typed` is as in `bodies_of`. With
    JSCTL_EXIT=detailed the status is that of an unreachable server.
    """
    pairs = header_pairs(call)
    count = call.integer("count", 1)
    numbers = range(1, (count if count > 0 else UNCOUNTED) + 1)
    answered = True
    bodies = bodies_of(call, body, typed=typed)
    for body_in, number in ((one, at) for one in bodies for at in numbers):
        text, where = body_in, subject
        if call.flag("templates"):
            log = call.output.log
            text = fill(text, number, what="body", log=log)
            where = check_subject(fill(subject, number, what="subject", log=log))
        payload = text.encode("utf-8", "surrogateescape")
        answered = await _ask(client, call, where, payload, filled_headers(pairs, number))
        if not answered:
            break
    if not answered and call.environ.get("JSCTL_EXIT") == "detailed":
        return exit_code_of(Unreachable(""), call.environ)
    return 0


async def _ask(
    client: "NatsClient", call: Call, subject: str, payload: bytes, headers: dict[str, str] | None
) -> bool:
    """One request with all its replies; tells whether anybody answered."""
    raw, until_empty = call.flag("raw"), call.flag("wait-for-empty")
    wanted = 0 if until_empty else max(0, call.integer("replies", 1))
    if not raw:
        call.output.log(f'Sending request on "{subject}"')
    inbox = client.new_inbox()
    replies: asyncio.Queue[Msg] = asyncio.Queue()
    subscription = await client.subscribe(inbox, cb=replies.put)
    started = perf_counter_ns()
    await client.publish(subject, payload, reply=inbox, headers=headers)
    count = 0
    wait = call.settings.timeout
    try:
        while not wanted or count < wanted:
            try:
                async with asyncio.timeout(wait):
                    message = await replies.get()
            except TimeoutError:
                break
            if status_of(message.headers) == NO_RESPONDERS and not message.data:
                call.output.log("No responders are available")
                break
            count += 1
            took_ns = perf_counter_ns() - started
            if call.output.asked and not raw:
                shown = translated(call, bytes(message.data), message.subject)
                document = message_document(message.subject, message.headers, shown)
                call.output.json_line({**document, "rtt": took_ns}, varied=True)
            else:
                _show(call, message, took_ns, raw=raw)
            if until_empty and not message.data:
                break
            wait = call.duration("reply-timeout") / SECOND_NS
    finally:
        await subscription.unsubscribe()
    return count > 0


def _show(call: Call, message: "Msg", rtt_ns: int, *, raw: bool) -> None:
    if not raw:
        call.output.log(f"Received with rtt {format_duration(rtt_ns)}")
        lines = header_lines(message.headers)
        for line in [*lines, ""] if lines else []:
            call.output.log(safe(line))
    body = translated(call, bytes(message.data), message.subject)
    print_body(call, body, raw=False)
