"""`stream cluster peer-remove`."""

from jsctl.commands.toolkit.assets.picking import stream_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, UsageError


async def peer_remove(call: Call) -> None:
    """Moves a stream off a server."""
    async with call.manager() as manager:
        found = await stream_of(call, manager)
        name, cluster = found.config.name, found.cluster
        if cluster is None or not cluster.name:
            raise Conflict(f'stream "{name}" is not clustered')
        if not cluster.replicas and not call.flag("force"):
            raise UsageError(
                "removing the only peer on a stream will result in data loss, use --force to force"
            )
        peers = [cluster.leader, *(peer.name for peer in cluster.replicas)]
        peer = call.text("peer") or call.prompts.choose("Select a Peer", [p for p in peers if p])
        call.output.log(f'Removing peer "{peer}"')
        await manager.remove_stream_peer(name, peer)
        call.output.log(f'Requested removal of peer "{peer}"')
