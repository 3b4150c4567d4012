"""`server check meta`: the group of servers that administers JetStream."""

from jsctl.api.monitoring.jsz import Jsz, MetaClusterInfo
from jsctl.api.times import SECOND_NS, format_duration
from jsctl.client.system import NatsSystem, NoSystemRights
from jsctl.commands.server.check.run import (
    Stopped,
    checked,
    client_for,
    critical_if_it_fails,
    seconds,
)
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Unreachable
from jsctl.render.reports.server.check import CheckResult

NO_RESPONDERS = "nats: no responders available for request"


async def meta(call: Call) -> int:
    """Checks the meta group."""
    return await checked(call, "meta", "JetStream Meta Cluster", body)


async def body(call: Call, result: CheckResult) -> None:
    """The check itself."""
    async with client_for(call, result) as client:
        with critical_if_it_fails(result, "JSZ API request failed"):
            system = NatsSystem(client, call.settings)
            try:
                replies = await system.gather("JSZ", {"leader_only": True}, expected=1)
            except NoSystemRights:
                raise Unreachable(NO_RESPONDERS) from None
            if not replies:
                raise Unreachable("nats: timeout")
        if replies[0].error is not None:
            result.critical(f"invalid result received: {replies[0].error.description}")
            return
        group = replies[0].as_(Jsz).meta_cluster
    if group is None:
        result.critical("no cluster information")
        raise Stopped
    if not group.leader:
        result.critical("No leader")
        raise Stopped
    _judge(call, result, group)


def _judge(call: Call, result: CheckResult, group: MetaClusterInfo) -> None:
    expected, lag = call.integer("expect"), call.integer("lag-critical")
    seen = seconds(call, "seen-critical")
    peers = len(group.replicas) + 1
    result.measure(
        "peers", peers, warning=expected, critical=expected, help="Configured RAFT peers"
    )
    if expected > 0 and peers != expected:
        result.critical(f"{peers} peers of expected {expected}")
    stale = sum(not peer.current for peer in group.replicas)
    offline = sum(peer.offline for peer in group.replicas)
    inactive = sum(seen > 0 and peer.active > seen * SECOND_NS for peer in group.replicas)
    lagged = sum(0 < lag < peer.lag for peer in group.replicas)
    for key, count, text in (
        ("peer_offline", offline, "Offline RAFT peers"),
        ("peer_not_current", stale, "RAFT peers that are not current"),
        ("peer_inactive", inactive, "Inactive RAFT peers"),
        ("peer_lagged", lagged, "RAFT peers that are lagged more than configured threshold"),
    ):
        result.measure(key, count, help=text)
    for count, text in (
        (stale, "not current"),
        (inactive, f"inactive more than {format_duration(round(seen * SECOND_NS))}"),
        (offline, "offline"),
        (lagged, f"lagged more than {lag} ops"),
    ):
        if count:
            result.critical(f"{count} {text}")
    result.ok_if_clean(f"{peers} peers led by {group.leader}")
