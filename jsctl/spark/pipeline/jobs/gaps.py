"""Gaps: sequences that are missing, range by range, and why as far as can be known."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jsctl.api.stream import StreamConfig, StreamInfo
from jsctl.api.times import parse_time
from jsctl.api.words import Retention
from jsctl.spark.pipeline.jobs.model import NO_HISTORY, Field, Input, Result, Table, Unit

_GAPS = (
    Field("stream", "Stream"),
    Field("first_seq", "First", Unit.COUNT),
    Field("last_seq", "Last", Unit.COUNT),
    Field("missing", "Missing", Unit.COUNT),
    Field("before", "Message Before"),
    Field("after", "Message After"),
    Field("cause", "Cause"),
)
_SUMMARY = (
    Field("stream", "Stream"),
    Field("messages", "Messages", Unit.COUNT),
    Field("first_seq", "First", Unit.COUNT),
    Field("last_seq", "Last", Unit.COUNT),
    Field("missing", "Missing Within", Unit.COUNT),
)


@dataclass(frozen=True, slots=True)
class Removal:
    """A purge or a delete that an audit advisory told of; `seq` 0 for a purge."""

    stream: str
    kind: str
    seq: int
    detail: str
    at: str
    client: str


def gaps(given: Input) -> Result:
    """Missing sequences by range, with causes."""
    ranges = given.query("gaps", "ranges")
    found = _leading(given, ranges) + given.query("gaps", "gaps")
    removals = _removals(given) if given.telemetry else []
    for row in found:
        row["cause"] = cause(row, given.info(row["stream"]), removals)
        row["before"] = str(row.get("before") or "")
        row["after"] = str(row.get("after") or "")
    for row in ranges:
        row["missing"] = row["last_seq"] - row["first_seq"] + 1 - row["messages"]
    notes = () if given.telemetry else (f"causes are guesses from settings; {NO_HISTORY}",)
    tables = (
        Table("summary", "Sequences", _SUMMARY, ranges),
        Table("gaps", "Missing Sequences", _GAPS, found),
    )
    unexplained = sum(row["cause"].startswith("unknown") for row in found)
    return Result("gaps", "Gaps", tables, notes=notes, findings=unexplained)


def _leading(given: Input, ranges: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is missing before the first message, of streams that began with another one."""
    found = []
    for row in ranges:
        info = given.info(row["stream"])
        first = max(1, info.config.first_seq) if info is not None else 1
        if info is not None and row["first_seq"] > first:
            missing = row["first_seq"] - first
            found.append({"stream": row["stream"], "first_seq": first, "missing": missing,
                          "last_seq": row["first_seq"] - 1, "leading": True})  # fmt: skip
    return found


def _removals(given: Input) -> list[Removal]:
    found = []
    for row in given.query("gaps", "removals"):
        words = str(row["subject"]).split(".")
        purge = "PURGE" in words
        request = _object(row["request"])
        if _object(row["response"]).get("error") or _moment(row["at"]) is None:
            continue
        found.append(
            Removal(
                words[-1],
                "purge" if purge else "delete",
                0 if purge else _sequence(request),
                json.dumps(request) if request else "everything",
                str(row["at"]),
                str(row["client"] or "unknown"),
            )
        )
    return found


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _sequence(request: dict[str, Any]) -> int:
    """That of a request, 0 without one. Who publishes an advisory of his own says what he likes."""
    found = request.get("seq")
    return found if isinstance(found, int) else 0


def _moment(told: object) -> int | None:
    try:
        return parse_time(str(told))
    except ValueError:
        return None


def cause(row: dict[str, Any], info: StreamInfo | None, removals: Sequence[Removal]) -> str:
    """Why a range is missing: told by history, else explained by the stream's settings."""
    ours = [one for one in removals if one.stream == row["stream"]]
    for one in ours:
        if one.kind == "delete" and row["first_seq"] <= one.seq <= row["last_seq"]:
            return f"deleted by {one.client} at {one.at}"
    purge = _purge_of(row, ours)
    if purge is not None:
        return f"purged by {purge.client} at {purge.at} ({purge.detail})"
    return by_settings(info.config, leading=bool(row.get("leading"))) if info else "unknown"


def _purge_of(row: dict[str, Any], removals: Sequence[Removal]) -> Removal | None:
    """The first purge after the message before the gap that can have reached it."""
    for one in removals:
        if one.kind != "purge":
            continue
        request = _object(one.detail)
        if 0 < _sequence(request) <= row["first_seq"]:
            continue
        before, at = row.get("before"), _moment(one.at)
        if before is None or (at is not None and at > int(before.timestamp() * 1e9)):
            return one
    return None


def by_settings(config: StreamConfig, *, leading: bool) -> str:
    """What a stream's settings can have removed."""
    reasons = []
    if config.retention is not Retention.LIMITS:
        reasons.append("acknowledged")
    if leading and config.max_age > 0:
        reasons.append("max_age")
    if leading and config.max_msgs > 0:
        reasons.append("max_msgs")
    if leading and config.max_bytes > 0:
        reasons.append("max_bytes")
    if config.max_msgs_per_subject > 0:
        reasons.append("max_msgs_per_subject")
    if config.allow_msg_ttl:
        reasons.append("message TTL")
    if not reasons:
        return "unknown: a purge or deletes, no history tells"
    return "probably " + " or ".join(reasons)
