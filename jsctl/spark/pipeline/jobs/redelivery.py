"""Redelivery: consumers that deliver again and again, poison messages, ack latency."""

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

_CONSUMERS = (
    Field("stream", "Stream"),
    Field("consumer", "Consumer"),
    Field("delivered", "Delivered", Unit.COUNT),
    Field("redelivering", "Redelivering", Unit.COUNT),
    Field("redelivering_max", "At Most", Unit.COUNT),
    Field("ack_pending", "Ack Pending", Unit.COUNT),
    Field("share", "Share", Unit.RATIO),
)
_POISON = (
    Field("stream", "Stream"),
    Field("consumer", "Consumer"),
    Field("seq", "Sequence", Unit.COUNT),
    Field("deliveries", "Deliveries", Unit.COUNT),
    Field("at", "Last"),
)
_LATENCY = (
    Field("stream", "Stream"),
    Field("consumer", "Consumer"),
    Field("samples", "Samples", Unit.COUNT),
    Field("p50_s", "Median", Unit.SECONDS),
    Field("p99_s", "99 %", Unit.SECONDS),
    Field("max_s", "Longest", Unit.SECONDS),
)


def redelivery(given: Input) -> Result:
    """What was delivered more than once."""
    if not given.telemetry:
        return without_history("redelivery", "Redelivery")
    consumers = given.query("redelivery", "consumers")
    if not consumers:
        return without_consumers("redelivery", "Redelivery", given.spark)
    latency = given.query("redelivery", "latency")
    tables = (
        Table("consumers", "Consumers by Redelivery", _CONSUMERS, consumers),
        Table("poison", "Messages Given Up", _POISON, given.query("redelivery", "poison")),
        Table("latency", "Time to Acknowledge", _LATENCY, latency),
    )
    notes = [covered(given.spark)]
    if not latency:
        notes.append("no ack samples: set --sample on a consumer to get them")
    bars = Series(
        "redelivering at most",
        [(f"{row['stream']}/{row['consumer']}", row["redelivering_max"] or 0) for row in consumers],
    )
    chart = Chart("redelivery", "Messages in redelivery", "bars", Unit.COUNT, (bars,))
    return Result("redelivery", "Redelivery", tables, (chart,), notes)
