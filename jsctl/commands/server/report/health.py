"""`server report health`."""

from jsctl.api.codec import encode
from jsctl.api.monitoring.health import Healthz
from jsctl.commands.server.report.network import answers, end_report
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.watching import watched
from jsctl.render.reports.server.health import HEALTH_COLUMNS, health_footer, health_rows


async def health(call: Call) -> int | None:
    """How servers are."""
    return await watched(call, _health)


async def _health(call: Call) -> None:
    options: dict[str, object] = {
        "js-enabled-only": call.flag("js-enabled"),
        "js-server-only": call.flag("server-only"),
        "account": call.text("account"),
        "stream": call.text("stream"),
        "consumer": call.text("consumer"),
        "details": True,
    }
    given = {key: value for key, value in options.items() if value}
    found = await answers(call, "HEALTHZ", Healthz, given)
    found.sort(key=lambda reply: reply[0].name, reverse=call.flag("reverse"))
    if call.output.form in ("json", "jsonl", "yaml"):
        call.output.json(
            [{"server": encode(one), "health": encode(health)} for one, health in found]
        )
        return
    rows = health_rows(found)
    call.output.table(rows, HEALTH_COLUMNS, "Health Report", footer=health_footer(found))
    end_report(call)
