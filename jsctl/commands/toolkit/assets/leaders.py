"""Leaders and peers of streams and consumers: step-down, peer-remove, balance."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from jsctl.api.cluster import ClusterInfo
from jsctl.api.errors import ApiError
from jsctl.commands.consumer.show import show_consumer
from jsctl.commands.stream.show import show_stream
from jsctl.commands.toolkit.assets.picking import consumer_of, stream_of
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError, UsageError
from jsctl.render.humanize import counted

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

POLL_SECONDS = 0.05
NOTE_SECONDS = 0.5
STEP_DOWN_SECONDS = 5.0
"""So long a new leader is waited for; looked at every POLL_SECONDS."""

LOOK_NS = 500_000_000
"""How long one look may take."""

LookUp = Callable[[], Awaitable[ClusterInfo | None]]


async def step_down_stream(call: Call) -> None:
    """A new leader for a stream."""
    async with call.manager() as manager:
        found = await stream_of(call, manager)
        name = found.config.name
        cluster = _checked(found.cluster, f'stream "{name}"')
        peers = len(cluster.replicas) + 1
        call.output.log(
            f'Requesting leader step down of "{cluster.leader}" for stream "{name}" '
            f"in a {peers} peer cluster group"
        )
        await manager.step_down_stream(name, call.text("preferred"))

        look = _stream_look(manager, name)
        await _await_election(call, look, cluster.leader, f'stream "{name}"', "Stream")
        info = await manager.stream_info(name)
    _blank(call)
    show_stream(call, info)


async def step_down_consumer(call: Call) -> None:
    """A new leader for a consumer."""
    async with call.manager() as manager:
        found = await consumer_of(call, manager)
        stream, name = found.stream_name, found.name
        cluster = _checked(found.cluster, f'consumer "{stream}" > "{name}"', "consumer")
        peers = len(cluster.replicas) + 1
        call.output.log(
            f'Requesting leader step down of "{cluster.leader}" in a {peers} peer RAFT group'
        )
        await manager.step_down_consumer(stream, name, call.text("preferred"))

        look = _consumer_look(manager, stream, name)
        await _await_election(call, look, cluster.leader, "consumer", "Consumer")
        info = await manager.consumer_info(stream, name)
    _blank(call)
    show_consumer(call, info)


def _stream_look(manager: "Manager", name: str) -> LookUp:
    """Asks for a stream's group; a leaderless one is silent, so not for long."""
    quick = manager.with_timeout(LOOK_NS)

    async def look() -> ClusterInfo | None:
        return (await quick.stream_info(name)).cluster

    return look


def _consumer_look(manager: "Manager", stream: str, name: str) -> LookUp:
    quick = manager.with_timeout(LOOK_NS)

    async def look() -> ClusterInfo | None:
        return (await quick.consumer_info(stream, name)).cluster

    return look


def _blank(call: Call) -> None:
    if not call.as_json:
        call.output.print()


def _checked(cluster: ClusterInfo | None, what: str, short: str = "") -> ClusterInfo:
    if cluster is None or not cluster.name or not cluster.replicas:
        raise Conflict(f"{what} is not clustered")
    if not cluster.leader:
        raise Conflict(f"{short or what} has no current leader")
    return cluster


