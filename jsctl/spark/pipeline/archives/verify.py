"""Compares an archive with its manifest, and with a stream: one pass each, then the differences.

Damage is found by the sum of hashes of a batch; only where sums differ are messages looked at one
by one, so that they can be named.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsctl.api.stream import StreamInfo
from jsctl.settings import Settings
from jsctl.spark.options import connection_options
from jsctl.spark.pipeline.archives.archive import (
    ARCHIVE_COLUMNS,
    ARCHIVE_DDL,
    folded,
    hash_column,
    hash_sum,
    open_archive,
    original,
)
from jsctl.spark.pipeline.failures import explain
from jsctl.spark.pipeline.layout import BatchDirectory, FileEntry, paths_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMED_MAX = 20
"""So many differing messages are named."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A message that is not the same on both sides: `kind` is missing, extra or changed."""

    seq: int
    kind: str
    where: str


@dataclass(frozen=True, slots=True)
class Verified:
    """The outcome. `problems` are about files; `differences` names messages, at most NAMED_MAX."""

    path: str
    stream: str
    rows: int
    bytes: int
    files: int
    hash: int
    problems: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    differing: int = 0
    document_extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether everything is as it should be."""
        return not self.problems and not self.differing

    def document(self) -> dict[str, object]:
        """As JSON."""
        found = asdict(self)
        found.pop("document_extra")
        return {**found, "good": self.is_good}


def check_files(directory: BatchDirectory) -> list[str]:
    """What is wrong with the files themselves, before anything is read."""
    problems = []
    manifest = open_archive(directory)
    for batch in manifest["batches"]:
        for one in batch["files"]:
            file = FileEntry(**one)
            path = directory.root / file.path
            if not path.exists():
                problems.append(f"{file.path} is missing")
            elif path.stat().st_size != file.bytes:
                problems.append(f"{file.path} has {path.stat().st_size} bytes, not {file.bytes}")
    return problems


def verify(
    path: Path,
    start: "Callable[[], SparkSession]",
    *,
    settings: Settings | None = None,
    info: StreamInfo | None = None,
    log_file: Path | None = None,
) -> Verified:
    """Check an archive, and a stream against it when `info` is given. Raises JsctlError."""
    directory = BatchDirectory(path)
    manifest = open_archive(directory)
    problems = check_files(directory)
    files = [FileEntry(**one) for batch in manifest["batches"] for one in batch["files"]]
    named = info.config.name if info else ""
    total = sum(file.bytes for file in files)
    whole = sum(batch["hash"] for batch in manifest["batches"] if batch["rows"]) % 2**64
    base = Verified(str(path), named, int(manifest["rows"]), total, len(files), whole)
    if problems or not files:
        return _with(base, problems=tuple(problems))
    try:
        spark = start()
        archive = _archive(spark, directory, files)
        problems = _against_manifest(archive, manifest)
        if problems or info is None or settings is None:
            return _with(base, problems=tuple(problems))
        stream = _stream(spark, settings, info, manifest)
        return _against_stream(base, archive, stream, manifest)
    except Exception as error:
        raise explain(error, log_file=log_file) from error


def _with(base: Verified, **changes: Any) -> Verified:
    from dataclasses import replace

    return replace(base, **changes)


def _archive(
    spark: "SparkSession", directory: BatchDirectory, files: Sequence[FileEntry]
) -> "DataFrame":
    from pyspark.sql import functions as f

    rows = spark.read.schema(ARCHIVE_DDL).parquet(*paths_of(directory.root, files))
    name = f.regexp_extract(f.col("_metadata.file_path"), r".*/batch=(\d+)/", 1)
    return rows.withColumn("batch", name.cast("int")).withColumn("hash", hash_column())


def _stream(
    spark: "SparkSession", settings: Settings, info: StreamInfo, manifest: dict[str, Any]
) -> "DataFrame":
    about = manifest["about"]
    same = info.config.name == about["stream"] and info.created == about["created"]
    options = {
        **connection_options(settings),
        "stream": info.config.name,
        "includeHeaders": "true",
        "failOnDataLoss": "false",
    }
    if same and about["filter"]:
        options["filterSubjects"] = ",".join(about["filter"])
    rows = spark.read.format("jetstream").options(**options).load().select(*ARCHIVE_COLUMNS)
    rows = rows if same else original(rows)
    return rows.withColumn("hash", hash_column())


def _against_manifest(archive: "DataFrame", manifest: dict[str, Any]) -> list[str]:
    """Sums of each batch against what the manifest says."""
    from pyspark.sql import functions as f

    sums = archive.groupBy("batch").agg(hash_sum().alias("hash"), f.count(f.lit(1)).alias("rows"))
    found = {row["batch"]: (row["rows"], folded(row["hash"])) for row in sums.collect()}
    problems = []
    for batch in manifest["batches"]:
        rows, hashed = found.get(batch["id"], (0, 0))
        if rows != batch["rows"]:
            problems.append(f"batch {batch['id']} has {rows} messages, not {batch['rows']}")
        elif rows and batch["hash"] >= 0 and hashed != batch["hash"]:
            problems.append(f"batch {batch['id']}: its messages are not those that were written")
    return problems


def _against_stream(
    base: Verified, archive: "DataFrame", stream: "DataFrame", manifest: dict[str, Any]
) -> Verified:
    from pyspark.sql import functions as f

    last = max((batch["extra"].get("to", 0) for batch in manifest["batches"]), default=0)
    last = last or max(batch["last_seq"] for batch in manifest["batches"])
    known = [batch["first_seq"] for batch in manifest["batches"] if batch["rows"]]
    asked = [batch["extra"].get("from", 1) for batch in manifest["batches"]]
    first = min(known or asked)
    inside = stream.where((f.col("seq") <= last) & (f.col("seq") >= first))
    found = inside.agg(hash_sum().alias("hash"), f.count(f.lit(1)).alias("rows")).collect()[0]
    if found["rows"] == base.rows and folded(found["hash"]) == base.hash:
        return base
    differing = differences(archive, inside)
    named = differing.orderBy("seq").limit(NAMED_MAX).collect()
    count = differing.count()
    listed = tuple(Difference(row["seq"], row["kind"], base.stream) for row in named)
    return _with(base, differences=listed, differing=count)


def differences(left: "DataFrame", right: "DataFrame") -> "DataFrame":
    """Sequences whose hash is not the same on both sides: columns seq and kind.

    `missing` is on the left only, `extra` on the right only, `changed` on both with other content
    or not as often.
    """
    from pyspark.sql import functions as f

    def side(rows: "DataFrame", name: str) -> "DataFrame":
        return rows.groupBy("seq").agg(hash_sum().alias(name), f.count(f.lit(1)).alias(f"n_{name}"))

    joined = side(left, "a").join(side(right, "b"), "seq", "full_outer")
    same = f.col("a").eqNullSafe(f.col("b")) & f.col("n_a").eqNullSafe(f.col("n_b"))
    kind = (
        f.when(f.col("b").isNull(), "missing")
        .when(f.col("a").isNull(), "extra")
        .otherwise("changed")
    )
    return joined.where(~same).select("seq", kind.alias("kind"))
