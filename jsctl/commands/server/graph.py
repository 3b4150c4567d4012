"""`server graph`: load and traffic of one server, or its JetStream."""

from collections.abc import Mapping

from jsctl.api.monitoring.jsz import JetStreamStats, MetaClusterInfo
from jsctl.api.monitoring.varz import Varz
from jsctl.api.server import EventFilterOptions
from jsctl.client.system import NatsSystem
from jsctl.commands.toolkit.invocation.call import Call
from jsctl.commands.toolkit.monitoring.asking import NO_RESULTS
from jsctl.commands.toolkit.monitoring.graphs import Curve, graph, needs_terminal, rate
from jsctl.errors import NotFound

ID_LENGTH = 56
GIGABYTE = 1024**3
MEGABYTE = 1024**2


async def graph_server(call: Call) -> int:
    """Curves of a server."""
    needs_terminal(call)
    name = call.text("server")
    async with call.one_connection(), call.client() as client:
        system = NatsSystem(client, call.settings)

        async def facts() -> Varz:
            if len(name) == ID_LENGTH and name.isupper():
                replies = await system.gather("VARZ", server_id=name)
            else:
                where = EventFilterOptions(server_name=name, exact_match=True)
                replies = await system.gather("VARZ", where=where, expected=1)
            if not replies:
                raise NotFound(NO_RESULTS)
            return replies[0].as_(Varz)

        async def server() -> Mapping[str, float]:
            return _load(await facts())

        async def jetstream() -> Mapping[str, float]:
            return _jetstream(await facts())

        cores = (await facts()).cores
        processor = Curve("cpu", f"CPU % Used (normalized for {cores} cores)", rate)
        if call.flag("jetstream"):
            title = f"JetStream Statistics for {name}"
            return await graph(call, title, [processor, *_jetstream_curves()], jetstream)
        return await graph(
            call, f"Server Statistics for {name}", [processor, *_load_curves()], server
        )


def _load_curves() -> list[Curve]:
    return [
        Curve("memory", "Memory Used in MB"),
        Curve("connections", "Connections"),
        Curve("subscriptions", "Subscriptions"),
        Curve("messages", "Messages In+Out / second", rate, per_second=True),
        Curve("bytes", "Bytes In+Out / second", rate, per_second=True),
    ]


def _load(facts: Varz) -> dict[str, float]:
    return {
        "cpu": facts.cpu / max(1, facts.cores),
        "memory": facts.mem / MEGABYTE,
        "connections": facts.connections,
        "subscriptions": facts.subscriptions,
        "messages": facts.in_msgs + facts.out_msgs,
        "bytes": facts.in_bytes + facts.out_bytes,
    }


def _jetstream_curves() -> list[Curve]:
    return [
        Curve("memory", "Memory Storage in GB", rate),
        Curve("file", "File Storage in GB", rate),
        Curve("assets", "HA Assets"),
        Curve("api", "API Requests / second", rate, per_second=True),
        Curve("pending", "Pending API Requests"),
    ]


def _jetstream(facts: Varz) -> dict[str, float]:
    stats = facts.jetstream.stats or JetStreamStats()
    meta = facts.jetstream.meta or MetaClusterInfo()
    return {
        "cpu": facts.cpu / max(1, facts.cores),
        "memory": stats.memory / GIGABYTE,
        "file": stats.storage / GIGABYTE,
        "assets": stats.ha_assets,
        "api": stats.api.total,
        "pending": meta.pending,
    }
