"""What the audit of streams found, or the verification of a chain; a row for each replica."""

from collections.abc import Mapping

from jsctl.api.responses import ReplicaAudit, StreamAudit
from jsctl.api.stream import SequenceRange
from jsctl.dataclass import dataclass
from jsctl.render.column import Column
from jsctl.render.humanize import number
from jsctl.render.reports.stream.checks import ranges_text

BREAKS_SHOWN = 3
_VERDICTS = {
    "comparing": "unfinished",
    "same": "the same",
    "leader": "leader",
    "offline": "offline, not compared",
    "unanswered": "did not answer",
}


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One replica of one stream."""

    stream: str
    replica: ReplicaAudit

    @property
    def verdict(self) -> str:
        """In a few words."""
        one = self.replica
        if one.state == "different":
            where = ranges_text([SequenceRange(first=one.first, last=one.last)])
            return f"other messages than the leader, first {where}"
        if one.state == "damaged":
            return f"not all compared, damaged {ranges_text(one.damaged)}"
        if one.state == "broken":
            return ", ".join(f"{cut.seq}: {cut.reason}" for cut in one.breaks[:BREAKS_SHOWN])
        return _VERDICTS.get(one.state, one.state)


def audit_rows(audits: Mapping[str, StreamAudit]) -> list[AuditRow]:
    """Streams and servers by name."""
    return [AuditRow(name, one) for name, audit in sorted(audits.items()) for one in audit.replicas]


AUDIT_COLUMNS: tuple[Column[AuditRow], ...] = (
    Column("stream", "Stream", lambda row: row.stream),
    Column("server", "Server", lambda row: row.replica.name),
    Column(
        "messages",
        "Compared",
        lambda row: row.replica.messages,
        lambda row: number(row.replica.messages),
    ),
    Column("up_to", "Up To", lambda row: row.replica.up_to, priority=1),
    Column("verdict", "Verdict", lambda row: row.verdict),
)
