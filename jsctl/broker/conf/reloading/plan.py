"""What a changed configuration asks of a running server, as data: lines for the log, or a refusal.

Pure: nothing is applied here. The keys stand in nats-server's order and under its names, because
the first one that cannot change is what a reload is refused for, in its words.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import NamedTuple

from jsctl.api.times import format_duration
from jsctl.broker.conf.reloading import leafnodes as reload_leafnodes
from jsctl.broker.conf.units import size_text
from jsctl.broker.options import (
    ANY_PORT,
    PORT_OFF,
    UNLIMITED,
    ClusterOptions,
    Options,
    RaftOptions,
    SyncMode,
)
from jsctl.broker.tls_options import HandshakeFirst, TlsOptions
from jsctl.dataclass import dataclass, replace

SECOND_NS = 1_000_000_000
UNSUPPORTED = "config reload not supported for"
Addresses = Mapping[str, tuple[str, int]]
"""Kind of listener -> host and port as bound."""
Line = Callable[[Options], str]


@dataclass(frozen=True, slots=True)
class ReloadPlan:
    """Either a refusal, and nothing is to change, or what the log says of the changes."""

    options: Options
    refusal: str = ""
    lines: tuple[str, ...] = ()


class Key(NamedTuple):
    """Something that is configured: its name, its value, and what the log says of a new one.

    Without a line a running server cannot change it.
    """

    name: str
    value: Callable[[Options], object]
    line: Line | None = None


class NotReloadable(Exception):
    """A change that a running server cannot take on."""


def plan(old: Options, new: Options, bound: Addresses) -> ReloadPlan:
    """Compare options as they were read. `bound` is where the server listens.

    A port that is to be any free one is the one that the server has.
    """
    old = _with_ports(old, old, bound)
    new = _with_ports(new, old, {})
    lines: list[str] = []
    try:
        for key in KEYS:
            lines += _changed(key, old, new)
        _refuse_unlimited(old, new)
    except NotReloadable as error:
        return ReloadPlan(old, refusal=str(error))
    return ReloadPlan(new, lines=tuple(lines))


def _with_ports(options: Options, before: Options, bound: Addresses) -> Options:
    def port(kind: str, given: int, known: int) -> int:
        """Where a server does not listen yet, any port is another one than none."""
        known = bound.get(kind, ("", known))[1]
        return known if given == ANY_PORT and known != PORT_OFF else given

    listen, cluster = options.listen, options.cluster
    leafnodes, gateway = options.leafnodes, options.gateway
    client, routes = before.listen.port, before.cluster.port
    leafs, gates = before.leafnodes.port, before.gateway.port
    return replace(
        options,
        listen=replace(listen, port=port("client", listen.port, client)),
        cluster=replace(cluster, port=port("cluster", cluster.port, routes)),
        leafnodes=replace(leafnodes, port=port("leafnode", leafnodes.port, leafs)),
        gateway=replace(gateway, port=port("gateway", gateway.port, gates)),
    )


def _changed(key: Key, old: Options, new: Options) -> list[str]:
    special = SPECIAL.get(key.name)
    before, after = key.value(old), key.value(new)
    if before == after:
        return []
    if special is not None:
        return special(old, new)
    if key.line is None:
        raise NotReloadable(
            f"{UNSUPPORTED} {key.name}: old={go_text(before)}, new={go_text(after)}"
        )
    line = key.line(new)
    return [line] if line else []


def go_text(value: object) -> str:
    """A value as Go prints it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(one)}' for key, one in sorted(value.items()))}]"
    return str(value)


def _seconds(length_ns: int) -> str:
    return f"{length_ns / SECOND_NS:g}"


# -- what is compared by more than equality


def _no_auth_user(old: Options, new: Options) -> list[str]:
    """It may go, together with its user."""
    gone = all(old.no_auth_user not in (one.name, one.nkey) for one in new.all_users)
    if old.no_auth_user and not new.no_auth_user and gone:
        return []
    raise NotReloadable(f"{UNSUPPORTED} NoAuthUser: old={old.no_auth_user}, new={new.no_auth_user}")


def _cluster(old: Options, new: Options) -> list[str]:
    before, after = old.cluster, new.cluster
    for what, one, other in (
        ("host", _cluster_host(old), _cluster_host(new)),
        ("port", before.port, after.port),
    ):
        if one != other:
            raise NotReloadable(f"{UNSUPPORTED} cluster {what}: old={one}, new={other}")
    known = {account.name for account in new.accounts} | {"$G"}
    for name in after.accounts:
        if name not in before.accounts and name not in known:
            raise NotReloadable(
                f'unable to add account "{name}" to the list of dedicated routes: account missing'
            )
    renamed = after.name and after.name != before.name
    return [*([f"Cluster name updated to {after.name}"] if renamed else []), "Reloaded: cluster"]


