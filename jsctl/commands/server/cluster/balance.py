"""`server cluster balance`: clients are asked to reconnect until servers have as many each."""

import asyncio
from collections.abc import Sequence
from time import time_ns

from jsctl.api.codec import encode
from jsctl.api.monitoring.connz import ConnInfo, Connz, ConnzOptions
from jsctl.api.server import EventFilterOptions, ServerInfo
from jsctl.api.times import SECOND_NS, format_duration, parse_time
from jsctl.client.facts import known_servers
from jsctl.client.system import NatsSystem, NoSystemRights
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.asking import ask
from jsctl.dataclass import dataclass
from jsctl.errors import Aborted, NotFound, UsageError
from jsctl.render.humanize import counted

PAGE = 1024
PAGES_MAX = 10_000
WARNING = """\
Re-balancing will disconnect clients without knowing their current state.

The clients will trigger normal reconnect behavior. This can interrupt in-flight work.
"""


@dataclass(frozen=True, slots=True)
class Held:
    """A connection and who holds it."""

    server: ServerInfo
    info: ConnInfo


async def balance(call: Call) -> None:
    """Kicks clients of the fullest servers, spread over a time."""
    if call.text("subject") and not call.text("account"):
        raise UsageError("can only filter by subject if account is given")
    async with call.client() as client:
        system = NatsSystem(client, call.settings)
        await known_servers(system)  # An account is told of its own connections, and ends none.
        servers, held = await _connections(call, system)
        clusters = {server.cluster for server in servers if server.cluster}
        if not call.flag("force"):
            call.output.note(WARNING)
            if len(clusters) > 1:
                call.output.note(
                    f"WARNING: Balancing {len(clusters)} clusters, pass --cluster to balance "
                    "a specific cluster"
                )
            if not call.prompts.confirm("Really re-balance connections", prefix=""):
                raise Aborted("balance canceled")
        own = client.client_id, client._server_info.get("server_id")
        chosen = [one for one in _matching(call, held) if (one.info.cid, one.server.id) != own]
        surplus = over_fair_share(chosen, len(servers))
        _tell(call, chosen, len(servers), len(surplus))
        balanced = await _kick(call, system, surplus)
    if call.as_data:
        call.output.json({"balanced": balanced})
    else:
        call.output.print(f"\nBalanced {counted(balanced, 'connection')}")


async def _connections(call: Call, system: NatsSystem) -> tuple[list[ServerInfo], list[Held]]:
    where = EventFilterOptions(
        server_name=call.text("server-name"), cluster=call.text("cluster"), exact_match=True
    )
    servers: dict[str, ServerInfo] = {}
    held: list[Held] = []
    for page in range(PAGES_MAX):
        options = ConnzOptions(
            acc=call.text("account"),
            filter_subject=call.text("subject"),
            offset=page * PAGE,
            limit=PAGE,
        )
        try:
            replies = await ask(system, "CONNZ", encode(options), where=where)
        except NoSystemRights:
            raise NotFound("no server matches --server-name and --cluster") from None
        found = [(reply.server, reply.as_(Connz)) for reply in replies if reply.error is None]
        servers.update({server.id: server for server, _ in found})
        held += [Held(server, info) for server, connz in found for info in connz.connections]
        if not any(connz.offset + connz.limit < connz.total for _, connz in found):
            break
    return list(servers.values()), held


def _matching(call: Call, held: Sequence[Held]) -> list[Held]:
    idle_ns, now = call.duration("idle"), time_ns()
    kinds = call.words("kind") or ("Client",)
    return [
        one
        for one in held
        if one.info.kind in kinds
        and (not idle_ns or now - parse_time(one.info.last_activity) > idle_ns)
    ]


def over_fair_share(held: Sequence[Held], servers: int) -> list[Held]:
    """What each server has beyond an even spread, server by server."""
    fair = -(-len(held) // max(1, servers))
    found: list[Held] = []
    for server in sorted({one.server.id for one in held}):
        there = [one for one in held if one.server.id == server]
        found += there[: max(0, len(there) - fair)]
    return found


def _tell(call: Call, held: Sequence[Held], servers: int, surplus: int) -> None:
    if not held:
        return
    fair = -(-len(held) // max(1, servers))
    call.output.log(
        f"Connection distribution across {counted(servers, 'server')} (target: {fair} per server):"
    )
    counts: dict[str, int] = {}
    for one in held:
        counts[one.server.name] = counts.get(one.server.name, 0) + 1
    for name, count in sorted(counts.items()):
        call.output.log(
            f"  Server '{name}': {counted(count, 'connection')} (offset: {count - fair:+})"
        )
    if surplus:
        pause = format_duration(call.duration("duration") // surplus)
        call.output.log(
            f"Balancing {counted(surplus, 'connection')} with {pause} sleep between each "
            "balance request"
        )


async def _kick(call: Call, system: NatsSystem, surplus: Sequence[Held]) -> int:
    """How many were asked to go elsewhere; each refusal is told."""
    pause = call.duration("duration") / max(1, len(surplus)) / SECOND_NS
    balanced = 0
    for at, one in enumerate(surplus):
        if at:
            await asyncio.sleep(pause)
        replies = await system.gather("KICK", {"cid": one.info.cid}, server_id=one.server.id)
        problem = "no response" if not replies else replies[0].error
        if problem:
            call.output.log(f"Could not kick {one.info.cid} on {one.server.name}: {problem}")
            continue
        name = f" ({one.info.name})" if one.info.name else ""
        account = f" in account {one.info.account}" if one.info.account else ""
        call.output.log(f"Balanced client {one.info.cid}{name}{account} on {one.server.name}")
        balanced += 1
    return balanced
