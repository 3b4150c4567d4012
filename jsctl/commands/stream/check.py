"""`stream check`: have what the replicas of streams have on their disks read, and wait for it."""

import asyncio
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from jsctl.api.stream import StreamCheck
from jsctl.api.times import SECOND_NS
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.progress import Progress
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.humanize import counted
from jsctl.render.reports.stream.checks import CHECK_COLUMNS, check_rows

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

POLL_S = 0.2


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
        call.output.print(f"{whole} of {of} {are} whole on all replicas")
    return 0 if whole == len(found) else 1


async def _check_all(call: Call, manager: "Manager", names: list[str]) -> dict[str, StreamCheck]:
    """Checks run side by side; each server takes one stream after the other."""
    until = monotonic() + call.duration("deadline") / SECOND_NS
    found: dict[str, StreamCheck] = {}
    for name in names:
        found[name] = _known(name, await manager.check_stream(name, start=True))
    total = 0
    for name, one in found.items():
        total += (await manager.stream_info(name)).state.bytes * len(one.replicas)
    bar, shown = Progress(call, total), 0
    try:
        while not all(one.done for one in found.values()):
            if monotonic() > until:
                raise JsctlError("the check is not done in time; it goes on in the servers")
            await asyncio.sleep(POLL_S)
            for name, one in found.items():
                if not one.done:
                    # A leader that changes, or is busy, may leave a question unanswered.
                    with suppress(Unreachable):
                        found[name] = await _look(manager, name, one)
            read = sum(replica.bytes for one in found.values() for replica in one.replicas)
            bar.add(max(0, read - shown))
            shown = max(shown, read)
    finally:
        bar.end()
    return found


async def _look(manager: "Manager", name: str, before: StreamCheck) -> StreamCheck:
    """How far a check is; a leader that was elected since knows nothing of it, and begins anew."""
    check = await manager.check_stream(name)
    if check is None or check.id < before.id:
        check = await manager.check_stream(name, start=True)
    return _known(name, check)


def _known(name: str, check: StreamCheck | None) -> StreamCheck:
    if check is None:
        raise JsctlError(f"the leader of stream {name} does not lead it any more; try again")
    return check
