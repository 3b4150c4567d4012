"""Connections, routes, gateways, leafs and subscriptions of a server."""

from jsctl.api.fields import (
    ZERO_TIME,
    Int64,
    Json,
    Time,
    Uint32,
    Uint64,
    embed,
    mapping,
    omit,
    unknown,
)
from jsctl.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SubDetail:
    """One subscription."""

    account: str = omit("")
    account_tag: str = omit("")
    subject: str = ""
    qgroup: str = omit("")
    sid: str = ""
    msgs: Int64 = 0
    max: Int64 = omit(0)
    cid: Uint64 = 0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class TLSPeerCert:
    """A certificate shown by a client."""

    subject: str = omit("")
    spki_sha256: str = omit("")
    cert_sha256: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyInfo:
    """The proxy in between."""

    key: str = ""
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnzOptions:
    """What a `CONNZ` request asks for; `state` 0 open, 1 closed, 2 all."""

    sort: str = ""
    auth: bool = False
    subscriptions: bool = False
    subscriptions_detail: bool = False
    offset: int = 0
    limit: int = 0
    cid: Uint64 = 0
    mqtt_client: str = ""
    state: int = 0
    user: str = ""
    acc: str = ""
    filter_subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnInfo:
    """One connection."""

    cid: Uint64 = 0
    kind: str = omit("")
    type: str = omit("")
    ip: str = ""
    port: int = 0
    start: Time = ZERO_TIME
    last_activity: Time = ZERO_TIME
    stop: Time = omit("")
    reason: str = omit("")
    rtt: str = omit("")
    uptime: str = ""
    idle: str = ""
    pending_bytes: int = 0
    in_msgs: Int64 = 0
    out_msgs: Int64 = 0
    in_bytes: Int64 = 0
    out_bytes: Int64 = 0
    stalls: Int64 = omit(0)
    subscriptions: Uint32 = 0
    name: str = omit("")
    lang: str = omit("")
    version: str = omit("")
    tls_version: str = omit("")
    tls_cipher_suite: str = omit("")
    tls_peer_certs: tuple[TLSPeerCert, ...] = omit(())
    tls_first: bool = omit(False)
    authorized_user: str = omit("")
    account: str = omit("")
    subscriptions_list: tuple[str, ...] = omit(())
    subscriptions_list_detail: tuple[SubDetail, ...] = omit(())
    jwt: str = omit("")
    issuer_key: str = omit("")
    name_tag: str = omit("")
    tags: tuple[str, ...] = omit(())
    mqtt_client: str = omit("")
    proxy: ProxyInfo | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connz:
    """What `CONNZ` answers."""

    server_id: str = ""
    now: Time = ZERO_TIME
    num_connections: int = 0
    total: int = 0
    offset: int = 0
    limit: int = 0
    connections: tuple[ConnInfo, ...] = ()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectPermission:
    """Subjects allowed and denied."""

    allow: tuple[str, ...] = omit(())
    deny: tuple[str, ...] = omit(())


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutezOptions:
    """What a `ROUTEZ` request asks for."""

    subscriptions: bool = False
    subscriptions_detail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteInfo:
    """One route."""

    rid: Uint64 = 0
    remote_id: str = ""
    remote_name: str = ""
    did_solicit: bool = False
    is_configured: bool = False
    ip: str = ""
    port: int = 0
    start: Time = ZERO_TIME
    last_activity: Time = ZERO_TIME
    rtt: str = omit("")
    uptime: str = ""
    idle: str = ""
    import_: SubjectPermission | None = omit(None)
    export: SubjectPermission | None = omit(None)
    pending_size: int = 0
    in_msgs: Int64 = 0
    out_msgs: Int64 = 0
    in_bytes: Int64 = 0
    out_bytes: Int64 = 0
    subscriptions: Uint32 = 0
    subscriptions_list: tuple[str, ...] = omit(())
    subscriptions_list_detail: tuple[SubDetail, ...] = omit(())
    account: str = omit("")
    compression: str = omit("")
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Routez:
    """What `ROUTEZ` answers."""

    server_id: str = ""
    server_name: str = ""
    now: Time = ZERO_TIME
    import_: SubjectPermission | None = omit(None)
    export: SubjectPermission | None = omit(None)
    num_routes: int = 0
    routes: tuple[RouteInfo, ...] = ()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayzOptions:
    """What a `GATEWAYZ` request asks for."""

    name: str = ""
    accounts: bool = False
    account_name: str = ""
    subscriptions: bool = False
    subscriptions_detail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountGatewayz:
    """Interest of an account."""

    name: str = ""
    interest_mode: str = ""
    no_interest_count: int = omit(0)
    interest_only_threshold: int = omit(0)
    num_subs: int = omit(0)
    num_queue_subs: int = omit(0)
    subscriptions_list: tuple[str, ...] = omit(())
    subscriptions_list_detail: tuple[SubDetail, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteGatewayz:
    """One gateway."""

    configured: bool = False
    connection: ConnInfo | None = omit(None)
    accounts: tuple[AccountGatewayz, ...] = omit(())
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gatewayz:
    """What `GATEWAYZ` answers."""

    server_id: str = ""
    now: Time = ZERO_TIME
    name: str = omit("")
    host: str = omit("")
    port: int = omit(0)
    outbound_gateways: dict[str, RemoteGatewayz] | None = mapping(always=True)
    """None where one cluster is asked for, and there is no connection to it."""
    inbound_gateways: dict[str, tuple[RemoteGatewayz, ...]] = mapping(always=True)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafzOptions:
    """What a `LEAFZ` request asks for."""

    subscriptions: bool = False
    account: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafInfo:
    """One leaf."""

    id: Uint64 = 0
    name: str = ""
    is_spoke: bool = False
    is_isolated: bool = omit(False)
    account: str = ""
    ip: str = ""
    port: int = 0
    rtt: str = omit("")
    in_msgs: Int64 = 0
    out_msgs: Int64 = 0
    in_bytes: Int64 = 0
    out_bytes: Int64 = 0
    subscriptions: Uint32 = 0
    subscriptions_list: tuple[str, ...] = omit(())
    compression: str = omit("")
    proxy: ProxyInfo | None = omit(None)
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Leafz:
    """What `LEAFZ` answers."""

    server_id: str = ""
    now: Time = ZERO_TIME
    leafnodes: int = 0
    leafs: tuple[LeafInfo, ...] = ()
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubszOptions:
    """What a `SUBSZ` request asks for."""

    offset: int = 0
    limit: int = 0
    subscriptions: bool = False
    account: str = omit("")
    test: str = omit("")


@dataclass(frozen=True, slots=True, kw_only=True)
class SublistStats:
    """How the subscription index does."""

    num_subscriptions: Uint32 = 0
    num_cache: Uint32 = 0
    num_inserts: Uint64 = 0
    num_removes: Uint64 = 0
    num_matches: Uint64 = 0
    cache_hit_rate: float = 0.0
    max_fanout: Uint32 = 0
    avg_fanout: float = 0.0
    extra: dict[str, Json] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subsz:
    """What `SUBSZ` answers."""

    server_id: str = ""
    now: Time = ZERO_TIME
    stats: SublistStats = embed(SublistStats)
    total: int = 0
    offset: int = 0
    limit: int = 0
    subscriptions_list: tuple[SubDetail, ...] = omit(())
    extra: dict[str, Json] = unknown()
