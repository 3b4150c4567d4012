"""`stream audit`: have the replicas of streams compared, and wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TypeVar

from jsctl.api.times import SECOND_NS
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.humanize import counted
from jsctl.render.reports.stream.audits import AUDIT_COLUMNS, audit_rows

if TYPE_CHECKING:
    from jsctl.api.responses import StreamAudit
    from jsctl.client.manager import Manager

POLL_S = 0.2


class Progressing(Protocol):
    """Something that a leader does for a while."""

    @property
    def id(self) -> int:
        """Later ones have higher ones."""

    @property
    def done(self) -> bool:
        """Whether nothing more is to come."""


P = TypeVar("P", bound=Progressing)
Ask = Callable[[bool], Awaitable[P | None]]
"""Asks how far it is; True begins one."""


async def audit(call: Call) -> int:
    """Status 0 if all replicas of every stream were compared and are the same, else 1."""
    found: dict[str, StreamAudit] = {}
    async with call.manager() as manager:
        given = call.text("stream")
        names = [check_name(given, "stream")] if given else await _replicated(manager)
        until = monotonic() + call.duration("deadline") / SECOND_NS
        for name in names:
            found[name] = await waited(name, _asking(manager, name), until)
    same = sum(one.is_same for one in found.values())
    if call.as_json:
        call.output.json({"same": same == len(found), "streams": found})
    elif not found:
        call.output.print("No Streams with more than one replica")
    else:
        call.output.table(audit_rows(found), AUDIT_COLUMNS, "Stream Audit")
        of, are = counted(len(found), "stream"), "is" if len(found) == 1 else "are"
        call.output.say(f"{same} of {of} {are} the same on all replicas")
    return 0 if same == len(found) else 1


async def _replicated(manager: "Manager") -> list[str]:
    listing = await manager.streams()
    return sorted(one.config.name for one in listing.items if one.config.num_replicas > 1)


def _asking(manager: "Manager", name: str) -> "Ask[StreamAudit]":
    return lambda start: manager.audit_stream(name, start=start)


async def waited(name: str, ask: Ask[P], until: float) -> P:
    """Begin something, and wait until it is done; `until` is a monotonic time."""
    found = _known(name, await ask(True))
    while not found.done:
        if monotonic() > until:
            raise JsctlError(f"stream {name} is not done in time; it goes on in the servers")
        await asyncio.sleep(POLL_S)
        # A leader that changes, or is busy, may leave a question unanswered.
        with suppress(Unreachable):
            now = await ask(False)
            if now is None or now.id < found.id:
                # Who was elected since knows nothing of it.
                now = await ask(True)
            found = _known(name, now)
    return found


def _known(name: str, found: P | None) -> P:
    if found is None:
        raise JsctlError(f"the leader of stream {name} does not lead it any more; try again")
    return found
