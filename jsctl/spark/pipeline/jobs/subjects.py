"""Hot subjects: who sends most, how uneven it is, how fast new subjects come."""

from jsctl.spark.pipeline.jobs.model import Chart, Field, Input, Result, Series, Table, Unit

_TOP = (
    Field("stream", "Stream"),
    Field("subject", "Subject"),
    Field("messages", "Messages", Unit.COUNT),
    Field("bytes", "Bytes", Unit.BYTES),
    Field("share", "Share", Unit.RATIO),
)
_SKEW = (
    Field("stream", "Stream"),
    Field("subjects", "Subjects", Unit.COUNT),
    Field("messages", "Messages", Unit.COUNT),
    Field("top_share", "Share of the Top One", Unit.RATIO),
    Field("top_percent_share", "Share of the Top 1 %", Unit.RATIO),
)
_GROWTH = (
    Field("stream", "Stream"),
    Field("day", "Day"),
    Field("new_subjects", "New Subjects", Unit.COUNT),
    Field("subjects", "Subjects", Unit.COUNT),
)


def subjects(given: Input) -> Result:
    """The subjects with most messages, skew and growth."""
    top = given.query("subjects", "top")
    growth = given.query("subjects", "growth")
    tables = (
        Table("top", "Hot Subjects", _TOP, top),
        Table("skew", "Skew", _SKEW, given.query("subjects", "skew")),
        Table("growth", "New Subjects by Day", _GROWTH, growth[-given.top :]),
    )
    bars = Series("messages", [(row["subject"], row["messages"]) for row in top])
    names = dict.fromkeys(row["stream"] for row in growth)
    lines = [
        Series(name, [(row["day"], row["subjects"]) for row in growth if row["stream"] == name])
        for name in names
    ]
    charts = (
        Chart("subjects", "Messages of the hottest subjects", "bars", Unit.COUNT, (bars,)),
        Chart("subject-growth", "Distinct subjects", "bars", Unit.COUNT, lines),
    )
    return Result("subjects", "Hot Subjects", tables, charts)
