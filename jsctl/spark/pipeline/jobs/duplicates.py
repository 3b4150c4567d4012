"""Duplicates: message ids and payloads that are stored more than once."""

from typing import Any

from jsctl.spark.pipeline.jobs.model import Field, Input, Result, Table, Unit

_FOUND = (
    Field("stream", "Stream"),
    Field("kind", "Repeated"),
    Field("value", "Id or Subject"),
    Field("times", "Times", Unit.COUNT),
    Field("first_seq", "First", Unit.COUNT),
    Field("last_seq", "Last", Unit.COUNT),
    Field("apart_s", "Apart", Unit.SECONDS),
    Field("cause", "Cause"),
)
_COUNTS = (
    Field("stream", "Stream"),
    Field("messages", "Messages", Unit.COUNT),
    Field("repeated_ids", "Repeated Ids", Unit.COUNT),
    Field("repeated_payloads", "Repeated Payloads", Unit.COUNT),
)


def duplicates(given: Input) -> Result:
    """Messages that were stored twice; only repeated ids count as findings."""
    rows = given.query("duplicates", "ids") + given.query("duplicates", "payloads")
    for row in rows:
        row["cause"] = cause(row, _window_s(given, row["stream"]))
    counts = given.query("duplicates", "counts")
    tables = (
        Table("counts", "Duplicates", _COUNTS, counts),
        Table("duplicates", "Repeated Messages", _FOUND, rows),
    )
    findings = sum(row["repeated_ids"] for row in counts)
    return Result("duplicates", "Duplicates", tables, findings=findings)


def _window_s(given: Input, stream: str) -> float | None:
    info = given.info(stream)
    return info.config.duplicate_window / 1e9 if info is not None else None


def cause(row: dict[str, Any], window_s: float | None) -> str:
    """Why a repeated message could be stored again."""
    if row["kind"] == "payload":
        return "same content; perhaps on purpose"
    if window_s is None:
        return "unknown, the stream's window is not known"
    if row["apart_s"] > window_s:
        return f"sent again after the window of {window_s:g} s"
    return f"INSIDE the window of {window_s:g} s"
