"""API audit: who created, changed, purged and deleted what, from audit advisories."""

from collections import Counter
from typing import Any

from jsctl.api.subjects import parse_api
from jsctl.spark.pipeline.jobs.model import (
    Chart,
    Field,
    Input,
    Result,
    Series,
    Table,
    Unit,
    covered,
    without_history,
)

CALLS_MAX = 100_000
_CALLS = (
    Field("at", "Time"),
    Field("action", "Action"),
    Field("target", "Target"),
    Field("user", "User"),
    Field("client", "Client"),
    Field("host", "Host"),
    Field("request", "Request"),
    Field("error", "Error"),
)
_COUNTS = (
    Field("action", "Action"),
    Field("user", "User"),
    Field("client", "Client"),
    Field("calls", "Calls", Unit.COUNT),
    Field("failed", "Refused", Unit.COUNT),
)


def api(given: Input) -> Result:
    """Who changed what."""
    if not given.telemetry:
        return without_history("api", "API Audit")
    calls = [_named(row) for row in given.query("api", "calls", most=CALLS_MAX)]
    wanted = set(given.streams)
    if wanted:
        calls = [row for row in calls if row["target"].split(" ")[0] in wanted]
    counts = Counter((row["action"], row["user"], row["client"]) for row in calls)
    failed = Counter((row["action"], row["user"], row["client"]) for row in calls if row["error"])
    table = [
        {"action": key[0], "user": key[1], "client": key[2], "calls": n, "failed": failed[key]}
        for key, n in counts.most_common(given.top)
    ]
    by_action = Counter(row["action"] for row in calls)
    chart = Chart("api", "API calls that change something", "bars", Unit.COUNT,
                  (Series("calls", by_action.most_common(given.top)),))  # fmt: skip
    tables = (
        Table("counts", "API Calls", _COUNTS, table),
        Table("calls", "Latest API Calls", _CALLS, calls[: given.top]),
    )
    return Result("api", "API Audit", tables, (chart,), notes=(covered(given.spark),))


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """The call with its operation and what it was about."""
    call = parse_api(str(row["subject"]).encode())
    row["action"] = call.operation if call is not None else str(row["subject"])
    row["target"] = f"{call.stream} {call.consumer}".strip() if call is not None else ""
    row["user"] = row["user"] or row.pop("account", "") or ""
    row["client"] = row["client"] or ""
    row["host"] = row["host"] or ""
    return row
