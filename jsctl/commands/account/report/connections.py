"""`account report connections`."""

from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.connections import report_connections


async def connections(call: Call) -> None:
    """Connections of the account; servers tell an ordinary one only of its own."""
    await report_connections(call, "")
