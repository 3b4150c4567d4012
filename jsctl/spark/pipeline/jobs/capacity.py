"""Capacity: bytes a day, days until a stream is full, what other limits would mean."""

from typing import Any

from jsctl.api.stream import StreamInfo
from jsctl.spark.pipeline.jobs.model import Chart, Field, Input, Result, Series, Table, Unit

DAY_S = 86_400.0
SPAN_S_MIN = 60.0
"""A forecast from less than a minute would be a guess."""
SERIES_MAX = 8
_DAYS = (
    Field("stream", "Stream"),
    Field("day", "Day"),
    Field("messages", "Messages", Unit.COUNT),
    Field("bytes", "Bytes", Unit.BYTES),
)
_PREFIXES = (
    Field("stream", "Stream"),
    Field("prefix", "Subject Prefix"),
    Field("messages", "Messages", Unit.COUNT),
    Field("bytes", "Bytes", Unit.BYTES),
    Field("bytes_per_day", "Bytes a Day", Unit.BYTES),
)
_FORECAST = (
    Field("stream", "Stream"),
    Field("bytes", "Bytes Now", Unit.BYTES),
    Field("bytes_per_day", "Bytes a Day", Unit.BYTES),
    Field("max_bytes", "Limit", Unit.BYTES),
    Field("days_left", "Days Left", Unit.DAYS),
    Field("replicas", "Replicas", Unit.COUNT),
    Field("max_age_days", "Max Age", Unit.DAYS),
    Field("steady_bytes", "Full Age", Unit.BYTES),
    Field("steady_bytes_double_age", "Double Age", Unit.BYTES),
    Field("cluster_bytes_r1", "All Copies R1", Unit.BYTES),
    Field("cluster_bytes_r3", "All Copies R3", Unit.BYTES),
    Field("cluster_bytes_r5", "All Copies R5", Unit.BYTES),
)


def capacity(given: Input) -> Result:
    """How streams grow and when they are full."""
    days = given.query("capacity", "days")
    prefixes = given.query("capacity", "prefixes")
    forecasts = [
        forecast(row, given.info(row["stream"])) for row in given.query("capacity", "spans")
    ]
    short = [row["stream"] for row in forecasts if row["bytes_per_day"] is None]
    notes = [f"{name}: its messages cover less than a minute, no forecast" for name in short]
    tables = (
        Table("forecast", "Capacity Forecast", _FORECAST, forecasts),
        Table("prefixes", "Growth by Subject Prefix", _PREFIXES, prefixes),
        Table("days", "Growth by Day", _DAYS, days[-given.top :]),
    )
    return Result("capacity", "Capacity", tables, (_chart(days), _prefix_chart(prefixes)), notes)


def forecast(row: dict[str, Any], info: StreamInfo | None) -> dict[str, Any]:
    """What the span of a stream's messages says about its future; None where nothing can be said.

    Sizes are those that the server counts where it is known: the sum of the messages is scaled to
    the stream's own figure.
    """
    stored = info.state.bytes if info is not None and info.state.bytes else row["bytes"]
    per_day: int | None = None
    if row["seconds"] >= SPAN_S_MIN:
        per_day = int(stored / row["seconds"] * DAY_S)
    limit = info.config.max_bytes if info is not None and info.config.max_bytes > 0 else None
    age_days = info.config.max_age / 86_400e9 if info is not None and info.config.max_age else None
    steady = int(per_day * age_days) if per_day is not None and age_days is not None else None
    reached = steady if steady is not None else stored
    left = None
    if limit is not None and per_day:
        left = (
            None if steady is not None and steady < limit else max(0.0, (limit - stored) / per_day)
        )
    return {
        "stream": row["stream"],
        "bytes": stored,
        "bytes_per_day": per_day,
        "max_bytes": limit,
        "days_left": left,
        "replicas": info.config.num_replicas if info is not None else None,
        "max_age_days": age_days,
        "steady_bytes": steady,
        "steady_bytes_double_age": steady * 2 if steady is not None else None,
        "cluster_bytes_r1": reached,
        "cluster_bytes_r3": reached * 3,
        "cluster_bytes_r5": reached * 5,
    }


def _prefix_chart(prefixes: list[dict[str, Any]]) -> Chart:
    points = [(row["prefix"], row["bytes"]) for row in prefixes]
    return Chart("prefixes", "Bytes by subject prefix", "bars", Unit.BYTES,
                 (Series("bytes", points),))  # fmt: skip


def _chart(days: list[dict[str, Any]]) -> Chart:
    totals: dict[str, int] = {}
    for row in days:
        totals[row["stream"]] = totals.get(row["stream"], 0) + row["bytes"]
    chosen = sorted(totals, key=lambda name: -totals[name])[:SERIES_MAX]
    series = [
        Series(name, [(row["day"], row["bytes"]) for row in days if row["stream"] == name])
        for name in chosen
    ]
    return Chart("capacity", "Bytes a day", "bars", Unit.BYTES, series)
