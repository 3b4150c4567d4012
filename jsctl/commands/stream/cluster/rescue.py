"""`stream cluster rescue`: one replica of a stream is to be all that is left of it."""

import asyncio
from typing import TYPE_CHECKING

from jsctl.api.responses import StreamRescueResponse
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.naming import confirm_by_name
from jsctl.errors import Conflict, NotFound

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

POLL_SECONDS = 0.1
WARNING = """\
Rescuing a stream is for replicas that are lost for good, when those that are left are no majority,
or when the only one is damaged: then nothing is published or delivered.

{told}
For some minutes the replica on {server} alone will be enough, for the consumers of the stream too.
Lost for good is what it does not have: messages that others acknowledged behind its last sequence
{last_seq}, damaged messages ({lost}), and what consumers acknowledged meanwhile. Sequences behind
{last_seq} are given again. Should the others come back with more, that is thrown away.

Afterwards replace the replicas that are lost:
  jsctl stream cluster peer-remove STREAM NAME
and once there are servers again, have as many replicas as before:
  jsctl stream edit STREAM --replicas 1; jsctl stream edit STREAM --replicas {replicas}
"""


async def rescue(call: Call) -> None:
    """Goes on with the replica that has most, or a named one."""
    name = call.text("stream")
    async with call.manager() as manager:
        found = [one for one in await manager.rescue_stream(name) if one.head.error is None]
        if not found:
            raise NotFound(f'no server answers that has a replica of stream "{name}"')
        if led := next((one.leader for one in found if one.leader), ""):
            call.output.print(f'Stream has the leader "{led}", no rescue needed')
            if call.as_json:
                call.output.json({"leader": led})
            return
        kept = _kept(found, call.text("host"))
        told = "".join(map(_line, sorted(found, key=lambda one: one.server)))
        away = sorted(kept.offline)
        told += f"  not there: {', '.join(away)}\n" if away else ""
        facts: dict[str, object] = {"server": kept.server, "last_seq": kept.last_seq}
        facts |= {"lost": kept.lost, "replicas": 1 + len(kept.peers)}
        call.output.note(WARNING.format(told=told, **facts))
        if not confirm_by_name(call, "stream", name):
            call.output.print("Rescue canceled")
            return
        answers = await manager.rescue_stream(name, 1, kept.server)
        error = answers[0].head.error if answers else None
        if not answers or error is not None:
            why = error.description if error is not None else f"{kept.server} does not answer"
            raise Conflict(why)
        await _served(call, manager, name, kept.server)
    call.output.log(f'Stream "{name}" goes on with the replica on "{kept.server}"')
    if call.as_json:
        call.output.json({"stream": name, "server": kept.server, "last_seq": kept.last_seq})


async def _served(call: Call, manager: "Manager", name: str, server: str) -> None:
    """Waits until the replica leads; raises Conflict when it does not in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + call.settings.timeout
    while loop.time() < deadline:
        found = await manager.rescue_stream(name, server=server)
        if any(one.leader == server for one in found):
            return
        await asyncio.sleep(POLL_SECONDS)
    raise Conflict(f'the replica on "{server}" was told, and does not lead yet')


def _kept(found: list[StreamRescueResponse], wanted: str) -> StreamRescueResponse:
    """A named one, or the one with the longest log, of those that are whole if any is."""
    if wanted:
        named = [one for one in found if one.server == wanted]
        if not named:
            raise NotFound(f"server {wanted} has no replica, or does not answer")
        return named[0]
    return max(found, key=lambda one: (one.whole, one.log_index, one.last_seq, -one.lost))


def _line(one: StreamRescueResponse) -> str:
    state = "whole" if one.whole else "its log or state is damaged"
    facts = f"{one.messages} messages up to {one.last_seq}, {one.lost} damaged"
    return f"  {one.server}: {facts}, log up to {one.log_index}, {state}\n"
