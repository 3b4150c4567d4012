"""Buckets of keys and values: lists, contents, histories, info screens."""

import time
from base64 import b64encode
from typing import Protocol

from jsctl.api.cluster import ClusterInfo
from jsctl.api.fields import NANOS_MAX
from jsctl.api.stream import SourceInfo, StreamInfo
from jsctl.api.times import format_duration, format_time, parse_time
from jsctl.api.words import SERVER_KEYS, Compression
from jsctl.render.column import Column
from jsctl.render.details import Details
from jsctl.render.humanize import counted, duration, moment, moment_ns, number, size
from jsctl.render.reports.assets.parts import peer_seen, peer_state
from jsctl.render.reports.stream.tables import storage_word

KV_PREFIX = "KV_"
VALUE_MAX = 40
"""Longer values are shown by their ends."""
VALUE_ENDS = 15


class _Named(Protocol):
    @property
    def value(self) -> str: ...


class _Entry(Protocol):
    """A revision of a key."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> bytes: ...
    @property
    def revision(self) -> int: ...
    @property
    def created_ns(self) -> int: ...
    @property
    def operation(self) -> _Named: ...
    @property
    def pending(self) -> int: ...


def readable(value: bytes) -> str:
    """The text, or base64 of what is none."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return b64encode(value).decode()
    printable = all(mark.isprintable() or mark.isspace() for mark in text)
    return text if printable else b64encode(value).decode()


def shortened(value: bytes) -> str:
    """The two ends of a long value."""
    text = readable(value)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_ENDS]}...{text[-VALUE_ENDS:]}"


def last_update(info: StreamInfo) -> str:
    """How long ago something was stored."""
    then_ns = parse_time(info.state.last_ts)
    return duration(max(0, time.time_ns() - then_ns)) if then_ns else "never"


def bucket_columns(prefix: str) -> tuple[Column[StreamInfo], ...]:
    """What all kinds of buckets show in lists; `prefix` is that of their streams."""
    return (
        Column("name", "Bucket", lambda info: info.config.name.removeprefix(prefix)),
        Column("description", "Description", lambda info: info.config.description),
        Column("created", "Created", lambda info: info.created, lambda info: moment(info.created)),
        Column("size", "Size", lambda info: info.state.bytes, lambda info: size(info.state.bytes)),
        Column("last_update", "Last Update", lambda info: info.state.last_ts, last_update),
    )


_COMMON = bucket_columns(KV_PREFIX)
KV_COLUMNS: tuple[Column[StreamInfo], ...] = (
    *_COMMON[:4],
    Column(
        "values",
        "Values",
        lambda info: info.state.messages,
        lambda info: number(info.state.messages),
    ),
    _COMMON[4],
)


def _created(entry: _Entry) -> str:
    return format_time(entry.created_ns)


def _created_text(entry: _Entry) -> str:
    return moment_ns(entry.created_ns)


CONTENT_COLUMNS: tuple[Column[_Entry], ...] = (
    Column("key", "Key", lambda entry: entry.key),
    Column("created", "Created", _created, _created_text),
    Column("delta", "Delta", lambda entry: entry.pending),
    Column("revision", "Revision", lambda entry: entry.revision),
)
VALUE_COLUMN: Column[_Entry] = Column(
    "value",
    "Value",
    lambda entry: readable(entry.value),
    lambda entry: entry.value.decode("utf-8", "replace"),
)
HISTORY_COLUMNS: tuple[Column[_Entry], ...] = (
    Column("key", "Key", lambda entry: entry.key),
    Column("revision", "Revision", lambda entry: entry.revision),
    Column("operation", "Op", lambda entry: entry.operation.value),
    Column("created", "Created", _created, _created_text),
    Column(
        "length",
        "Length",
        lambda entry: len(entry.value),
        lambda entry: number(len(entry.value)),
    ),
    Column(
        "value",
        "Value",
        lambda entry: readable(entry.value),
        lambda entry: shortened(entry.value),
    ),
)


def entry_document(bucket: str, entry: _Entry) -> dict[str, object]:
    """A revision for programs; `encoding` says when the value is base64."""
    text = readable(entry.value)
    document: dict[str, object] = {
        "bucket": bucket,
        "key": entry.key,
        "revision": entry.revision,
        "created": _created(entry),
        "operation": entry.operation.value,
        "value": text,
    }
    if text.encode() != entry.value:
        document["encoding"] = "base64"
    return document


