"""Archives: the columns of their files, the hash of a message, what their manifest says.

The hash of a set of messages is the sum of 64-bit hashes of (seq, subject, headers, data), modulo
2^64: it does not depend on order, so one pass over either side is enough to compare them.
Messages that were restored carry where they come from in headers; `original` undoes that.
"""

from typing import TYPE_CHECKING, Any

from jsctl.api.codec import encode
from jsctl.api.stream import StreamInfo
from jsctl.errors import UsageError
from jsctl.spark.pipeline.layout import BatchDirectory

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ARCHIVE_DDL = (
    "seq BIGINT, subject STRING, timestamp TIMESTAMP, ts_ns BIGINT, "
    "headers MAP<STRING, ARRAY<STRING>>, data BINARY, stream STRING"
)
ARCHIVE_COLUMNS = ("seq", "subject", "timestamp", "ts_ns", "headers", "data", "stream")
HASH_MODULUS = 2**64
KIND = "archive"
PREFIX = "Jsctl-Orig-"
SEQ, TIME, SUBJECT = f"{PREFIX}Seq", f"{PREFIX}Time", f"{PREFIX}Subject"
ACTING = ("Nats-",)
"""Headers that make the server do something when they are published; restored under `PREFIX`."""


def hash_column() -> "Column":
    """The hash of a message's row as BIGINT. Missing headers are the same as none."""
    from pyspark.sql import functions as f

    entries = f.array_sort(f.map_entries(f.coalesce(f.col("headers"), f.expr(_NO_HEADERS))))
    return f.xxhash64(f.col("seq"), f.col("subject"), entries, f.col("data"))


_NO_HEADERS = "CAST(map() AS MAP<STRING, ARRAY<STRING>>)"


def hash_sum(column: str = "hash") -> "Column":
    """The sum of hashes, wide enough not to overflow; `folded` makes the 64-bit sum of it."""
    from pyspark.sql import functions as f

    return f.sum(f.col(column).cast("decimal(20,0)"))


def folded(total: Any) -> int:
    """The sum modulo 2^64; 0 for no rows."""
    return int(total or 0) % HASH_MODULUS


def original(messages: "DataFrame") -> "DataFrame":
    """Restored messages as they were: sequence, subject and headers of the archive."""
    from pyspark.sql import functions as f

    def name(key: "Column", _value: "Column") -> "Column":
        return f.when(key.startswith(PREFIX), f.substring(key, len(PREFIX) + 1, 1000)).otherwise(
            key
        )

    def kept(key: "Column", _value: "Column") -> "Column":
        return ~key.isin(SEQ, TIME, SUBJECT, "Nats-Msg-Id")

    headers = f.coalesce(f.col("headers"), f.expr(_NO_HEADERS))
    seq = f.coalesce(f.element_at(headers[SEQ], 1).try_cast("bigint"), f.col("seq"))
    subject = f.coalesce(f.element_at(headers[SUBJECT], 1), f.col("subject"))
    return messages.withColumns(
        {
            "seq": seq,
            "subject": subject,
            "headers": f.transform_keys(f.map_filter(headers, kept), name),
        }
    )


def about_stream(info: StreamInfo, filters: tuple[str, ...]) -> dict[str, Any]:
    """What an archive's manifest says of its stream."""
    return {
        "stream": info.config.name,
        "created": info.created,
        "filter": list(filters),
        "config": encode(info.config),
    }


def identity(info: StreamInfo, filters: tuple[str, ...]) -> str:
    """Whose archive a directory is: a stream that was made anew is another one."""
    return "|".join((info.config.name, info.created, *sorted(filters)))


def open_archive(directory: BatchDirectory) -> dict[str, Any]:
    """The manifest of an archive. Raises NotFound, UsageError."""
    manifest = directory.manifest()
    if "stream" not in manifest.get("about", {}):
        raise UsageError(
            f"{directory.root} is no archive of a stream",
            hints=("`pipeline export STREAM PATH` makes one",),
        )
    return manifest
