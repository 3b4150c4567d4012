"""Other clusters, in the words of monitoring; loaded where there are some."""

from collections import Counter

from jsctl.api.monitoring.connz import SubDetail
from jsctl.api.monitoring.varz import GatewayOptsVarz, RemoteGatewayOptsVarz
from jsctl.broker.conf.units import host_text
from jsctl.broker.gateway_options import GatewayOptions
from jsctl.broker.gateways.gates import Gates
from jsctl.broker.gateways.types import GatewayFacts
from jsctl.broker.system.monitoring.connection_facts import sub_detail
from jsctl.broker.system.monitoring.view import ConnFacts, GateFacts, Settings
from jsctl.broker.tls_options import SECOND_NS
from jsctl.dataclass import replace

KIND = "Gateway"
TLS_TIMEOUT_NS = 2 * SECOND_NS


def gate_facts(gate: GatewayFacts) -> GateFacts:
    """A connection, with what the other cluster listens to, if that was asked for."""
    accounts: dict[str, list[SubDetail]] = {name: [] for name in gate.accounts}
    queues: Counter[str] = Counter()
    for sub in gate.subscriptions:
        accounts[sub.account].append(sub_detail(sub))
        queues[sub.account] += bool(sub.queue)
    return GateFacts(
        gateway=gate.gateway,
        outbound=gate.outbound,
        configured=gate.configured,
        connection=_connection(gate),
        accounts=accounts,
        queue_subscriptions=queues,
    )


def _connection(gate: GatewayFacts) -> ConnFacts:
    return ConnFacts(
        cid=gate.gate_id,
        host=gate.host,
        port=gate.port,
        start_ns=gate.opened_ns,
        last_ns=gate.last_ns or gate.opened_ns,
        kind=KIND,
        type="",
        rtt_ns=gate.rtt_ns,
        pending_bytes=gate.pending_bytes,
        in_msgs=gate.in_msgs,
        out_msgs=gate.out_msgs,
        in_bytes=gate.in_bytes,
        out_bytes=gate.out_bytes,
        subscriptions=gate.subscription_count,
        name=gate.server_id,
    )


def with_gateways(settings: Settings, gates: Gates) -> Settings:
    """What a server was configured with, with the block, and the addresses of the clusters in it
    that are known by now."""
    told = gates.connections.settings
    clusters = gates.connections.remotes.clusters
    urls: dict[str, tuple[str, ...]] = {}
    for one in told.block.remotes:
        known = clusters.get(one.name)
        own = tuple(host_text(url.host, url.port) for url in one.urls)
        urls[one.name] = own if known is None else known.addresses
    block = options_of(told.block, (told.block.host, told.bound_port), urls)
    return replace(settings, gateway=block, gateway_at=(told.host, told.port))


def options_of(
    block: GatewayOptions, bound: tuple[str, int], known: dict[str, tuple[str, ...]]
) -> GatewayOptsVarz:
    """The `gateway` part of `/varz`. `known` are the addresses of all clusters that are known."""
    host, port = bound
    tls = block.tls
    return GatewayOptsVarz(
        name=block.name,
        host=host,
        port=port,
        auth_timeout=_seconds(block.login_ns),
        tls_timeout=_seconds(tls.timeout_ns if tls is not None else TLS_TIMEOUT_NS),
        tls_required=tls is not None,
        tls_verify=tls is not None,
        advertise=block.advertise,
        connect_retries=block.connect_retries,
        gateways=tuple(
            RemoteGatewayOptsVarz(name=name, tls_timeout=_tls_time(block, name), urls=urls)
            for name, urls in known.items()
        ),
        reject_unknown=block.reject_unknown,
        write_deadline=block.write_deadline_ns,
        write_timeout=block.write_timeout.told,
    )


def _tls_time(block: GatewayOptions, name: str) -> float:
    own = next((one.tls for one in block.remotes if one.name == name), None) or block.tls
    return _seconds(own.timeout_ns) if own is not None else 0


def _seconds(length_ns: int) -> float:
    seconds, rest = divmod(length_ns, SECOND_NS)
    return seconds if not rest else length_ns / SECOND_NS
