"""What a pipeline is: the YAML specification as a checked model, without Spark.

Each section is a table of keys; a dataclass of the same names holds the result. What can be wrong
without asking a server or a JVM is found here, with file and line.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsctl.errors import NotFound, UsageError
from jsctl.spark.pipeline.specification.checks import CHECKS, absolute
from jsctl.spark.pipeline.specification.document import Document
from jsctl.spark.pipeline.specification.keys import SECTIONS, TOP, TRIGGER


@dataclass(frozen=True, slots=True)
class Source:
    """What is read: a stream, or an archive when `archive` is set."""

    stream: str
    archive: str
    filter: tuple[str, ...]
    start: str
    headers: bool
    mode: str
    on_loss: str


@dataclass(frozen=True, slots=True)
class Decode:
    """How payloads become columns."""

    format: str
    schema: str
    schema_file: str
    message: str
    framing: str
    on_error: str


@dataclass(frozen=True, slots=True)
class Sink:
    """Where rows go."""

    type: str
    path: str
    partition_by: tuple[str, ...]
    compression: str
    files: int
    compact_every: int
    subject: str
    stream: str
    rows: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Where undecodable messages go."""

    type: str
    subject: str
    path: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """When batches run: every so many nanoseconds, or until all is read."""

    every: int
    once: bool


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one batch."""

    max_offsets: int
    max_bytes: int
    partitions: int


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Where and how Spark runs."""

    master: str
    memory: str
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Connection:
    """Which servers, when flags and environment do not say."""

    context: str
    servers: str


@dataclass(frozen=True, slots=True)
class Spec:
    """A whole pipeline. Paths are absolute."""

    name: str
    transform: str
    checkpoint: str
    source: Source
    decode: Decode
    sink: Sink
    dead_letter: DeadLetter | None
    trigger: Trigger
    limits: Limits
    spark: SparkOptions
    connection: Connection
    path: str = ""


def load_spec(path: str, environ: Mapping[str, str] | None = None) -> Spec:
    """The specification in a file. Relative paths start where the file lies.

    Raises NotFound without the file and BadDocument with every problem and its line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(
            f"{path}: no such file", hints=("jsctl pipeline init NAME writes one",)
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    return parse_spec(text, path, os.environ if environ is None else environ)


def parse_spec(text: str, path: str, environ: Mapping[str, str]) -> Spec:
    """The specification in a text that came from `path`. Raises BadDocument."""
    document = Document(text, path, environ)
    document.sections([*(key.name for key in TOP), *SECTIONS])
    values: dict[str, Any] = {key.name: document.scalar(key) for key in TOP}
    found: dict[str, dict[str, Any]] = {
        name: _trigger(document) if name == "trigger" else document.section(name, keys)
        for name, keys in SECTIONS.items()
    }
    for check in CHECKS:
        check(document, values, found)
    document.finish()
    base = Path(path).resolve().parent
    for section, key in (("source", "archive"), ("decode", "schema_file"), ("sink", "path"),
                         ("dead_letter", "path")):  # fmt: skip
        found[section][key] = absolute(base, found[section][key])
    dead = DeadLetter(**found["dead_letter"]) if document.has("dead_letter") else None
    return Spec(
        name=values["name"],
        transform=values["transform"].strip().rstrip(";") or "SELECT * FROM input",
        checkpoint=absolute(base, values["checkpoint"]),
        source=Source(**found["source"]),
        decode=Decode(**found["decode"]),
        sink=Sink(**found["sink"]),
        dead_letter=dead,
        trigger=Trigger(**found["trigger"]),
        limits=Limits(**found["limits"]),
        spark=SparkOptions(**found["spark"]),
        connection=Connection(**found["connection"]),
        path=str(Path(path).resolve()),
    )


def _trigger(document: Document) -> dict[str, Any]:
    word = document.text_of("trigger")
    if word is None:
        return document.section("trigger", TRIGGER)
    if word not in ("once", ""):
        document.problem("trigger", f"'{word}' is neither once nor {{every: 10s}}")
    return {"every": 0, "once": word == "once"}
