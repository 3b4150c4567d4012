"""`--wait`: what a server has left is followed until other servers have all of it."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.api.cluster import ClusterInfo
from jsctl.api.monitoring.jsz import Jsz, StreamDetail
from jsctl.api.times import SECOND_NS, format_duration
from jsctl.client.system import NatsSystem
from jsctl.commands.toolkit.assets.catching_up import GOES_ON, what_is_left
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.interrupts import told
from jsctl.commands.toolkit.invocation.progress import counting
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.humanize import counted

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

POLL_SECONDS = 0.25
LOOK_NS = 2 * SECOND_NS
ALL = {"accounts": True, "streams": True, "consumer": True, "config": True}

Group = tuple[str, ClusterInfo, int]
"""What it is, as its leader sees it, and how many replicas it should have."""


async def wait_until_settled(client: "NatsClient", call: Call, gone: str) -> None:
    """With `--wait` returns when nothing is behind, and nothing needs the server that is gone.

    On a terminal a bar shows how many there are. Raises Unreachable when that takes longer; the
    cluster goes on by itself.
    """
    if not call.given("wait"):
        return
    system = NatsSystem(client, replace(call.settings, timeout_ns=LOOK_NS))
    loop = asyncio.get_running_loop()
    deadline = loop.time() + call.duration("wait") / SECOND_NS
    left = [f"{gone} was not looked for yet"]
    with told(call, lambda: f"{_count(left)} not done; {GOES_ON}"), counting(call) as shown:
        while True:
            try:
                replies = [one for one in await system.gather("JSZ", ALL) if not one.error]
                found = [(one.server.name, one.as_(Jsz)) for one in replies]
                left = unsettled([one for one in found if one[0] != gone], gone)
            except JsctlError as error:
                left = [str(error)]
            shown(len(left), of="streams and consumers")
            if not left:
                break
            if loop.time() > deadline:
                waited = format_duration(call.duration("wait"))
                raise Unreachable(
                    f"{_count(left)} not done after {waited}, the first of them: {left[0]}",
                    hints=(f"{GOES_ON}, see server report health",),
                )
            await asyncio.sleep(POLL_SECONDS)
    call.output.log("All streams and consumers are current on their servers")


def _count(left: Sequence[str]) -> str:
    return counted(len(left), "stream or consumer", "streams and consumers")


def unsettled(servers: Sequence[tuple[str, Jsz]], gone: str) -> list[str]:
    """What is not whole yet, and why."""
    seen: set[str] = set()
    led: dict[str, str] = {}
    for server, jsz in servers:
        for what, cluster, replicas in _groups(jsz):
            seen.add(what)
            if cluster.leader == server:
                led[what] = what_is_left(cluster, replicas, gone)
    left = {what: led.get(what, "it has no leader") for what in sorted(seen)}
    return [f"{what}: {why}" for what, why in left.items() if why]


def _groups(jsz: Jsz) -> Iterator[Group]:
    for account in jsz.account_details:
        for stream in account.stream_detail:
            yield from _groups_of(f"{account.name} > {stream.name}", stream)


def _groups_of(name: str, stream: StreamDetail) -> Iterator[Group]:
    replicas = stream.config.num_replicas if stream.config else 1
    if stream.cluster is not None:
        yield name, stream.cluster, replicas
    for consumer in stream.consumer_detail:
        if consumer.cluster is not None:
            own = consumer.config.num_replicas if consumer.config else 0
            yield f"{name} > {consumer.name}", consumer.cluster, own or replicas
