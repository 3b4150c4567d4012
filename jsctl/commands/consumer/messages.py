"""`consumer next`, and `sub`, its elder: messages of a consumer on the terminal."""

import asyncio
from time import strftime
from typing import TYPE_CHECKING

from jsctl.api.codec import dumps
from jsctl.api.consumer import ConsumerConfig
from jsctl.api.status import parse_status
from jsctl.api.subjects import AckSubject, api_subject, parse_ack
from jsctl.api.times import format_duration
from jsctl.api.words import AckPolicy
from jsctl.client.headers import status_of
from jsctl.client.requests import api_prefix
from jsctl.commands.toolkit.assets.failing import told_as
from jsctl.commands.toolkit.assets.picking import check_name, consumer_of
from jsctl.commands.toolkit.content.bodies import (
    header_lines,
    message_document,
    write_bytes,
)
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, Unreachable, UsageError, prefixed
from jsctl.render.humanize import duration, number
from jsctl.render.reports.consumers import ACK_WORDS
from jsctl.render.table import safe

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient
    from jsctl.client.manager import Manager

_ACKS = {
    "ack": (b"+ACK", "Acknowledged message"),
    "nak": (b"-NAK", "Negative Acknowledged message"),
    "term": (b"+TERM", "Terminated message"),
}


async def next_messages(call: Call) -> None:
    """Fetch messages, one pull request each."""
    if call.flag("term") and (call.switch("ack") or call.flag("nak")):
        raise UsageError("can not both Acknowledge and Terminate message")
    about = "could not request next message"
    stream = check_name(call.text("stream"), "stream", about=about)
    name = check_name(call.text("consumer"), "consumer", about=about)
    async with call.manager() as manager:
        client = manager.client
        for _ in range(call.integer("count", 1)):
            message = await _fetch(call, manager, stream, name)
            _print_message(call, message)
            await _acknowledge(call, client, message)


async def _fetch(call: Call, manager: "Manager", stream: str, name: str) -> "Msg":
    from jsctl.client.failures import foreign_errors, translate

    client, settings = manager.client, call.settings
    subject = api_subject("consumer_msg_next", stream, name, prefix=api_prefix(settings)).decode()
    body = dumps({"batch": 1, "expires": settings.timeout_ns})
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    try:
        await client.publish(subject, body, reply=inbox)
        message = await subscription.next_msg(timeout=settings.timeout + 1)
    except foreign_errors() as error:
        problem = translate(error)
        raise prefixed(problem, "no message received") from None
    finally:
        await subscription.unsubscribe()
    code = "" if parse_ack(message.reply.encode()) else status_of(message.headers)
    if code == "408":
        raise Unreachable("no message received: nats: timeout")
    if code == "503":
        await _must_exist(manager, stream, name)
        raise Unreachable("no message received: nats: no responders available for request")
    if code:
        text = (message.headers or {}).get("Description", "")
        raise JsctlError(f"no message received: {text or parse_status(b'')[1] or code}")
    return message


async def _must_exist(manager: "Manager", stream: str, name: str) -> None:
    """Why nobody answers: mostly because there is no such consumer. Raises what `told_as` does."""
    with told_as(f'could not load consumer "{name}"'):
        await manager.consumer_info(stream, name)


def _print_message(call: Call, message: "Msg", *, pushed: bool = False) -> None:
    """With what was pushed there are fewer empty lines."""
    out = call.output
    if call.flag("raw"):
        write_bytes(call, message.data + b"\n")
        return
    ack = parse_ack(message.reply.encode())
    if out.asked:
        document = message_document(message.subject, message.headers, message.data)
        out.json_line({**document, **_place(ack)}, varied=True)
        return
    if ack is not None:
        out.print(
            f"[{strftime('%H:%M:%S')}] subj: {safe(message.subject)} / tries: {ack.deliveries} / "
            f"cons seq: {ack.consumer_seq} / str seq: {ack.stream_seq} / "
            f"pending: {number(ack.pending)}"
        )
    if message.headers:
        out.print("\nHeaders:\n")
        for line in header_lines(message.headers):
            out.print(f"   {safe(line)}" if pushed else f"  {safe(line)}")
        out.print("\nData:" if pushed else "\nData:\n")
    body = message.data
    write_bytes(call, body.removesuffix(b"\n") + b"\n\n" if pushed else b"\n" + body + b"\n")


def _place(ack: AckSubject | None) -> dict[str, object]:
    """Where a message is kept, and which try this is."""
    if ack is None:
        return {}
    return {
        "stream": ack.stream,
        "consumer": ack.consumer,
        "stream_seq": ack.stream_seq,
        "consumer_seq": ack.consumer_seq,
        "deliveries": ack.deliveries,
        "pending": ack.pending,
    }


async def _acknowledge(call: Call, client: "NatsClient", message: "Msg") -> None:
    word = next((one for one in ("term", "nak", "ack") if call.flag(one)), "")
    if not word or not message.reply:
        return
    payload, sentence = _ACKS[word]
    if (wait_ns := call.duration("wait")) > 0:
        from random import randrange

        wait_ns = randrange(wait_ns)
        await asyncio.sleep(wait_ns / 1e9)
        sentence += f" after {duration(wait_ns)} delay"
    await client.publish(message.reply, payload)
    await client.flush()
    if not call.flag("raw"):
        call.output.say(f"\n{sentence}\n")


async def subscribe(call: Call) -> None:
    """What a push consumer delivers, until Ctrl-C; of a pull consumer the next message."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        config = found.config or ConsumerConfig()
        acked = call.flag("ack") and config.ack_policy is not AckPolicy.NONE
        if not config.deliver_subject:
            message = await _fetch(call, manager, found.stream_name, found.name)
            _print_message(call, message)
            if acked:
                await _acknowledge(call, manager.client, message)
            return
        await _pushed(call, manager.client, config, acked=acked)


async def _pushed(call: Call, client: "NatsClient", config: ConsumerConfig, *, acked: bool) -> None:
    if not call.flag("raw") and not call.output.asked:
        _tell_of(call, config, acked=acked)
    subscription = await client.subscribe(
        config.deliver_subject, queue=call.text("deliver-group") or config.deliver_group
    )
    async for message in subscription.messages:
        headers = message.headers or {}
        if status_of(message.headers) == "100":
            # A heartbeat alone wants no answer: only who waits for one says where.
            if asker := headers.get("Nats-Consumer-Stalled") or message.reply:
                await client.publish(asker, b"")
            continue
        _print_message(call, message, pushed=True)
        call.output.stdout.flush()
        if acked and message.reply:
            await client.publish(message.reply, b"")


def _tell_of(call: Call, config: ConsumerConfig, *, acked: bool) -> None:
    out = call.output
    word = "true" if acked else "false"
    out.print(f"Subscribing to topic {config.deliver_subject} auto acknowledgment: {word}\n")
    out.print("Consumer Info:")
    out.print(f"  Ack Policy: {ACK_WORDS.get(config.ack_policy, config.ack_policy.value)}")
    if config.ack_policy is not AckPolicy.NONE:
        out.print(f"    Ack Wait: {format_duration(config.ack_wait)}")
    out.print()
