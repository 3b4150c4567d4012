"""`stream report` and `stream ls`."""

from collections.abc import Sequence

from jsctl.api.fields import NANOS_MAX
from jsctl.api.stream import SourceInfo, StreamInfo, StreamSource
from jsctl.api.words import Storage
from jsctl.dataclass import dataclass
from jsctl.render.column import Column, Duration
from jsctl.render.humanize import duration, moment, number, since, size
from jsctl.render.reports.assets.parts import api_level, cluster_cell, placement_cell

SYSTEM_PREFIXES = ("KV_", "OBJ_", "$MQTT_", "MQTT_")


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A stream in a report; counts and bytes are plain numbers."""

    info: StreamInfo

    @property
    def deleted(self) -> int:
        """Holes in the sequence."""
        return self.info.state.num_deleted or len(self.info.state.deleted)

    @property
    def lost(self) -> tuple[int, int]:
        """Messages and bytes that are damaged for good."""
        lost = self.info.state.lost
        return (len(lost.msgs), lost.bytes) if lost else (0, 0)


def damage_text(info: StreamInfo) -> str:
    """`n2: 12, n3: 5 lost` of servers that cannot read some messages of their replica."""
    return ", ".join(
        f"{one.name}: {number(one.messages)}" + (f" ({number(one.lost)} lost)" if one.lost else "")
        for one in info.damage
    )


def is_system_stream(name: str) -> bool:
    """Streams behind buckets and MQTT, which are hidden unless asked for."""
    return name.startswith(SYSTEM_PREFIXES)


def storage_word(storage: Storage) -> str:
    """As natscli names it."""
    return {Storage.FILE: "File", Storage.MEMORY: "Memory"}.get(storage, str(storage.value))


def _lost_text(row: StreamRow) -> str:
    count, lost_bytes = row.lost
    return f"{number(count)} ({size(lost_bytes)})" if count else "0"


REPORT_COLUMNS: tuple[Column[StreamRow], ...] = (
    Column("name", "Stream", lambda row: row.info.config.name),
    Column("storage", "Storage", lambda row: storage_word(row.info.config.storage)),
    Column(
        "placement", "Placement", lambda row: placement_cell(row.info.config.placement), priority=3
    ),
    Column(
        "consumers",
        "Consumers",
        lambda row: row.info.state.consumer_count,
        lambda row: number(row.info.state.consumer_count),
    ),
    Column(
        "messages",
        "Messages",
        lambda row: row.info.state.messages,
        lambda row: number(row.info.state.messages),
    ),
    Column(
        "bytes", "Bytes", lambda row: row.info.state.bytes, lambda row: size(row.info.state.bytes)
    ),
    Column("lost", "Lost", lambda row: row.lost[0], _lost_text, priority=1),
    Column(
        "deleted", "Deleted", lambda row: row.deleted, lambda row: number(row.deleted), priority=1
    ),
    Column(
        "api_level",
        "API Level",
        lambda row: api_level(row.info.config.metadata),
        lambda row: str(api_level(row.info.config.metadata)),
        priority=2,
    ),
    Column("replicas", "Replicas", lambda row: cluster_cell(row.info.cluster)),
)


DAMAGE_COLUMN: Column[StreamRow] = Column(
    "damaged", "Damaged", lambda row: damage_text(row.info), priority=1
)


def report_columns(
    rows: Sequence[StreamRow], *, machine: bool = False
) -> tuple[Column[StreamRow], ...]:
    """`REPORT_COLUMNS`; for people with what is damaged if anything is, for programs always."""
    if machine or any(row.info.damage for row in rows):
        return (*REPORT_COLUMNS, DAMAGE_COLUMN)
    return REPORT_COLUMNS


def last_message(info: StreamInfo) -> str:
    """How long ago the last message came."""
    return since(info.state.last_ts, info.ts)


LIST_COLUMNS: tuple[Column[StreamRow], ...] = (
    Column("name", "Name", lambda row: row.info.config.name),
    Column("description", "Description", lambda row: row.info.config.description, priority=2),
    Column(
        "created",
        "Created",
        lambda row: row.info.created,
        lambda row: moment(row.info.created),
        priority=1,
    ),
    Column(
        "messages",
        "Messages",
        lambda row: row.info.state.messages,
        lambda row: number(row.info.state.messages),
    ),
    Column(
        "bytes", "Size", lambda row: row.info.state.bytes, lambda row: size(row.info.state.bytes)
    ),
    Column(
        "last_message",
        "Last Message",
        lambda row: row.info.state.last_ts,
        lambda row: last_message(row.info),
    ),
)


@dataclass(frozen=True, slots=True)
class ReplicationRow:
    """A mirror or source of a stream."""

    stream: str
    kind: str
    declared: StreamSource
    state: SourceInfo | None

    @property
    def active_ns(self) -> int:
        """Time since the origin was heard; -1 unknown."""
        return self.state.active if self.state else -1


def _filters(row: ReplicationRow) -> str:
    source = row.state or row.declared
    parts = [
        f"{transform.src or '>'} to {transform.dest}" for transform in source.subject_transforms
    ]
    if source.filter_subject and not parts:
        parts.append(f"{source.filter_subject} untransformed")
    return ", ".join(parts)


def _active(row: ReplicationRow) -> str:
    return "never" if not 0 < row.active_ns < NANOS_MAX else duration(row.active_ns)


def _error(row: ReplicationRow) -> str:
    error = row.state.error if row.state else None
    return f"{error.description} ({error.err_code})" if error else ""


def _lag(row: ReplicationRow) -> int:
    return row.state.lag if row.state else 0


REPLICATION_COLUMNS: tuple[Column[ReplicationRow], ...] = (
    Column("stream", "Stream", lambda row: row.stream),
    Column("kind", "Kind", lambda row: row.kind),
    Column(
        "api_prefix",
        "API Prefix",
        lambda row: row.declared.external.api if row.declared.external else "",
    ),
    Column("source", "Source Stream", lambda row: row.declared.name),
    Column("filters", "Filters and Transforms", _filters),
    Column(
        "active",
        "Active",
        lambda row: row.active_ns,
        _active,
        raw=lambda row: Duration(row.active_ns),
    ),
    Column("lag", "Lag", _lag, lambda row: number(_lag(row))),
    Column("error", "Error", _error),
)


def replication_rows(infos: Sequence[StreamInfo]) -> list[ReplicationRow]:
    """All mirrors and sources of the streams, in the streams' order."""
    rows: list[ReplicationRow] = []
    for info in infos:
        name = info.config.name
        if info.config.mirror is not None:
            rows.append(ReplicationRow(name, "Mirror", info.config.mirror, info.mirror))
        named = {state.name: state for state in info.sources}
        states = {_identity(state): state for state in info.sources}
        rows += [
            ReplicationRow(name, "Source", one, states.get(_identity(one)) or named.get(one.name))
            for one in info.config.sources
        ]
    return rows


