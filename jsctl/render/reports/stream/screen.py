"""`stream info` and `stream state`."""

from collections.abc import Sequence

from jsctl.api.fields import NANOS_MAX, ZERO_TIME
from jsctl.api.stream import (
    ReplicaDamage,
    SourceInfo,
    StreamConfig,
    StreamInfo,
    StreamSource,
    StreamState,
)
from jsctl.api.words import Compression, Discard, PersistMode
from jsctl.render.details import Details
from jsctl.render.humanize import counted, duration, joined, limit, moment, number, size
from jsctl.render.reports.assets.parts import (
    RETENTION_WORDS,
    add_levels,
    add_metadata,
    add_migration,
    created_text,
    leader_text,
    peer_seen,
    peer_state,
)
from jsctl.render.reports.stream.checks import ranges_text
from jsctl.render.reports.stream.tables import storage_word


def stream_screen(info: StreamInfo, *, only_state: bool = False) -> Details:
    """Configuration and state, or the state alone."""
    word = "State" if only_state else "Information"
    name = info.config.name
    screen = Details(f"{word} for Stream {name} created {created_text(info.created)}")
    if not only_state:
        _add_config(screen, info.config)
    _add_cluster(screen, info)
    if info.mirror is not None:
        _add_sources(screen, "Mirror Information", [info.mirror])
    if info.sources:
        _add_sources(screen, "Source Information", info.sources)
    _add_state(screen, info)
    return screen


def _add_config(screen: Details, config: StreamConfig) -> None:
    screen.row_if("Description", config.description)
    screen.row_if("Subjects", joined(config.subjects))
    screen.row("Replicas", config.num_replicas)
    screen.row_if("Sealed", config.sealed)
    screen.row("Storage", storage_word(config.storage))
    if config.compression is not Compression.NONE:
        screen.row("Compression", "S2 Compression")
    if config.persist_mode is not PersistMode.DEFAULT:
        screen.row("Persistence Mode", str(config.persist_mode.value).title())
    screen.row_if("First Sequence", number(config.first_seq) if config.first_seq else "")
    if config.placement is not None:
        screen.row_if("Placement Cluster", config.placement.cluster)
        if config.placement.tags:
            screen.row("Placement Tags", joined(config.placement.tags))
    _add_options(screen, config)
    _add_limits(screen, config)
    add_metadata(screen, config.metadata)
    _add_replication(screen, config)


def _discard(config: StreamConfig) -> str:
    if config.discard is Discard.NEW and config.discard_new_per_subject:
        return "New Per Subject"
    return "New" if config.discard is Discard.NEW else "Old"


def _add_options(screen: Details, config: StreamConfig) -> None:
    screen.section("Options")
    transform = config.subject_transform
    if transform is not None and transform.dest:
        screen.row("Subject Transform", f"{transform.src or '>'} to {transform.dest}")
    if config.republish is not None:
        label = "Republishing Headers" if config.republish.headers_only else "Republishing"
        screen.row(label, f"{config.republish.src} to {config.republish.dest}")
    screen.row("Retention", RETENTION_WORDS.get(config.retention, config.retention.value))
    screen.row("Acknowledgments", not config.no_ack)
    screen.row("Discard Policy", _discard(config))
    screen.row("Duplicate Window", duration(config.duplicate_window))
    screen.row_if("Direct Get", config.allow_direct)
    screen.row_if("Mirror Direct Get", config.mirror_direct)
    screen.row("Allows Atomic Batch Publish", config.allow_atomic)
    screen.row("Allows Fast Batch Publish", config.allow_batched)
    screen.row("Allows Counters", config.allow_msg_counter)
    screen.row("Allows Msg Delete", not config.deny_delete)
    screen.row("Allows Per-Message TTL", config.allow_msg_ttl)
    screen.row("Allows Purge", not config.deny_purge)
    screen.row("Allows Schedules", config.allow_msg_schedules)
    if config.subject_delete_marker_ttl:
        screen.row("Subject Delete Markers TTL", duration(config.subject_delete_marker_ttl))
    screen.row("Allows Rollups", config.allow_rollup_hdrs)


def _add_limits(screen: Details, config: StreamConfig) -> None:
    screen.section("Limits")
    screen.row("Maximum Messages", limit(config.max_msgs))
    screen.row("Maximum Per Subject", limit(config.max_msgs_per_subject, none_from=0))
    screen.row("Maximum Bytes", "unlimited" if config.max_bytes == -1 else size(config.max_bytes))
    screen.row("Maximum Age", "unlimited" if config.max_age <= 0 else duration(config.max_age))
    largest = config.max_msg_size
    screen.row("Maximum Message Size", "unlimited" if largest == -1 else size(largest))
    screen.row("Maximum Consumers", limit(config.max_consumers))
    limits = config.consumer_limits
    if limits.inactive_threshold > 0:
        screen.row("Consumer Inactive Threshold", duration(limits.inactive_threshold))
    if limits.max_ack_pending > 0:
        screen.row("Consumer Max Ack Pending", number(limits.max_ack_pending))