def _leafnodes(old: Options, new: Options) -> list[str]:
    refusal = reload_leafnodes.refusal(old.leafnodes, new.leafnodes)
    if refusal:
        raise NotReloadable(f"{UNSUPPORTED} LeafNode: {refusal}")
    return reload_leafnodes.lines(old.leafnodes, new.leafnodes)


def _cluster_host(options: Options) -> str:
    return options.cluster.host if options.clustered else ""


def _but_routes(options: Options) -> ClusterOptions:
    return replace(options.cluster, routes=())


def _memory(old: Options, new: Options) -> list[str]:
    before, after = old.jetstream.memory_bytes_max, new.jetstream.memory_bytes_max
    return _grown("max_mem_store", before, after)


def _store(old: Options, new: Options) -> list[str]:
    before, after = old.jetstream.store_bytes_max, new.jetstream.store_bytes_max
    return _grown("max_file_store", before, after)


def _grown(name: str, before: int, after: int) -> list[str]:
    """JetStream's limits may only grow, as what is stored may take all that was allowed."""
    if before == UNLIMITED:
        raise NotReloadable(f"{UNSUPPORTED} jetstream dynamic max memory and store")
    if after == UNLIMITED:
        return []  # Refused behind everything else: see `_refuse_unlimited`.
    if after < before:
        raise NotReloadable(f"{UNSUPPORTED} decreasing jetstream max memory and store")
    return [f"Reloaded: JetStream {name} = {size_text(after)}"]


def _refuse_unlimited(old: Options, new: Options) -> None:
    limits = [(one.jetstream.memory_bytes_max, one.jetstream.store_bytes_max) for one in (old, new)]
    if any(after == UNLIMITED != before for before, after in zip(*limits, strict=True)):
        raise NotReloadable(f"{UNSUPPORTED} jetstream max memory and max store")


def _store_dir(old: Options, new: Options) -> list[str]:
    what = "storage directory" if new.jetstream.store_dir else "storage dir"
    raise NotReloadable(f"{UNSUPPORTED} jetstream {what}")


def _raft(old: Options, new: Options) -> list[str]:
    """The first of its times and bounds that differs, by the name that the file has for it."""
    for one in fields(RaftOptions):
        before, after = getattr(old.raft, one.name), getattr(new.raft, one.name)
        if before != after:
            name, in_ns, _ = one.name.partition("_ns")
            if in_ns:
                before, after = format_duration(before), format_duration(after)
            raise NotReloadable(f"{UNSUPPORTED} raft.{name}: old={before}, new={after}")
    return []


def _gateway(old: Options, new: Options) -> list[str]:
    """More than its certificates has changed: see `_but_certificates`."""
    raise NotReloadable(f"{UNSUPPORTED} Gateway")


def _but_certificates(options: Options) -> object:
    """The block, and of what secures it only how long handshakes may take."""
    block = options.gateway
    remotes = [(one.name, one.urls, _handshake_time(one.tls)) for one in block.remotes]
    rest = replace(block, tls=None, remotes=(), auth_timeout_ns=block.login_ns)
    return rest, _handshake_time(block.tls), remotes


def _handshake_time(tls: TlsOptions | None) -> int:
    return (tls or TlsOptions()).timeout_ns


SPECIAL: Mapping[str, Callable[[Options, Options], list[str]]] = {
    "NoAuthUser": _no_auth_user,
    "Cluster": _cluster,
    "LeafNode": _leafnodes,
    "Gateway": _gateway,
    "JetStreamMaxMemory": _memory,
    "JetStreamMaxStore": _store,
    "StoreDir": _store_dir,
    "Raft": _raft,
}


# -- the values and lines of single keys


def _says(text: str, value: Callable[[Options], object] | None = None) -> Line:
    """A line with the value, if one is given, behind it."""
    if value is None:
        return lambda options: f"Reloaded: {text}"
    return lambda options: f"Reloaded: {text} = {go_text(value(options))}"


def _silent(_: Options) -> str:
    return ""


def _key(name: str, text: str, value: Callable[[Options], object]) -> Key:
    return Key(name, value, _says(text, value))


def _tls(options: Options) -> TlsOptions | None:
    """What the other keys of the block do not tell."""
    if options.tls is None:
        return None
    return replace(
        options.tls,
        map_users=False,
        timeout_ns=0,
        pinned_certs=(),
        handshake_first=HandshakeFirst.NEVER,
        handshake_first_wait_ns=0,
    )


def _pinned(options: Options) -> tuple[str, ...]:
    return tuple(sorted(options.tls.pinned_certs)) if options.tls is not None else ()


