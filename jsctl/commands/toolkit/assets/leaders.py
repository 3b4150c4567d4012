"""Leaders of streams and consumers: elections that are waited for, and an even spread."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from jsctl.api.cluster import ClusterInfo
from jsctl.api.errors import ApiError
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, JsctlError
from jsctl.render.humanize import counted

POLL_SECONDS = 0.05
NOTE_SECONDS = 0.5
STEP_DOWN_SECONDS = 5.0
"""So long a new leader is waited for; looked at every POLL_SECONDS."""

LOOK_NS = 500_000_000
"""How long one look may take."""

LookUp = Callable[[], Awaitable[ClusterInfo | None]]


UNKNOWN = "<unknown>"
"""In the place of a leader that nobody knows."""


def clustered_group(
    call: Call, cluster: ClusterInfo | None, what: str, short: str = ""
) -> ClusterInfo:
    """The group, if it has peers, and a leader or `--force`; raises Conflict."""
    if cluster is None or not cluster.name or not cluster.replicas:
        raise Conflict(f"{what} is not clustered")
    if cluster.leader:
        return cluster
    if not call.flag("force"):
        raise Conflict(f"{short or what} has no current leader")
    return replace(cluster, leader=UNKNOWN)


async def await_election(call: Call, look: LookUp, old: str, what: str, kind: str) -> None:
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


async def balance(
    call: Call,
    groups: dict[str, ClusterInfo | None],
    step_down: Callable[[str, str, str], Awaitable[None]],
    kind: str,
    ungrouped: Callable[[str], str],
) -> int | None:
    """Moves leaders from the fullest servers to the emptiest; None when there are no groups.

    Those with one replica stay, but are as much work for their server as others. Raises Conflict
    where one is in no cluster, in the words that `ungrouped` has for its name.
    """
    for name, found in groups.items():
        if found is None or not found.name:
            raise Conflict(ungrouped(name))
    clustered = {
        name: cluster for name, cluster in groups.items() if cluster is not None and cluster.leader
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
        call.output.log("")


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
