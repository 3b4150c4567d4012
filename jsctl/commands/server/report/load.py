"""`server report cpu` and `mem`."""

from jsctl.api.subjects import server_request
from jsctl.client.facts import statsz_of
from jsctl.client.system import NoSystemRights
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import watched
from jsctl.commands.toolkit.monitoring.asking import ask, count_of, report_filter
from jsctl.errors import prefixed
from jsctl.render.charts import BAR_WIDTH_MAX, bars
from jsctl.render.column import Column
from jsctl.render.humanize import size

WIDTH_BESIDE = 30
"""Columns that names and values need beside the bars."""


async def cpu(call: Call) -> int | None:
    """Processor use in percent of one."""
    return await watched(call, lambda call: _usage(call, "cpu"))


async def mem(call: Call) -> int | None:
    """Memory in bytes."""
    return await watched(call, lambda call: _usage(call, "mem"))


async def _usage(call: Call, what: str) -> None:
    async with call.system() as system:
        wanted = count_of(call, "limit")
        try:
            replies = await ask(system, "", where=report_filter(call), wanted=wanted)
        except NoSystemRights as error:
            raise prefixed(error, server_request("", "PING").decode()) from None
    values = {reply.server.name: float(getattr(statsz_of(reply), what)) for reply in replies}
    if call.as_json:
        call.output.json({name: _plain(value) for name, value in sorted(values.items())})
        return
    caption = "CPU Usage" if what == "cpu" else "Memory Usage"
    if call.output.machine or call.output.form == "md":
        column: Column[tuple[str, float]] = Column(what, what, lambda row: _plain(row[1]))
        names: Column[tuple[str, float]] = Column("server", "server", lambda row: row[0])
        call.output.table(sorted(values.items()), (names, column), caption)
        return
    room = (call.output.width - WIDTH_BESIDE) // 2 if call.output.width else BAR_WIDTH_MAX
    text = _percent if what == "cpu" else _bytes
    call.output.print(bars(values, caption, text, width=max(5, min(room, BAR_WIDTH_MAX))))


def _plain(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _percent(value: float) -> str:
    return f"{_plain(value):,}"


def _bytes(value: float) -> str:
    return size(int(value))
