"""Chunks of rows -> Arrow batches in exactly the types that Spark expects of a schema.

Whole columns are converted at once. A column that is not in the schema costs nothing here.
"""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from jsctl.spark.scan.range import Chunk

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_TIMESTAMP = pa.timestamp("us", "UTC")
_HEADER = re.compile(rb"([^:\r\n]+):[ \t]*([^\r\n]*)\r\n")


def arrow_schema(schema: "StructType") -> pa.Schema:
    """The Arrow types that Spark checks batches against."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def record_batch(chunk: Chunk, schema: pa.Schema, stream: str) -> pa.RecordBatch:
    """The columns of a schema, in its order."""
    arrays = [COLUMNS[field.name](chunk, field.type, stream) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _text(values: Sequence[bytes], wanted: pa.DataType) -> pa.Array:
    """Bytes as text; what is not UTF-8 gets replacement characters."""
    array = pa.array(values, pa.binary())
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in values], wanted)


def _subject(chunk: Chunk, wanted: pa.DataType, _stream: str) -> pa.Array:
    return _text(chunk.subjects, wanted)


def _data(chunk: Chunk, wanted: pa.DataType, _stream: str) -> pa.Array:
    return pa.array(chunk.payloads, wanted)


def _stream(chunk: Chunk, wanted: pa.DataType, stream: str) -> pa.Array:
    return pa.repeat(pa.scalar(stream, wanted), len(chunk.seqs))


def _seq(chunk: Chunk, wanted: pa.DataType, _stream: str) -> pa.Array:
    return pa.array(chunk.seqs, wanted)


def _ts_ns(chunk: Chunk, wanted: pa.DataType, _stream: str) -> pa.Array:
    text = pa.array(chunk.times, pa.binary()).cast(pa.string())
    if chunk.times and b"-" in chunk.times[0]:
        return text.cast(pa.timestamp("ns", "UTC")).cast(wanted)
    return text.cast(wanted)


def _timestamp(chunk: Chunk, wanted: pa.DataType, stream: str) -> pa.Array:
    nanos = _ts_ns(chunk, pa.int64(), stream).cast(pa.timestamp("ns", "UTC"))
    return nanos.cast(_TIMESTAMP, safe=False).cast(wanted)


def _headers(chunk: Chunk, wanted: pa.MapType, _stream: str) -> pa.Array:
    """Blocks taken apart into map<text, list<text>>; names keep their order and spelling."""
    keys: list[bytes] = []
    values: list[bytes] = []
    maps, lists = [0], [0]
    for block in chunk.heads:
        if block:
            for key, found in parse_headers(block).items():
                keys.append(key)
                values += found
                lists.append(len(values))
        maps.append(len(keys))
    items = wanted.item_type
    inner = pa.ListArray.from_arrays(
        pa.array(lists, pa.int32()), _text(values, items.value_type), type=items
    )
    return pa.MapArray.from_arrays(
        pa.array(maps, pa.int32()), _text(keys, wanted.key_type), inner, type=wanted
    )


def parse_headers(block: bytes) -> dict[bytes, list[bytes]]:
    """Names and values of a stored header block, in order."""
    found: dict[bytes, list[bytes]] = {}
    start = block.find(b"\r\n") + 2
    for key, value in _HEADER.findall(block, start):
        found.setdefault(key, []).append(value.rstrip())
    return found


COLUMNS: dict[str, Callable[[Chunk, pa.DataType, str], pa.Array]] = {
    "subject": _subject,
    "data": _data,
    "headers": _headers,
    "stream": _stream,
    "seq": _seq,
    "timestamp": _timestamp,
    "ts_ns": _ts_ns,
}
"""Every column there is."""
