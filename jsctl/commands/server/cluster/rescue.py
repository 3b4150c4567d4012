"""`server cluster rescue`: what is left of a cluster decides without a majority, for a while."""

import asyncio

from jsctl.api.monitoring.jsz import Jsz, MetaClusterInfo
from jsctl.api.server import EventFilterOptions
from jsctl.client.manager import Manager
from jsctl.client.system import NatsSystem
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.invocation.naming import confirm_by_name
from jsctl.commands.toolkit.monitoring.asking import servers_if_told
from jsctl.errors import Conflict, JsctlError
from jsctl.render.reports.server.jetstream import STATE_COLUMNS, Replies, state_rows

POLL_SECONDS = 0.1
WARNING = """\
Rescuing a cluster is for servers that are lost for good, when those that are left are no majority:
then nothing can be created, changed or removed. {here} of {size} servers answer: {names}.

For some minutes {here} of them will be enough. What only the others knew is lost: streams and
consumers that were created or changed last may be missing, or be as they were before. Should the
others come back meanwhile, the two sides may decide different things: keep them shut down.

Afterwards remove the servers that are lost, so that those that are left are a majority again:
  jsctl server cluster peer-remove NAME
"""


async def rescue(call: Call) -> None:
    """Lowers the quorum of the meta group to the servers that are there."""
    async with call.client() as client:
        system = NatsSystem(client, call.settings)
        expected = await servers_if_told(system)
        replies = await system.gather("JSZ", {"raft": True}, expected=expected)
        domain = call.settings.connection.jetstream_domain
        seen = [(reply.server, reply.as_(Jsz)) for reply in replies if reply.error is None]
        states = [(server, jsz) for server, jsz in seen if server.domain == domain]
        found = [(server.name, jsz.meta_cluster) for server, jsz in states]
        here = sorted((name, meta) for name, meta in found if meta is not None and meta.name)
        if not here:
            raise Conflict(_why_none(domain, {server.domain for server, _ in seen}))
        _show_state(call, states)
        if led := next((meta.leader for _, meta in here if meta.leader), ""):
            call.output.print("Cluster is healthy with a leader, no rescue needed")
            if call.as_data:
                call.output.json({"leader": led})
            return
        names, meta = [name for name, _ in here], here[0][1]
        _warn(call, names, meta)
        if not confirm_by_name(call, "cluster", meta.name):
            call.output.print("Rescue canceled")
            return
        answers = await Manager(client, call.settings).rescue_meta(len(names), len(names))
        refused = [
            f"{one.server}: {one.head.error.description}" for one in answers if one.head.error
        ]
        if len(refused) == len(answers):
            raise JsctlError("; ".join(refused) or "no server answered the rescue request")
        done = sorted(one.server for one in answers if not one.head.error)
        leader = await _led(call, system, len(names))
    call.output.log(f'Quorum lowered to {len(names)} on {", ".join(done)}, "{leader}" leads')
    if call.as_data:
        told = {"quorum": len(names), "servers": done, "refused": refused, "leader": leader}
        call.output.json(told)


def _why_none(domain: str, there: set[str]) -> str:
    """Why no server of a domain (empty: of none) has a meta group, with the domains there are."""
    if not there or there == {domain}:
        return "no server with JetStream answered, ensure a system account is used"
    if there == {""}:
        return (
            "servers are not in a JetStream domain, remove the domain set using --js-domain "
            "or the context"
        )
    names = ", ".join(one or "no domain" for one in sorted(there))
    if len(there) == 1:
        return f"servers are in domain {names}, specify it using --js-domain"
    return f"multiple domains found, pick one from {names}"


def _show_state(call: Call, replies: Replies) -> None:
    """How many peers each server knows, and how many of them have to agree."""
    if not call.as_data:
        call.output.table(state_rows(replies), STATE_COLUMNS, "Current Cluster State")
        call.output.print()


async def _led(call: Call, system: NatsSystem, servers: int) -> str:
    """Waits until somebody leads; raises Conflict when nobody does in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + call.settings.timeout
    while loop.time() < deadline:
        where = EventFilterOptions(domain=call.settings.connection.jetstream_domain)
        replies = await system.gather("JSZ", {"raft": True}, where=where, expected=servers)
        for reply in replies:
            meta = reply.as_(Jsz).meta_cluster
            if meta is None and servers == 1:
                return reply.server.name  # It stands alone, and nothing is wrong with it any more.
            if meta is not None and meta.leader:
                return meta.leader
        await asyncio.sleep(POLL_SECONDS)
    raise Conflict("the quorum is lowered, and nobody leads yet")


def _warn(call: Call, names: list[str], meta: MetaClusterInfo) -> None:
    size = max(meta.cluster_size, len(names))
    call.output.note(WARNING.format(here=len(names), size=size, names=", ".join(names)))
