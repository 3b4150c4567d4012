"""What a server was configured with, in the words of monitoring."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jsctl import __version__
from jsctl.api.monitoring.varz import ClusterOptsVarz, LeafNodeOptsVarz
from jsctl.broker import lazy
from jsctl.broker.accel.choice import chosen
from jsctl.broker.options import (
    COMPATIBLE_VERSION,
    PORT_OFF,
    SECOND_NS,
    Options,
)
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.routing.setup import system_account
from jsctl.broker.system.monitoring.view import Settings

if TYPE_CHECKING:
    from jsctl.broker.system.monitoring import leaf_facts
else:
    leaf_facts = lazy.module("jsctl.broker.system.monitoring.leaf_facts", optional=True)

TLS_TIMEOUT_NS = 2 * SECOND_NS

Addresses = Mapping[str, tuple[str, int]]
"""Kind of listener -> host and port as bound."""


def settings(
    options: Options,
    identity: ServerIdentity,
    addresses: Addresses,
    *,
    started_ns: int,
    loaded_ns: int,
    runtime: str,
) -> Settings:
    """Settings of a running server; `loaded_ns` is when its configuration was read last."""
    client, monitoring = options.client, options.monitoring
    plain, secure = _http_ports(options, addresses)
    listens = plain or secure
    return Settings(
        server_id=identity.server_id,
        server_name=identity.server_name,
        host=identity.host,
        port=identity.port,
        cluster_name=identity.cluster,
        domain=options.jetstream.domain,
        version=COMPATIBLE_VERSION,
        product_version=__version__,
        lane=chosen().name,
        runtime=runtime,
        auth_required=options.auth_required or bool(options.all_users),
        tls_required=identity.tls_required,
        tls_verify=identity.tls_verify,
        max_connections=client.connections_max,
        max_subscriptions=max(client.subscriptions_max, 0),
        ping_interval_ns=client.ping_interval_ns,
        ping_max=client.pings_out_max,
        http_host=(monitoring.host or options.listen.host) if listens else "",
        http_port=plain,
        http_base_path=monitoring.base_path.rstrip("/"),
        https_port=secure,
        auth_timeout_s=options.client_login_ns / SECOND_NS,
        max_control_line=client.control_line_bytes_max,
        max_payload=client.payload_bytes_max,
        max_pending=client.pending_bytes_max,
        cluster=_cluster(options, addresses),
        tls_timeout_s=(options.tls.timeout_ns if options.tls else TLS_TIMEOUT_NS) / SECOND_NS,
        write_deadline_ns=client.write_deadline_ns,
        write_timeout=client.write_timeout.told,
        started_ns=started_ns,
        config_load_ns=loaded_ns,
        config_digest=options.config_digest,
        tags=options.server_tags,
        metadata=dict(options.server_metadata),
        feature_flags=dict(options.feature_flags),
        system_account=system_account(options) if options.has_system_account else "",
        operators=options.operator.tokens,
        jetstream=options.jetstream.enabled,
        clustered=options.replicated,
        leaf=_leaf(options, addresses),
    )


def _leaf(options: Options, addresses: Addresses) -> LeafNodeOptsVarz:
    if not options.leafnodes.enabled:
        return LeafNodeOptsVarz()
    return leaf_facts.options_of(options.leafnodes, addresses.get("leafnode"))


def _http_ports(options: Options, addresses: Addresses) -> tuple[int, int]:
    """(plain, secure) port of monitoring, 0 for off."""
    monitoring = options.monitoring
    bound = addresses.get("monitor", ("", PORT_OFF))[1]
    plain = bound or monitoring.port if monitoring.port != PORT_OFF else PORT_OFF
    secure = bound or monitoring.https_port if monitoring.https_port != PORT_OFF else PORT_OFF
    return plain, secure


def _cluster(options: Options, addresses: Addresses) -> ClusterOptsVarz:
    cluster = options.cluster
    if not options.clustered:
        return ClusterOptsVarz()
    host, port = addresses.get("cluster", (cluster.host, cluster.port))
    tls = cluster.tls
    return ClusterOptsVarz(
        name=cluster.name,
        addr=host,
        cluster_port=port,
        auth_timeout=_seconds(options.route_login_ns),
        urls=tuple(f"{url.host}:{url.port}" for url in cluster.routes),
        tls_timeout=_seconds(tls.timeout_ns if tls else TLS_TIMEOUT_NS),
        tls_required=tls is not None,
        tls_verify=tls is not None,
        pool_size=max(cluster.pool_size, 0),
        write_deadline=cluster.write_deadline_ns,
        write_timeout=cluster.write_timeout.told,
    )


def _seconds(length_ns: int) -> float:
    """Whole seconds as an integer, as Go writes them."""
    seconds, rest = divmod(length_ns, SECOND_NS)
    return seconds if not rest else length_ns / SECOND_NS
