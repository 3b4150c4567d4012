"""Dead letters: the list and the screen of one."""

from jsctl.api.times import format_time
from jsctl.dataclass import dataclass
from jsctl.render.column import Column
from jsctl.render.details import Details
from jsctl.render.humanize import moment_ns, number, size


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterRow:
    """A message that a consumer gave up; `size` is None when it is gone."""

    id: int
    stream: str
    consumer: str
    sequence: int
    subject: str
    deliveries: int
    why: str
    reason: str
    time_ns: int
    size: int | None


def _size(row: LetterRow) -> str:
    return "gone" if row.size is None else size(row.size)


LETTER_COLUMNS: tuple[Column[LetterRow], ...] = (
    Column("id", "ID", lambda row: row.id, lambda row: str(row.id)),
    Column("stream", "Stream", lambda row: row.stream),
    Column("consumer", "Consumer", lambda row: row.consumer),
    Column("sequence", "Sequence", lambda row: row.sequence, lambda row: number(row.sequence)),
    Column("subject", "Subject", lambda row: row.subject),
    Column(
        "deliveries", "Deliveries", lambda row: row.deliveries, lambda row: number(row.deliveries)
    ),
    Column("why", "Why", lambda row: row.why),
    Column("reason", "Reason", lambda row: row.reason, priority=2),
    Column(
        "time",
        "Given Up",
        lambda row: format_time(row.time_ns),
        lambda row: moment_ns(row.time_ns),
        priority=1,
    ),
    Column("size", "Message", lambda row: row.size, _size),
)


def letter_document(row: LetterRow) -> dict[str, object]:
    """A row as a document."""
    return {column.key: column.value(row) for column in LETTER_COLUMNS}


def screen_of(row: LetterRow) -> Details:
    """Everything that is known of one, but its message."""
    screen = Details(f"Dead Letter {row.id}")
    screen.row("Stream", row.stream)
    screen.row("Consumer", row.consumer)
    screen.row("Sequence", number(row.sequence))
    screen.row_if("Subject", row.subject)
    screen.row("Deliveries", number(row.deliveries))
    screen.row("Why", row.why)
    screen.row_if("Reason", row.reason)
    screen.row("Given Up", moment_ns(row.time_ns))
    screen.row("Message", _size(row))
    return screen
