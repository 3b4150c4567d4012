"""`consumer rm`, `next`, `pause`, `resume`, `unpin` and `reset`."""

import asyncio
from time import strftime, time_ns
from typing import TYPE_CHECKING

from jsctl.api.codec import dumps
from jsctl.api.errors import ApiError
from jsctl.api.status import parse_status
from jsctl.api.subjects import api_subject, parse_ack
from jsctl.api.times import HOUR_NS, format_time, parse_duration, parse_time
from jsctl.client.requests import api_prefix
from jsctl.commands.consumer.show import show_consumer
from jsctl.commands.toolkit.assets.bulk import in_bulk
from jsctl.commands.toolkit.assets.picking import check_name, consumer_of, pick_stream
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, RequestFailed, Unreachable, UsageError
from jsctl.render.humanize import duration, moment

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jsctl.client.library import NatsClient
    from jsctl.client.manager import Manager

_ACKS = {
    "ack": (b"+ACK", "Acknowledged message"),
    "nak": (b"-NAK", "Negative Acknowledged message"),
    "term": (b"+TERM", "Terminated message"),
}


async def rm(call: Call) -> int | None:
    """Delete a consumer, or all of a stream that match."""
    async with call.manager() as manager:
        if call.given("match"):
            stream = await pick_stream(call, manager)
            names = await manager.consumer_names(stream)
            return await in_bulk(
                call,
                names,
                "delete",
                "consumer",
                lambda name: manager.delete_consumer(stream, name),
            )
        if call.flag("force"):
            stream = check_name(call.text("stream"), "stream")
            name = check_name(call.text("consumer"), "consumer")
        else:
            found = await consumer_of(call, manager)
            stream, name = found.stream_name, found.name
        if call.confirm(f"Really delete Consumer {stream} > {name}"):
            await manager.delete_consumer(stream, name)
    return None


async def next_messages(call: Call) -> None:
    """Fetch messages, one pull request each."""
    stream = check_name(call.text("stream"), "stream")
    name = check_name(call.text("consumer"), "consumer")
    async with call.manager() as manager:
        client = manager.client
        for _ in range(max(1, call.integer("count", 1))):
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
        raise type(problem)(f"no message received: {problem}") from None
    finally:
        await subscription.unsubscribe()
    code = (message.headers or {}).get("Status")
    if code == "408":
        raise Unreachable("no message received: nats: timeout")
    if code == "503":
        await _must_exist(manager, stream, name)
        raise Unreachable("no message received: nats: no responders available for request")
    if code is not None:
        text = (message.headers or {}).get("Description", "")
        raise JsctlError(f"no message received: {text or parse_status(b'')[1] or code}")
    return message


async def _must_exist(manager: "Manager", stream: str, name: str) -> None:
    """Why nobody answers: mostly because there is no such consumer. Raises RequestFailed."""
    try:
        await manager.consumer_info(stream, name)
    except ApiError as error:
        prefix = f'could not load consumer "{name}" of stream "{stream}"'
        raise RequestFailed(error, prefix=prefix) from None


def _print_message(call: Call, message: "Msg") -> None:
    out = call.output
    text = message.data.decode("utf-8", "replace")
    if call.flag("raw"):
        out.print(text)
        return
    ack = parse_ack(message.reply.encode())
    if ack is not None:
        out.print(
            f"[{strftime('%H:%M:%S')}] subj: {message.subject} / tries: {ack.deliveries} / "
            f"cons seq: {ack.consumer_seq} / str seq: {ack.stream_seq} / pending: {ack.pending}"
        )
    if message.headers:
        out.print("\nHeaders:\n")
        for key, value in message.headers.items():
            out.print(f"  {key}: {value}")
        out.print("\nData:\n")
    out.print(f"\n{text}")


async def _acknowledge(call: Call, client: "NatsClient", message: "Msg") -> None:
    word = next((one for one in ("term", "nak", "ack") if call.flag(one)), "")
    if not word or not message.reply:
        return
    payload, sentence = _ACKS[word]
    if wait_ns := call.duration("wait"):
        from random import randrange

        wait_ns = randrange(wait_ns)
        await asyncio.sleep(wait_ns / 1e9)
        sentence += f" after {duration(wait_ns)} delay"
    await client.publish(message.reply, payload)
    await client.flush()
    if not call.flag("raw"):
        call.output.print(f"\n{sentence}\n")


async def pause(call: Call) -> None:
    """Stop deliveries until a time."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        until = _until(call)
        question = f"Really pause Consumer {found.stream_name} > {found.name} until {moment(until)}"
        if not call.confirm(question):
            return
        try:
            answer = await manager.pause_consumer(found.stream_name, found.name, until)
        except ApiError as error:
            name = f"{found.stream_name} > {found.name}"
            raise RequestFailed(error, prefix=f"could not pause consumer {name}") from None
    left = answer.get("pause_remaining", 0)
    remaining = duration(left) if isinstance(left, int) else ""
    name = f"{found.stream_name} > {found.name}"
    call.output.print(f"Paused {name} until {moment(until)} ({remaining})")


def _until(call: Call) -> str:
    text = call.text("until")
    if not text:
        default = format_time(time_ns() + HOUR_NS)
        text = call.prompts.ask("Pause until (time or duration)", default=default, check=str)
    return parse_until(text)


def parse_until(text: str) -> str:
    """An RFC 3339 time from a time or a duration from now; raises UsageError."""
    for candidate in (text, f"{text.replace(' ', 'T')}Z"):
        try:
            return format_time(parse_time(candidate))
        except ValueError:
            continue
    try:
        return format_time(time_ns() + parse_duration(text))
    except ValueError:
        raise UsageError(f"invalid time or duration {text!r}") from None


async def resume(call: Call) -> None:
    """End a pause."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        name = f"{found.stream_name} > {found.name}"
        if not found.paused:
            raise UsageError(f"consumer {name} is not paused")
        if not call.confirm(f"Really resume Consumer {name}"):
            return
        await manager.pause_consumer(found.stream_name, found.name, "")
    until = moment(found.config.pause_until if found.config else "")
    call.output.print(f"Consumer {name} was resumed while previously paused until {until}")


async def unpin(call: Call) -> None:
    """Free the client a priority group is pinned to."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        name = f"{found.stream_name} > {found.name}"
        pinned = {group.group: group.pinned_client_id for group in found.priority_groups}
        if not pinned:
            raise UsageError(f"consumer {name} has no priority groups")
        group = call.text("group") or call.prompts.choose("Select a Group", list(pinned))
        if not call.confirm(f"Really unpin client from group {name} > {group}"):
            return
        await manager.unpin_consumer(found.stream_name, found.name, group)
    client = pinned.get(group, "")
    call.output.print(f"Unpinned client {client} from Priority Group {name} > {group}")


async def reset(call: Call) -> None:
    """Back to an earlier stream sequence."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        if not call.confirm("Really reset the consumer"):
            return
        info = await manager.reset_consumer(found.stream_name, found.name, call.integer("sequence"))
    show_consumer(call, info, only_state=True)
