"""Options, as the parts of the node need them."""

import hashlib
from collections.abc import Sequence

from jsctl import __version__
from jsctl.broker.cluster.engine import Engine
from jsctl.broker.cluster.founding_file import read_founding
from jsctl.broker.cluster.frame_items import ServerNews
from jsctl.broker.cluster.groups import Limits
from jsctl.broker.cluster.neighbours import TICK_NS, EngineOptions
from jsctl.broker.conf.units import host_text
from jsctl.broker.errors import ConfigError
from jsctl.broker.jetstream.placement import ServerFacts
from jsctl.broker.node.protocol_log import ProtocolLog
from jsctl.broker.options import COMPATIBLE_API_LEVEL, COMPATIBLE_VERSION, SYSTEM_ACCOUNT, Options
from jsctl.broker.ports import Disk
from jsctl.broker.raft.types import Limits as RaftLimits
from jsctl.broker.raft.types import Timing
from jsctl.broker.routing.limits import RoutingLimits, ServerIdentity
from jsctl.broker.store.identity import INCARNATION_BYTES, read, read_or_create
from jsctl.broker.turn import Jitter

_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PEER_ID_LENGTH = 8


def peer_id(server_name: str) -> str:
    """The short name that a server has in raft groups."""
    digest = hashlib.sha256(server_name.encode()).digest()[:PEER_ID_LENGTH]
    return bytes(_DIGITS[byte % len(_DIGITS)] for byte in digest).decode()


def identity(options: Options, server_id: str) -> ServerIdentity:
    """What INFO says."""
    return ServerIdentity(
        server_id=server_id,
        server_name=options.server_name or server_id,
        version=COMPATIBLE_VERSION,
        product_version=__version__,
        host=options.listen.host,
        port=options.listen.port,
        cluster=options.cluster.name if options.clustered else "",
        domain=options.jetstream.domain,
        jetstream=options.jetstream.enabled,
        headers=not options.client.no_header_support,
        auth_required=options.auth_required and not options.no_auth_user,
        tls_required=options.tls is not None and not options.allow_non_tls,
        tls_verify=options.tls is not None and options.tls.verify,
        tls_available=options.tls is not None and options.allow_non_tls,
        api_level=COMPATIBLE_API_LEVEL,
    )


def limits(options: Options) -> RoutingLimits:
    """Limits of client connections."""
    client = options.client
    return RoutingLimits(
        payload_bytes_max=client.payload_bytes_max,
        control_line_bytes_max=client.control_line_bytes_max,
        pending_bytes_max=client.pending_bytes_max,
        pending_bytes_high=client.pending_bytes_max * 3 // 4,
        connections_max=client.connections_max,
        subscriptions_max=max(client.subscriptions_max, 0),
        subscription_tokens_max=max(client.subscription_tokens_max, 0),
        ping_interval_ns=client.ping_interval_ns,
        pings_unanswered_max=client.pings_out_max,
        auth_timeout_ns=options.auth.timeout_ns,
        unfinished_bytes_max=max(client.unfinished_bytes_max, 4 * client.payload_bytes_max),
    )


def protocol_log(options: Options) -> ProtocolLog | None:
    """Who reads along where the operator wants to; None costs nothing."""
    log = options.log
    wanted = log.debug or log.trace or log.trace_verbose
    return ProtocolLog(log, limits(options)) if wanted else None


def system_account(options: Options) -> str:
    """The name of the system account."""
    return options.system_account or SYSTEM_ACCOUNT


def client_urls(
    told: tuple[str, int] | None, reached_at: Sequence[str], port: int
) -> tuple[str, ...]:
    """This server's own client URLs, as clients of all servers are told them.

    `told` is what the configuration wants to be told instead of the hosts.
    """
    if told is not None:
        return (host_text(*told),)
    return tuple(host_text(host, port) for host in reached_at)


def engine_options(options: Options, disk: Disk, incarnation: str, jitter: Jitter) -> EngineOptions:
    """Who this server is to its peers. Reads or makes the store's identity.

    A single server may have another name at each start, as it gets one when none is configured;
    what it stored is its own all the same. In a cluster the name is what others know it by.
    Raises DiskError, ConfigError.
    """
    name = options.server_name
    known = read(disk)
    if known is not None and known.server != name:
        if options.clustered and read_founding(disk) is not None:
            raise ConfigError(
                f"the store belongs to the server '{known.server}'",
                place="server_name",
                remedy=f"start with that name, or with an empty store to join as '{name}'",
            )
        if not options.clustered:
            name = known.server
    fresh = hashlib.sha256(incarnation.encode()).digest()[:INCARNATION_BYTES]
    found = read_or_create(disk, name, options.cluster.name, fresh)
    raft = options.raft
    timing = Timing(
        election_ticks=max(raft.election_min_ns // TICK_NS, 4),
        heartbeat_ticks=max(raft.heartbeat_ns // TICK_NS, 1),
        lease_ticks=max(raft.election_min_ns // TICK_NS // 2, 1),
        quiet_ticks=raft.hibernate_after_ns // TICK_NS,
    )
    return EngineOptions(
        me=peer_id(name),
        server_name=options.server_name,
        cluster=options.cluster.name,
        incarnation=found.incarnation,
        boot=jitter(1 << 62) + 1,
        clustered=options.clustered,
        promised=max(len(options.cluster.routes), 1),
        domain=options.jetstream.domain,
        timing=timing,
        limits=Limits(
            checkpoint_bytes=raft.checkpoint_bytes,
            checkpoint_entries=raft.checkpoint_entries,
            entries_kept=raft.entries_kept,
        ),
        raft_limits=RaftLimits(append_entries_max=raft.append_entries_max),
        log_segment_bytes=raft.log_segment_bytes,
    )


def news(options: Options, engine: Engine, server_id: str, identity_: ServerIdentity) -> ServerNews:
    """What this server tells of itself to its peers."""
    jetstream = options.jetstream
    memory = store = streams = replicated = reserved_memory = reserved_store = 0
    for unit in engine.assets.streams.values():
        streams += 1
        used = unit.store.state().bytes
        reserved = max(unit.stream.config.max_bytes, 0)
        if unit.volatile:
            memory += used
            reserved_memory += reserved
        else:
            store += used
            reserved_store += reserved
    for group in engine.groups.by_name.values():
        replicated += len(group.raft.members.voters) > 1
    facts = ServerFacts(
        peer=engine.options.me,
        name=engine.options.server_name,
        cluster=options.cluster.name,
        domain=jetstream.domain,
        tags=options.server_tags,
        jetstream=jetstream.enabled and not engine.removed,
        store_max=jetstream.store_bytes_max,
        store_used=store,
        store_reserved=reserved_store,
        memory_max=jetstream.memory_bytes_max,
        memory_used=memory,
        memory_reserved=reserved_memory,
        streams=streams,
        ha_assets=max(replicated - 1, 0),
        ha_assets_max=jetstream.limits.ha_assets_max,
        incarnation=engine.options.life,
        boot=engine.options.boot,
    )
    return ServerNews(
        facts,
        server_id,
        identity_.host,
        __version__,
        lame_duck=identity_.lame_duck or engine.liveness.leaving,
    )
