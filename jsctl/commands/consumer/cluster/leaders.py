"""`consumer cluster step-down` and `balance`."""

from typing import TYPE_CHECKING

from jsctl.api.cluster import ClusterInfo
from jsctl.commands.consumer.query import chosen
from jsctl.commands.consumer.show import show_consumer
from jsctl.commands.toolkit.assets.catching_up import wait_for_replicas
from jsctl.commands.toolkit.assets.leaders import (
    LOOK_NS,
    LookUp,
    await_election,
    balance,
    clustered_group,
)
from jsctl.commands.toolkit.assets.picking import TO_LOOK_IN, consumer_of, stream_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.render.humanize import counted

if TYPE_CHECKING:
    from jsctl.client.manager import Manager


async def step_down(call: Call) -> None:
    """A new leader for a consumer."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        stream, name = found.stream_name, found.name
        cluster = clustered_group(
            call, found.cluster, f'consumer "{stream}" > "{name}"', "consumer"
        )
        peers = len(cluster.replicas) + 1
        call.output.log(
            f'Requesting leader step down of "{cluster.leader}" in a {peers} peer RAFT group'
        )
        await manager.step_down_consumer(stream, name, call.text("preferred"))

        look = _consumer_look(manager, stream, name)
        await await_election(call, look, cluster.leader, "consumer", "Consumer")
        await wait_for_replicas(call, look, peers, f'consumer "{stream} > {name}"')
        info = await manager.consumer_info(stream, name)
    if not call.as_json:
        call.output.print()
    show_consumer(call, info)


async def balance_leaders(call: Call) -> None:
    """Spreads the leaders of a stream's clustered consumers over their peers."""
    async with call.manager() as manager:
        stream = (await stream_of(call, manager, why=TO_LOOK_IN)).config.name
        infos = chosen(call, (await manager.consumers(stream)).items)
        groups = {info.name: info.cluster for info in infos}

        async def elect(name: str, old: str, preferred: str) -> None:
            await manager.step_down_consumer(stream, name, preferred)
            look = _consumer_look(manager, stream, name)
            await await_election(call, look, old, name, "Consumer")

        def ungrouped(name: str) -> str:
            return (
                f'failed to balance consumers on {stream} - consumer "{name}" has no cluster info'
            )

        moved = await balance(call, groups, elect, "consumer", ungrouped)
    if moved is None:
        call.output.tell(f"No consumers on {stream}", {"stream": stream, "balanced": 0})
    else:
        text = f"Balanced {counted(moved, 'consumer')} on {stream}"
        call.output.tell(text, {"stream": stream, "balanced": moved})


def _consumer_look(manager: "Manager", stream: str, name: str) -> LookUp:
    """Asks for a consumer's group; a leaderless one is silent, so not for long."""
    quick = manager.with_timeout(LOOK_NS)

    async def look() -> ClusterInfo | None:
        return (await quick.consumer_info(stream, name)).cluster

    return look