def _handshake_first(options: Options) -> bool:
    tls = options.tls
    return tls is not None and tls.handshake_first is not HandshakeFirst.NEVER


def _handshake_wait(options: Options) -> str:
    tls = options.tls
    waits = tls is not None and tls.handshake_first is HandshakeFirst.AUTO
    return format_duration(tls.handshake_first_wait_ns if tls is not None and waits else 0)


def _tls_timeout(options: Options) -> str:
    return _seconds(options.tls.timeout_ns if options.tls is not None else 2 * SECOND_NS)


def _stalls(options: Options) -> str:
    stalled = "not be" if options.client.no_fast_producer_stall else "be"
    return f"Reloaded: fast producers will {stalled} stalled"


def _users(options: Options) -> object:
    blocks = [options.auth.default_permissions]
    blocks += [account.default_permissions for account in options.accounts]
    named = {(one.name, one) for one in options.all_users if not one.nkey}
    return named, blocks


def _account_users(options: Options) -> frozenset[tuple[str, str]]:
    """Who is in which account."""
    return frozenset(
        (account.name, user.name or user.nkey)
        for account in options.accounts
        for user in account.users
    )


def _accounts(options: Options) -> object:
    found = {one.name: replace(one, users=()) for one in options.accounts}
    return found, _account_users(options), options.mappings


def _limits(options: Options) -> object:
    return replace(
        options.jetstream.limits,
        catchup_bytes_max=0,
        request_queue_max=0,
        info_queue_max=0,
        buffered_messages_max=0,
        buffered_bytes_max=0,
    )


