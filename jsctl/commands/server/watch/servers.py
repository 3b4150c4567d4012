"""`server watch servers`, `jetstream` and `accounts`: what servers tell of themselves."""

from collections.abc import Callable, Mapping, Sequence
from time import time_ns
from typing import TYPE_CHECKING, TypeVar

from jsctl.api import jsontext
from jsctl.api.codec import DecodeError, decode
from jsctl.api.monitoring.accountz import AccountStat
from jsctl.api.monitoring.statsz import ServerStatsMsg
from jsctl.api.server import ServerInfo
from jsctl.api.times import SECOND_NS, parse_time
from jsctl.client.headers import status_of
from jsctl.client.system import NO_RIGHTS, NoSystemRights
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import repeated
from jsctl.render.column import Cell, Column
from jsctl.render.humanize import moment_ns
from jsctl.render.reports.server.activity import (
    ACCOUNT_COLUMNS,
    ACCOUNT_SORTS,
    JETSTREAM_SORTS,
    SERVER_COLUMNS,
    SERVER_SORTS,
    ServerActivity,
    account_sums,
    jetstream_columns,
    jetstream_footer,
    server_footer,
)

if TYPE_CHECKING:
    from nats.aio.msg import Msg

R = TypeVar("R")
ROUND_S = 1
LINES_BESIDE = 11
"""Of a terminal, beside the rows of a table."""
STALE_NS = 35 * SECOND_NS
"""Servers tell every 30 s of accounts that are used."""
Sorts = Mapping[str, tuple[str, Callable[[R], object]]]


class _Heard:
    """The last word of each server; `when` is the time of the newest one."""

    def __init__(self) -> None:
        self.servers: dict[str, ServerActivity] = {}
        self.accounts: dict[str, dict[str, tuple[ServerInfo, AccountStat]]] = {}
        self.when = 0
        self.refused = False

    async def server(self, message: "Msg") -> None:
        """STATSZ, asked for or not."""
        if status_of(message.headers) == "503":
            self.refused = True
            return
        try:
            found = decode(ServerStatsMsg, jsontext.parse(message.data))
        except (ValueError, DecodeError):
            return
        self.servers[found.server.id] = ServerActivity(found.server.name, found.statsz)
        self.when = time_ns()

    async def account(self, message: "Msg") -> None:
        """Connections of an account on a server."""
        try:
            document = jsontext.parse_object(message.data)
            server = decode(ServerInfo, document.pop("server", {}))
            found = decode(AccountStat, document)
        except (ValueError, DecodeError, AttributeError):
            return
        self.accounts.setdefault(found.acc, {})[server.id] = server, found
        self.when = time_ns()


async def servers(call: Call) -> int:
    """Load and traffic of servers."""
    return await _watch_servers(call, _show_servers)


async def jetstream(call: Call) -> int:
    """JetStream of servers."""
    return await _watch_servers(call, _show_jetstream)


async def _watch_servers(call: Call, show: Callable[[Call, _Heard], None]) -> int:
    heard = _Heard()

    async def round_(call: Call) -> None:
        if heard.refused:
            raise NoSystemRights(NO_RIGHTS)
        show(call, heard)

    async with call.one_connection(), call.client() as client:
        inbox = client.new_inbox()
        await client.subscribe(inbox, cb=heard.server)
        await client.subscribe("$SYS.SERVER.*.STATSZ", cb=heard.server)
        await client.publish("$SYS.REQ.SERVER.PING", reply=inbox)
        return await repeated(call, round_, ROUND_S, at_once=False)


def _show_servers(call: Call, heard: _Heard) -> None:
    rows = list(heard.servers.values())
    footer = server_footer(rows)
    _show(call, rows, SERVER_SORTS, SERVER_COLUMNS, footer, f"Server activity {{}} {_at(heard)}")


def _show_jetstream(call: Call, heard: _Heard) -> None:
    rows = [row for row in heard.servers.values() if row.stats.jetstream is not None]
    columns, footer = jetstream_columns(time_ns()), jetstream_footer(rows)
    _show(call, rows, JETSTREAM_SORTS, columns, footer, f"Server activity {{}} {_at(heard)}")


async def accounts(call: Call) -> int:
    """Use of accounts."""
    heard = _Heard()

    async def round_(call: Call) -> None:
        now = time_ns()
        rows = [
            account_sums(
                account,
                [
                    stat
                    for server, stat in told.values()
                    if now - parse_time(server.time) <= STALE_NS
                ],
            )
            for account, told in heard.accounts.items()
        ]
        _show(call, rows, ACCOUNT_SORTS, ACCOUNT_COLUMNS, (), f"Account activity {{}} {_at(heard)}")

    async with call.one_connection(), call.client() as client:
        await client.subscribe("$SYS.ACCOUNT.*.SERVER.CONNS", cb=heard.account)
        return await repeated(call, round_, ROUND_S, at_once=False)


def _at(heard: _Heard) -> str:
    return f"at {moment_ns(heard.when or time_ns())}"


def _show(
    call: Call,
    rows: Sequence[R],
    sorts: "Sorts[R]",
    columns: Sequence[Column[R]],
    footer: Sequence[Cell],
    title: str,
) -> None:
    """The first rows by what is asked for, as many as there is room for."""
    key = call.text("sort")
    name, value = sorts[key]
    ordered = sorted(rows, key=value, reverse=key != "name")  # type: ignore[arg-type] # compare
    room = call.output.height - LINES_BESIDE if call.output.height else len(ordered)
    wanted = call.integer("number") or len(ordered)
    shown = ordered[: max(1, min(room, wanted))]
    count = str(len(rows)) if len(shown) == len(rows) else f"{len(shown)} / {len(rows)}"
    what = title.format(f"by {name}")
    call.output.table(shown, columns, f"Top {count} {what}", footer=footer)
