"""`consumer rm`, `pause`, `resume`, `unpin` and `reset`."""

from time import time_ns

from jsctl.api.consumer import ConsumerConfig, ConsumerInfo
from jsctl.api.times import (
    HOUR_NS,
    SECOND_NS,
    format_duration,
    format_time,
    parse_duration,
    parse_time,
)
from jsctl.api.words import PriorityPolicy
from jsctl.commands.consumer.show import show_consumer
from jsctl.commands.toolkit.assets.bulk import in_bulk, is_bulk
from jsctl.commands.toolkit.assets.failing import told_as
from jsctl.commands.toolkit.assets.picking import TO_LOOK_IN, check_name, consumer_of, pick_stream
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, UsageError
from jsctl.render.humanize import moment

SECONDS_END = len("2026-01-02T15:04:05")


async def rm(call: Call) -> int | None:
    """Delete a consumer, or all of a stream that match."""
    bulk = is_bulk(call)
    async with call.manager() as manager:
        if bulk:
            stream = await pick_stream(call, manager, why=TO_LOOK_IN)
            names = await manager.consumer_names(stream)
            return await in_bulk(
                call,
                names,
                "delete",
                "consumer",
                lambda name: manager.delete_consumer(stream, name),
            )
        if call.flag("force"):
            if not call.text("stream") or not call.text("consumer"):
                raise UsageError("--force requires a stream and consumer name")
            stream = check_name(call.text("stream"), "stream")
            name = check_name(call.text("consumer"), "consumer")
        else:
            found = await consumer_of(call, manager)
            stream, name = found.stream_name, found.name
        if call.confirm(f"Really delete Consumer {stream} > {name}"):
            await manager.delete_consumer(stream, name)
    return None


async def pause(call: Call) -> None:
    """Stop deliveries until a time."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        until = _until(call)
        question = f"Really pause Consumer {found.stream_name} > {found.name} until {moment(until)}"
        if not call.confirm(question):
            return
        with told_as(f"could not pause consumer {found.stream_name} > {found.name}"):
            answer = await manager.pause_consumer(found.stream_name, found.name, until)
    if not answer.get("paused"):
        raise Conflict("pause request failed, perhaps due to a time in the past")
    left = answer.get("pause_remaining", 0)
    seconds = round(left / SECOND_NS) if isinstance(left, int) else 0
    remaining = format_duration(seconds * SECOND_NS)
    name = f"{found.stream_name} > {found.name}"
    document = {**_named(found), "paused": True, "pause_until": until, "pause_remaining": left}
    call.output.tell(f"Paused {name} until {moment(until)} ({remaining})", document)


def _named(found: ConsumerInfo) -> dict[str, object]:
    return {"stream_name": found.stream_name, "name": found.name}


def _until(call: Call) -> str:
    text = call.text("until")
    if not text:
        default = format_time(time_ns() + HOUR_NS)[:SECONDS_END].replace("T", " ")
        text = call.prompts.ask(
            "Pause until (time or duration)",
            default=default,
            check=str,
            help_text=f"A length of time from now (1h30m), or a time in UTC ({default})",
            prefix="",
        )
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
        raise UsageError(
            f"could not parse the pause time {text!r} as either timestamp or duration"
        ) from None


async def resume(call: Call) -> None:
    """End a pause."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        name = f"{found.stream_name} > {found.name}"
        if not found.paused:
            raise UsageError("consumer is not paused")
        if not call.confirm(f"Really resume Consumer {name}"):
            return
        await manager.pause_consumer(found.stream_name, found.name, "")
    until = moment(found.config.pause_until if found.config else "")
    call.output.tell(
        f"Consumer {name} was resumed while previously paused until {until}",
        {**_named(found), "paused": False},
    )


async def unpin(call: Call) -> None:
    """Free the client a priority group is pinned to."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        name = f"{found.stream_name} > {found.name}"
        config = found.config or ConsumerConfig()
        if config.priority_policy is not PriorityPolicy.PINNED_CLIENT:
            raise Conflict("consumer is not a pinned priority consumer")
        groups = (group for group in found.priority_groups if group.pinned_client_id)
        pinned = {group.group: group.pinned_client_id for group in groups}
        if not pinned:
            raise Conflict("no priority groups have pinned clients")
        group = call.text("group") or call.prompts.choose("Select a Group", list(pinned))
        if not call.confirm(f"Really unpin client from group {name} > {group}"):
            return
        await manager.unpin_consumer(found.stream_name, found.name, group)
    client = pinned.get(group, "")
    call.output.tell(
        f"Unpinned client {client} from Priority Group {name} > {group}",
        {**_named(found), "group": group, "unpinned": client},
    )


async def reset(call: Call) -> None:
    """Back to an earlier stream sequence."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        if not call.confirm("Really reset the consumer"):
            return
        info = await manager.reset_consumer(found.stream_name, found.name, call.integer("sequence"))
    show_consumer(call, info, only_state=True)
