"""Copies against what they were made of: an archive and its stream, a mirror and its origin."""

from typing import TYPE_CHECKING, Any

from jsctl.api.stream import StreamInfo, StreamSource
from jsctl.errors import NotFound, UsageError
from jsctl.spark.options import connection_options
from jsctl.spark.pipeline.archives.archive import ARCHIVE_COLUMNS, hash_column
from jsctl.spark.pipeline.archives.verify import differences, verify
from jsctl.spark.pipeline.jobs.model import Field, Input, Result, Table, Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE_HEADER = "Nats-Stream-Source"
_SUMMARY = (
    Field("copy", "Copy"),
    Field("origin", "Origin"),
    Field("first_seq", "From", Unit.COUNT),
    Field("last_seq", "To", Unit.COUNT),
    Field("messages", "Messages", Unit.COUNT),
    Field("behind", "Behind", Unit.COUNT),
    Field("differing", "Different", Unit.COUNT),
)
_DIFFERENT = (
    Field("copy", "Copy"),
    Field("origin", "Origin"),
    Field("seq", "Sequence", Unit.COUNT),
    Field("kind", "In the Copy"),
)


def archive(given: Input) -> Result:
    """An archive against its stream."""
    if given.archive is None or len(given.infos) != 1:
        raise UsageError("this audit needs --archive and one --stream")
    info = given.infos[0]
    found = verify(given.archive, lambda: given.spark, settings=given.settings, info=info)
    place = str(given.archive)
    kinds = {"missing": "extra", "extra": "missing", "changed": "changed"}
    rows = [
        {"copy": place, "origin": info.config.name, "seq": one.seq, "kind": kinds[one.kind]}
        for one in found.differences
    ]
    summary = {
        "copy": place,
        "origin": info.config.name,
        "first_seq": None,
        "last_seq": None,
        "messages": found.rows,
        "behind": None,
        "differing": found.differing,
    }
    return Result(
        "archive",
        "Archive against Stream",
        (
            Table("copies", "Archive against Stream", _SUMMARY, [summary]),
            Table("different", "Different Messages", _DIFFERENT, rows),
        ),
        notes=found.problems,
        findings=found.differing + len(found.problems),
    )


def mirror(given: Input) -> Result:
    """Mirrors and sources against their origins."""
    summaries: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for info in given.infos:
        for origin, is_mirror in origins_of(info):
            if elsewhere := _prefix_of(info, origin):
                behind = f"is behind {elsewhere}, it was not compared"
                notes.append(f"{info.config.name}: origin {origin} {behind}")
                continue
            try:
                summary, found = _compare(given, info, origin, is_mirror=is_mirror)
            except NotFound as error:
                notes.append(f"{info.config.name}: origin {origin}: {error}")
                continue
            summaries.append(summary)
            rows += found
    if not summaries and not notes:
        notes.append("no stream is a mirror or has sources")
    tables = (
        Table("copies", "Mirrors and Sources", _SUMMARY, summaries),
        Table("different", "Different Messages", _DIFFERENT, rows),
    )
    findings = sum(row["differing"] for row in summaries)
    return Result("mirror", "Mirrors against Origins", tables, notes=notes, findings=findings)


def origins_of(info: StreamInfo) -> list[tuple[str, bool]]:
    """(origin, whether it is mirrored) of what a stream copies."""
    config = info.config
    if config.mirror is not None and config.mirror.name:
        return [(config.mirror.name, True)]
    return [(one.name, False) for one in config.sources or ()]


def _parts(info: StreamInfo, origin: str) -> list[StreamSource]:
    """What a copy's configuration says of an origin."""
    config = info.config
    parts = [config.mirror] if config.mirror is not None else list(config.sources or ())
    return [one for one in parts if one.name == origin]


def _prefix_of(info: StreamInfo, origin: str) -> str:
    """The prefix of the API that knows the origin; empty where it is a stream of this account."""
    found = (one.external.api for one in _parts(info, origin) if one.external is not None)
    return next(found, "")


def _renames(info: StreamInfo, origin: str) -> bool:
    """Whether messages have other subjects in the copy."""
    rules = [rule for one in _parts(info, origin) for rule in one.subject_transforms or ()]
    return info.config.subject_transform is not None or any(rule.dest for rule in rules)


def _messages(given: Input, stream: str) -> "DataFrame":
    options = {
        **connection_options(given.settings),
        "stream": stream,
        "includeHeaders": "true",
        "failOnDataLoss": "false",
    }
    rows = given.spark.read.format("jetstream").options(**options).load()
    return rows.select(*ARCHIVE_COLUMNS)


def _compare(
    given: Input, info: StreamInfo, origin: str, *, is_mirror: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Summary and named differences. A copy may be behind, that is no difference."""
    from pyspark.sql import functions as f

    given.phase(f"{info.config.name} against {origin}")
    copy, source = _messages(given, info.config.name), _messages(given, origin)
    if not is_mirror:
        copy, source = _of_origin(copy, origin), _without_source(source)
    if _renames(info, origin):
        copy, source = (rows.withColumn("subject", f.lit("")) for rows in (copy, source))
    copy, source = (rows.withColumn("hash", hash_column()) for rows in (copy, source))
    extent = copy.agg(f.min("seq").alias("first"), f.max("seq").alias("last"),
                      f.count(f.lit(1)).alias("n")).collect()[0]  # fmt: skip
    reach = source.agg(f.min("seq").alias("first"), f.max("seq").alias("last")).collect()[0]
    first = max(extent["first"] or 1, reach["first"] or 1)
    last = min(extent["last"] or 0, reach["last"] or 0)
    inside = f.col("seq").between(first, last)
    differing = differences(source.where(inside), copy.where(inside))
    if is_filtered(info, origin):
        differing = differing.where("kind <> 'missing'")
    count = differing.count()
    names = {"copy": info.config.name, "origin": origin}
    summary = {
        **names,
        "first_seq": first,
        "last_seq": last,
        "messages": extent["n"],
        "behind": max(0, (reach["last"] or 0) - (extent["last"] or 0)),
        "differing": count,
    }
    found = differing.orderBy("seq").limit(given.top).collect()
    return summary, [{**names, "seq": row["seq"], "kind": row["kind"]} for row in found]


def _of_origin(copy: "DataFrame", origin: str) -> "DataFrame":
    """Messages that came from an origin, under their sequence there."""
    from pyspark.sql import functions as f

    words = f.split(f.element_at(f.col("headers")[SOURCE_HEADER], 1), " ")
    rows = copy.withColumn("_from", words).where(f.col("_from")[0].startswith(origin))
    rows = rows.where((f.col("_from")[0] == origin) | f.col("_from")[0].startswith(f"{origin}:"))
    return _without_source(rows.withColumn("seq", f.col("_from")[1].cast("bigint")))


def _without_source(rows: "DataFrame") -> "DataFrame":
    """Messages without what says where they come from: a copy of a copy says it of its own."""
    from pyspark.sql import functions as f

    kept = f.map_filter("headers", lambda key, _value: key != SOURCE_HEADER)
    return rows.withColumn("headers", kept)


def is_filtered(info: StreamInfo, origin: str) -> bool:
    """Whether a copy takes only a part of its origin."""
    mine = _parts(info, origin)
    return any(one.filter_subject or one.subject_transforms for one in mine)
