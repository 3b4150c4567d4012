"""`server check consumer`: how far a consumer is behind, and whether it is at work."""

from time import time_ns

from jsctl.commands.server.check.run import (
    NOT_LOADED,
    checked,
    critical_if_it_fails,
    manager_for,
)
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.health.consumers import judge_consumer
from jsctl.commands.toolkit.health.thresholds import Thresholds
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.server.check import CheckResult


async def consumer(call: Call) -> int:
    """Checks a consumer."""
    name = f"{call.text('stream')}_{call.text('consumer')}"
    return await checked(call, "consumer", name, body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    for what in ("stream", "consumer"):
        if not call.text(what):
            result.critical(f"{what} name is required")
            return
    async with manager_for(call, result) as manager:
        with critical_if_it_fails(result, NOT_LOADED):
            info = await manager.consumer_info(
                check_name(call.text("stream"), "stream"),
                check_name(call.text("consumer"), "consumer"),
            )
    limits = Thresholds(call, info.config.metadata if info.config else {})
    with critical_if_it_fails(result, "could not configure based on metadata"):
        judge_consumer(info, limits, result, time_ns())
