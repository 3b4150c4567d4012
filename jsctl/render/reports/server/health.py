"""How healthy servers say they are."""

from collections.abc import Sequence

from jsctl.api.monitoring.health import Healthz
from jsctl.api.server import ServerInfo
from jsctl.dataclass import dataclass
from jsctl.render.column import Cell, Column
from jsctl.render.humanize import number

HEALTHY = 200
ERRORS_MAX = 10
"""Of a server; when there are more the last line says how many."""


@dataclass(frozen=True, slots=True)
class HealthRow:
    """A server, or one of its errors below it."""

    server: ServerInfo | None = None
    status: str = ""
    kind: str = ""
    error: str = ""


def _of_server(row: HealthRow, name: str) -> str:
    return str(getattr(row.server, name)) if row.server else ""


HEALTH_COLUMNS: tuple[Column[HealthRow], ...] = (
    Column("server", "Server", lambda row: _of_server(row, "name")),
    Column("cluster", "Cluster", lambda row: _of_server(row, "cluster")),
    Column("domain", "Domain", lambda row: _of_server(row, "domain")),
    Column("status", "Status", lambda row: row.status),
    Column("type", "Type", lambda row: row.kind),
    Column("error", "Error", lambda row: row.error),
)

Replies = Sequence[tuple[ServerInfo, Healthz]]


def health_rows(replies: Replies) -> list[HealthRow]:
    """Servers, each with its errors."""
    rows: list[HealthRow] = []
    for server, health in replies:
        rows.append(HealthRow(server, f"{health.status} ({health.status_code})"))
        shown = health.errors if len(health.errors) <= ERRORS_MAX else health.errors[:9]
        rows += [HealthRow(kind=one.type, error=one.error) for one in shown]
        if left := len(health.errors) - len(shown):
            rows.append(HealthRow(status=f"{left} more errors"))
    return rows


def health_footer(replies: Replies) -> list[Cell]:
    """Servers, clusters, how many are well, errors."""
    well = sum(health.status_code == HEALTHY for _, health in replies)
    return [
        number(len(replies)),
        number(len({server.cluster for server, _ in replies})),
        "",
        f"ok: {well} / err: {len(replies) - well}",
        "",
        number(sum(len(health.errors) for _, health in replies)),
    ]
