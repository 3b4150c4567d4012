"""Buckets of objects: lists, contents, info screens."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from jsctl.api.stream import StreamInfo
from jsctl.api.times import parse_time
from jsctl.api.words import SERVER_KEYS, Compression
from jsctl.render.column import Column
from jsctl.render.details import Details
from jsctl.render.humanize import duration, moment, number, size
from jsctl.render.reports.buckets import add_cluster, bucket_columns, limit_text
from jsctl.render.reports.stream.tables import storage_word

OBJECT_PREFIX = "OBJ_"
STORE_COLUMNS = bucket_columns(OBJECT_PREFIX)


class _Object(Protocol):
    """What an object is."""

    @property
    def name(self) -> str: ...
    @property
    def bucket(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...
    @property
    def size(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    @property
    def digest_hex(self) -> str: ...
    @property
    def deleted(self) -> bool: ...
    @property
    def modified(self) -> str: ...


OBJECT_COLUMNS: tuple[Column[_Object], ...] = (
    Column("name", "Name", lambda one: one.name),
    Column("size", "Size", lambda one: one.size, lambda one: size(one.size)),
    Column("modified", "Time", lambda one: one.modified, lambda one: moment(one.modified)),
)


def store_document(info: StreamInfo) -> dict[str, object]:
    """A bucket for programs: what it is, and its stream as the API tells it."""
    return {
        "bucket": info.config.name.removeprefix(OBJECT_PREFIX),
        "description": info.config.description,
        "replicas": info.config.num_replicas,
        "ttl": info.config.max_age,
        "sealed": info.config.sealed,
        "compressed": info.config.compression is not Compression.NONE,
        "bytes": info.state.bytes,
        "stream": info,
    }


def store_screen(info: StreamInfo) -> Details:
    """Configuration and state of a bucket."""
    config = info.config
    name = config.name.removeprefix(OBJECT_PREFIX)
    screen = Details(f"Information for Object Store Bucket {name} created {moment(info.created)}")
    screen.section("Configuration")
    screen.row("Bucket Name", name)
    screen.row_if("Description", config.description)
    screen.row("Replicas", config.num_replicas)
    screen.row("TTL", duration(config.max_age) if config.max_age else "unlimited")
    screen.row("Sealed", config.sealed)
    screen.row("Size", size(info.state.bytes))
    screen.row("Maximum Bucket Size", limit_text(config.max_bytes))
    screen.row("Storage", storage_word(config.storage))
    screen.row("Backing Store Kind", "JetStream")
    screen.row("JetStream Stream", config.name)
    kept = {key: text for key, text in config.metadata.items() if key not in SERVER_KEYS}
    screen.rows("Metadata", pairs(kept))
    add_cluster(screen, info.cluster)
    return screen


def pairs(values: Mapping[str, str]) -> list[str]:
    """`key: value` by key, the keys aligned."""
    longest = max((len(key) for key in values), default=0)
    return [f"{key:>{longest}}: {values[key]}" for key in sorted(values)]


def object_screen(info: _Object) -> Details:
    """What an object is."""
    screen = Details(f"Object information for {info.bucket} > {info.name}")
    screen.row_if("Description", info.description)
    screen.row("Size", size(info.size))
    screen.row("Modification Time", moment(info.modified) if parse_time(info.modified) else "never")
    screen.row("Chunks", number(info.chunks))
    screen.row("Digest", info.digest_hex)
    screen.row_if("Deleted", info.deleted)
    headers = [f"{key}: {value}" for key in sorted(info.headers) for value in info.headers[key]]
    screen.rows("Headers", headers)
    if info.metadata:
        screen.section("Metadata")
        for key in sorted(info.metadata):
            screen.row(key, info.metadata[key])
    return screen
