"""What the check of streams found, a row for each replica."""

from collections.abc import Iterable, Mapping

from jsctl.api.stream import ReplicaCheck, ReplicaDifference, SequenceRange, StreamCheck
from jsctl.dataclass import dataclass
from jsctl.render.column import Column
from jsctl.render.humanize import number, size

RANGES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One replica of one stream."""

    stream: str
    replica: ReplicaCheck
    differs: bool
    difference: ReplicaDifference | None = None

    @property
    def verdict(self) -> str:
        """In a few words."""
        one = self.replica
        if one.offline:
            return "offline"
        if not one.done:
            return "unfinished"
        if one.lost:
            return "lost messages"
        if one.damaged:
            return "damaged"
        if self.differs:
            return "other messages than the leader" + self._where()
        return "repaired" if one.repaired or one.findings else "whole"

    def _where(self) -> str:
        one = self.difference
        if one is None or not one.first:
            return ""
        return f", first {ranges_text([SequenceRange(first=one.first, last=one.last)])}"


def check_rows(checks: Mapping[str, StreamCheck]) -> list[CheckRow]:
    """Streams and servers by name."""
    rows = []
    for name, check in sorted(checks.items()):
        known = {one.name: one for one in check.differences}
        rows += [
            CheckRow(name, one, one.name in check.different, known.get(one.name))
            for one in check.replicas
        ]
    return rows


def ranges_text(ranges: Iterable[SequenceRange]) -> str:
    """The first ranges, and how many more there are."""
    told = [
        f"{one.first}" if one.first == one.last else f"{one.first}-{one.last}" for one in ranges
    ]
    more = len(told) - RANGES_SHOWN
    return ", ".join(told[:RANGES_SHOWN]) + (f" and {more} more" if more > 0 else "")


CHECK_COLUMNS: tuple[Column[CheckRow], ...] = (
    Column("stream", "Stream", lambda row: row.stream),
    Column("server", "Server", lambda row: row.replica.name),
    Column(
        "bytes",
        "Read",
        lambda row: row.replica.bytes,
        lambda row: size(row.replica.bytes),
        priority=1,
    ),
    Column("findings", "Findings", lambda row: row.replica.findings),
    Column(
        "repaired",
        "Repaired",
        lambda row: row.replica.repaired,
        lambda row: number(row.replica.repaired),
    ),
    Column("damaged", "Damaged", lambda row: ranges_text(row.replica.damaged)),
    Column("verdict", "Verdict", lambda row: row.verdict),
)
