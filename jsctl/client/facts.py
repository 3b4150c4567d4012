"""Facts about servers in one shape, whether they came from the system account or a port."""

from collections.abc import Mapping
from time import perf_counter_ns
from typing import TYPE_CHECKING

from jsctl.api.codec import decode
from jsctl.api.monitoring.statsz import Statsz
from jsctl.client.system import MonitorSystem, NatsSystem, SystemReply, SystemSource
from jsctl.dataclass import dataclass

if TYPE_CHECKING:
    from jsctl.client.library import NatsClient

_SHARED = (
    "start",
    "mem",
    "cores",
    "cpu",
    "connections",
    "total_connections",
    "subscriptions",
    "slow_consumers",
    "slow_consumer_stats",
    "gomaxprocs",
)
"""Keys that STATSZ and VARZ have in common."""

CLOSED_WORDS = {0: "open", 1: "closed", 2: "any"}
"""How the monitoring port names the states of connections."""


def statsz_of(reply: SystemReply) -> Statsz:
    """A reply to the plain ping; the monitoring port answers it with VARZ."""
    routes = reply.data.get("routes")
    if not isinstance(routes, int):
        return decode(Statsz, reply.data)
    known = {key: reply.data[key] for key in _SHARED if key in reply.data}
    gateway = reply.data.get("gateway")
    remote = gateway.get("gateways") if isinstance(gateway, dict) else None
    count = len(remote) if isinstance(remote, list) else 0
    document = {**known, "routes": [{}] * routes, "gateways": [{}] * count}
    return decode(Statsz, document)


async def known_servers(system: SystemSource) -> int:
    """How many servers should answer; 0 when that is not known."""
    return await system.count_servers() if isinstance(system, NatsSystem) else 0


def source_options(system: SystemSource, options: Mapping[str, object]) -> dict[str, object]:
    """Options of a CONNZ request as this source spells them."""
    state = options.get("state")
    if not isinstance(system, MonitorSystem) or not isinstance(state, int):
        return dict(options)
    return {**options, "state": CLOSED_WORDS[state]}


@dataclass(frozen=True, slots=True)
class ConnectionFacts:
    """What a connection knows about itself and its server."""

    url: str
    address: str
    server_id: str
    server_name: str
    server_version: str
    cluster: str
    client_id: int
    client_ip: str
    headers: bool
    max_payload: int
    rtt_ns: int
    tls: str
    is_system_account: bool


async def connection_facts(client: "NatsClient", timeout_s: float) -> ConnectionFacts:
    """The facts; sends one ping to measure the way, and waits so long for its answer."""
    started = perf_counter_ns()
    await client.flush(timeout_s)
    rtt_ns = perf_counter_ns() - started
    greeting: Mapping[str, object] = client._server_info
    url = client.connected_url
    where = f"{url.hostname}:{url.port}" if url is not None else ""
    client_id = greeting.get("client_id", 0)
    return ConnectionFacts(
        url=f"{url.scheme}://{where}" if url is not None else "",
        address=where,
        server_id=str(greeting.get("server_id", "")),
        server_name=str(greeting.get("server_name", "")),
        server_version=str(greeting.get("version", "")),
        cluster=str(greeting.get("cluster", "")),
        client_id=client_id if isinstance(client_id, int) else 0,
        client_ip=str(greeting.get("client_ip", "")),
        headers=bool(greeting.get("headers")),
        max_payload=client.max_payload,
        rtt_ns=rtt_ns,
        tls=_tls_version(client),
        is_system_account=client.is_system_account,
    )


def _tls_version(client: "NatsClient") -> str:
    transport = getattr(client._transport, "_io_writer", None)
    found = transport.get_extra_info("ssl_object") if transport is not None else None
    return str(found.version()) if found is not None else ""
