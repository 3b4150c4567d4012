"""`stream cluster step-down` and `balance`."""

from typing import TYPE_CHECKING

from jsctl.api.cluster import ClusterInfo
from jsctl.commands.stream.query import chosen
from jsctl.commands.stream.show import show_stream
from jsctl.commands.toolkit.assets.catching_up import wait_for_replicas
from jsctl.commands.toolkit.assets.leaders import (
    LOOK_NS,
    LookUp,
    await_election,
    balance,
    clustered_group,
)
from jsctl.commands.toolkit.assets.picking import stream_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.humanize import counted

if TYPE_CHECKING:
    from jsctl.client.manager import Manager


async def step_down(call: Call) -> None:
    """A new leader for a stream."""
    async with call.manager() as manager:
        found = await stream_of(call, manager)
        name = found.config.name
        cluster = clustered_group(call, found.cluster, f'stream "{name}"')
        peers = len(cluster.replicas) + 1
        call.output.log(
            f'Requesting leader step down of "{cluster.leader}" for stream "{name}" '
            f"in a {peers} peer cluster group"
        )
        await manager.step_down_stream(name, call.text("preferred"))

        look = _stream_look(manager, name)
        await await_election(call, look, cluster.leader, f'stream "{name}"', "Stream")
        await wait_for_replicas(call, look, peers, f'stream "{name}"')
        info = await manager.stream_info(name)
    if not call.as_json:
        call.output.print()
    show_stream(call, info)


async def balance_leaders(call: Call) -> None:
    """Spreads the leaders of clustered streams over their peers."""
    async with call.manager() as manager:
        infos = chosen(call, (await manager.streams()).items)
        groups = {info.config.name: info.cluster for info in infos}

        async def elect(name: str, old: str, preferred: str) -> None:
            await manager.step_down_stream(name, preferred)
            await await_election(call, _stream_look(manager, name), old, name, "Stream")

        moved = await balance(call, groups, elect, "stream", _ungrouped)
    if moved is not None:
        call.output.tell(f"Balanced {counted(moved, 'stream')}.", {"balanced": moved})


def _ungrouped(name: str) -> str:
    return f'failed to balance streams: stream "{name}" has no cluster information'


def _stream_look(manager: "Manager", name: str) -> LookUp:
    """Asks for a stream's group; a leaderless one is silent, so not for long."""
    quick = manager.with_timeout(LOOK_NS)

    async def look() -> ClusterInfo | None:
        return (await quick.stream_info(name)).cluster

    return look
