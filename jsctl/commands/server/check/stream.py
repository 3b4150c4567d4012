"""`server check stream`: replicas, messages, subjects, sources and mirrors of a stream."""

from jsctl.commands.server.check.run import (
    NOT_LOADED,
    checked,
    critical_if_it_fails,
    manager_for,
)
from jsctl.commands.toolkit.assets.picking import check_name
from jsctl.commands.toolkit.health.streams import judge_stream
from jsctl.commands.toolkit.health.thresholds import Thresholds
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.server.check import CheckResult


async def stream(call: Call) -> int:
    """Checks a stream."""
    return await checked(call, "stream", call.text("stream"), body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    if not call.text("stream"):
        result.critical("stream name is required")
        return
    async with manager_for(call, result) as manager:
        with critical_if_it_fails(result, NOT_LOADED):
            info = await manager.stream_info(check_name(call.text("stream"), "stream"))
    limits = Thresholds(call, info.config.metadata)
    with critical_if_it_fails(result, "could not configure based on metadata"):
        judge_stream(info, limits, result)
