"""`account report connections`."""

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import watched
from jsctl.commands.toolkit.monitoring.connections import report_connections


async def connections(call: Call) -> int | None:
    """Connections of the account; servers tell an ordinary one only of its own."""
    return await watched(call, lambda one: report_connections(one, ""))
