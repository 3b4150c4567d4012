"""What the engine of JetStream is started with: options, and the identity of the store."""

from jsctl.broker.assets.engine_options import TICK_NS, EngineOptions, ScrubLimits, ServerCard
from jsctl.broker.assets.meta.group_file import read_founding
from jsctl.broker.errors import ConfigError
from jsctl.broker.jetstream.streams.publish_room import PublishLimits
from jsctl.broker.options import Options
from jsctl.broker.ports import Disk
from jsctl.broker.raft.types import RaftLimits, Timing
from jsctl.broker.replication.checkpoints import GroupLimits
from jsctl.broker.routing.limits import ServerIdentity
from jsctl.broker.routing.setup import peer_id
from jsctl.broker.store.identity import StoreIdentity, read, read_or_create
from jsctl.broker.store.segments.files import StoreOptions
from jsctl.broker.store.wal.new_store import NewStore, incarnation_of
from jsctl.broker.turn import Jitter


def store_identity(options: Options, disk: Disk, incarnation: str) -> StoreIdentity:
    """Read or make the store's identity.

    A single server may have another name at each start, as it gets one when none is configured;
    what it stored is its own all the same. In a cluster the name is what others know it by.
    Raises DiskError, ConfigError.
    """
    name = options.server_name
    known = read(disk)
    if known is not None and known.server != name:
        if options.replicated and read_founding(disk) is not None:
            raise ConfigError(
                f"the store belongs to the server '{known.server}'",
                place="server_name",
                remedy=f"start with that name, or with an empty store to join as '{name}'",
            )
        if not options.replicated:
            name = known.server
    return read_or_create(disk, name, options.cluster.name, incarnation_of(incarnation))


def engine_options(
    options: Options,
    identity: ServerIdentity,
    disk: Disk,
    incarnation: str,
    jitter: Jitter,
    new_store: NewStore | None = None,
) -> EngineOptions:
    """Who this server is to its peers, by the identity of its store: as `store_identity`."""
    found = new_store.identity if new_store else store_identity(options, disk, incarnation)
    raft, others = options.raft, options.gateway.others
    timing = Timing(
        election_ticks=max(raft.election_min_ns // TICK_NS, 4),
        heartbeat_ticks=max(raft.heartbeat_ns // TICK_NS, 1),
        lease_ticks=max(raft.election_min_ns // TICK_NS // 2, 1),
        quiet_ticks=raft.hibernate_after_ns // TICK_NS,
    )
    return EngineOptions(
        me=peer_id(found.server),
        server_name=options.server_name,
        cluster=options.cluster.name,
        incarnation=found.incarnation,
        boot=jitter(1 << 62) + 1,
        clustered=options.replicated,
        promised=max(len(options.cluster.routes), 1) + sum(len(one.urls) for one in others),
        other_clusters=tuple((one.name, len(one.urls)) for one in others),
        domain=options.jetstream.domain,
        card=server_card(options, identity),
        timing=timing,
        limits=GroupLimits(
            checkpoint_bytes=raft.checkpoint_bytes,
            checkpoint_entries=raft.checkpoint_entries,
            entries_kept=raft.entries_kept,
        ),
        raft_limits=RaftLimits(append_entries_max=raft.append_entries_max),
        log_segment_bytes=raft.log_segment_bytes,
        stores=StoreOptions(raft.store_segment_bytes),
        scrub=scrub_limits(options),
        publishing=publish_limits(options),
    )


def scrub_limits(options: Options) -> ScrubLimits:
    """How the disk is read for damage."""
    return ScrubLimits(options.jetstream.scrub_ns, options.jetstream.scrub_rate)


def publish_limits(options: Options) -> PublishLimits:
    """What publishers may do."""
    limits = options.jetstream.limits
    return PublishLimits(
        options.client.payload_bytes_max,
        limits.batches_per_stream_max,
        limits.batches_total_max,
        limits.batch_messages_max,
        limits.batch_timeout_ns,
    )


def server_card(options: Options, identity: ServerIdentity) -> ServerCard:
    """What other servers are told of this one."""
    return ServerCard(
        server_id=identity.server_id,
        host=identity.host,
        tags=options.server_tags,
        store_max=options.jetstream.store_bytes_max,
        memory_max=options.jetstream.memory_bytes_max,
        ha_assets_max=options.jetstream.limits.ha_assets_max,
    )
