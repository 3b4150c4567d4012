"""An archive as the source of a pipeline: its files in the order in which they appear.

Spark remembers the names of the files that it has read. Compaction gives the same rows new names,
so the batches that were there are remembered, too: what was merged since is not read twice.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.errors import Conflict, JsctlError
from jsctl.spark.pipeline.layout import BatchDirectory, read_json, write_json

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamReader


def archive_stream(reader: "DataStreamReader", path: str) -> "DataStreamReader":
    """A stream reader for an archive. Raises JsctlError when it has nothing."""
    from jsctl.spark.pipeline.archives.archive import ARCHIVE_DDL

    directory = BatchDirectory(Path(path))
    if not directory.entries():
        raise JsctlError(f"the archive {directory.root} has no batches")
    return (
        reader.format("parquet")
        .schema(ARCHIVE_DDL)
        .option("path", f"{directory.root}/batch=*")
        .option("recursiveFileLookup", "true")
    )


def check_archive(path: str, memory: Path) -> None:
    """Remember the batches of an archive in the file `memory`.

    Raises Conflict when batches that were there before are parts of a merged one now.
    """
    seen = {tuple(one) for one in read_json(memory)["batches"]} if memory.exists() else set()
    now = {(entry.first, entry.id) for entry in BatchDirectory(Path(path)).entries()}
    for first, last in sorted(now - seen):
        if any(first <= end and begin <= last for begin, end in seen):
            raise Conflict(
                f"the archive {path} was compacted since this checkpoint began",
                hints=("read it into a new directory with a new checkpoint",),
            )
    if now - seen:
        write_json(memory, {"batches": sorted(seen | now)})
