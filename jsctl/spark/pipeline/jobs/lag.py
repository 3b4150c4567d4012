"""Lag: how long each consumer was behind, how far, and how fast it caught up."""

from typing import Any

from jsctl.spark.pipeline.jobs.model import (
    Chart,
    Field,
    Input,
    Result,
    Series,
    Table,
    Unit,
    covered,
    without_consumers,
    without_history,
)

HOLE_S = 600
"""Time between two looks that is too long to say anything about what lies between."""
SERIES_MAX = 8
_SUMMARY = (
    Field("stream", "Stream"),
    Field("consumer", "Consumer"),
    Field("looks", "Looks", Unit.COUNT),
    Field("pending", "Pending Now", Unit.COUNT),
    Field("pending_max", "At Most", Unit.COUNT),
    Field("over_100_s", "Time over 100", Unit.SECONDS),
    Field("over_1000_s", "over 1,000", Unit.SECONDS),
    Field("over_10000_s", "over 10,000", Unit.SECONDS),
    Field("recovery_per_s", "Best Recovery /s", Unit.COUNT),
)


def lag(given: Input) -> Result:
    """How far consumers were behind over time."""
    if not given.telemetry:
        return without_history("lag", "Consumer Lag")
    rows = given.query("lag", "summary", hole=HOLE_S)
    if not rows:
        return without_consumers("lag", "Consumer Lag", given.spark)
    for row in rows:
        best = row["recovery_per_s"]
        row["recovery_per_s"] = round(best) if best is not None and best > 0 else None
    chart = _chart(given.query("lag", "points"), rows)
    return Result(
        "lag",
        "Consumer Lag",
        (Table("lag", "Consumer Lag", _SUMMARY, rows),),
        (chart,),
        notes=(covered(given.spark),),
    )


def _chart(points: list[dict[str, Any]], rows: list[dict[str, Any]]) -> Chart:
    chosen = [(row["stream"], row["consumer"]) for row in rows[:SERIES_MAX]]
    series = [
        Series(
            f"{stream}/{consumer}",
            [
                (float(point["at"]), point["pending"])
                for point in points
                if (point["stream"], point["consumer"]) == (stream, consumer)
            ],
        )
        for stream, consumer in chosen
    ]
    return Chart("lag", "Messages that wait", "lines", Unit.COUNT, series, times=True)
