"""Services: lists, statistics, the info screen of an instance."""

import json
import time
from collections.abc import Mapping, Sequence

from jsctl.api.times import parse_time
from jsctl.dataclass import dataclass
from jsctl.render.column import Column
from jsctl.render.details import Details
from jsctl.render.humanize import duration, moment, number
from jsctl.render.reports.objects import pairs

Document = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """An instance; what is the same as in the row above is not shown again."""

    name: str
    version: str
    id: str
    description: str
    shown: tuple[str, str, str]
    """Name, version and description, empty where they repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """An endpoint of an instance; the id is shown in its first row."""

    id: str
    shown_id: str
    endpoint: str
    requests: int
    queue_group: str
    errors: int
    processing_ns: int
    average_ns: int


SERVICE_COLUMNS: tuple[Column[ServiceRow], ...] = (
    Column("name", "Name", lambda row: row.name, lambda row: row.shown[0]),
    Column("version", "Version", lambda row: row.version, lambda row: row.shown[1]),
    Column("id", "ID", lambda row: row.id),
    Column("description", "Description", lambda row: row.description, lambda row: row.shown[2]),
)
STATISTICS_COLUMNS: tuple[Column[Statistics], ...] = (
    Column("id", "ID", lambda row: row.id, lambda row: row.shown_id),
    Column("endpoint", "Endpoint", lambda row: row.endpoint),
    Column("requests", "Requests", lambda row: row.requests, lambda row: number(row.requests)),
    Column("queue_group", "Queue Group", lambda row: row.queue_group),
    Column("errors", "Errors", lambda row: row.errors, lambda row: number(row.errors)),
    Column(
        "processing_time",
        "Processing Time",
        lambda row: row.processing_ns,
        lambda row: duration(row.processing_ns),
    ),
    Column(
        "average_time",
        "Average Time",
        lambda row: row.average_ns,
        lambda row: duration(row.average_ns),
    ),
)


def _text(document: Document, key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _whole(document: Document, key: str) -> int:
    value = document.get(key)
    return int(value) if isinstance(value, int | float) else 0


def service_rows(found: Sequence[Document]) -> list[ServiceRow]:
    """One row an instance, in their order."""
    rows: list[ServiceRow] = []
    for one in found:
        name, version, text = (_text(one, key) for key in ("name", "version", "description"))
        last = rows[-1] if rows else None
        before = (last.name, last.version, last.description) if last else ("", "", "")
        now = (name, version, text)
        shown = tuple("" if a == b else a for a, b in zip(now, before, strict=True))
        rows.append(
            ServiceRow(name, version, _text(one, "id"), text, (shown[0], shown[1], shown[2]))
        )
    return rows


def service_screen(
    info: Document,
    shown: Sequence[Document],
    stats: Document,
    counted: Sequence[Document],
    total: int,
) -> Details:
    """What an instance offers and how it does; `total` endpoints are known."""
    screen = Details("Service Information")
    screen.row("Service", f"{_text(info, 'name')} ({_text(info, 'id')})")
    screen.row("Description", _text(info, "description"))
    screen.row("Version", _text(info, "version"))
    screen.rows("Metadata", _metadata(info))
    screen.section("Endpoints", parent=True)
    screen.indent(2)
    for one in shown:
        screen.text()
        screen.row("Name", _text(one, "name"))
        screen.row("Subject", _text(one, "subject"))
        screen.row_if("Queue Group", _text(one, "queue_group"))
        screen.rows("Metadata", _metadata(one))
    screen.section(f"Statistics for {total} Endpoint(s)", parent=True)
    started = _text(stats, "started")
    for one in counted:
        _add_statistics(screen, one, started)
    return screen


def _metadata(document: Document) -> list[str]:
    found = document.get("metadata")
    return pairs({str(k): str(v) for k, v in found.items()}) if isinstance(found, dict) else []


def _since(started: str) -> str:
    """Empty where that is not told, and as it is told where it is no time."""
    try:
        age_ns = time.time_ns() - parse_time(started)
    except ValueError:
        return started
    return f"{moment(started)} ({duration(max(0, age_ns))} ago)" if started else ""


def _add_statistics(screen: Details, one: Document, started: str) -> None:
    screen.section(f"{_text(one, 'name') or 'default'} Endpoint Statistics", indent=2)
    group = _text(one, "queue_group")
    screen.row("Requests", f'{number(_whole(one, "num_requests"))} in group "{group}"')
    took = duration(_whole(one, "processing_time"))
    mean = duration(_whole(one, "average_processing_time"))
    screen.row("Processing Time", f"{took} (average {mean})")
    screen.row_if("Started", _since(started))
    screen.row("Errors", number(_whole(one, "num_errors")))
    screen.row_if("Last Error", _text(one, "last_error"))
    if one.get("data") is not None:
        screen.section("Endpoint Specific Statistics", indent=2, parent=True)
        text = json.dumps(one["data"], indent=4, ensure_ascii=False)
        for line in text.split("\n"):
            screen.text(f" {line}")