KEYS: tuple[Key, ...] = (
    Key("ServerName", lambda o: o.server_name),
    Key("Host", lambda o: o.listen.host),
    Key("Port", lambda o: o.listen.port),
    Key(
        "ClientAdvertise",
        lambda o: o.client_advertise,
        lambda o: f"Reload: client_advertise = {o.client_advertise}",
    ),
    _key("Trace", "trace", lambda o: o.log.trace or o.log.trace_verbose or o.log.trace_headers),
    _key("Debug", "debug", lambda o: o.log.debug),
    _key("TraceVerbose", "trace_verbose", lambda o: o.log.trace_verbose),
    _key("TraceHeaders", "trace_headers", lambda o: o.log.trace_headers),
    Key("NoHeaderSupport", lambda o: o.client.no_header_support),
    _key("Logtime", "logtime", lambda o: o.log.logtime),
    _key("LogtimeUTC", "logtime_utc", lambda o: o.log.logtime_utc),
    _key("MaxConn", "max_connections", lambda o: o.client.connections_max),
    Key("MaxSubs", lambda o: max(o.client.subscriptions_max, 0)),
    Key("MaxSubTokens", lambda o: max(o.client.subscription_tokens_max, 0)),
    Key(
        "Nkeys",
        lambda o: {(one.nkey, one) for one in o.all_users if one.nkey},
        _says("authorization nkey users"),
    ),
    Key("Users", _users, _says("authorization users")),
    Key("Accounts", _accounts, _says("accounts")),
    Key("TrustedOperators", lambda o: o.operator.tokens),
    Key(
        "AccountResolver", lambda o: (o.operator.resolver.kind.value, o.operator.resolver.directory)
    ),
    Key("ResolverPreloads", lambda o: o.operator.resolver, _silent),
    Key("DefaultSentinel", lambda o: o.operator.sentinel, _says("default sentinel")),
    Key("NoAuthUser", lambda o: o.no_auth_user),
    Key("SystemAccount", lambda o: o.system_account),
    Key("NoSystemAccount", lambda o: o.no_system_account),
    Key("Username", lambda o: o.auth.user, _says("authorization username")),
    Key("Password", lambda o: o.auth.password, _says("authorization password")),
    Key("Authorization", lambda o: o.auth.token, _says("authorization token")),
    _key("PingInterval", "ping_interval", lambda o: format_duration(o.client.ping_interval_ns)),
    _key("MaxPingsOut", "ping_max", lambda o: o.client.pings_out_max),
    Key("HTTPHost", lambda o: o.monitoring.host),
    Key("HTTPPort", lambda o: o.monitoring.port),
    Key("HTTPBasePath", lambda o: o.monitoring.base_path.rstrip("/")),
    Key("HTTPSPort", lambda o: o.monitoring.https_port),
    _key("AuthTimeout", "authorization timeout", lambda o: _seconds(o.client_login_ns)),
    _key("MaxControlLine", "max_control_line", lambda o: o.client.control_line_bytes_max),
    _key("MaxPayload", "max_payload", lambda o: o.client.payload_bytes_max),
    Key("MaxPending", lambda o: o.client.pending_bytes_max),
    Key("NoFastProducerStall", lambda o: o.client.no_fast_producer_stall, _stalls),
    Key("Cluster", _but_routes, _silent),
    Key("Gateway", _but_certificates),
    Key("LeafNode", lambda o: o.leafnodes),
    Key("JetStream", lambda o: o.jetstream.enabled),
    Key("NoJetStreamStrict", lambda o: not o.jetstream.strict),
    Key("JetStreamMaxMemory", lambda o: o.jetstream.memory_bytes_max),
    Key("JetStreamMaxStore", lambda o: o.jetstream.store_bytes_max),
    Key("JetStreamDomain", lambda o: o.jetstream.domain),
    Key("JetStreamExtHint", lambda o: o.jetstream.extension_hint),
    Key("JetStreamUniqueTag", lambda o: o.jetstream.unique_tag),
    Key("JetStreamLimits", _limits, _says("JetStream limits")),
    Key("JetStreamMaxCatchup", lambda o: o.jetstream.limits.catchup_bytes_max),
    Key("JetStreamRequestQueueLimit", lambda o: o.jetstream.limits.request_queue_max),
    Key("JetStreamInfoQueueLimit", lambda o: o.jetstream.limits.info_queue_max),
    Key("StreamMaxBufferedMsgs", lambda o: o.jetstream.limits.buffered_messages_max),
    Key("StreamMaxBufferedSize", lambda o: o.jetstream.limits.buffered_bytes_max),
    _key("Scrub", "scrub", lambda o: format_duration(o.jetstream.scrub_ns)),
    _key("ScrubRate", "scrub_rate", lambda o: o.jetstream.scrub_rate),
    Key("ChainSeed", lambda o: o.jetstream.chain_seed, _says("chain_seed")),
    Key("StoreDir", lambda o: o.jetstream.store_dir),
    Key("SyncInterval", lambda o: format_duration(o.jetstream.sync_interval_ns)),
    Key("SyncAlways", lambda o: o.jetstream.sync is SyncMode.ALWAYS),
    Key("SyncMode", lambda o: o.jetstream.sync.value),
    _key("PidFile", "pid_file", lambda o: o.pid_file),
    _key("PortsFileDir", "ports_file_dir", lambda o: o.ports_file_dir),
    _key("LogFile", "log_file", lambda o: o.log.file),
    Key("LogSizeLimit", lambda o: o.log.size_bytes_max),
    Key("LogMaxFiles", lambda o: o.log.files_max),
    Key("Routes", lambda o: set(o.cluster.routes), _says("cluster routes")),
    _key("TLSTimeout", "tls timeout", _tls_timeout),
    Key("TLSConfig", _tls, lambda o: f"Reloaded: tls = {'enabled' if o.tls else 'disabled'}"),
    Key("TLSMap", lambda o: o.tls is not None and o.tls.map_users),
    Key("TLSPinnedCerts", _pinned, lambda o: f"Reloaded: {len(_pinned(o))} pinned_certs"),
    Key(
        "TLSHandshakeFirst",
        _handshake_first,
        lambda o: f"Reloaded: Client TLS handshake first: {go_text(_handshake_first(o))}",
    ),
    Key(
        "TLSHandshakeFirstFallback",
        _handshake_wait,
        lambda o: f"Reloaded: Client TLS handshake first fallback delay: {_handshake_wait(o)}",
    ),
    Key("AllowNonTLS", lambda o: o.allow_non_tls),
    _key("WriteDeadline", "write_deadline", lambda o: format_duration(o.client.write_deadline_ns)),
    Key("WriteTimeout", lambda o: o.client.write_timeout.told),
    Key("MaxClosedClients", lambda o: o.client.closed_clients_max),
    Key("LameDuckDuration", lambda o: format_duration(o.lame_duck_duration_ns)),
    Key("LameDuckGracePeriod", lambda o: format_duration(o.lame_duck_grace_ns)),
    _key("MaxTracedMsgLen", "max_traced_msg_len", lambda o: o.log.traced_bytes_max),
    _key("ConnectErrorReports", "connect_error_reports", lambda o: o.connect_error_reports),
    _key("ReconnectErrorReports", "reconnect_error_reports", lambda o: o.reconnect_error_reports),
    Key("Tags", lambda o: o.server_tags, _says("tags")),
    Key("Metadata", lambda o: dict(o.server_metadata), _says("metadata")),
    Key("FeatureFlags", lambda o: dict(o.feature_flags)),
    Key("Raft", lambda o: o.raft),
    Key("Edge", lambda o: o.edge),
)
"""Everything of `Options` but what is only told: the file, its digest, and warnings."""
