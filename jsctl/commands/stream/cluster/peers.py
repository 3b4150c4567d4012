"""`stream cluster peer-remove`, `evacuate` and `cancel-move`."""

import asyncio
from typing import TYPE_CHECKING

from jsctl.api.cluster import ClusterInfo
from jsctl.commands.stream.show import show_stream
from jsctl.commands.toolkit.assets.catching_up import wait_for_replicas
from jsctl.commands.toolkit.assets.moving import LOOK_NS, POLL_SECONDS, LookUp, evacuate
from jsctl.commands.toolkit.assets.picking import stream_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Aborted, Conflict

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

CANCEL_SECONDS = 10.0


async def peer_remove(call: Call) -> None:
    """Moves a stream off a server."""
    call.output.note(
        'WARNING: "jsctl stream cluster evacuate" is safer: a peer stays until others have it all\n'
    )
    async with call.manager() as manager:
        found = await stream_of(call, manager)
        name, cluster = found.config.name, found.cluster
        if cluster is None or not cluster.name or not cluster.replicas:
            raise Conflict(f'stream "{name}" is not clustered')
        peers = [cluster.leader, *(peer.name for peer in cluster.replicas)]
        peer = call.text("peer") or call.prompts.choose("Select a Peer", [p for p in peers if p])
        call.output.log(f'Removing peer "{peer}"')
        await manager.remove_stream_peer(name, peer)
        call.output.log(f'Requested removal of peer "{peer}"')
        look, replicas = _looks_at(manager, name), found.config.num_replicas
        await wait_for_replicas(call, look, replicas, f'stream "{name}"', gone=peer)


async def evacuate_peer(call: Call) -> None:
    """Another server takes over from one that is still there."""
    async with call.manager() as manager:
        found = await stream_of(call, manager)
        name = found.config.name
        look = _looks_at(manager, name)

        async def request(peer: str) -> None:
            await manager.evacuate_stream(name, peer)

        await evacuate(call, found.cluster, "stream", name, request, look)
        await wait_for_replicas(call, look, found.config.num_replicas, f'stream "{name}"')


def _looks_at(manager: "Manager", name: str) -> LookUp:
    quick = manager.with_timeout(LOOK_NS)

    async def look() -> ClusterInfo | None:
        return (await quick.stream_info(name)).cluster

    return look


async def cancel_move(call: Call) -> None:
    """A stream that is on its way stays where it was."""
    loop = asyncio.get_running_loop()
    async with call.manager() as manager:
        found = await stream_of(call, manager)
        name = found.config.name
        if not call.flag("force"):
            if found.cluster is None:
                raise Conflict("stream is not clustered")
            if found.cluster.desired is None:
                raise Conflict("stream is not busy moving")
            if not call.prompts.confirm(f'Really cancel move of "{name}"'):
                raise Aborted("canceling request")
        await manager.cancel_stream_move(name)
        if not call.as_json:
            call.output.print(f'Canceled move of "{name}"')
        deadline = loop.time() + CANCEL_SECONDS
        while (cluster := (await manager.stream_info(name)).cluster) and cluster.desired:
            if loop.time() > deadline:
                raise Conflict(
                    "Canceling move did not complete, review status using 'jsctl stream info'"
                )
            await asyncio.sleep(POLL_SECONDS)
        found = await manager.stream_info(name)
    show_stream(call, found)
