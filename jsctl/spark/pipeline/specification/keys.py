"""The tables of what may stand in a pipeline's specification, section by section."""

import re
from collections.abc import Mapping

from jsctl.api.times import parse_time
from jsctl.spark.pipeline.specification.document import Key, Kind

MESSAGE_COLUMNS = ("subject", "data", "headers", "stream", "seq", "timestamp", "ts_ns")
"""Columns that every input has, whatever its payload is."""
DERIVED_PARTITIONS = ("day", "hour")
"""Partition columns that are computed from `timestamp` when the query does not give them."""
STARTS = ("earliest", "latest")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_STREAM = re.compile(r"[^\s.*>/\\]+")


def _check_name(text: str) -> str:
    return "" if _NAME.fullmatch(text) else f"'{text}' may have letters, digits, - and _ only"


def _check_stream(text: str) -> str:
    return "" if _STREAM.fullmatch(text) else f"'{text}' is not a stream name"


def _check_subject(text: str) -> str:
    bad = not text or any(mark in text for mark in " \t\r\n") or "" in text.split(".")
    return f"'{text}' is not a subject" if bad else ""


def _check_literal_subject(text: str) -> str:
    wrong = _check_subject(text)
    if not wrong and any(token in ("*", ">") for token in text.split(".")):
        return f"'{text}' has wildcards, nothing can be published there"
    return wrong


def _check_start(text: str) -> str:
    if text in STARTS or text.isdigit():
        return ""
    try:
        parse_time(text)
    except ValueError:
        return (
            f"'{text}' is neither earliest, latest, a sequence nor a time as 2026-01-31T12:00:00Z"
        )
    return ""


def _check_master(text: str) -> str:
    known = ("local", "local[", "local-cluster[", "spark://", "k8s://", "yarn", "sc://")
    if text.startswith(known):
        return ""
    return f"'{text}' is no Spark master: local[*], spark://host:7077, k8s://..., yarn, sc://host"


TOP = (
    Key("name", Kind.TEXT, "names the pipeline in reports and headers", required=True,
        check=_check_name),
    Key("transform", Kind.TEXT, "SQL over the view `input`; default SELECT * FROM input"),
    Key("checkpoint", Kind.TEXT, "directory that remembers how far the pipeline is", required=True),
)  # fmt: skip
SOURCE = (
    Key("stream", Kind.TEXT, "the stream to read", check=_check_stream),
    Key("archive", Kind.TEXT, "an archive made by `pipeline export`, instead of a stream"),
    Key("filter", Kind.WORDS, "subjects to read, all by default", default=(), check=_check_subject),
    Key("start", Kind.TEXT, "earliest, latest, a sequence or a time", "earliest",
        check=_check_start),
    Key("headers", Kind.FLAG, "whether `headers` is filled", True),
    Key("mode", Kind.TEXT, "how messages are read", "consumer",
        choices=("consumer", "direct", "auto")),
    Key("on_loss", Kind.TEXT, "when messages are gone before they were read", "fail",
        choices=("fail", "continue")),
)  # fmt: skip
DECODE = (
    Key("format", Kind.TEXT, "what payloads are", "none",
        choices=("none", "json", "text", "avro", "protobuf")),
    Key("schema", Kind.TEXT, "columns of a json payload, as `id BIGINT, tags ARRAY<STRING>`"),
    Key("schema_file", Kind.TEXT, "an .avsc file, or a protobuf descriptor set"),
    Key("message", Kind.TEXT, "the full name of the protobuf message"),
    Key("framing", Kind.TEXT, "bytes in front of an avro or protobuf payload", "none",
        choices=("none", "confluent")),
    Key("on_error", Kind.TEXT, "what happens to payloads that cannot be decoded", "fail",
        choices=("fail", "skip", "dead_letter")),
)  # fmt: skip
SINK = (
    Key("type", Kind.TEXT, "where rows go", required=True,
        choices=("parquet", "delta", "jetstream", "console")),
    Key("path", Kind.TEXT, "directory of a parquet or delta sink"),
    Key("partition_by", Kind.WORDS, "columns that become directories; day and hour may be derived",
        default=()),
    Key("compression", Kind.TEXT, "of parquet files", "zstd",
        choices=("zstd", "snappy", "gzip", "lz4", "none")),
    Key("files", Kind.COUNT, "at most so many files a batch and partition; 0 lets Spark choose", 0),
    Key("compact_every", Kind.COUNT, "merge small batches after so many; 0 never", 0),
    Key("subject", Kind.TEXT, "of a jetstream sink, unless the query gives `subject`",
        check=_check_literal_subject),
    Key("stream", Kind.TEXT, "the stream that must take the messages", check=_check_stream),
    Key("rows", Kind.COUNT, "how many rows of a batch the console shows", 20),
)  # fmt: skip
DEAD_LETTER = (
    Key("type", Kind.TEXT, "where undecodable messages go", "jetstream",
        choices=("jetstream", "parquet")),
    Key("subject", Kind.TEXT, "of the messages", check=_check_literal_subject),
    Key("path", Kind.TEXT, "directory of the files"),
)  # fmt: skip
TRIGGER = (
    Key("every", Kind.DURATION, "time between batches", 0),
    Key("once", Kind.FLAG, "take what is there, then end", False),
)
LIMITS = (
    Key("max_offsets", Kind.COUNT, "at most so many messages a batch", 200_000),
    Key("max_bytes", Kind.SIZE, "at most so many bytes a batch; 0 is no limit", 0),
    Key("partitions", Kind.COUNT, "readers side by side; 0 is one a core", 0),
)
SPARK = (
    Key("master", Kind.TEXT, "where Spark runs", "local[*]", check=_check_master),
    Key("memory", Kind.TEXT, "heap of the driver, as 1g", "1g"),
    Key("conf", Kind.MAP, "more Spark settings", default={}),
)
CONNECTION = (
    Key("context", Kind.TEXT, "a stored context; flags and environment win"),
    Key("servers", Kind.TEXT, "NATS URLs; flags and environment win"),
)
SECTIONS: Mapping[str, tuple[Key, ...]] = {
    "source": SOURCE, "decode": DECODE, "sink": SINK, "dead_letter": DEAD_LETTER,
    "trigger": TRIGGER, "limits": LIMITS, "spark": SPARK, "connection": CONNECTION,
}  # fmt: skip