def _identity(source: StreamSource | SourceInfo) -> tuple[object, ...]:
    """What tells the sources of a stream apart: two may be the same stream with other filters."""
    moves = tuple((one.src, one.dest) for one in source.subject_transforms)
    external = source.external.api if source.external else ""
    return source.name, source.filter_subject, moves, external


def replication_graph(infos: Sequence[StreamInfo]) -> str:
    """A GraphViz digraph of the same: sources green with their filter, mirrors blue."""
    numbers: dict[str, int] = {}
    edges: dict[str, list[str]] = {}
    for row in replication_rows(infos):
        target = numbers.setdefault(row.stream, len(numbers) + 1)
        origin = row.declared.name
        marks = {"color": "blue", "label": "Mirror"} if row.kind == "Mirror" else _edge_marks(row)
        text = ",".join(f"{key}={_quoted(value)}" for key, value in marks.items())
        start = numbers.setdefault(origin, len(numbers) + 1)
        edges.setdefault(origin, []).append(f"n{start}->n{target}[{text}];")
    lines = ["digraph  {", '\tlabel="Stream Replication Structure";']
    lines += [f"\tn{number}[label={_quoted(name)}];" for name, number in sorted(numbers.items())]
    lines += [f"\t{edge}" for _, found in sorted(edges.items()) for edge in found]
    return "\n".join([*lines, "\t", "}"])


def _edge_marks(row: ReplicationRow) -> dict[str, str]:
    """Of a source; the order of their names is that of the file."""
    label = _filters(row).removesuffix(" untransformed")
    return {"color": "green", "label": label} if label else {"color": "green"}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
