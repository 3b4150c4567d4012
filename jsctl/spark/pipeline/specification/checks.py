"""What can be wrong between the keys of a specification; each check notes problems by line."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsctl.spark.pipeline.specification.ddl import parse_schema
from jsctl.spark.pipeline.specification.document import Document

_QUERY = re.compile(r"\s*(--[^\n]*\n\s*)*(SELECT|WITH|FROM)\b", re.IGNORECASE)


def absolute(base: Path, text: str) -> str:
    """A path as seen from the specification's directory; file: URLs become paths."""
    if not text or ("://" in text and not text.startswith("file://")):
        return text
    return str((base / Path(text.removeprefix("file://")).expanduser()).resolve())


def _check_source(document: Document, _values: dict[str, Any], found: dict[str, Any]) -> None:
    source = found["source"]
    if not document.has("source"):
        document.problem("source", "is missing: what to read, as {stream: ORDERS}")
    elif not source["stream"] and not source["archive"]:
        document.problem("source", "needs stream: or archive:")
    elif source["stream"] and source["archive"]:
        document.problem("source.archive", "a source is a stream or an archive, not both")
    if source["archive"] and not found["trigger"]["once"]:
        document.problem("trigger", "an archive does not grow: write trigger: once")
    if "://" in source["archive"] and not source["archive"].startswith("file://"):
        document.problem("source.archive", _NO_URL)


_NO_URL = "only directories of a file system are supported, as /lake/orders"


def _check_decode(document: Document, _values: dict[str, Any], found: dict[str, Any]) -> None:
    decode = found["decode"]
    kind = decode["format"]
    if kind == "json":
        if not decode["schema"]:
            document.problem("decode.schema", 'json needs columns, as schema: "id BIGINT"')
    elif decode["schema"]:
        document.problem("decode.schema", f"is for json; {kind} has its columns elsewhere")
    if decode["schema"]:
        try:
            parse_schema(decode["schema"])
        except ValueError as error:
            document.problem("decode.schema", str(error))
    _check_schema_file(document, decode)
    if decode["on_error"] == "dead_letter" and not document.has("dead_letter"):
        document.problem("decode.on_error", "dead_letter needs a section dead_letter:")
    if document.has("dead_letter") and decode["on_error"] != "dead_letter":
        document.problem("dead_letter", "is used only with decode.on_error: dead_letter")


def _check_schema_file(document: Document, decode: dict[str, Any]) -> None:
    given, kind = decode["schema_file"], decode["format"]
    if kind == "protobuf" and not decode["message"]:
        document.problem("decode.message", "protobuf needs the message's full name, as shop.Order")
    if kind not in ("avro", "protobuf"):
        if given:
            document.problem("decode.schema_file", f"is for avro and protobuf, not for {kind}")
        return
    if not given:
        document.problem("decode.schema_file", f"{decode['format']} needs one")
        return
    path = Path(absolute(Path(document.path).resolve().parent, given))
    if not path.is_file():
        document.problem("decode.schema_file", f"no such file: {path}")


def _check_sink(document: Document, _values: dict[str, Any], found: dict[str, Any]) -> None:
    sink = found["sink"]
    kind = sink["type"]
    if not document.has("sink"):
        return
    if kind in ("parquet", "delta"):
        if not sink["path"]:
            document.problem("sink.path", f"a {kind} sink needs a directory")
        elif "://" in sink["path"] and not sink["path"].startswith("file://"):
            document.problem("sink.path", _NO_URL)
    _check_use(document, "sink", kind, sink)


_USES: Mapping[str, tuple[str, ...]] = {
    "partition_by": ("parquet", "delta"),
    "compact_every": ("parquet",),
    "path": ("parquet", "delta"),
    "subject": ("jetstream",),
    "stream": ("jetstream",),
}


def _check_use(document: Document, section: str, kind: str, given: dict[str, Any]) -> None:
    for key, kinds in _USES.items():
        if given.get(key) and kind not in kinds and kind:
            text = f"means nothing to a {kind} {section}, only to {' and '.join(kinds)}"
            document.problem(f"{section}.{key}", text)


def _check_dead_letter(document: Document, _values: dict[str, Any], found: dict[str, Any]) -> None:
    if not document.has("dead_letter"):
        return
    dead = found["dead_letter"]
    needed = "subject" if dead["type"] == "jetstream" else "path"
    if not dead[needed]:
        document.problem(f"dead_letter.{needed}", f"a {dead['type']} dead letter needs it")
    if dead["type"] == "parquet" and dead["path"] == found["sink"]["path"]:
        document.problem("dead_letter.path", "must not be the sink's directory")


def _check_trigger(document: Document, _values: dict[str, Any], found: dict[str, Any]) -> None:
    trigger = found["trigger"]
    if trigger["every"] and trigger["once"]:
        document.problem("trigger", "once and every exclude each other")
    if not trigger["every"]:
        trigger["once"] = True


def _check_transform(document: Document, values: dict[str, Any], found: dict[str, Any]) -> None:
    query = values["transform"]
    if not query:
        return
    if not _QUERY.match(query):
        document.problem("transform", "is not a query: it must start with SELECT, WITH or FROM")
    elif not re.search(r"\binput\b", query, re.IGNORECASE):
        document.problem("transform", "does not read from input")
    if ";" in query.strip().rstrip(";"):
        document.problem("transform", "is more than one statement")


def _check_places(document: Document, values: dict[str, Any], found: dict[str, Any]) -> None:
    checkpoint, path = values["checkpoint"], found["sink"]["path"]
    if not checkpoint:
        return
    if "://" in checkpoint and not checkpoint.startswith("file://"):
        document.problem("checkpoint", _NO_URL)
        return
    if path and (Path(checkpoint) == Path(path) or Path(path) in Path(checkpoint).parents):
        document.problem("checkpoint", "must not lie in the sink's directory")


CHECKS = (
    _check_source,
    _check_decode,
    _check_sink,
    _check_dead_letter,
    _check_trigger,
    _check_transform,
    _check_places,
)
