"""How busy subjects are."""

from collections.abc import Mapping, Sequence

from jsctl.dataclass import dataclass
from jsctl.render.column import Cell, Column
from jsctl.render.humanize import number, size


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """What came on one subject."""

    subject: str
    messages: int
    bytes: int


SUBJECT_COLUMNS: tuple[Column[SubjectRow], ...] = (
    Column("subject", "Subject", lambda row: row.subject),
    Column("messages", "Message Count", lambda row: row.messages, lambda row: number(row.messages)),
    Column("bytes", "Bytes", lambda row: row.bytes, lambda row: size(row.bytes)),
)


def busiest(counts: Mapping[str, tuple[int, int]], top: int) -> list[SubjectRow]:
    """The subjects with most messages, of (messages, bytes) by subject."""
    rows = [SubjectRow(subject, *count) for subject, count in counts.items()]
    rows.sort(key=lambda row: (-row.messages, row.subject))
    return rows[:top] if top > 0 else rows


def subject_footer(rows: Sequence[SubjectRow]) -> list[Cell]:
    """Totals of the rows shown."""
    return [
        "Totals",
        number(sum(row.messages for row in rows)),
        size(sum(row.bytes for row in rows)),
    ]


def subject_title(top: int, kind: str = "Subjects") -> str:
    """As natscli heads it."""
    return "Top Subject Report" if top == 1 else f"Top {top} Active {kind} Report"
