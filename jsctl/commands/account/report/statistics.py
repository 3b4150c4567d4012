"""`account report statistics`."""

from jsctl.api.monitoring.accountz import AccountStatz
from jsctl.api.subjects import ACCOUNT_PING_STATZ
from jsctl.client.system import NatsSystem
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import watched
from jsctl.errors import JsctlError, NotFound
from jsctl.render.reports.account.statistics import (
    STATISTICS_COLUMNS,
    StatRow,
    statistics_footer,
)


async def statistics(call: Call) -> int | None:
    """What each server counted for the account of the connection."""
    return await watched(call, _statistics)


async def _statistics(call: Call) -> None:
    async with call.client() as client:
        system = NatsSystem(client, call.settings)
        replies = await system.gather_on(ACCOUNT_PING_STATZ.decode(), b"{}")
    if not replies:
        raise NotFound("did not get results from any servers")
    rows: list[StatRow] = []
    for reply in replies:
        if reply.error is not None:
            raise JsctlError(f"invalid response received: {reply.error.description}")
        rows += [StatRow(reply.server, stat) for stat in reply.as_(AccountStatz).account_statz[:1]]
    footer = statistics_footer(rows)
    call.output.table(rows, STATISTICS_COLUMNS, "Server Statistics", footer=footer)
    if not call.output.machine:
        call.output.print()
