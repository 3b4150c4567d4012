"""`stream check`: have what the replicas of streams have on their disks read, and wait for it."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamCheck
from jsctl.api.times import SECOND_NS
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.progress import bar_of
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.humanize import counted
from jsctl.render.reports.stream.checks import CHECK_COLUMNS, check_rows

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

T = TypeVar("T")
POLL_S = 0.2
ASKED_MAX = 5
"""How often a check is asked for."""
NOT_AVAILABLE = frozenset({10008, 10118, 10119})
"""Errors of groups without a leader, or of whose servers none is there."""


async def check(call: Call) -> int:
    """Status 0 if every replica of every stream is whole and all are equal, else 1."""
    async with call.manager() as manager:
        given = call.text("stream")
        if given:
            names = [check_name(given, "stream")]
        else:
            names = sorted(await manager.stream_names())
        found = await _check_all(call, manager, names)
    whole = sum(one.is_whole for one in found.values())
    if call.as_json:
        call.output.json({"whole": whole == len(found), "streams": found})
    elif not found:
        call.output.print("No Streams defined")
    else:
        call.output.table(check_rows(found), CHECK_COLUMNS, "Stream Check")
        of, are = counted(len(found), "stream"), "is" if len(found) == 1 else "are"
        call.output.say(f"{whole} of {of} {are} whole on all replicas")
    return 0 if whole == len(found) else 1


async def _check_all(call: Call, manager: "Manager", names: list[str]) -> dict[str, StreamCheck]:
    """Checks run side by side; each server takes one stream after the other."""
    until = monotonic() + call.duration("deadline") / SECOND_NS
    found: dict[str, StreamCheck] = {}
    total = 0
    for name in names:
        found[name] = one = await _begun(manager, name)
        with suppress(Unreachable):  # It only says how long the bar is.
            total += (await manager.stream_info(name)).state.bytes * len(one.replicas)
    shown = 0
    with bar_of(call, total) as done:
        while not all(one.done for one in found.values()):
            if monotonic() > until:
                raise JsctlError("the check is not done in time; it goes on in the servers")
            await asyncio.sleep(POLL_S)
            for name, one in found.items():
                if not one.done:
                    found[name] = await _patiently(_look(manager, name, one), one)
            read = sum(replica.bytes for one in found.values() for replica in one.replicas)
            done(max(0, read - shown))
            shown = max(shown, read)
    return found


async def _begun(manager: "Manager", name: str) -> StreamCheck:
    """A check that has begun."""
    for _ in range(ASKED_MAX - 1):
        begun = await _patiently(manager.check_stream(name, start=True), None)
        if begun is not None:
            return begun
        await asyncio.sleep(POLL_S)
    begun = await manager.check_stream(name, start=True)
    if begun is None:
        raise JsctlError(f"the leader of stream {name} does not lead it any more; try again")
    return begun


async def _look(manager: "Manager", name: str, before: StreamCheck) -> StreamCheck:
    """How far a check is; a leader that was elected since knows nothing of it, and begins anew."""
    check = await manager.check_stream(name)
    if check is None or check.id < before.id:
        check = await manager.check_stream(name, start=True)
    return check or before


async def _patiently(asked: Awaitable[T], otherwise: T) -> T:
    """A leader that changes, or is busy, may leave a question unanswered, or say that it cannot
    tell yet: who asks asks again."""
    try:
        return await asked
    except Unreachable:
        return otherwise
    except ApiError as error:
        if error.err_code not in NOT_AVAILABLE:
            raise
        return otherwise
