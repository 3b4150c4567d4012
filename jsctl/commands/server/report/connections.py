"""`server report connections` and `accounts`."""

from jsctl.api.codec import encode
from jsctl.commands.toolkit.content.expressions import compiled
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import watched
from jsctl.commands.toolkit.monitoring.connections import (
    Keep,
    connection_document,
    gather_connections,
    report_connections,
)
from jsctl.errors import UsageError
from jsctl.render.reports.server.connections import (
    ACCOUNT_COLUMNS,
    AccountRow,
    ConnectionRow,
    account_rows,
    top_accounts,
)


async def connections(call: Call) -> int | None:
    """Connections of all servers."""
    keep = _keep(call)
    return await watched(call, lambda call: report_connections(call, call.text("account"), keep))


def _keep(call: Call) -> Keep | None:
    """Whether an expression over `conn` and `server` is true. Raises UsageError."""
    if not call.text("filter"):
        return None
    if call.given("closed-reason"):
        raise UsageError(
            "cannot filter for closed reason and use a filter expression at the same time"
        )
    matches = compiled(call.text("filter"))
    return lambda row: matches({"conn": encode(row.info), "server": encode(row.server)})


async def accounts(call: Call) -> int | None:
    """Accounts by their connections, or the connections of one."""
    return await watched(call, _accounts)


async def _accounts(call: Call) -> None:
    if call.text("account"):
        await report_connections(call, call.text("account"))
        return
    rows = await gather_connections(call, "")
    key, top, back = call.text("sort"), call.integer("top"), call.flag("reverse")
    found = top_accounts(account_rows(rows), key, top, reverse=back)
    if call.flag("json") and call.output.form == "table":
        call.output.json([_account_document(row, rows) for row in found])
        return
    if not call.output.machine:
        call.output.print()
    call.output.table(found, ACCOUNT_COLUMNS, f"{len(found):,} Accounts Overview")


def _account_document(row: AccountRow, rows: list[ConnectionRow]) -> dict[str, object]:
    return {
        "account": row.account,
        "connections": row.connections,
        "connection_info": [
            connection_document(one) for one in rows if one.info.account == row.account
        ],
        "in_msgs": row.in_msgs,
        "out_msgs": row.out_msgs,
        "in_bytes": row.in_bytes,
        "out_bytes": row.out_bytes,
        "subscriptions": row.subs,
        "server": [encode(server) for server in row.servers.values()],
    }
