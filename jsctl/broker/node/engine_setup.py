"""What the engine of JetStream is started with, and what it tells its peers of this server."""

import hashlib

from jsctl import __version__
from jsctl.broker.assets.cluster_view import TICK_NS, EngineOptions
from jsctl.broker.assets.engine import Engine
from jsctl.broker.assets.meta_group_file import read_founding
from jsctl.broker.errors import ConfigError
from jsctl.broker.jetstream.meta.placement import ServerFacts
from jsctl.broker.options import Options
from jsctl.broker.peers.items import ServerNews
from jsctl.broker.ports import Disk
from jsctl.broker.raft.types import RaftLimits, Timing
from jsctl.broker.replication.checkpoints import GroupLimits
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.routing.setup import peer_id
from jsctl.broker.store.identity import INCARNATION_BYTES, read, read_or_create
from jsctl.broker.turn import Jitter


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
        limits=GroupLimits(
            checkpoint_bytes=raft.checkpoint_bytes,
            checkpoint_entries=raft.checkpoint_entries,
            entries_kept=raft.entries_kept,
        ),
        raft_limits=RaftLimits(append_entries_max=raft.append_entries_max),
        log_segment_bytes=raft.log_segment_bytes,
    )


def news(options: Options, engine: Engine, identity: ServerIdentity) -> ServerNews:
    """What this server tells of itself to its peers."""
    jetstream = options.jetstream
    memory = store = streams = replicated = reserved_memory = reserved_store = 0
    for replica in engine.assets.streams.values():
        streams += 1
        used = replica.store.size_bytes
        reserved = max(replica.stream.config.max_bytes, 0)
        if replica.volatile:
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
        identity.server_id,
        identity.host,
        __version__,
        lame_duck=identity.lame_duck or engine.liveness.leaving,
    )
