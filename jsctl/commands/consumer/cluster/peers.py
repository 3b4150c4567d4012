"""`consumer cluster evacuate`."""

from jsctl.api.cluster import ClusterInfo
from jsctl.commands.toolkit.assets.catching_up import wait_for_replicas
from jsctl.commands.toolkit.assets.moving import LOOK_NS, evacuate, peer_names
from jsctl.commands.toolkit.assets.picking import consumer_of
from jsctl.commands.toolkit.invocation.call import Call


async def evacuate_peer(call: Call) -> None:
    """Another server of the stream takes over from one that is still there."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        stream, name = found.stream_name, found.name
        quick = manager.with_timeout(LOOK_NS)

        async def request(peer: str) -> None:
            await manager.evacuate_consumer(stream, name, peer)

        async def look() -> ClusterInfo | None:
            return (await quick.consumer_info(stream, name)).cluster

        await evacuate(call, found.cluster, "consumer", name, request, look)
        replicas = len(peer_names(found.cluster)) if found.cluster else 1
        await wait_for_replicas(call, look, replicas, f'consumer "{stream} > {name}"')
