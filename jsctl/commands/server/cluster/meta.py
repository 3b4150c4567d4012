"""`server cluster step-down` and `peer-remove`: the group that administers JetStream."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from jsctl.api.cluster import ClusterInfo, Placement
from jsctl.api.monitoring.jsz import Jsz, MetaClusterInfo
from jsctl.api.server import EventFilterOptions
from jsctl.api.times import SECOND_NS
from jsctl.client.facts import known_servers
from jsctl.client.manager import Manager
from jsctl.client.system import NatsSystem
from jsctl.commands.server.cluster.settling import wait_until_settled
from jsctl.commands.toolkit.assets.catching_up import wait_for_replicas
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.errors import Conflict, NotFound
from jsctl.render.humanize import duration
from jsctl.render.reports.server.jetstream import meta_groups

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

POLL_SECONDS = 0.05
LOOK_NS = 500_000_000
"""How long one look at the meta group may take."""
ELECTION_SECONDS = 5.0
EVACUATION_NS = 300 * SECOND_NS
EVACUATION_POLL_SECONDS = 0.5
REMOVAL_WARNING = """\
Removing peers is intended for peers that will not come back, generally for peers that will remain
in the cluster removing the peer is not needed - simply do your maintenance with the peer shut down.

To return a removed peer to the cluster you have to restart the entire cluster or super-cluster
first. If the peer was online when it was removed you need to restart the removed peer last.

R1 streams on this peer will migrate to other peers but data will be lost, even if the
peer returns later.

R1 consumers on this peer will lose their state and revert to starting configuring
which may lead to duplicate deliveries.
"""


async def step_down(call: Call) -> None:
    """A new meta leader."""
    placement = Placement(
        cluster=call.text("cluster"), tags=call.words("tags"), preferred=call.text("host")
    )
    async with call.client() as client:
        meta = await _meta_leader(client, call)
        if placement.preferred or placement.tags:
            call.output.note(
                "WARNING: Using placement tags or node name required NATS Server 2.11 or newer\n"
            )
        call.output.log(
            f'Requesting leader step down of "{meta.leader}" in a {meta.cluster_size} '
            "peer RAFT group"
        )
        manager = Manager(client, call.settings, call.output.log)
        await manager.step_down_meta(placement if placement != Placement() else None)
        leader = await _new_leader(client, call, meta.leader)
        call.output.log(f'New leader elected "{leader}"')

        async def look() -> ClusterInfo:
            found = await _quick_look(client, call)
            return ClusterInfo(name=meta.name, leader=found.leader, replicas=found.replicas)

        await wait_for_replicas(call, look, meta.cluster_size, "the meta group")
    if call.as_data:
        call.output.json({"previous_leader": meta.leader, "leader": leader})


async def peer_remove(call: Call) -> None:
    """Takes a server that is gone out of the meta group."""
    name = call.text("name")
    async with call.client() as client:
        meta = await _meta_leader(client, call)
        found = [peer for peer in meta.replicas if name in (peer.name, peer.peer)]
        if not found:
            raise NotFound(f"did not find a replica named {name}")
        peer = found[0]
        if not call.flag("force"):
            call.output.note(REMOVAL_WARNING)
            state = "offline" if peer.offline else "online"
            if not call.confirm(f"Really remove {state} peer {peer.name} with id {peer.peer}"):
                call.output.print("Removal canceled")
                return
        await Manager(client, call.settings).remove_server(peer_id=peer.peer)
        await wait_until_settled(client, call, peer.name)
    if call.as_data:
        call.output.json({"removed": peer.name, "peer": peer.peer})


async def evacuate(call: Call) -> None:
    """Moves everything that JetStream has on a server to others, and follows it."""
    loop = asyncio.get_running_loop()
    async with call.client() as client:
        meta = await _meta_leader(client, call)
        peers = [meta.leader, *(peer.name for peer in meta.replicas)]
        name = call.text("peer") or call.prompts.choose("Select a Peer", peers)
        call.output.log(f'Evacuating assets from peer "{name}"')
        if not call.confirm(f'Really evacuate "{name}"'):
            return
        await Manager(client, call.settings).evacuate_server(name)
        patience = call.duration("wait", EVACUATION_NS)
        shown = duration(patience) if call.given("wait") else "5 minutes"
        call.output.log(
            f'Requested evacuation of peer "{name}", watching progress for up to {shown}'
        )
        deadline = loop.time() + patience / SECOND_NS
        told: tuple[int, int] | None = None
        while (left := await _assets_on(client, call, name)) != (0, 0):
            if loop.time() > deadline:
                raise Conflict(f'server "{name}" still has streams or consumers')
            if left is not None and left != told and not call.as_data:
                call.output.print(f'Server "{name}": Streams: {left[0]} Consumers: {left[1]}')
                told = left
            await asyncio.sleep(EVACUATION_POLL_SECONDS)
        await wait_until_settled(client, call, name)
    if call.as_data:
        call.output.json({"evacuated": name})
    else:
        call.output.print(f'Server "{name}": Streams: 0 Consumers: 0')


async def _assets_on(client: "NatsClient", call: Call, name: str) -> tuple[int, int] | None:
    """Streams and consumers on a server; None when it does not say."""
    system = NatsSystem(client, replace(call.settings, timeout_ns=LOOK_NS))
    where = EventFilterOptions(server_name=name, exact_match=True)
    replies = await system.gather("JSZ", where=where, expected=1)
    if not replies or replies[0].error is not None:
        return None
    found = replies[0].as_(Jsz)
    return found.streams, found.consumers


def _domain(call: Call) -> EventFilterOptions:
    """The servers of a domain, where one is given: others have a meta group of their own."""
    return EventFilterOptions(domain=call.settings.connection.jetstream_domain)


async def _meta_leader(client: "NatsClient", call: Call) -> MetaClusterInfo:
    """The meta group as its only leader sees it; raises Conflict when that is not clear."""
    system = NatsSystem(client, call.settings)
    where = _domain(call)
    wanted = 0 if where.domain else await known_servers(system)
    replies = await system.gather("JSZ", {"raft": True}, where=where, expected=wanted)
    if not replies and where.domain:
        raise NotFound(f'no servers responded in domain "{where.domain}"')
    groups = meta_groups([(reply.server, reply.as_(Jsz)) for reply in replies])
    if not groups:
        raise Conflict(
            "did not receive a response from the meta leader, ensure the account used "
            "has system privileges and appropriate permissions"
        )
    if len(groups) > 1:
        raise Conflict(
            f"found {len(groups)} JetStream meta cluster leaders, "
            "unable to determine which cluster to step down"
        )
    return groups[0]


async def _new_leader(client: "NatsClient", call: Call, old: str) -> str:
    """Waits until another server leads; raises Conflict when none does in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + ELECTION_SECONDS
    while loop.time() < deadline:
        meta = await _quick_look(client, call)
        if meta.leader not in ("", old):
            return meta.leader
        await asyncio.sleep(POLL_SECONDS)
    raise Conflict("the meta group did not elect a new leader in time")


async def _quick_look(client: "NatsClient", call: Call) -> MetaClusterInfo:
    """The meta group as its leader sees it, without the patience for servers that are gone; empty
    where none says so."""
    system = NatsSystem(client, replace(call.settings, timeout_ns=LOOK_NS))
    options = {"leader_only": True}
    replies = await system.gather("JSZ", options, where=_domain(call), expected=1)
    groups = meta_groups([(reply.server, reply.as_(Jsz)) for reply in replies])
    return groups[0] if groups else MetaClusterInfo()
