"""`jsctl reply`: a service that answers with a text, an echo or a command's output."""

import asyncio
import random
from typing import TYPE_CHECKING

from jsctl.api.strict import quoted
from jsctl.api.times import SECOND_NS
from jsctl.client.wire.subjects import exact
from jsctl.commands.toolkit.content.bodies import (
    HeaderPairs,
    check_queue,
    every_header,
    filled_headers,
    header_lines,
    header_pairs,
    run_command_beside,
    write_bytes,
)
from jsctl.commands.toolkit.content.templates import fill
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.table import safe

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient

COUNTER = "NATS-Reply-Counter"


async def reply(call: Call) -> int:
    """Answers until stopped or `--count` requests were answered."""
    subject, queue = call.text("subject"), check_queue(call.text("queue"))
    headers = header_pairs(call)
    echo = call.flag("echo")
    if not (call.text("body") or call.text("command") or echo):
        call.output.log("No body or command supplied, enabling echo mode")
        echo = True
    limit = call.integer("count")
    requests: asyncio.Queue[Msg] = asyncio.Queue()
    async with call.client() as client:
        subscription = await client.subscribe(subject, queue=queue, cb=requests.put)
        await client.flush()
        call.output.log(f'Listening on "{subject}" in group "{queue}"')
        number = 0
        try:
            while not limit or number < limit:
                message = await requests.get()
                await _answer(client, call, message, number, headers, echo=echo)
                number += 1
        except asyncio.CancelledError:
            call.output.note("")
        if not client.is_connected:
            raise Unreachable("nats: connection reconnecting", hints=("answers may be lost",))
        await subscription.unsubscribe()
        await client.flush()
    return 0


async def _answer(
    client: "NatsClient",
    call: Call,
    message: "Msg",
    number: int,
    headers: HeaderPairs,
    *,
    echo: bool,
) -> None:
    call.output.log(f"[#{number}] Received on subject {quoted(exact(message.subject))}:")
    for line in header_lines(message.headers):
        call.output.log(safe(line))
    write_bytes(call, b"\n" + message.data + b"\n")
    if call.given("sleep") and call.duration("sleep") > 0:
        await asyncio.sleep(random.random() * call.duration("sleep") / SECOND_NS)
    if not message.reply:
        return
    from nats.errors import MaxPayloadError

    answer = bytes(message.data) if echo else await _body(call, message, number)
    try:
        behind = (*every_header(message.headers), (COUNTER, str(number))) if echo else ()
        made = filled_headers(headers, number, behind=behind)
        await client.publish(message.reply, answer, headers=made)
    except (ValueError, JsctlError, MaxPayloadError) as error:
        call.output.log(f"Could not publish reply: {error}")


async def _body(call: Call, message: "Msg", number: int) -> bytes:
    # What is no text is filled in, and given to a command, as the bytes that it is.
    text = message.data.decode("utf-8", "surrogateescape")
    if call.text("command"):
        return await _output(call, message, text, number)
    body = fill(call.text("body"), number, text, what="body", log=call.output.log)
    return body.encode("utf-8", "surrogateescape")


async def _output(call: Call, message: "Msg", text: str, number: int) -> bytes:
    """What the command writes; the error's text when it fails."""
    command = call.text("command")
    for at, token in enumerate(message.subject.split(".")):
        command = command.replace("{{" + str(at) + "}}", "{{" + quoted(token) + "}}")
    command = fill(command, number, text, what="command", log=call.output.log)
    extra = {"NATS_REQUEST_SUBJECT": message.subject, "NATS_REQUEST_BODY": text}
    try:
        return await run_command_beside(command, message.data, extra)
    except JsctlError as error:
        call.output.log(f"Command failed: {error}")
        return str(error).encode("utf-8", "surrogateescape")