def bucket_document(info: StreamInfo) -> dict[str, object]:
    """A bucket for programs: what it is, and its stream as the API tells it."""
    return {
        "bucket": info.config.name.removeprefix(KV_PREFIX),
        "history": info.config.max_msgs_per_subject,
        "values": info.state.messages,
        "compressed": info.config.compression is not Compression.NONE,
        "limit_marker_ttl": info.config.subject_delete_marker_ttl,
        "bytes": info.state.bytes,
        "stream": info,
    }


def bucket_screen(info: StreamInfo) -> Details:
    """Configuration and state of a bucket."""
    config = info.config
    name = config.name.removeprefix(KV_PREFIX)
    screen = Details(
        f"Information for Key-Value Store Bucket {name} created {moment(info.created)}"
    )
    screen.section("Configuration")
    screen.row("Bucket Name", name)
    screen.row("History Kept", config.max_msgs_per_subject)
    screen.row("Values Stored", number(info.state.messages))
    screen.row("Compressed", config.compression is not Compression.NONE)
    marker_ns = config.subject_delete_marker_ttl
    screen.row("Per-Key TTL Supported", marker_ns > 0)
    if marker_ns > 0:
        screen.row("Limit Marker TTL", format_duration(marker_ns))
    screen.row("Backing Store Kind", "JetStream")
    screen.row_if("Description", config.description)
    screen.row("Bucket Size", size(info.state.bytes))
    screen.row("Maximum Bucket Size", limit_text(config.max_bytes))
    screen.row("Maximum Value Size", limit_text(config.max_msg_size))
    screen.row("Maximum Age", "unlimited" if config.max_age <= 0 else duration(config.max_age))
    screen.row("JetStream Stream", config.name)
    screen.row("Storage", storage_word(config.storage))
    if config.republish is not None:
        label = "Republishing Headers" if config.republish.headers_only else "Republishing"
        screen.row(label, f"{config.republish.src} to {config.republish.dest}")
    _add_origins(screen, info)
    _add_metadata(screen, config.metadata)
    add_cluster(screen, info.cluster)
    return screen


def limit_text(limit_bytes: int) -> str:
    """A limit of bytes."""
    return "unlimited" if limit_bytes == -1 else size(limit_bytes)


def _add_origins(screen: Details, info: StreamInfo) -> None:
    """Where a bucket's keys come from."""
    if info.mirror is not None and info.config.mirror is not None:
        screen.section("Mirror Information")
        screen.row("Origin Bucket", info.config.mirror.name.removeprefix(KV_PREFIX))
        if info.config.mirror.external is not None:
            screen.row("External API", info.config.mirror.external.api)
        _add_lag(screen, info.mirror)
    if info.sources:
        screen.section("Sources Information")
    for source in info.sources:
        configured = [one for one in info.config.sources if one.name == source.name]
        for one in configured:
            screen.row("Source Bucket", source.name.removeprefix(KV_PREFIX))
            if one.external is not None:
                screen.row("External API", one.external.api)
        _add_lag(screen, source)


def _add_lag(screen: Details, source: SourceInfo) -> None:
    seen = 0 < source.active < NANOS_MAX
    screen.row("Last Seen", duration(source.active) if seen else "never")
    screen.row("Lag", number(source.lag))


def _add_metadata(screen: Details, metadata: dict[str, str]) -> None:
    kept = {key: text for key, text in metadata.items() if key not in SERVER_KEYS}
    if kept:
        screen.section("Metadata")
    for key in sorted(kept):
        screen.row(key, kept[key])


def add_cluster(screen: Details, cluster: ClusterInfo | None) -> None:
    """The servers that hold a bucket."""
    if cluster is None:
        return
    screen.section("Cluster Information")
    screen.row("Name", cluster.name)
    screen.row("Leader", cluster.leader)
    for peer in cluster.replicas:
        parts = [peer.name, peer_state(peer)]
        if peer.offline:
            parts.append("OFFLINE")
        parts.append(peer_seen(peer))
        if peer.lag:
            parts.append(f"{counted(peer.lag, 'operation')} behind")
        screen.row("Replica", ", ".join(parts))