async def _await_election(call: Call, look: LookUp, old: str, what: str, kind: str) -> None:
    """Waits until somebody else leads; says so, or raises when nobody does in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + STEP_DOWN_SECONDS
    next_note = loop.time() + NOTE_SECONDS
    while loop.time() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        note = ""
        try:
            cluster = await look()
            leader = cluster.leader if cluster else ""
            if leader and leader != old:
                call.output.log(f'New leader elected "{leader}"')
                return
            note = "" if leader else "No leader elected"
        except (ApiError, JsctlError) as error:
            note = f"Failed to retrieve {kind} State: {error}"
        if note and loop.time() >= next_note:
            next_note = loop.time() + NOTE_SECONDS
            call.output.log(note)
    raise Conflict(f"{what} did not elect a new leader in time")


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


async def balance_streams(call: Call) -> None:
    """Spreads the leaders of clustered streams over their peers."""
    async with call.manager() as manager:
        infos = (await manager.streams(call.text("subject"))).items
        groups = {info.config.name: info.cluster for info in infos}

        async def step_down(name: str, old: str, preferred: str) -> None:
            await manager.step_down_stream(name, preferred)
            await _await_election(call, _stream_look(manager, name), old, name, "Stream")

        moved = await _balance(call, groups, step_down, "stream")
    if moved is None:
        call.output.print("No Streams defined")
    else:
        call.output.print(f"Balanced {counted(moved, 'stream')}.")


async def balance_consumers(call: Call) -> None:
    """Spreads the leaders of a stream's clustered consumers over their peers."""
    async with call.manager() as manager:
        stream = (await stream_of(call, manager)).config.name
        infos = (await manager.consumers(stream)).items
        groups = {info.name: info.cluster for info in infos}

        async def step_down(name: str, old: str, preferred: str) -> None:
            await manager.step_down_consumer(stream, name, preferred)
            look = _consumer_look(manager, stream, name)
            await _await_election(call, look, old, name, "Consumer")

        moved = await _balance(call, groups, step_down, "consumer")
    if moved is None:
        call.output.print(f"No consumers on {stream}")
    else:
        call.output.print(f"Balanced {counted(moved, 'consumer')} on {stream}")


async def _balance(
    call: Call,
    groups: dict[str, ClusterInfo | None],
    step_down: Callable[[str, str, str], Awaitable[None]],
    kind: str,
) -> int | None:
    """Moves leaders from the fullest servers to the emptiest; None when there are no groups."""
    for name, found in groups.items():
        if found is None or not found.name:
            raise Conflict(f'failed to balance {kind}s: {kind} "{name}" has no cluster information')
    clustered = {
        name: cluster
        for name, cluster in groups.items()
        if cluster is not None and cluster.leader and cluster.replicas
    }
    if not clustered:
        return 0 if groups else None
    _tell_spread(call, clustered)
    moves = plan_moves(clustered)
    for name, source, target in moves:
        call.output.log(
            f"Requesting leader '{source}' step down for {kind} '{name}'. "
            f"New preferred leader is {target}."
        )
        await step_down(name, source, target)
    return len(moves)


def _tell_spread(call: Call, groups: dict[str, ClusterInfo]) -> None:
    """Who leads how many, cluster by cluster, and how far that is from an even spread."""
    for name in sorted({cluster.name for cluster in groups.values()}):
        counts = leader_counts([one for one in groups.values() if one.name == name])
        fair = -(-sum(counts.values()) // len(counts))
        call.output.log(f"Found cluster {name} with a balanced distribution of {fair}")
        call.output.log(f"Cluster {name} has {counted(len(counts), 'available peer')}")
        for server, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            call.output.log(
                f"Nats server '{server}' is the lead of {counted(count, 'entity', 'entities')} "
                f"with a offset of {count - fair}"
            )


def leader_counts(groups: Iterable[ClusterInfo]) -> dict[str, int]:
    """How many groups each server leads, also those that lead none."""
    counts: dict[str, int] = {}
    for cluster in groups:
        for server in (cluster.leader, *(peer.name for peer in cluster.replicas)):
            counts.setdefault(server, 0)
        counts[cluster.leader] += 1
    return counts


def plan_moves(groups: dict[str, ClusterInfo]) -> list[tuple[str, str, str]]:
    """Which groups to move, from and to; every move makes the spread strictly better."""
    counts = leader_counts(groups.values())
    moves: list[tuple[str, str, str]] = []
    for name in sorted(groups, key=lambda one: (-counts[groups[one].leader], one)):
        cluster = groups[name]
        able = [peer.name for peer in cluster.replicas if peer.current and not peer.offline]
        target = min(able, key=lambda server: (counts[server], server), default="")
        if target and counts[target] + 1 < counts[cluster.leader]:
            moves.append((name, cluster.leader, target))
            counts[target] += 1
            counts[cluster.leader] -= 1
    return moves
