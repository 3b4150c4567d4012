"""`server report routes`, `gateways` and `leafnodes`."""

from collections.abc import Mapping
from typing import TypeVar

from jsctl.api.codec import encode
from jsctl.api.errors import ApiError
from jsctl.api.monitoring.connz import Gatewayz, GatewayzOptions, Leafz, Routez
from jsctl.api.server import ServerInfo
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import watched
from jsctl.commands.toolkit.monitoring.asking import ask, count_of, report_filter
from jsctl.errors import JsctlError
from jsctl.render.reports.server.network import (
    GATEWAY_COLUMNS,
    LEAF_COLUMNS,
    ROUTE_COLUMNS,
    gateway_footer,
    gateway_rows,
    leaf_rows,
    route_footer,
    route_rows,
)

T = TypeVar("T")


async def answers(
    call: Call, kind: str, cls: type[T], options: Mapping[str, object] | None = None
) -> list[tuple[ServerInfo, T]]:
    """The decoded answers of all servers that a report is about. Raises for an error answer."""
    async with call.system() as system:
        replies = await ask(
            system, kind, options, where=report_filter(call), wanted=count_of(call, "limit")
        )
    for reply in replies:
        if reply.error is not None:
            raise JsctlError(_sentence(reply.error))
    return [(reply.server, reply.as_(cls)) for reply in replies]


def _sentence(error: ApiError) -> str:
    return error.description


def end_report(call: Call) -> None:
    """An empty line behind the last table, as `nats` leaves one."""
    if not call.output.machine:
        call.output.print()


async def routes(call: Call) -> int | None:
    """Routes inside clusters."""
    return await watched(call, _routes)


async def _routes(call: Call) -> None:
    found = await answers(call, "ROUTEZ", Routez)
    rows = route_rows(found, call.text("sort"), reverse=call.flag("reverse"))
    call.output.table(rows, ROUTE_COLUMNS, "Cluster Report", footer=route_footer(rows))
    end_report(call)


async def gateways(call: Call) -> int | None:
    """Connections between clusters."""
    return await watched(call, _gateways)


async def _gateways(call: Call) -> None:
    options = encode(GatewayzOptions(name=call.text("filter-name"), accounts=True))
    found = await answers(call, "GATEWAYZ", Gatewayz, options)
    rows = gateway_rows(found, call.text("sort"), reverse=call.flag("reverse"))
    footer = gateway_footer(rows)
    if call.output.machine:
        rows = [row for row in rows if row.kind]
    call.output.table(rows, GATEWAY_COLUMNS, "Super Cluster Report", footer=footer)
    end_report(call)


async def leafnodes(call: Call) -> int | None:
    """Leaf nodes."""
    return await watched(call, _leafnodes)


async def _leafnodes(call: Call) -> None:
    found = await answers(call, "LEAFZ", Leafz, {"account": call.text("account")})
    rows = leaf_rows(found, call.text("sort"), reverse=call.flag("reverse"))
    call.output.table(rows, LEAF_COLUMNS, "Leafnode Report")
    end_report(call)
