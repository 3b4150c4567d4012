"""Leaders and members of raft groups: stepping down, removing peers."""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter

from jsctl.api.cluster import ClusterInfo
from jsctl.api.errors import ApiError
from jsctl.api.times import SECOND_NS
from jsctl.dashboard.actions.plans import Effect, Plan, Target, Tier, words
from jsctl.dashboard.connection.link import Link
from jsctl.dashboard.model.snapshot import (
    Consumer,
    Level,
    Meta,
    Peer,
    PeerState,
    Server,
    Snapshot,
    Stream,
)
from jsctl.errors import JsctlError, Unreachable
from jsctl.render.humanize import counted, number, size

LOOK_S = 0.025
LOOK_NS = SECOND_NS // 2
ELECTION_S = 10.0
REMOVAL_S = 10.0
NOT_COMING_BACK = (
    "This is for servers that will not come back. For maintenance just shut the server down: "
    "its replicas catch up on return."
)
Look = Callable[[], Awaitable[str]]


async def new_leader(look: Look, old: str) -> tuple[str, float]:
    """Waits until somebody else leads; who, and after how many milliseconds.

    Raises Unreachable when nobody does in time.
    """
    started = perf_counter()
    while perf_counter() - started < ELECTION_S:
        try:
            leader = await look()
        except (JsctlError, ApiError):
            leader = ""
        if leader and leader != old:
            return leader, (perf_counter() - started) * 1000
        await asyncio.sleep(LOOK_S)
    raise Unreachable(f"nobody else leads after {ELECTION_S:.0f} s")


def _next(peers: tuple[Peer, ...]) -> str:
    fit = [peer.name for peer in peers if peer.state is PeerState.CURRENT]
    return " or ".join(fit) or "nobody: no other replica is in sync"


def plan_step_down(target: Target, snapshot: Snapshot) -> Plan:
    """Another leader, please."""
    if isinstance(target, Server | Meta):
        return _plan_meta_step_down(snapshot)
    what = "stream" if isinstance(target, Stream) else "consumer"

    async def run(link: Link, _choice: str) -> str:
        manager = link.manager
        quick = manager.with_timeout(LOOK_NS)

        async def look() -> str:
            info: ClusterInfo | None
            if isinstance(target, Stream):
                info = (await quick.stream_info(target.name)).cluster
            else:
                info = (await quick.consumer_info(target.stream, target.name)).cluster
            return info.leader if info else ""

        if isinstance(target, Stream):
            await manager.step_down_stream(target.name)
        else:
            await manager.step_down_consumer(target.stream, target.name)
        leader, took_ms = await new_leader(look, target.leader)
        return f"{leader} elected in {took_ms:.0f} ms"

    able = [peer for peer in target.peers if peer.state is PeerState.CURRENT]
    effects = (
        Effect("leader now", target.leader),
        Effect("next", _next(target.peers), "", Level.OK if able else Level.BAD),
        Effect("cost", "one election", "publishes wait that long"),
    )
    return Plan(
        title=f"Step down {what} leader",
        tier=Tier.YES_NO,
        headline=f"Ask {target.leader} to hand over {target.name}",
        button="Step down",
        run=run,
        command=lambda _choice: step_down_command(target),
        effects=lambda _choice: effects,
        warning="" if able else "Without another replica in sync there will be no leader.",
    )


def _plan_meta_step_down(snapshot: Snapshot) -> Plan:
    meta = snapshot.meta

    async def run(link: Link, _choice: str) -> str:
        manager = link.system_manager()
        await manager.step_down_meta()
        leader, took_ms = await new_leader(lambda: _meta_leader(link, meta.leader), meta.leader)
        return f"{leader} elected in {took_ms:.0f} ms"

    effects = (
        Effect("leader now", meta.leader, f"term {meta.term}"),
        Effect("next", _next(meta.peers)),
        Effect("cost", "one election", "streams go on; creating and changing waits"),
    )
    return Plan(
        title="Step down meta leader",
        tier=Tier.YES_NO,
        headline=f"Ask {meta.leader} to hand over the meta group",
        button="Step down",
        run=run,
        command=lambda _choice: words("server", "cluster", "step-down", "-f"),
        effects=lambda _choice: effects,
    )


async def _meta_leader(link: Link, old: str) -> str:
    """The leader that some server other than the old one names, or says to be."""
    for told in await link.ask_servers("STATSZ"):
        found = told.data.get("jetstream")
        meta = found.get("meta") if isinstance(found, dict) else None
        leader = meta.get("leader") if isinstance(meta, dict) else None
        if isinstance(leader, str) and leader == told.name and leader != old:
            return leader
    return ""


