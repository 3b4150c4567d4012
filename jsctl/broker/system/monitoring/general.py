"""`/varz`, `IDZ`, `STATSZ` and who this server is."""

from typing import TYPE_CHECKING

from jsctl.api.codec import encode
from jsctl.api.monitoring.jsz import JetStreamVarz
from jsctl.api.monitoring.statsz import DiskIOWaitStats, Statsz
from jsctl.api.monitoring.varz import Varz
from jsctl.api.server import (
    DataStats,
    GatewayStat,
    RouteStat,
    ServerID,
    ServerInfo,
    SlowConsumersStats,
    StaleConnectionStats,
)
from jsctl.api.times import format_time
from jsctl.broker import lazy
from jsctl.broker.system.monitoring.view import PerKind, ServerView, Totals
from jsctl.broker.system.monitoring.words import number, uptime
from jsctl.dataclass import replace

if TYPE_CHECKING:
    from jsctl.broker.claims import telling
else:
    telling = lazy.module("jsctl.broker.claims.telling", optional=True)

META_GROUP = "_meta_"
JETSTREAM_FLAG = 1
BINARY_SNAPSHOT_FLAG = 2


def server_info(view: ServerView, sequence: int) -> ServerInfo:
    """This server in the head of answers and events; `sequence` counts them."""
    settings = view.settings
    flags = JETSTREAM_FLAG | BINARY_SNAPSHOT_FLAG if settings.jetstream else 0
    return ServerInfo(
        name=settings.server_name,
        host=settings.host,
        id=settings.server_id,
        cluster=settings.cluster_name,
        domain=settings.domain,
        ver=settings.version,
        tags=settings.tags,
        metadata=dict(settings.metadata),
        feature_flags=dict(settings.feature_flags),
        jetstream=settings.jetstream,
        flags=flags,
        seq=sequence,
        time=format_time(view.now_ns),
    )


def idz(view: ServerView) -> ServerID:
    """Name, host and id only; answered whatever filter the request has."""
    settings = view.settings
    return ServerID(name=settings.server_name, host=settings.host, id=settings.server_id)


def jetstream_varz(view: ServerView, *, whole: bool = True) -> JetStreamVarz:
    """JetStream's part of varz and statsz.

    Statsz hides the directory, and the meta group's replicas unless this server leads it.
    """
    facts = view.jetstream(accounts=False)
    if facts is None:
        return JetStreamVarz()
    config, meta = facts.config, facts.meta
    if not whole:
        config = replace(config, store_dir="")
        if meta is not None and not facts.leads_meta:
            meta = replace(meta, name=META_GROUP, replicas=())
    return JetStreamVarz(config=config, stats=facts.stats, meta=meta, limits=facts.limits)


def varz(view: ServerView, options: object) -> dict[str, object]:
    """Everything about the process. `options` has nothing in it."""
    fields: dict[str, object] = {}
    totals, operators = view.totals(), view.settings.operators
    found = _varz(view, totals)
    if operators:
        said = telling.operators(operators)
        found = replace(found, trusted_operators_jwt=operators, trusted_operators_claim=said)
    for key, value in encode(found).items():
        fields[key] = value
        if key == "version" and view.settings.product_version:
            fields["jsctl_version"] = view.settings.product_version
            fields["jsctl_internal_errors"] = totals.internal_errors
            fields["jsctl_lane"] = view.settings.lane
    return fields


