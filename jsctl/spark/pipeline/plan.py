"""What a run of a pipeline would do: asks the server and the checkpoint, never Spark."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.api.errors import ApiError
from jsctl.api.stream import StreamInfo
from jsctl.errors import NotFound
from jsctl.spark.pipeline.layout import BatchDirectory
from jsctl.spark.pipeline.payloads import PayloadSchema, columns_of
from jsctl.spark.pipeline.specification.ddl import parse_schema
from jsctl.spark.pipeline.specification.keys import MESSAGE_COLUMNS
from jsctl.spark.pipeline.specification.spec import Spec
from jsctl.spark.pipeline.state import Checkpoint

if TYPE_CHECKING:
    from jsctl.client.manager import Manager

STREAM_NOT_FOUND = 10059


@dataclass(frozen=True, slots=True)
class Plan:
    """The facts. Sequences are inclusive; `messages` counts those that wait, before any filter.

    `batches` is how many batches they make. `columns` are those that the query may use.
    """

    name: str
    source: str
    first_seq: int
    last_seq: int
    messages: int
    batches: int
    goes_on: bool
    committed_batch: int
    partitions: int
    columns: tuple[str, ...]
    transform: str
    sink: str
    dead_letter: str
    trigger: str
    checkpoint: str
    master: str
    warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


async def make_plan(spec: Spec, manager: "Manager") -> Plan:
    """The plan of a pipeline. Raises NotFound when its stream is missing."""
    if spec.source.archive:
        manifest = BatchDirectory(Path(spec.source.archive)).manifest()
        files = [one for batch in manifest["batches"] for one in batch["files"]]
        first = min((one["first_seq"] for one in files), default=0)
        last = max((one["last_seq"] for one in files), default=0)
        return _plan(spec, f"archive {spec.source.archive}", first, last, int(manifest["rows"]))
    info = await stream_of(manager, spec.source.stream)
    first, last = await _range(spec, manager, info)
    warnings = _warnings(spec, info)
    waiting = (
        0
        if first > last
        else last - first + 1
        if spec.source.filter
        else min(last - first + 1, info.state.messages)
    )
    return _plan(spec, f"stream {spec.source.stream}", first, last, waiting, warnings)


async def stream_of(manager: "Manager", name: str) -> StreamInfo:
    """A stream's info; raises NotFound that names similar streams."""
    from difflib import get_close_matches

    try:
        return await manager.stream_info(name)
    except ApiError as error:
        if error.err_code != STREAM_NOT_FOUND:
            raise
    known = await manager.stream_names()
    near = get_close_matches(name, known, 3)
    hints: tuple[str, ...] = (f"did you mean {', '.join(near)}?",) if near else ()
    hints += (f"streams of this account: {', '.join(sorted(known)[:10]) or 'none'}",)
    raise NotFound(f"stream {name} not found", hints=hints)


async def _range(spec: Spec, manager: "Manager", info: StreamInfo) -> tuple[int, int]:
    state = info.state
    reached = Checkpoint(spec.checkpoint).position().get(spec.source.stream, 0)
    if reached:
        return reached + 1, state.last_seq
    start = spec.source.start
    if start == "latest":
        return state.last_seq + 1, state.last_seq
    if start == "earliest":
        return max(1, state.first_seq), state.last_seq
    if start.isdigit():
        return max(int(start), state.first_seq), state.last_seq
    return await sequence_at(manager, info, start), state.last_seq


async def sequence_at(manager: "Manager", info: StreamInfo, time: str) -> int:
    """The first sequence stored at or after a time; one behind the last if there is none."""
    from jsctl.api.times import parse_time

    wanted = parse_time(time)
    low, high = max(1, info.state.first_seq), info.state.last_seq + 1
    while low < high:
        middle = (low + high) // 2
        try:
            found = await manager.message(info.config.name, seq=middle, next_for=">")
        except ApiError:
            high = middle
            continue
        if parse_time(found.time) >= wanted:
            high = middle
        else:
            low = found.seq + 1
    return low


