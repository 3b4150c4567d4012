"""General facts of a server, as `VARZ` tells them."""

from jsctl.api.fields import (
    ZERO_TIME,
    Int32,
    Int64,
    Json,
    Nanos,
    Time,
    Uint32,
    Uint64,
    mapping,
    omit,
    struct,
    unknown,
)
from jsctl.api.monitoring.jsz import JetStreamVarz
from jsctl.api.monitoring.statsz import DiskIOWaitStats
from jsctl.api.server import SlowConsumersStats, StaleConnectionStats
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptsVarz:
    """Cluster options."""

    name: str = omit("")
    addr: str = omit("")
    cluster_port: int = omit(0)
    auth_timeout: float = omit(0.0)
    urls: tuple[str, ...] = omit(())
    tls_timeout: float = omit(0.0)
    tls_required: bool = omit(False)
    tls_verify: bool = omit(False)
    pool_size: int = omit(0)
    write_deadline: Nanos = omit(0)
    write_timeout: str = omit("")
    tls_cert_not_after: Time = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteGatewayOptsVarz:
    """A configured gateway."""

    name: str = ""
    tls_timeout: float = omit(0.0)
    urls: tuple[str, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptsVarz:
    """Gateway options."""

    name: str = omit("")
    host: str = omit("")
    port: int = omit(0)
    auth_timeout: float = omit(0.0)
    tls_timeout: float = omit(0.0)
    tls_required: bool = omit(False)
    tls_verify: bool = omit(False)
    advertise: str = omit("")
    connect_retries: int = omit(0)
    gateways: tuple[RemoteGatewayOptsVarz, ...] = omit(())
    reject_unknown: bool = omit(False)
    write_deadline: Nanos = omit(0)
    write_timeout: str = omit("")
    tls_cert_not_after: Time = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class DenyRules:
    """Subjects a leaf may not pass."""

    exports: tuple[str, ...] = omit(())
    imports: tuple[str, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLeafOptsVarz:
    """A configured leaf connection."""

    local_account: str = omit("")
    tls_timeout: float = omit(0.0)
    urls: tuple[str, ...] = omit(())
    deny: DenyRules | None = omit(None)
    tls_ocsp_peer_verify: bool = omit(False)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafNodeOptsVarz:
    """Leaf options."""

    host: str = omit("")
    port: int = omit(0)
    auth_timeout: float = omit(0.0)
    tls_timeout: float = omit(0.0)
    tls_required: bool = omit(False)
    tls_verify: bool = omit(False)
    remotes: tuple[RemoteLeafOptsVarz, ...] = omit(())
    tls_ocsp_peer_verify: bool = omit(False)
    write_deadline: Nanos = omit(0)
    write_timeout: str = omit("")
    tls_cert_not_after: Time = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class MQTTOptsVarz:
    """MQTT options."""

    host: str = omit("")
    port: int = omit(0)
    no_auth_user: str = omit("")
    auth_timeout: float = omit(0.0)
    tls_map: bool = omit(False)
    tls_timeout: float = omit(0.0)
    tls_pinned_certs: tuple[str, ...] = omit(())
    js_domain: str = omit("")
    ack_wait: Nanos = omit(0)
    max_ack_pending: int = omit(0)
    tls_ocsp_peer_verify: bool = omit(False)
    tls_cert_not_after: Time = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class WebsocketOptsVarz:
    """Websocket options."""

    host: str = omit("")
    port: int = omit(0)
    advertise: str = omit("")
    no_auth_user: str = omit("")
    jwt_cookie: str = omit("")
    handshake_timeout: Nanos = omit(0)
    auth_timeout: float = omit(0.0)
    no_tls: bool = omit(False)
    tls_map: bool = omit(False)
    tls_pinned_certs: tuple[str, ...] = omit(())
    same_origin: bool = omit(False)
    allowed_origins: tuple[str, ...] = omit(())
    compression: bool = omit(False)
    tls_ocsp_peer_verify: bool = omit(False)
    tls_cert_not_after: Time = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class OCSPResponseCacheVarz:
    """OCSP cache."""

    cache_type: str = omit("")
    cache_hits: Int64 = omit(0)
    cache_misses: Int64 = omit(0)
    cached_responses: Int64 = omit(0)
    cached_revoked_responses: Int64 = omit(0)
    cached_good_responses: Int64 = omit(0)
    cached_unknown_responses: Int64 = omit(0)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOptsVarz:
    """A trusted proxy."""

    key: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiesOptsVarz:
    """Trusted proxies."""

    trusted: tuple[ProxyOptsVarz, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Varz:
    """What `VARZ` answers."""

    server_id: str = ""
    server_name: str = ""
    version: str = ""
    proto: int = 0
    git_commit: str = omit("")
    go: str = ""
    host: str = ""
    port: int = 0
    auth_required: bool = omit(False)
    tls_required: bool = omit(False)
    tls_verify: bool = omit(False)
    tls_ocsp_peer_verify: bool = omit(False)
    ip: str = omit("")
    connect_urls: tuple[str, ...] = omit(())
    ws_connect_urls: tuple[str, ...] = omit(())
    max_connections: int = 0
    max_subscriptions: int = omit(0)
    ping_interval: Nanos = 0
    ping_max: int = 0
    http_host: str = ""
    http_port: int = 0
    http_base_path: str = ""
    https_port: int = 0
    auth_timeout: float = 0.0
    max_control_line: Int32 = 0
    max_payload: int = 0
    max_pending: Int64 = 0
    cluster: ClusterOptsVarz = struct(ClusterOptsVarz)
    gateway: GatewayOptsVarz = struct(GatewayOptsVarz)
    leaf: LeafNodeOptsVarz = struct(LeafNodeOptsVarz)
    mqtt: MQTTOptsVarz = struct(MQTTOptsVarz)
    websocket: WebsocketOptsVarz = struct(WebsocketOptsVarz)
    jetstream: JetStreamVarz = struct(JetStreamVarz)
    tls_timeout: float = 0.0
    write_deadline: Nanos = 0
    write_timeout: str = omit("")
    start: Time = ZERO_TIME
    now: Time = ZERO_TIME
    uptime: str = ""
    mem: Int64 = 0
    cores: int = 0
    gomaxprocs: int = 0
    gomemlimit: Int64 = omit(0)
    cpu: float = 0.0
    connections: int = 0
    total_connections: Uint64 = 0
    routes: int = 0
    remotes: int = 0
    leafnodes: int = 0
    in_msgs: Int64 = 0
    in_bytes: Int64 = 0
    in_client_msgs: Int64 = 0
    in_client_bytes: Int64 = 0
    out_msgs: Int64 = 0
    out_bytes: Int64 = 0
    out_client_msgs: Int64 = 0
    out_client_bytes: Int64 = 0
    slow_consumers: Int64 = 0
    stale_connections: Int64 = 0
    stalled_clients: Int64 = 0
    subscriptions: Uint32 = 0
    http_req_stats: dict[str, Uint64] = mapping(always=True)
    config_load_time: Time = ZERO_TIME
    config_digest: str = ""
    tags: tuple[str, ...] = omit(())
    metadata: dict[str, str] = mapping()
    feature_flags: dict[str, bool] = mapping()
    trusted_operators_jwt: tuple[str, ...] = omit(())
    trusted_operators_claim: tuple[Json, ...] = omit(())
    system_account: str = omit("")
    pinned_account_fails: Uint64 = omit(0)
    ocsp_peer_cache: OCSPResponseCacheVarz | None = omit(None)
    slow_consumer_stats: SlowConsumersStats | None = None
    stale_connection_stats: StaleConnectionStats | None = omit(None)
    disk_io_wait_stats: DiskIOWaitStats | None = None
    proxies: ProxiesOptsVarz | None = omit(None)
    tls_cert_not_after: Time = omit("")
    extra: dict[str, Json] = unknown()