def _add_replication(screen: Details, config: StreamConfig) -> None:
    screen.section("Replication")
    if config.mirror is not None:
        screen.row("Mirror", _source_text(config.mirror))
    ordered = sorted(config.sources, key=lambda source: source.name)
    screen.rows("Sources", [_source_text(source) for source in ordered])


def _source_text(source: StreamSource) -> str:
    parts = [source.name]
    if source.opt_start_seq:
        parts.append(f"Start Seq: {number(source.opt_start_seq)}")
    if source.opt_start_time:
        parts.append(f"Start Time: {moment(source.opt_start_time)}")
    if source.external is not None:
        if source.external.api:
            parts.append(f"API Prefix: {source.external.api}")
        if source.external.deliver:
            parts.append(f"Delivery Prefix: {source.external.deliver}")
    if source.consumer is not None and source.consumer.name:
        subject = source.consumer.deliver_subject
        parts.append(
            f"Consumer Name: {source.consumer.name}" + (f" ({subject})" if subject else "")
        )
    return ", ".join(parts)


def _add_cluster(screen: Details, info: StreamInfo) -> None:
    cluster, config = info.cluster, info.config
    if cluster is None or not cluster.name:
        return
    screen.section("Cluster Information")
    screen.row("Name", cluster.name)
    traffic = "System Account" if cluster.system_account else cluster.traffic_account
    screen.row_if("Cluster Traffic Account", traffic)
    screen.row_if("Cluster Group", cluster.raft_group)
    screen.row("Leader", leader_text(cluster, info.ts))
    for peer in cluster.replicas:
        parts = [peer.name, peer_state(peer)]
        if peer.offline:
            parts.append("OFFLINE")
        parts.append(peer_seen(peer))
        if peer.pending:
            parts.append("(pending)")
        if peer.lag:
            parts.append(f"{counted(peer.lag, 'operation')} behind")
        screen.row("Replica", ", ".join(parts))
    add_migration(screen, cluster, info.ts, config.num_replicas, config.placement, config.retention)


def _add_sources(screen: Details, title: str, sources: Sequence[SourceInfo]) -> None:
    screen.section(title)
    for at, source in enumerate(sources):
        if at:
            screen.text()
        screen.row("Stream Name", source.name)
        _add_filters(screen, source)
        screen.row("Lag", number(source.lag))
        seen = 0 < source.active < NANOS_MAX
        screen.row("Last Seen", duration(source.active) if seen else "never")
        if source.external is not None:
            screen.row_if("Ext. API Prefix", source.external.api)
            screen.row_if("Ext. Delivery Prefix", source.external.deliver)
        if source.error is not None:
            screen.row("Error", source.error.description)


def _add_filters(screen: Details, source: SourceInfo) -> None:
    transforms = source.subject_transforms
    if not transforms:
        screen.row_if("Subject Filter", source.filter_subject)
        return
    label = "Subject Filter and Transform"
    if len(transforms) > 1:
        label = "Subject Filters and Transforms"
    screen.rows(
        label,
        [f"{one.src or '>'} to {one.dest}" if one.dest else one.src for one in transforms],
    )


def _edge(seq: int, when: str) -> str:
    return number(seq) if when in ("", ZERO_TIME) else f"{number(seq)} @ {moment(when)}"


def _damage(one: ReplicaDamage) -> str:
    lost = f"{number(one.lost)} lost" if one.lost else "being repaired"
    return f"{number(one.messages)} on {one.name} ({lost}): {ranges_text(one.ranges)}"


def _add_state(screen: Details, info: StreamInfo) -> None:
    state: StreamState = info.state
    screen.section("State")
    add_levels(screen, info.config.metadata)
    screen.row("Messages", number(state.messages))
    screen.row("Bytes", size(state.bytes))
    if state.lost is not None and state.lost.msgs:
        screen.row("Lost Messages", f"{number(len(state.lost.msgs))} ({size(state.lost.bytes)})")
    screen.rows("Damaged Messages", map(_damage, info.damage))
    screen.row("First Sequence", _edge(state.first_seq, state.first_ts))
    screen.row("Last Sequence", _edge(state.last_seq, state.last_ts))
    deleted = state.num_deleted or len(state.deleted)
    if deleted:
        screen.row("Deleted Messages", number(deleted))
    screen.row("Active Consumers", number(state.consumer_count))
    if state.num_subjects:
        screen.row("Number of Subjects", number(state.num_subjects))
    screen.rows(
        "Alternates",
        [
            f"{one.name}: Cluster: {one.cluster}" + (f" Domain: {one.domain}" if one.domain else "")
            for one in info.alternates
        ],
    )
