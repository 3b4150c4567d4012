"""Streams and consumers that leave a server: asked for, and followed until they have."""

import asyncio
from collections.abc import Awaitable, Callable

from jsctl.api.cluster import ClusterInfo
from jsctl.api.errors import ApiError
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError

MOVE_SECONDS = 60.0
POLL_SECONDS = 0.25
LOOK_NS = 2_000_000_000

LookUp = Callable[[], Awaitable[ClusterInfo | None]]


def peer_names(cluster: ClusterInfo) -> list[str]:
    """The leader, then the others."""
    return [name for name in (cluster.leader, *(peer.name for peer in cluster.replicas)) if name]


async def evacuate(
    call: Call,
    cluster: ClusterInfo | None,
    kind: str,
    name: str,
    request: Callable[[str], Awaitable[None]],
    look: LookUp,
) -> None:
    """Takes a stream or consumer off a server; returns when its peers are others.

    Raises Conflict when that takes too long, or there is nothing to choose from.
    """
    if cluster is None or not cluster.name:
        raise Conflict(f'{kind} "{name}" is not clustered')
    peer = call.text("peer") or call.prompts.choose("Select a Peer", peer_names(cluster))
    call.output.log(f'Evacuating {kind} from peer "{peer}"')
    if not call.confirm(f'Really evacuate "{peer}"'):
        return
    await request(peer)
    call.output.log(f'Requested evacuation of peer "{peer}"')
    call.output.log("Waiting up to 1 minute for peer state to change")
    peers = await _gone(look, peer)
    if peers is None:
        raise Conflict(
            f"{kind} failed to evacuate \"{peer}\", review {kind} state using 'jsctl {kind} info'"
        )
    if call.as_json:
        call.output.json({"peers": peers})
    else:
        call.output.print(f"\n{kind.capitalize()} peers are now: {', '.join(peers)}")


async def _gone(look: LookUp, peer: str) -> list[str] | None:
    """The peers once that one is not among them; None if it stays."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + MOVE_SECONDS
    while loop.time() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        try:
            cluster = await look()
        except (ApiError, JsctlError):
            continue
        if cluster is not None and cluster.leader and peer not in peer_names(cluster):
            return peer_names(cluster)
    return None
