"""`--wait`: replicas that were added or moved are followed until all of them have everything."""

import asyncio

from jsctl.api.cluster import ClusterInfo
from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS, format_duration
from jsctl.commands.toolkit.assets.moving import POLL_SECONDS, LookUp
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.interrupts import told
from jsctl.commands.toolkit.invocation.progress import counting
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.humanize import number

GOES_ON = "the cluster goes on by itself"


async def wait_for_replicas(
    call: Call, look: LookUp, replicas: int, what: str, *, gone: str = ""
) -> None:
    """With `--wait` returns when there are so many, all current, none on its way and none `gone`.

    On a terminal there is a bar for each that is behind. Raises Unreachable when that takes
    longer; what the cluster does goes on by itself.
    """
    if not call.given("wait"):
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + call.duration("wait") / SECOND_NS
    left = f"{what} was not looked at yet"
    with told(call, lambda: f"{what} is not done: {left}; {GOES_ON}"), counting(call) as shown:
        while True:
            try:
                cluster = await look()
                left = what_is_left(cluster, replicas, gone)
            except (ApiError, JsctlError) as error:
                cluster, left = None, str(error)
            if not left:
                break
            for peer in cluster.replicas if cluster is not None else ():
                shown(peer.lag, of=peer.name)
            if loop.time() > deadline:
                raise Unreachable(
                    f"{what} is not done after {format_duration(call.duration('wait'))}: {left}",
                    hints=(f"{GOES_ON}, wait again or see the info",),
                )
            await asyncio.sleep(POLL_SECONDS)
    call.output.log(f"All replicas of {what} are current")


def what_is_left(cluster: ClusterInfo | None, replicas: int, gone: str = "") -> str:
    """What is still to come; empty when nothing is. `gone` is who was asked to leave."""
    if cluster is None or not cluster.name:
        return ""
    if not cluster.leader:
        return "it has no leader"
    if cluster.desired is not None:
        status = cluster.desired.status
        return f"it is moving{f' ({status.description})' if status else ''}"
    if gone in (cluster.leader, *(peer.name for peer in cluster.replicas)):
        return f"{gone} is one of its servers"
    if len(cluster.replicas) + 1 != replicas:
        return f"it has {len(cluster.replicas) + 1} of {replicas} replicas"
    behind = [
        f"{peer.name} is offline" if peer.offline else f"{peer.name} is {number(peer.lag)} behind"
        for peer in cluster.replicas
        if peer.offline or peer.lag or not peer.current
    ]
    return ", ".join(behind)
