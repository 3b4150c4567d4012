"""What jobs take and give: plain data, shown as tables, JSON or pictures elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsctl.api.stream import StreamInfo
from jsctl.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Any]
NO_HISTORY = "no history: `jsctl pipeline capture` was not running, there is nothing to report on"


class Unit(Enum):
    """How a value is shown."""

    TEXT = "text"
    COUNT = "count"
    BYTES = "bytes"
    RATIO = "ratio"
    SECONDS = "seconds"
    DAYS = "days"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table."""

    key: str
    title: str
    unit: Unit = Unit.TEXT


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a title. `key` names it in JSON."""

    key: str
    title: str
    fields: tuple[Field, ...]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Series:
    """Points of a chart: x is a time in seconds, a word or a number."""

    label: str
    points: Sequence[tuple[Any, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture: `kind` is bars or lines; x of lines are seconds since 1970 if `times`."""

    key: str
    title: str
    kind: str
    unit: Unit
    series: Sequence[Series]
    times: bool = False
    x_title: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What a job found. `findings` counts what should not be; `history` says if there was any
    where the job needs it."""

    job: str
    title: str
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    notes: Sequence[str] = ()
    findings: int = 0
    history: bool = True

    def document(self) -> dict[str, object]:
        """As JSON."""
        return {
            "job": self.job,
            "history": self.history,
            "findings": self.findings,
            "notes": list(self.notes),
            "tables": {table.key: [dict(row) for row in table.rows] for table in self.tables},
        }


def covered(spark: "SparkSession") -> str:
    """Which time the view `telemetry` covers."""
    row = spark.sql(
        "SELECT date_format(min(timestamp), 'yyyy-MM-dd HH:mm:ss') AS first, "
        "date_format(max(timestamp), 'yyyy-MM-dd HH:mm:ss') AS last FROM telemetry"
    ).collect()[0]
    if row["first"] is None:
        return NO_HISTORY
    return f"history from {row['first']} to {row['last']} UTC"


def without_history(job: str, title: str) -> Result:
    """The result of a job that needs history when there is none."""
    return Result(job, title, notes=(NO_HISTORY,), history=False)


def without_consumers(job: str, title: str, spark: "SparkSession") -> Result:
    """The result of a job on the history of consumers when there were none."""
    told = covered(spark)
    notes = (told,) if told == NO_HISTORY else ("no consumer was seen", told)
    return Result(job, title, notes=notes, history=False)


@dataclass(frozen=True, slots=True)
class Input:
    """What a job works on. `spark` has the views that the job needs.

    `infos` are the streams as they are now, empty for an archive alone. `telemetry` tells whether
    captured history exists. `top` bounds the rows of a table.
    """

    spark: "SparkSession"
    settings: Settings
    infos: Sequence[StreamInfo]
    streams: Sequence[str]
    archive: Path | None = None
    telemetry: bool = False
    top: int = 20
    now_ns: int = 0
    phase: Callable[[str], None] = field(default=lambda _text: None)

    def info(self, stream: str) -> StreamInfo | None:
        """A stream by name."""
        return next((info for info in self.infos if info.config.name == stream), None)

    def query(self, job: str, part: str = "", **values: int | str) -> list[dict[str, Any]]:
        """The rows of a query of the job's SQL file; `values` replace its `:names`."""
        return [row.asDict(recursive=True) for row in self.frame(job, part, **values).collect()]

    def frame(self, job: str, part: str = "", **values: int | str) -> "DataFrame":
        """As `query`, for further use."""
        arguments = {"top": self.top, **values}
        text = statement(job, part)
        used = {name: value for name, value in arguments.items() if f":{name}" in text}
        return self.spark.sql(text, args=used)


def statement(job: str, part: str = "") -> str:
    """A query of a SQL file; parts start with a line `-- part: NAME`. Raises KeyError."""
    text = (files(__package__) / f"{job}.sql").read_text(encoding="utf-8")
    parts: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("-- part:"):
            name = line.partition(":")[2].strip()
            continue
        parts.setdefault(name, []).append(line)
    return "\n".join(parts[part])
