"""`server check jetstream`: use of an account's limits, and replicas of its streams."""

from jsctl.api.account import AccountInfo
from jsctl.api.stream import StreamInfo
from jsctl.api.times import SECOND_NS, format_duration
from jsctl.commands.server.check.run import (
    NOT_CONNECTED,
    checked,
    critical_if_it_fails,
    manager_for,
    seconds,
)
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.reports.server.check import CheckResult

NOT_THERE = "JetStream not available"


async def jetstream(call: Call) -> int:
    """Checks an account."""
    return await checked(call, "jetstream", "JetStream", body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    async with manager_for(call, result, NOT_CONNECTED) as manager:
        with critical_if_it_fails(result, NOT_THERE):
            account = await manager.account_info()
        _judge_account(call, result, account)
        if not call.flag("replicas"):
            return
        with critical_if_it_fails(result, NOT_THERE):
            listing = await manager.streams()
    silent = len(set(listing.missing) | set(listing.offline))
    _judge_replicas(call, result, listing.items, silent)


def _judge_account(call: Call, result: CheckResult, info: AccountInfo) -> None:
    limits = info.limits
    for name, flag, unit, limit, used in (
        ("memory", "mem", "B", limits.max_memory, info.memory),
        ("storage", "store", "B", limits.max_storage, info.storage),
        ("streams", "streams", "", limits.max_streams, info.streams),
        ("consumers", "consumers", "", limits.max_consumers, info.consumers),
    ):
        percent = int(used / limit * 100) if limit > 0 else 0
        warn, critical = call.integer(f"{flag}-warn"), call.integer(f"{flag}-critical")
        result.measure(name, used, unit=unit, help=f"JetStream {name} resource usage")
        result.measure(
            f"{name}_pct",
            percent,
            warning=max(0, warn),
            critical=max(0, critical),
            unit="%",
            help=f"JetStream {name} resource usage in percent",
        )
        if warn != -1 and critical != -1 and warn >= critical:
            result.critical(f"{name}: invalid thresholds")
        elif percent > 100:
            result.critical(f"{name}: exceed server limits")
        elif warn >= 0 and percent > critical >= 0:
            result.critical(f"{percent}% {name}")
        elif critical >= 0 and percent > warn >= 0:
            result.warn(f"{percent}% {name}")


def _judge_replicas(call: Call, result: CheckResult, infos: list[StreamInfo], silent: int) -> None:
    lag, seen = call.integer("replica-lag-critical"), seconds(call, "replica-seen-critical")
    counts = {"ok": 0, "no_leader": 0, "missing_replicas": 0, "lagged": 0, "not_seen": 0}
    counts["fail"] = silent
    for info in infos:
        for word in _states(info, lag, seen):
            counts[word] += 1
    helps = {
        "ok": "Streams with healthy cluster state",
        "no_leader": "Streams with no leader elected",
        "missing_replicas": "Streams where there are fewer known replicas than configured",
        "lagged": f"Streams with > {lag} lagged replicas",
        "not_seen": f"Streams with replicas seen > {format_duration(round(seen * SECOND_NS))} ago",
        "fail": "Streams unhealthy cluster state",
    }
    for word, count in counts.items():
        result.measure(
            f"replicas_{word}",
            count,
            critical={"lagged": float(lag), "not_seen": seen}.get(word, 0.0),
            unit="s" if word == "not_seen" else "",
            help=helps[word],
        )
    unhealthy = sum(count for word, count in counts.items() if word != "ok")
    if unhealthy:
        result.critical(f"{unhealthy} unhealthy streams")


def _states(info: StreamInfo, lag: int, seen: float) -> list[str]:
    """What is wrong with a stream's replicas, one word for each bad one, or `ok`."""
    if info.config.num_replicas == 1:
        return ["ok"]
    if info.cluster is None:
        return ["fail"]
    if not info.cluster.leader:
        return ["no_leader"]
    if len(info.cluster.replicas) != info.config.num_replicas - 1:
        return ["missing_replicas"]
    found: list[str] = []
    for peer in info.cluster.replicas:
        if peer.offline:
            found.append("fail")
        elif seen > 0 and peer.active > seen * SECOND_NS:
            found.append("not_seen")
        elif 0 < lag < peer.lag:
            found.append("lagged")
    return found or ["ok"]