def _plan(
    spec: Spec,
    source: str,
    first: int,
    last: int,
    messages: int,
    warnings: tuple[str, ...] = (),
) -> Plan:
    checkpoint = Checkpoint(spec.checkpoint)
    committed = checkpoint.committed()
    span = max(0, last - first + 1)
    size = spec.limits.max_offsets or max(1, span)
    return Plan(
        name=spec.name,
        source=source
        + (f", subjects {', '.join(spec.source.filter)}" if spec.source.filter else ""),
        first_seq=first,
        last_seq=last,
        messages=messages,
        batches=-(-span // size) if messages else 0,
        goes_on=committed >= 0,
        committed_batch=committed,
        partitions=spec.limits.partitions,
        columns=input_columns(spec),
        transform=" ".join(spec.transform.split()),
        sink=_sink(spec),
        dead_letter=_dead_letter(spec),
        trigger=_trigger(spec),
        checkpoint=spec.checkpoint,
        master=spec.spark.master,
        warnings=warnings,
    )


def payload_schema(spec: Spec) -> PayloadSchema:
    """The schema of an avro or protobuf payload, its file read."""
    decode = spec.decode
    definition = Path(decode.schema_file).read_bytes()
    return PayloadSchema(decode.format, definition, decode.message, decode.framing)


def input_columns(spec: Spec) -> tuple[str, ...]:
    """The columns of the view `input`, without asking Spark."""
    kind = spec.decode.format
    base = [name for name in MESSAGE_COLUMNS if name != "headers" or spec.source.headers]
    if kind == "none":
        return tuple(base)
    if kind == "text":
        return (*base, "value")
    fields = (
        parse_schema(spec.decode.schema) if kind == "json" else columns_of(payload_schema(spec))
    )
    free = [field.name for field in fields if field.name.lower() not in (*base, "value")]
    return (*base, "value", *free)


def _sink(spec: Spec) -> str:
    sink = spec.sink
    if sink.type in ("parquet", "delta"):
        by = f", partitioned by {', '.join(sink.partition_by)}" if sink.partition_by else ""
        return f"{sink.type} {sink.path}{by}"
    if sink.type == "jetstream":
        into = f" in stream {sink.stream}" if sink.stream else ""
        return f"jetstream {sink.subject or 'the column subject'}{into}"
    return f"console, {sink.rows} rows a batch"


def _dead_letter(spec: Spec) -> str:
    if spec.dead_letter is None:
        return f"none, undecodable payloads: {spec.decode.on_error}"
    return f"{spec.dead_letter.type} {spec.dead_letter.subject or spec.dead_letter.path}"


def _trigger(spec: Spec) -> str:
    if spec.trigger.once:
        return "once"
    return f"every {spec.trigger.every / 1e9:g} s"


def _warnings(spec: Spec, info: StreamInfo) -> tuple[str, ...]:
    found = []
    retention = getattr(info.config.retention, "value", info.config.retention)
    if retention == "workqueue" and spec.source.mode == "consumer":
        found.append("a work queue lets no second consumer in: write source.mode: direct")
    if spec.source.mode == "direct" and not info.config.allow_direct:
        found.append("the stream does not allow direct gets: edit it with --allow-direct")
    if spec.sink.type == "jetstream" and _feeds_itself(spec, info):
        found.append(
            "the sink's subject is captured by the source stream: the pipeline feeds itself"
        )
    return tuple(found)


def _feeds_itself(spec: Spec, info: StreamInfo) -> bool:
    wanted = spec.sink.subject.split(".")
    return bool(spec.sink.subject) and any(
        _matches(pattern.split("."), wanted) for pattern in info.config.subjects
    )


def _matches(pattern: list[str], subject: list[str]) -> bool:
    for at, token in enumerate(pattern):
        if token == ">":
            return len(subject) > at
        if at >= len(subject) or token not in ("*", subject[at]):
            return False
    return len(pattern) == len(subject)
