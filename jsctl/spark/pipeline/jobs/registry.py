"""All jobs by name, and the views that they run over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from jsctl.spark.options import connection_options
from jsctl.spark.pipeline.archives.archive import ARCHIVE_COLUMNS, ARCHIVE_DDL
from jsctl.spark.pipeline.jobs.model import Input, Result
from jsctl.spark.pipeline.layout import BatchDirectory, paths_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jsctl.settings import Settings

RECORD_BYTES = 30
"""What a server stores of a message besides subject, headers and payload, about."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job: where its function is, and whether it looks at messages or at history."""

    name: str
    module: str
    messages: bool
    telemetry: bool


REPORTS: Mapping[str, Job] = {
    job.name: job
    for job in (
        Job("capacity", "capacity:capacity", messages=True, telemetry=False),
        Job("subjects", "subjects:subjects", messages=True, telemetry=False),
        Job("sizes", "sizes:sizes", messages=True, telemetry=False),
        Job("redelivery", "redelivery:redelivery", messages=False, telemetry=True),
        Job("lag", "lag:lag", messages=False, telemetry=True),
    )
}
AUDITS: Mapping[str, Job] = {
    job.name: job
    for job in (
        Job("gaps", "gaps:gaps", messages=True, telemetry=True),
        Job("duplicates", "duplicates:duplicates", messages=True, telemetry=False),
        Job("replicas", "replicas:replicas", messages=False, telemetry=False),
        Job("archive", "copies:archive", messages=False, telemetry=False),
        Job("mirror", "copies:mirror", messages=False, telemetry=False),
        Job("api", "api:api", messages=False, telemetry=True),
    )
}
NEEDS_ARCHIVE = "archive"
"""The audit that `all` leaves out when there is no archive to look at."""


def run_job(job: Job, given: Input) -> Result:
    """Run a job. Raises JsctlError and what Spark raises."""
    module, _, name = job.module.partition(":")
    function: Callable[[Input], Result] = getattr(
        import_module(f"jsctl.spark.pipeline.jobs.{module}"), name
    )
    return function(given)


def message_views(
    spark: "SparkSession",
    settings: "Settings",
    streams: Sequence[str],
    archive: Path | None,
    progress_subject: str = "",
) -> None:
    """The views `messages` and `sized_messages` over streams or an archive."""
    if archive is not None:
        rows = archived(spark, archive)
    else:
        options = {
            **connection_options(settings),
            "stream": ",".join(streams),
            "includeHeaders": "true",
            "failOnDataLoss": "false",
        }
        if progress_subject:
            options["progressSubject"] = progress_subject
        rows = spark.read.format("jetstream").options(**options).load()
        rows = rows.select(*ARCHIVE_COLUMNS)
    rows.createOrReplaceTempView("messages")
    heads = (
        "coalesce(aggregate(map_entries(headers), 12, (sum, one) -> sum + CAST("
        "(length(one.key) + 4) * size(one.value) + length(array_join(one.value, '')) AS INT)), 0)"
    )
    spark.sql(
        "SELECT stream, seq, subject, timestamp, CAST(length(subject) + length(data) + "
        f"{heads} + {RECORD_BYTES} AS BIGINT) AS bytes FROM messages"
    ).createOrReplaceTempView("sized_messages")


def archived(spark: "SparkSession", archive: Path) -> "DataFrame":
    """The messages of an archive."""
    directory = BatchDirectory(archive)
    directory.manifest()
    return spark.read.schema(ARCHIVE_DDL).parquet(*paths_of(directory.root, directory.files()))


def telemetry_view(
    spark: "SparkSession", settings: "Settings", stream: str, about: Sequence[str] = ()
) -> None:
    """The view `telemetry`: what a capture has stored, of some streams only if they are named.

    Calls of the API stay: their subjects tell what they are about in many ways.
    """
    options = {**connection_options(settings), "stream": stream, "failOnDataLoss": "false"}
    rows = spark.read.format("jetstream").options(**options).load()
    rows = rows.selectExpr("subject", "CAST(data AS STRING) AS body", "timestamp", "ts_ns")
    if about:
        from pyspark.sql import functions as f

        named = f.expr(_ABOUT)
        rows = rows.where(named.isNull() | named.isin(*about))
    rows.persist().createOrReplaceTempView("telemetry")


_ABOUT = (
    "(CASE WHEN subject LIKE 'jsctl.telemetry.advisory.%' THEN get_json_object(body, '$.stream') "
    "ELSE get(split(subject, '[.]'), 3) END)"
)
