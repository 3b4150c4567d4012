"""How leaders are spread over servers."""

from collections.abc import Iterable, Sequence

from jsctl.api.cluster import ClusterInfo
from jsctl.dataclass import dataclass
from jsctl.render.table import table
from jsctl.render.theme import PLAIN, Theme


@dataclass(frozen=True, slots=True)
class LeaderRow:
    """One server; `share` of its cluster's total, 0..1."""

    server: str
    cluster: str
    count: int
    share: float

    @property
    def bar(self) -> str:
        """A star for each tenth, at least one for who leads anything."""
        return "*" * max(1, int(self.share * 10 + 0.5)) if self.count else ""


def leader_rows(clusters: Iterable[ClusterInfo | None]) -> list[LeaderRow]:
    """One row a server that leads something, by cluster and then by count."""
    counts: dict[tuple[str, str], int] = {}
    for cluster in clusters:
        if cluster is not None and cluster.name and cluster.leader:
            key = (cluster.name, cluster.leader)
            counts[key] = counts.get(key, 0) + 1
    return rows_of_counts(counts)


def rows_of_counts(counts: dict[tuple[str, str], int]) -> list[LeaderRow]:
    """The same from counts by (cluster, server)."""
    totals: dict[str, int] = {}
    for (cluster, _), count in counts.items():
        totals[cluster] = totals.get(cluster, 0) + count
    rows = [
        LeaderRow(server, cluster, count, count / totals[cluster] if totals[cluster] else 0.0)
        for (cluster, server), count in counts.items()
    ]
    return sorted(rows, key=lambda row: (row.cluster, row.count, row.server))


def leader_table(
    rows: Sequence[LeaderRow], kind: str, theme: Theme = PLAIN, width_max: int = 0
) -> str:
    """The table natscli prints for `--leaders`; `kind` heads the count column."""
    ends = {at for at in range(len(rows) - 1) if rows[at].cluster != rows[at + 1].cluster}
    return table(
        ["Server", "Cluster", kind, "Distribution"],
        [[row.server, row.cluster, f"{row.count:,}", row.bar] for row in rows],
        title="RAFT Leader Report",
        theme=theme,
        width_max=width_max,
        rules_after=ends,
    )