def step_down_command(target: Target) -> str:
    """The command line of it."""
    if isinstance(target, Stream):
        return words("stream", "cluster", "step-down", target.name)
    if isinstance(target, Consumer):
        return words("consumer", "cluster", "step-down", target.stream, target.name)
    return words("server", "cluster", "step-down", "-f")


def plan_peer_remove(target: Target, snapshot: Snapshot) -> Plan:
    """Move a stream off a server, or give a server up."""
    if isinstance(target, Server):
        return _plan_server_remove(target, snapshot)
    assert isinstance(target, Stream)
    stream = target
    worst = {PeerState.OFFLINE: 0, PeerState.BEHIND: 1, PeerState.CURRENT: 2, PeerState.LEADER: 3}
    peers = sorted(stream.peers, key=lambda peer: (worst[peer.state], peer.name))
    members = {peer.name for peer in stream.peers}
    free = [one.name for one in snapshot.servers if one.up and one.name not in members]

    def effects(choice: str) -> tuple[Effect, ...]:
        gone = next((peer for peer in peers if peer.name == choice), peers[0])
        left = [
            peer for peer in peers if peer.name != choice and peer.state is not PeerState.OFFLINE
        ]
        need = len(peers) // 2 + 1
        level = Level.BAD if len(left) < need else Level.OK
        place = ", ".join(free) if free else "nowhere: no free server"
        return (
            Effect("replica", gone.state.value, f"{number(gone.lag)} behind" if gone.lag else ""),
            Effect("quorum", f"{len(left)} of {need} needed", "until the new one is there", level),
            Effect("moves to", place, "", Level.OK if free else Level.WARN),
            Effect("to copy", f"about {size(stream.bytes)}"),
        )

    async def run(link: Link, choice: str) -> str:
        await link.manager.remove_stream_peer(stream.name, choice)
        return await _removed(link, stream.name, choice)

    return Plan(
        title="Remove peer",
        tier=Tier.TYPED,
        headline=f"Move {stream.name} off a server",
        button="Remove peer",
        run=run,
        command=lambda choice: remove_command(stream, choice),
        effects=effects,
        typed=lambda choice: choice,
        choices=tuple(peer.name for peer in peers),
        warning=NOT_COMING_BACK,
        mark="bad",
    )


async def _removed(link: Link, stream: str, peer: str) -> str:
    quick = link.manager.with_timeout(LOOK_NS)
    started = perf_counter()
    while perf_counter() - started < REMOVAL_S:
        try:
            cluster = (await quick.stream_info(stream)).cluster
        except (JsctlError, ApiError):
            cluster = None
        if cluster is not None:
            names = [cluster.leader, *(one.name for one in cluster.replicas)]
            if cluster.leader and peer not in names:
                took_ms = (perf_counter() - started) * 1000
                return f"{peer} left after {took_ms:.0f} ms; now on {', '.join(names)}"
        await asyncio.sleep(LOOK_S)
    return f"removal of {peer} requested; the cluster goes on by itself"


def _plan_server_remove(server: Server, snapshot: Snapshot) -> Plan:
    meta = snapshot.meta
    hosted = [
        one for one in snapshot.streams if any(peer.name == server.name for peer in one.peers)
    ]
    alone = [one for one in hosted if len(one.peers) == 1]
    shared = [one for one in hosted if len(one.peers) > 1]
    after = meta.size - 1
    need = after // 2 + 1
    up = meta.up - (1 if server.up else 0)
    state = "online" if server.up else "offline"
    effects = (
        Effect(
            "cluster",
            f"{meta.size} → {counted(after, 'server')}",
            f"quorum {need}, spare {up - need}",
        ),
        Effect(
            "R>1 streams",
            f"{len(shared)} move to a new peer",
            f"about {size(sum(one.bytes for one in shared))} to copy",
        ),
        Effect(
            "R1 streams",
            f"{len(alone)} stranded",
            ", ".join(one.name for one in alone[:3]) or "nothing is lost",
            Level.BAD if alone else Level.OK,
        ),
    )

    async def run(link: Link, _choice: str) -> str:
        await link.system_manager().remove_server(server.name)
        return f"removed from the meta group; {counted(len(shared), 'stream')} to move"

    return Plan(
        title="Remove peer",
        tier=Tier.TYPED,
        headline=f"Remove {server.name} ({state}) from cluster {server.cluster}",
        button="Remove peer",
        run=run,
        command=lambda _choice: remove_command(server),
        effects=lambda _choice: effects,
        typed=lambda _choice: server.name,
        warning=NOT_COMING_BACK,
        mark="bad",
    )


def remove_command(target: Target, peer: str = "") -> str:
    """The command line of it."""
    if isinstance(target, Stream):
        fallback = target.peers[-1].name if target.peers else ""
        return words("stream", "cluster", "peer-remove", target.name, peer or fallback, "-f")
    return words("server", "cluster", "peer-remove", getattr(target, "name", ""), "-f")