def _varz(view: ServerView, totals: Totals) -> Varz:
    settings = view.settings
    return Varz(
        server_id=settings.server_id,
        server_name=settings.server_name,
        version=settings.version,
        proto=settings.proto,
        go=settings.runtime,
        host=settings.host,
        port=settings.port,
        auth_required=settings.auth_required,
        tls_required=settings.tls_required,
        tls_verify=settings.tls_verify,
        connect_urls=tuple(view.connect_urls()),
        max_connections=settings.max_connections,
        max_subscriptions=settings.max_subscriptions,
        ping_interval=settings.ping_interval_ns,
        ping_max=settings.ping_max,
        http_host=settings.http_host,
        http_port=settings.http_port,
        http_base_path=settings.http_base_path,
        https_port=settings.https_port,
        auth_timeout=number(settings.auth_timeout_s),
        max_control_line=settings.max_control_line,
        max_payload=settings.max_payload,
        max_pending=settings.max_pending,
        cluster=settings.cluster,
        leaf=settings.leaf,
        gateway=settings.gateway,
        websocket=settings.websocket,
        jetstream=jetstream_varz(view),
        tls_timeout=number(settings.tls_timeout_s),
        write_deadline=settings.write_deadline_ns,
        write_timeout=settings.write_timeout,
        start=format_time(settings.started_ns),
        now=format_time(view.now_ns),
        uptime=uptime(view.now_ns - settings.started_ns),
        mem=totals.memory_bytes,
        cores=totals.cores,
        gomaxprocs=totals.threads_max,
        cpu=number(totals.cpu_percent),
        connections=totals.connections,
        total_connections=totals.total_connections,
        routes=len(view.routes()),
        remotes=totals.remotes,
        leafnodes=totals.leafs,
        in_msgs=totals.in_msgs,
        in_bytes=totals.in_bytes,
        in_client_msgs=totals.in_client_msgs,
        in_client_bytes=totals.in_client_bytes,
        out_msgs=totals.out_msgs,
        out_bytes=totals.out_bytes,
        out_client_msgs=totals.out_client_msgs,
        out_client_bytes=totals.out_client_bytes,
        slow_consumers=totals.slow_consumers.total,
        stale_connections=totals.stale_connections.total,
        stalled_clients=totals.stalled_clients,
        subscriptions=totals.subscriptions,
        http_req_stats=dict(sorted(view.http_requests().items())),
        config_load_time=format_time(settings.config_load_ns or settings.started_ns),
        config_digest=settings.config_digest,
        tags=settings.tags,
        metadata=dict(settings.metadata),
        feature_flags=dict(settings.feature_flags),
        system_account=settings.system_account,
        pinned_account_fails=totals.pinned_account_fails,
        slow_consumer_stats=_slow(totals.slow_consumers),
        stale_connection_stats=_stale(totals.stale_connections),
        disk_io_wait_stats=_disk_waits(totals),
    )


def _disk_waits(totals: Totals) -> DiskIOWaitStats:
    return DiskIOWaitStats(
        waiters=totals.disk_waiters,
        waits=totals.disk_waits,
        wait_time=totals.disk_wait_ns,
        max_wait_time=totals.disk_wait_max_ns,
    )


def statsz(view: ServerView) -> Statsz:
    """The short statistics that servers tell each other and answer to a ping."""
    totals = view.totals()
    slow, stale = totals.slow_consumers, totals.stale_connections
    jetstream = jetstream_varz(view, whole=False)
    return Statsz(
        start=format_time(view.settings.started_ns),
        mem=totals.memory_bytes,
        cores=totals.cores,
        cpu=number(totals.cpu_percent),
        connections=totals.connections,
        total_connections=totals.total_connections,
        active_accounts=totals.active_accounts,
        subscriptions=totals.subscriptions,
        sent=DataStats(msgs=totals.out_msgs, bytes=totals.out_bytes),
        sent_to_clients=DataStats(msgs=totals.out_client_msgs, bytes=totals.out_client_bytes),
        received=DataStats(msgs=totals.in_msgs, bytes=totals.in_bytes),
        received_from_clients=DataStats(msgs=totals.in_client_msgs, bytes=totals.in_client_bytes),
        slow_consumers=slow.total,
        slow_consumer_stats=_slow(slow) if slow.total else None,
        stale_connections=stale.total,
        stale_connection_stats=_stale(stale) if stale.total else None,
        stalled_clients=totals.stalled_clients,
        routes=tuple(
            RouteStat(
                rid=route.cid,
                name=route.remote_name,
                sent=DataStats(msgs=route.out_msgs, bytes=route.out_bytes),
                received=DataStats(msgs=route.in_msgs, bytes=route.in_bytes),
                pending=route.pending_bytes,
            )
            for route in view.routes()
        ),
        gateways=_gateways(view),
        active_servers=totals.others + 1,
        jetstream=jetstream if jetstream.config is not None else None,
        gomaxprocs=totals.threads_max,
    )


def _gateways(view: ServerView) -> tuple[GatewayStat, ...]:
    """What is sent to each other cluster, with what all its servers send here."""
    found: list[GatewayStat] = []
    gates = view.gateways(interest=False)
    for gate in gates:
        if not gate.outbound:
            continue
        sent = gate.connection
        back = [one.connection for one in gates if not one.outbound and one.gateway == gate.gateway]
        found.append(
            GatewayStat(
                gwid=sent.cid,
                name=gate.gateway,
                sent=DataStats(msgs=sent.out_msgs, bytes=sent.out_bytes),
                received=DataStats(
                    msgs=sum(one.in_msgs for one in back), bytes=sum(one.in_bytes for one in back)
                ),
                inbound_connections=len(back),
            )
        )
    return tuple(found)


def _slow(counts: PerKind) -> SlowConsumersStats:
    return SlowConsumersStats(
        clients=counts.clients, routes=counts.routes, gateways=counts.gateways, leafs=counts.leafs
    )


def _stale(counts: PerKind) -> StaleConnectionStats:
    return StaleConnectionStats(
        clients=counts.clients, routes=counts.routes, gateways=counts.gateways, leafs=counts.leafs
    )
