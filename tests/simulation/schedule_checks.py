"""What must be true of the schedules of a stream, from the entries of its log.

A schedule makes messages as long as it is there: not before it is due, once for each time that it
is due, and none once another message, an end or a removal is in the log before.
"""

from collections.abc import Collection

from jsctl.api.times import parse_time
from jsctl.broker.jetstream.streams.publish_headers import (
    NEXT_PURGE,
    SCHEDULE,
    SCHEDULE_NEXT,
    SCHEDULER,
    nats_fields,
)
from jsctl.broker.store.record import Record
from tests.simulation.violation import Violation
from tests.simulation.world import SECOND

MADE = b".out"
"""What the subjects of their messages end with."""
GRACE_NS = SECOND
"""So long after it is due the message of a schedule may come."""


class PlanBooks:
    """The schedules of one stream."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.known: dict[bytes, tuple[int, int]] = {}
        """Subject -> (sequence, not due before)."""
        self.made = 0

    def store(self, record: Record) -> None:
        """A message is stored."""
        fields = nats_fields(record.headers)
        scheduler = fields.get(SCHEDULER, b"")
        if scheduler and record.subject.endswith(MADE):
            self._made(record, scheduler, fields[SCHEDULE_NEXT])
        elif scheduler:
            self.known.pop(scheduler, None)
        elif SCHEDULE in fields:
            text = fields[SCHEDULE].decode()
            # At intervals: the leader's clock counts, which may be behind its messages.
            due_ns = parse_time(text[4:]) if text.startswith("@at ") else 0
            self.known[record.subject] = record.seq, due_ns
        else:
            self.known.pop(record.subject, None)

    def _made(self, record: Record, scheduler: bytes, following: bytes) -> None:
        found = self.known.get(scheduler)
        if found is None:
            raise Violation(f"{self.stream}: {record.seq} is of {scheduler!r}, which is over")
        seq, due_ns = found
        if record.time_ns < due_ns:
            raise Violation(f"{self.stream}: {record.seq} is of {seq}, which is not due")
        self.made += 1
        if following == NEXT_PURGE:
            del self.known[scheduler]
        else:
            self.known[scheduler] = seq, parse_time(following.decode())

    def removed(self, there: Collection[int]) -> None:
        """Somebody removed messages: only these are there."""
        self.known = {one: row for one, row in self.known.items() if row[0] in there}

    def late(self, there: Collection[int], now_ns: int) -> list[int]:
        """Schedules that were due long before that time, and have not made their message."""
        end_ns = now_ns - GRACE_NS
        return [seq for seq, due_ns in self.known.values() if seq in there and due_ns < end_ns]
